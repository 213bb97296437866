"""The first thing that anybody runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import run_pagefleet
from tests.support.embedded_stack import lent_home
from tests.support.guide_blocks import blocks_run_by
from tests.support.guide_shell import GuideShell
from tests.support.models import require_bundle
from workers.settings import models_dir

# Minutes on a machine that does much else; the dense page alone is half a minute of one core.
LIMIT_S = 800


@pytest.fixture(scope="module")
def home(services_folder: Path) -> Iterator[Path]:
    """A home that the first command makes; what one demo has read, serves the next."""
    require_bundle()
    with lent_home(services_folder) as home:
        home.rmdir()
        yield home


@pytest.mark.timeout(LIMIT_S + 60)
def test_the_demo_reads_every_sample_and_leaves_nothing_running(home: Path) -> None:
    settings = {"PAGEFLEET_HOME": str(home), "PAGEFLEET_MODELS_DIR": str(models_dir())}

    done = run_pagefleet("demo", "--exit", timeout_s=LIMIT_S, **settings)
    after = run_pagefleet("status", **settings)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 of 10 samples ended as they must" in done.stdout
    assert "truncated" in done.stdout
    assert "pagefleet up --detach" in done.stdout
    assert "Flower" not in done.stdout
    assert not (home / "stack.json").exists()
    assert after.returncode == 2
    assert "is not running" in after.stderr


@pytest.mark.timeout(LIMIT_S + 300)
def test_the_commands_of_the_guide_start_show_and_stop_a_stack(
    home: Path, services_folder: Path
) -> None:
    (block,) = blocks_run_by(__file__)
    folder = services_folder / f"{home.name}-work"
    shell = GuideShell(folder, variables={"PAGEFLEET_HOME": str(home)}, replaced={})

    done = shell.sh(block.code, timeout_s=LIMIT_S + 200)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 of 10 samples ended as they must" in done.stdout
    assert not (home / "stack.json").exists()


def test_the_demo_asks_for_the_models_before_it_starts_anything(tmp_path: Path) -> None:
    home = tmp_path / "home"

    done = run_pagefleet(
        *("demo", "--exit"),
        PAGEFLEET_HOME=str(home),
        PAGEFLEET_MODELS_DIR=str(tmp_path / "none"),
    )

    assert done.returncode == 1
    assert "pagefleet models fetch" in done.stderr
    assert not home.exists()
