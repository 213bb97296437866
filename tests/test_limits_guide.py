"""docs/limits.md has every setting that is a limit, its default, and what happens above it."""

import pytest

from tests.support.guides import setting_rows, table_rows

WRITTEN = {
    row[0].strip("`"): row[1:]
    for row in table_rows("limits.md")
    if row[0].startswith("`PAGEFLEET_")
}
DEFAULTS = {row[0].strip("`"): row[1] for row in setting_rows()}
# Places, choices, names, secrets, sizes of what is done at once, and pauses: nothing is above them.
# A new setting is either here or in the guide.
NO_LIMITS = {
    f"PAGEFLEET_{name}"
    for name in (
        *("HOME", "MODELS_DIR", "PROFILE", "DEVICE", "ENGINE", "OCR_THREADS", "LOG_LEVEL"),
        *("DATABASE_URL", "REDIS_URL", "REDIS_KEY_PREFIX"),
        *("S3_ENDPOINT_URL", "S3_BUCKET", "S3_REGION", "S3_CHECKSUMS"),
        *("S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY"),
        *("WORKER_QUEUES", "SLOTS", "CHUNK_PAGES", "HEARTBEAT_FILE"),
        *("METRICS_HOST", "METRICS_PORT"),
        *("DISPATCH_GRACE_S", "DISPATCH_INTERVAL_S", "RETRY_DELAY_S", "SWEEP_INTERVAL_S"),
        *("API_HOST", "API_PORT", "API_SOURCES", "API_KEY_CACHE_S", "API_CAPACITY_CACHE_S"),
        *("API_DIRECT_UPLOAD_STORAGE_URL", "API_DIRECT_UPLOAD_PART_BYTES"),
        *("DOCUMENT_CACHE", "PAGE_CACHE"),
        *("WEBHOOK_ALLOW_LOOPBACK", "WEBHOOK_INTERVAL_S"),
        *("S3_EVENTS_WATCHED", "S3_EVENTS_TOKEN", "S3_EVENTS_WAIT_S"),
        *("S3_EVENTS_QUEUE_URL", "S3_EVENTS_QUEUE_ENDPOINT_URL"),
        *("CLIENT_API_URL", "CLIENT_API_KEY", "CLIENT_FILE_PASSWORD"),
        *("FLOWER_HOST", "FLOWER_PORT", "FLOWER_USER", "FLOWER_PASSWORD"),
    )
}


@pytest.mark.parametrize("variable", sorted(DEFAULTS))
def test_a_setting_is_a_limit_that_the_guide_explains_or_no_limit(variable: str) -> None:
    assert (variable in WRITTEN) != (variable in NO_LIMITS)


def test_the_guide_and_the_list_name_settings_alone() -> None:
    assert WRITTEN.keys() | NO_LIMITS == DEFAULTS.keys()


@pytest.mark.parametrize("variable", sorted(WRITTEN))
def test_the_default_of_a_limit_is_that_of_the_code(variable: str) -> None:
    assert WRITTEN[variable][0] == DEFAULTS[variable]


@pytest.mark.parametrize("variable", sorted(WRITTEN))
def test_the_guide_says_what_happens_above_a_limit(variable: str) -> None:
    assert WRITTEN[variable][1]
