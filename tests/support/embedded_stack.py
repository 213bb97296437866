"""``pagefleet up`` with the project's own programs, for tests that only look at it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from cli.client import ApiClient
from cli.stack import postgres_place
from cli.stack.commands import stop_stack
from cli.stack.state import StackState, read_stack, stack_folder
from tests.support.commands import run_pagefleet
from tests.support.models import require_bundle, share_prepared_graphs
from workers.settings import models_dir

_START_LIMIT_S = 400


@dataclass(frozen=True, slots=True)
class EmbeddedStack:
    """A stack that serves.

    Attributes:
        home: where it lives.
        state: what it says of itself.
        output: what the command that started it wrote to standard output.
        notices: the same, to standard error.
    """

    home: Path
    state: StackState
    output: str
    notices: str

    def client(self) -> ApiClient:
        return ApiClient(self.state.api_url, self.state.api_key)


@contextmanager
def lent_home(folder: Path) -> Iterator[Path]:
    """Lend a new home that all users may enter; at the end its stack is stopped, and it removed."""
    home = folder / f"home-{uuid4().hex}"
    home.mkdir()
    home.chmod(0o755)
    yield home
    stop_stack(home)
    postgres_place.remove(stack_folder(home) / "postgres")
    shutil.rmtree(home)


@contextmanager
def embedded_stack(folder: Path, **settings: str) -> Iterator[EmbeddedStack]:
    """Run a stack in the background; ``settings`` are added to its environment."""
    require_bundle()
    with lent_home(folder) as home:
        share_prepared_graphs(home)
        started = run_pagefleet(
            *("up", "--detach"),
            timeout_s=_START_LIMIT_S,
            PAGEFLEET_HOME=str(home),
            PAGEFLEET_MODELS_DIR=str(models_dir()),
            **settings,
        )
        assert started.returncode == 0, started.stderr
        state = read_stack(home)
        assert state is not None
        yield EmbeddedStack(home, state, started.stdout, started.stderr)
