"""A short storm holds, and one in which nobody repairs does not: the harness can fail."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import ROOT
from tests.support.models import require_bundle
from workers.settings import models_dir

TIMEOUT_S = 1_200
SEED = 7

pytestmark = pytest.mark.timeout(1_300)


def run_storm(out: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    """Run a storm as from a checkout that is not installed; return exit status and verdict."""
    require_bundle()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PAGEFLEET_")
    }
    verdict = out / "verdict.json"
    done = subprocess.run(  # noqa: S603 - our own program
        [
            *(sys.executable, str(ROOT / "bench" / "storm.py"), "--light", "--seed", str(SEED)),
            *("--out", str(out), "--json", str(verdict), *options),
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd=out,
        env={**environment, "PAGEFLEET_MODELS_DIR": str(models_dir())},
        timeout=TIMEOUT_S,
    )
    assert verdict.exists(), done.stderr
    return done.returncode, json.loads(verdict.read_text()), done.stdout


def test_a_storm_costs_no_document_and_changes_no_result(tmp_path: Path) -> None:
    code, verdict, shown = run_storm(tmp_path, "--documents", "20", "--minutes", "0.5")

    assert verdict["problems"] == []
    assert (code, verdict["verdict"], shown.split()[-1]) == (0, "HELD", "HELD")
    assert verdict["counts"]["accepted"] == verdict["counts"]["as without faults"] == 20
    assert verdict["counts"]["final exactly once"] == 20
    assert verdict["faults"].keys() >= {"kill_api", "crash_postgres", "flush_redis"}
    assert json.loads((tmp_path / "rounds.jsonl").read_text()) == verdict
    assert (tmp_path / "logs" / "worker-recognize.log").exists()


def test_without_a_reconciler_lost_messages_lose_documents(tmp_path: Path) -> None:
    code, verdict, shown = run_storm(
        tmp_path,
        *("--documents", "16", "--minutes", "0.2", "--without-reconciler"),
        *("--faults", "drop_publishes", "--drop-percent", "30"),
    )

    assert (code, verdict["verdict"], shown.split()[-1]) == (1, "BROKEN", "BROKEN")
    assert verdict["faults"]["drop_publishes"] > 0
    assert verdict["counts"]["accepted"] == 16
    assert verdict["counts"]["not final"] > 0
    assert {problem["what"] for problem in verdict["problems"]} == {"not final", "stuck row"}
