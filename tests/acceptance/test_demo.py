"""The first thing that anybody runs."""

from pathlib import Path

import pytest

from tests.support.commands import run_pagefleet
from tests.support.models import require_bundle
from workers.settings import models_dir

# Minutes on a machine that does much else; the dense page alone is half a minute of one core.
LIMIT_S = 800


@pytest.mark.timeout(LIMIT_S + 60)
def test_the_demo_reads_every_sample_and_leaves_nothing_running(tmp_path: Path) -> None:
    require_bundle()
    home = tmp_path / "home"
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
    assert "no API is known" in after.stderr


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
