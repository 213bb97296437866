"""Settings: every one of them, its default and its limits."""

from pathlib import Path
from typing import Any

import pytest

from workers.settings import (
    OcrSettings,
    SettingsError,
    WorkerSettings,
    home_dir,
    models_dir,
    read_settings,
)

REQUIRED = {
    "PAGEFLEET_DATABASE_URL": "postgresql://user:hush@localhost/pagefleet",
    "PAGEFLEET_REDIS_URL": "redis://:hush@localhost/0",
    "PAGEFLEET_S3_BUCKET": "pagefleet",
}

DATABASE_URLS = [
    "postgres://h/d",
    "postgresql://h",
    "postgresql+psycopg://u:a/b?c#d[e@h:5432/d?sslmode=require",
    "postgresql://u@[::1]:5432/d",
    "postgresql:///d?host=/run/postgresql",
]

DEFAULTS: dict[str, Any] = {
    "profile": "balanced",
    "device": "auto",
    "engine": "auto",
    "rec_chunk_size": 256,
    "rec_minibatch_px_columns": 262_144,
    "max_crops_per_page": 2_000,
    "ocr_threads": 0,
    "crop_cache_count": 20_000,
    "inference_timeout_s": 120,
    "gpu_memory_bytes": 0,
    "render_max_pixels": 60_000_000,
    "render_page_timeout_s": 30,
    "render_open_timeout_s": 30,
    "render_memory_bytes": 2 * 2**30,
    "render_pages_per_child": 1_000,
    "max_file_bytes": 2 * 2**30,
    "max_pages": 10_000,
    "log_level": "info",
    "redis_key_prefix": "pagefleet:",
    "redis_visibility_timeout_s": 3_600,
    "s3_endpoint_url": None,
    "s3_region": "us-east-1",
    "s3_access_key_id": None,
    "s3_secret_access_key": None,
    "s3_checksums": "when_required",
    "worker_queues": frozenset(),
    "slots": 0,
    "chunk_pages": 0,
    "task_hard_limit_s": 900,
    "lease_s": 60,
    "max_attempts": 4,
    "document_cache": True,
    "page_cache": True,
    "dispatch_grace_s": 30,
    "retry_delay_s": 10,
    "dispatch_queue_limit": 256,
    "dispatch_interval_s": 0.5,
    "sweep_interval_s": 5,
    "sweep_limit": 1_000,
    "soft_shutdown_s": 60,
    "slot_host_memory_bytes": 0,
    "stall_timeout_s": 120,
    "heartbeat_file": None,
    "heartbeat_limit_s": 120,
    "metrics_host": "127.0.0.1",
    "metrics_port": 0,
}
WITHOUT_DEFAULT = {"home", "models_dir", "database_url", "redis_url", "s3_bucket"}

