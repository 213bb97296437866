import json

import pytest
from pydantic import ValidationError

from api.settings import ApiSettings, read_api_settings
from workers.settings import SettingsError

REQUIRED = {
    "PAGEFLEET_DATABASE_URL": "postgresql://localhost/pagefleet",
    "PAGEFLEET_REDIS_URL": "redis://localhost",
    "PAGEFLEET_S3_BUCKET": "pagefleet",
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in REQUIRED.items():
        monkeypatch.setenv(name, value)


def test_the_settings_of_the_api_come_from_their_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAGEFLEET_API_PORT", "0")
    monkeypatch.setenv("PAGEFLEET_API_MAX_UPLOAD_BYTES", "1000")

    settings = read_api_settings()

    assert (settings.api_port, settings.api_max_upload_bytes) == (0, 1_000)


def test_a_misspelt_setting_of_the_api_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEFLEET_API_PROT", "80")

    with pytest.raises(SettingsError, match="PAGEFLEET_API_PROT"):
        read_api_settings()


@pytest.mark.parametrize("name", ["PAGEFLEET_CLIENT_API_URL", "PAGEFLEET_CLIENT_API_KEY"])
def test_a_setting_of_another_program_is_none_of_the_apis_business(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:8000")

    read_api_settings()


def test_an_upload_limit_above_what_workers_open_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAGEFLEET_MAX_FILE_BYTES", "1000")

    with pytest.raises(SettingsError, match="PAGEFLEET_API_MAX_UPLOAD_BYTES"):
        read_api_settings()


@pytest.mark.parametrize("prefix", ["", "doc", "documents/", "documents/0"])
def test_the_documents_of_all_tenants_are_no_source(
    monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    place = json.dumps([{"bucket": REQUIRED["PAGEFLEET_S3_BUCKET"], "prefix": prefix}])
    monkeypatch.setenv("PAGEFLEET_API_SOURCES", place)

    with pytest.raises(SettingsError, match=r"PAGEFLEET_API_SOURCES: .* overlaps"):
        read_api_settings()


def test_a_place_beside_the_documents_is_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    place = json.dumps([{"bucket": REQUIRED["PAGEFLEET_S3_BUCKET"], "prefix": "in/"}])
    monkeypatch.setenv("PAGEFLEET_API_SOURCES", place)

    assert read_api_settings().api_sources[0].prefix == "in/"


def test_passwords_are_not_shown() -> None:
    settings = ApiSettings(
        database_url="postgresql://u:hunter2@h/d",  # type: ignore[arg-type] # pydantic converts it
        redis_url="redis://:hunter2@h",  # type: ignore[arg-type] # pydantic converts it
        s3_bucket="b",
    )

    assert "hunter2" not in repr(settings)


def test_settings_do_not_change() -> None:
    settings = read_api_settings()

    with pytest.raises(ValidationError):
        settings.api_port = 1


@pytest.mark.parametrize(
    "url",
    ["files.example.org", "https://", "https://files.example.org/s3", "https://a b", "ftp://a"],
)
def test_an_address_of_storage_that_no_part_can_be_sent_to_is_an_error(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("PAGEFLEET_API_DIRECT_UPLOAD_STORAGE_URL", url)

    with pytest.raises(SettingsError, match="PAGEFLEET_API_DIRECT_UPLOAD_STORAGE_URL"):
        read_api_settings()


def test_a_manifest_has_a_gibibyte_at_most_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert read_api_settings().api_max_manifest_bytes == 2**30

    monkeypatch.setenv("PAGEFLEET_API_MAX_MANIFEST_BYTES", "0")

    with pytest.raises(SettingsError, match="PAGEFLEET_API_MAX_MANIFEST_BYTES: "):
        read_api_settings()
