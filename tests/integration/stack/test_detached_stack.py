"""``pagefleet up --detach``, with the project's own programs."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from cli.stack import postgres_place
from cli.stack.commands import stop_stack
from cli.stack.state import read_stack, stack_folder
from tests.support.commands import run_pagefleet
from tests.support.models import require_bundle
from workers.settings import models_dir


@pytest.fixture
def home(services_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A new home that all users may enter, with the models of this machine."""
    require_bundle()
    monkeypatch.setenv("PAGEFLEET_MODELS_DIR", str(models_dir()))
    home = services_folder / f"home-{uuid4().hex}"
    home.mkdir()
    home.chmod(0o755)
    yield home
    stop_stack(home)
    postgres_place.remove(stack_folder(home) / "postgres")
    shutil.rmtree(home)


@pytest.mark.timeout(200)
def test_a_stack_in_the_background_says_what_starts_and_when_it_serves(home: Path) -> None:
    done = run_pagefleet("up", "--detach", timeout_s=180, PAGEFLEET_HOME=str(home))

    state = read_stack(home)
    lines = done.stderr.splitlines()
    assert done.returncode == 0, done.stderr
    assert state is not None
    assert lines[0] == "starting valkey, postgres, seaweedfs"
    assert [line for line in lines if line.startswith("api: running (")]
    assert lines[-1].startswith("flower: running (")
    assert done.stdout.startswith(f"API      {state.api_url}\n")
