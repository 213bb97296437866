"""``pagefleet demo`` on a stack that runs and is ended before the samples are read."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.stack.folder_lock import FolderLock
from cli.stack.state import StackState, stack_folder, write_stack
from tests.support.api_server import ServedApi
from tests.support.commands import ROOT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_stopped_says_what_is_read_and_kept(
    served_api: ServedApi, tmp_path: Path, number: signal.Signals
) -> None:
    stack_folder(tmp_path).mkdir()
    lock = FolderLock(stack_folder(tmp_path))
    lock.acquire()
    # Its API is real; nobody reads here, so no sample comes to its end but those that are refused.
    write_stack(
        tmp_path,
        StackState(
            pid=os.getpid(),
            started_at=datetime.now(UTC),
            api_url=served_api.url,
            api_key=served_api.key,
            flower_url="http://127.0.0.1:9",
            flower_user="pagefleet",
            flower_password="unused",  # noqa: S106 - made up
            database_url="postgresql://unused",
            redis_url="redis://unused",
            s3_endpoint_url="http://127.0.0.1:9",
            s3_bucket="unused",
            s3_region="unused",
            s3_access_key_id="unused",
            s3_secret_access_key="unused",  # noqa: S106 - made up
        ),
    )

    with subprocess.Popen(
        [sys.executable, "-m", "cli", "demo"],
        cwd=ROOT,
        env={**os.environ, "PAGEFLEET_HOME": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        # The first line of a document is written when it is watched.
        while not (line := process.stderr.readline()).startswith("queued"):
            assert line or process.poll() is None, "it ended before it watched"
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    lock.release()

    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert "of 10 samples" in said
    assert "They are kept: `pagefleet up` goes on" in said
