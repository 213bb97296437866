"""The API does what its description says, and takes whatever the description allows."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.api_server import RunningApi, Serve

TIMEOUT_S = 280
EXAMPLES = 10
# What no schema describes is refused all the same, and that is no fault there: what a file is, is
# told from its content; an Idempotency-Key may have come with another request; a document has so
# many pages; a file is larger than the operator lets it be; and addresses, places and messages have
# rules of their own.
_REFUSED = '["2xx", "3xx", 401, 403, 404, 409, 413, 415, 422, 429, "5xx"]'
_OPERATIONS = (
    "POST /v1/batches",
    "POST /v1/batches/{batch_id}/objects",
    "POST /v1/documents",
    "POST /v1/events/s3",
    "POST /v1/uploads",
    "POST /v1/webhooks",
    "GET /v1/documents/{document_id}/result",
)
CONFIG = "".join(
    f"""
[[operations]]
include-name = "{name}"
[operations.checks.positive_data_acceptance]
expected-statuses = {_REFUSED}
"""
    for name in _OPERATIONS
)


def test_schemathesis_finds_no_failure(serve: Serve, tmp_path: Path) -> None:
    with serve(settings={"api_max_wait_s": 1, "s3_events_token": "of-a-store-that-tells"}) as api:
        done = run_schemathesis(api, tmp_path)

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def run_schemathesis(api: RunningApi, folder: Path) -> "subprocess.CompletedProcess[str]":
    config = folder / "schemathesis.toml"
    config.write_text(CONFIG)
    return subprocess.run(  # noqa: S603 - our own arguments
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)),
            *("run", f"{api.url}/openapi.json"),
            *("--header", f"Authorization: {api.client.headers['Authorization']}"),
            *("--max-examples", str(EXAMPLES), "--request-timeout", "20", "--no-color"),
            *("--generation-deterministic", "--warnings", "off"),
            # A stream of a document that nobody reads has no end; it has tests of its own.
            *("--exclude-operation-id", "stream_events"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
