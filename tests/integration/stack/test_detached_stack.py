"""``pagefleet up --detach``, with the project's own programs."""

from pathlib import Path

import pytest

from cli.stack.state import read_stack
from tests.support.commands import run_pagefleet


@pytest.mark.timeout(200)
def test_a_stack_in_the_background_says_what_starts_and_when_it_serves(stack_home: Path) -> None:
    done = run_pagefleet("up", "--detach", timeout_s=180, PAGEFLEET_HOME=str(stack_home))

    state = read_stack(stack_home)
    lines = done.stderr.splitlines()
    assert done.returncode == 0, done.stderr
    assert state is not None
    assert lines[0] == "starting valkey, postgres, seaweedfs"
    assert [line for line in lines if line.startswith("api: running (")]
    assert lines[-1].startswith("flower: running (")
    # Without the key: this is no terminal, and a log must not have it.
    assert done.stdout.startswith(f"Viewer   {state.api_url}/\nAPI      {state.api_url}\n")
    assert state.api_key not in done.stdout
