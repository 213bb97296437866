"""The commands of the guides that become a service: each is run as it stands there."""

import re
from pathlib import Path

import pytest

from tests.support.fleet import free_port, wait_for
from tests.support.guide_blocks import blocks_run_by
from tests.support.guide_shell import GuideShell
from tests.support.models import require_bundle
from tests.support.services import S3Bucket

START_LIMIT_S = 120.0
END_LIMIT_S = 60.0
LINES = sorted({
    line.partition("  #")[0].strip()
    for block in blocks_run_by(__file__)
    for line in block.code.splitlines()
})
# What a command's log says once it works.
STARTED = {
    "api": "Uvicorn running",
    "worker": "slot ready",
    "reconcile": "reconcile starts",
    "webhooks": "webhooks starts",
    "flower": "Visit me",
}


@pytest.fixture
def shell(database_url: str, redis_url: str, s3_bucket: S3Bucket, tmp_path: Path) -> GuideShell:
    require_bundle()
    return GuideShell(
        tmp_path,
        variables={
            "PAGEFLEET_HOME": str(tmp_path),
            "PAGEFLEET_DATABASE_URL": database_url,
            "PAGEFLEET_REDIS_URL": redis_url,
            **s3_bucket.environment(),
            "PAGEFLEET_DEVICE": "cpu",
        },
        # The ports of the guide may be taken on the machine of the tests.
        replaced={r"--port \d+": f"--port {free_port()}", "PASSWORD=…": "PASSWORD=blotting-paper"},
    )


@pytest.mark.parametrize("line", LINES)
def test_a_service_starts_and_ends(shell: GuideShell, line: str) -> None:
    (command,) = re.findall(r"pagefleet (\w+)", line)
    log = shell.folder / "log"

    with shell.started(line, log) as process:
        wait_for(
            f"the start of {line}",
            lambda: process.poll() is not None or STARTED[command] in log.read_text("utf-8"),
            timeout_s=START_LIMIT_S,
        )
        process.terminate()
        status = process.wait(END_LIMIT_S)

    assert STARTED[command] in log.read_text("utf-8")
    assert status == 0, log.read_text("utf-8")
