import json

import pytest

from api.settings import read_api_settings
from workers.settings import SettingsError, WorkerSettings, read_settings

REQUIRED = {
    "PAGEFLEET_DATABASE_URL": "postgresql://localhost/pagefleet",
    "PAGEFLEET_REDIS_URL": "redis://localhost",
    "PAGEFLEET_S3_BUCKET": "pagefleet",
}
WATCHED = "PAGEFLEET_S3_EVENTS_WATCHED"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in REQUIRED.items():
        monkeypatch.setenv(name, value)


def watch(monkeypatch: pytest.MonkeyPatch, *places: dict[str, object]) -> None:
    monkeypatch.setenv(
        WATCHED, json.dumps([{"bucket": "scans", "tenant": "archive", **place} for place in places])
    )


def test_places_are_read_from_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, {"prefix": "in/", "options": {"dpi": 300}}, {"prefix": "urgent/"})

    places = read_api_settings().s3_events_watched

    assert [place.prefix for place in places] == ["in/", "urgent/"]
    assert (places[0].options.dpi, places[0].priority) == (300, "bulk")


@pytest.mark.parametrize("prefix", ["", "documents/", "docu", "documents/0198/"])
def test_a_place_in_which_results_lie_is_refused_at_start(
    monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    watch(monkeypatch, {"bucket": "pagefleet", "prefix": prefix})

    with pytest.raises(SettingsError, match=f"{WATCHED}.*overlaps"):
        read_api_settings()


@pytest.mark.parametrize("prefix", ["in/", "documents-in/"])
def test_a_place_beside_the_results_is_taken(monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    watch(monkeypatch, {"bucket": "pagefleet", "prefix": prefix})

    assert len(read_api_settings().s3_events_watched) == 1


def test_a_place_that_is_there_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, {"prefix": "in/"}, {"prefix": "in/", "tenant": "acme"})

    with pytest.raises(SettingsError, match="twice"):
        read_api_settings()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("hush", "must be a JSON list"),
        ('{"hush": 1}', "valid tuple"),
        ('[{"bucket": "hush"}]', "0.tenant"),
        ('[{"bucket": "b", "tenant": "t", "suffix": "hush"}]', "0.suffix"),
        ('[{"bucket": "b", "tenant": "t", "options": {"dpi": "hush"}}]', "0.options.dpi"),
    ],
)
def test_what_is_no_list_of_places_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, value: str, told: str
) -> None:
    monkeypatch.setenv(WATCHED, value)

    with pytest.raises(SettingsError, match=told) as caught:
        read_api_settings()

    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKEN", "short"),
        ("VISIBILITY_S", "29"),
        ("VISIBILITY_S", "43201"),
        ("WAIT_S", "21"),
        ("WAIT_S", "-1"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"PAGEFLEET_S3_EVENTS_{name}", value)

    with pytest.raises(SettingsError, match=f"PAGEFLEET_S3_EVENTS_{name}: "):
        read_api_settings()


def test_a_misspelt_name_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEFLEET_S3_EVENTS_QUEUE", "x")

    with pytest.raises(SettingsError, match="PAGEFLEET_S3_EVENTS_QUEUE is not a setting"):
        read_api_settings()


def test_workers_tolerate_the_settings_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, {})

    assert read_settings(WorkerSettings).s3_bucket == "pagefleet"


def test_sources_are_read_from_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEFLEET_API_SOURCES", '[{"bucket": "scans", "tenants": ["archive"]}]')

    (place,) = read_api_settings().api_sources

    assert (place.bucket, place.prefix, place.tenants) == ("scans", "", frozenset({"archive"}))
