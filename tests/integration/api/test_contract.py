"""The API does what its description says, and takes whatever the description allows."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.api_server import RunningApi

TIMEOUT_S = 280
EXAMPLES = 10
# What a file is, is told from its content, which no schema describes: 415 is no fault there.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 415, 429, "5xx"]
"""


def test_schemathesis_finds_no_failure(api: RunningApi, tmp_path: Path) -> None:
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    done = subprocess.run(  # noqa: S603 - our own arguments
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)),
            *("run", f"{api.url}/openapi.json"),
            *("--header", f"Authorization: {api.client.headers['Authorization']}"),
            *("--max-examples", str(EXAMPLES), "--request-timeout", "20", "--no-color"),
            *("--generation-deterministic", "--warnings", "off"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