OUT_OF_RANGE = {
    "PAGEFLEET_DEVICE": "tpu",
    "PAGEFLEET_ENGINE": "tensorrt",
    "PAGEFLEET_REC_CHUNK_SIZE": "257",
    "PAGEFLEET_REC_MINIBATCH_PX_COLUMNS": "100",
    "PAGEFLEET_MAX_CROPS_PER_PAGE": "0",
    "PAGEFLEET_OCR_THREADS": "-1",
    "PAGEFLEET_CROP_CACHE_COUNT": "-1",
    "PAGEFLEET_INFERENCE_TIMEOUT_S": "0",
    "PAGEFLEET_GPU_MEMORY_BYTES": "-1",
    "PAGEFLEET_RENDER_MAX_PIXELS": "10",
    "PAGEFLEET_RENDER_PAGE_TIMEOUT_S": "0",
    "PAGEFLEET_RENDER_OPEN_TIMEOUT_S": "-1",
    "PAGEFLEET_RENDER_MEMORY_BYTES": "1",
    "PAGEFLEET_RENDER_PAGES_PER_CHILD": "0",
    "PAGEFLEET_MAX_FILE_BYTES": "0",
    "PAGEFLEET_MAX_PAGES": "0",
    "PAGEFLEET_LOG_LEVEL": "loud",
    "PAGEFLEET_REDIS_VISIBILITY_TIMEOUT_S": "0",
    "PAGEFLEET_S3_CHECKSUMS": "never",
    "PAGEFLEET_SLOTS": "-1",
    "PAGEFLEET_CHUNK_PAGES": "-1",
    "PAGEFLEET_TASK_HARD_LIMIT_S": "0",
    "PAGEFLEET_LEASE_S": "0",
    "PAGEFLEET_MAX_ATTEMPTS": "0",
    "PAGEFLEET_DOCUMENT_CACHE": "maybe",
    "PAGEFLEET_PAGE_CACHE": "maybe",
    "PAGEFLEET_DISPATCH_GRACE_S": "0",
    "PAGEFLEET_RETRY_DELAY_S": "0",
    "PAGEFLEET_DISPATCH_QUEUE_LIMIT": "7",
    "PAGEFLEET_DISPATCH_INTERVAL_S": "0",
    "PAGEFLEET_SWEEP_INTERVAL_S": "0",
    "PAGEFLEET_SWEEP_LIMIT": "0",
    "PAGEFLEET_SOFT_SHUTDOWN_S": "-1",
    "PAGEFLEET_METRICS_PORT": "65536",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in REQUIRED.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.mark.parametrize("url", DATABASE_URLS)
def test_every_form_of_a_database_address_is_taken(
    environment: pytest.MonkeyPatch, url: str
) -> None:
    environment.setenv("PAGEFLEET_DATABASE_URL", url)

    assert read_settings(WorkerSettings).database_url.get_secret_value() == url


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_a_setting_has_its_documented_default(name: str) -> None:
    assert getattr(read_settings(WorkerSettings), name) == DEFAULTS[name]


def test_no_setting_is_made_without_being_checked_here() -> None:
    assert set(WorkerSettings.model_fields) == set(DEFAULTS) | WITHOUT_DEFAULT


@pytest.mark.parametrize("name", sorted(OUT_OF_RANGE))
def test_a_value_out_of_range_is_refused_by_name(
    environment: pytest.MonkeyPatch, name: str
) -> None:
    environment.setenv(name, OUT_OF_RANGE[name])

    with pytest.raises(SettingsError, match=f"{name}: "):
        read_settings(WorkerSettings)


@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_a_missing_value_is_refused_by_name(environment: pytest.MonkeyPatch, name: str) -> None:
    environment.delenv(name)

    with pytest.raises(SettingsError, match=name):
        read_settings(WorkerSettings)


def test_an_unknown_variable_is_an_error(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("PAGEFLEET_CHUNK_PAGE", "4")

    with pytest.raises(SettingsError, match="PAGEFLEET_CHUNK_PAGE is not a setting"):
        read_settings(WorkerSettings)


@pytest.mark.parametrize("name", ["PAGEFLEET_STACK_HOME", "PAGEFLEET_TEST_DEVICE"])
def test_a_variable_that_nobody_reads_is_an_error(
    environment: pytest.MonkeyPatch, name: str
) -> None:
    environment.setenv(name, "4")

    with pytest.raises(SettingsError, match=f"{name} is not a setting"):
        read_settings(OcrSettings)


def test_all_problems_are_listed_at_once(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("PAGEFLEET_CHUNK_PAGE", "4")
    environment.setenv("PAGEFLEET_SLOTS", "many")
    environment.delenv("PAGEFLEET_S3_BUCKET")

    with pytest.raises(SettingsError) as caught:
        read_settings(WorkerSettings)

    assert len(str(caught.value).splitlines()) == 3


def test_a_wrong_secret_is_not_shown(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("PAGEFLEET_SLOTS", "hush-hush")

    with pytest.raises(SettingsError) as caught:
        read_settings(WorkerSettings)

    assert "hush" not in str(caught.value)


def test_secrets_are_hidden_when_settings_are_printed() -> None:
    assert "hush" not in repr(read_settings(WorkerSettings))


def test_a_hard_limit_over_half_the_visibility_timeout_is_refused(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setenv("PAGEFLEET_TASK_HARD_LIMIT_S", "1801")

    with pytest.raises(SettingsError, match="at most half"):
        read_settings(WorkerSettings)


def test_half_a_pair_of_storage_keys_is_refused(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("PAGEFLEET_S3_ACCESS_KEY_ID", "a")

    with pytest.raises(SettingsError, match="go together"):
        read_settings(WorkerSettings)


def test_queues_are_a_list_with_commas(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("PAGEFLEET_WORKER_QUEUES", "split,assemble")

    assert read_settings(WorkerSettings).worker_queues == {"split", "assemble"}


def test_the_core_alone_needs_no_server(environment: pytest.MonkeyPatch) -> None:
    for name in REQUIRED:
        environment.delenv(name)

    assert read_settings(OcrSettings).device == "auto"


def test_the_core_alone_tolerates_the_settings_of_a_worker() -> None:
    assert read_settings(OcrSettings).device == "auto"


def test_the_home_of_a_source_checkout_is_inside_it(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("PAGEFLEET_HOME", raising=False)

    assert home_dir() == Path(__file__).absolute().parent.parent / ".pagefleet"


def test_models_lie_in_the_home_unless_told_otherwise(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment.setenv("PAGEFLEET_HOME", str(tmp_path))
    environment.delenv("PAGEFLEET_MODELS_DIR", raising=False)

    assert models_dir() == tmp_path / "models"


def test_folders_are_absolute_for_every_reader(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment.chdir(tmp_path)
    environment.setenv("PAGEFLEET_HOME", "here")
    environment.setenv("PAGEFLEET_MODELS_DIR", "models")

    settings = read_settings(OcrSettings)

    assert (settings.home, home_dir()) == (tmp_path / "here", tmp_path / "here")
    assert (settings.models_dir, models_dir()) == (tmp_path / "models", tmp_path / "models")


def test_models_lie_in_a_relative_home_too(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.chdir(tmp_path)
    environment.setenv("PAGEFLEET_HOME", "here")
    environment.delenv("PAGEFLEET_MODELS_DIR", raising=False)

    assert read_settings(OcrSettings).models_dir == tmp_path / "here" / "models"
