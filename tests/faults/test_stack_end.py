"""``pagefleet up`` told to end in the middle of its work, in both of its forms."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from cli.samples import Sample
from cli.stack.state import StackState, read_stack
from tests.support.commands import ROOT, run_pagefleet
from tests.support.fleet import wait_for
from tests.support.processes import are_gone

START_LIMIT_S = 300
GRACE_S = 90
TIMEOUT_S = 300
FINAL = {"succeeded", "partly_succeeded", "failed"}

pytestmark = pytest.mark.timeout(1_500)


def serving(home: Path) -> StackState:
    return wait_for("the stack", lambda: read_stack(home), timeout_s=START_LIMIT_S)


def client_of(state: StackState) -> httpx.Client:
    return httpx.Client(
        base_url=state.api_url, headers={"Authorization": f"Bearer {state.api_key}"}, timeout=30
    )


def submit(state: StackState, path: Path) -> UUID:
    with client_of(state) as client, path.open("rb") as file:
        answer = client.post("/v1/documents", files={"file": (path.name, file)})
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    return UUID(answer.json()["id"])


def final_state(state: StackState, document_id: UUID) -> str:
    def look() -> str | None:
        with client_of(state) as client:
            view: str = client.get(f"/v1/documents/{document_id}").json()["state"]
        return view if view in FINAL else None

    return wait_for(f"document {document_id}", look, timeout_s=TIMEOUT_S)


def test_a_stack_that_is_told_to_end_loses_nothing(
    stack_home: Path, samples: dict[str, Sample], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        log = stack.enter_context((tmp_path / "up.log").open("wb"))
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "cli", "up"],
                cwd=ROOT,
                env={**os.environ, "PAGEFLEET_HOME": str(stack_home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        )
        stack.callback(process.kill)
        document_id = submit(serving(stack_home), samples["scanned-letters.pdf"].path)
        process.send_signal(signal.SIGTERM)
        foreground_status = process.wait(GRACE_S)
    leftover = read_stack(stack_home)

    again = run_pagefleet("up", "--detach", timeout_s=START_LIMIT_S, PAGEFLEET_HOME=str(stack_home))
    state = serving(stack_home)
    view = final_state(state, document_id)
    os.kill(state.pid, signal.SIGTERM)
    wait_for("the end of the stack", lambda: are_gone([state.pid]), timeout_s=GRACE_S)

    assert (foreground_status, leftover, again.returncode) == (0, None, 0)
    assert view == "succeeded"
    assert read_stack(stack_home) is None
