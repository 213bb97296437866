"""Somebody's own models: the real files in a folder, described right and described wrong."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.models import app
from tests.support.models import require_bundle
from workers.ocr.bundle import open_bundle, parse_manifest, sha256_of
from workers.ocr.engine import OcrEngine
from workers.ocr.errors import ModelFileError
from workers.ocr.model_check import find_problems, propose_manifest, write_manifest


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The default models under names of their own, without a manifest."""
    bundle = require_bundle()
    folder = tmp_path / "own"
    (folder / "det").mkdir(parents=True)
    shutil.copy(bundle.detection_path, folder / "det" / "inference.onnx")
    shutil.copy(bundle.recognition_path, folder / "rec.onnx")
    return folder


def problems_of(folder: Path, change: Callable[[dict[str, Any]], None]) -> str:
    described = propose_manifest(folder)
    change(described)
    return "\n".join(find_problems(folder, parse_manifest(json.dumps(described))))


def test_the_proposed_manifest_of_good_models_has_no_problem(own: Path) -> None:
    write_manifest(own)

    result = CliRunner().invoke(app, ["check", str(own), "--json"])

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["problems"] == []


def test_a_charset_of_a_file_does_as_well(own: Path) -> None:
    charset = require_bundle().charset[:-1]
    (own / "dict.txt").write_text("\n".join(charset) + "\n", encoding="utf-8", newline="")

    def use_file(described: dict[str, Any]) -> None:
        del described["recognition"]["charset_metadata_key"]
        digest = sha256_of(own / "dict.txt")
        described["recognition"]["charset_file"] = {"name": "dict.txt", "sha256": digest}

    assert problems_of(own, use_file) == ""


def test_a_charset_in_another_order_is_found_out(own: Path) -> None:
    charset = require_bundle().charset[:-1]
    moved = (*charset[1:], charset[0])
    (own / "dict.txt").write_text("\n".join(moved) + "\n", encoding="utf-8", newline="")

    def use_file(described: dict[str, Any]) -> None:
        del described["recognition"]["charset_metadata_key"]
        digest = sha256_of(own / "dict.txt")
        described["recognition"]["charset_file"] = {"name": "dict.txt", "sha256": digest}

    assert "misreads its golden page" in problems_of(own, use_file)


@pytest.mark.parametrize(
    ("part", "field", "value", "problem"),
    [
        ("recognition", "crop_height_px", 32, "its input is 48 px high"),
        ("recognition", "step_px", 4, "it should be 8"),
        ("recognition", "has_space_class", False, "characters without a space"),
        ("recognition", "charset_metadata_key", "letters", "no charset under 'letters'"),
    ],
)
def test_what_does_not_fit_is_named(
    own: Path, part: str, field: str, value: object, problem: str
) -> None:
    def spoil(described: dict[str, Any]) -> None:
        described[part][field] = value

    assert problem in problems_of(own, spoil)


def test_models_with_other_steps_are_not_opened_either(own: Path) -> None:
    described = propose_manifest(own)
    described["recognition"]["step_px"] = 4
    bundle = open_bundle(own, parse_manifest(json.dumps(described)))

    with pytest.raises(ModelFileError, match=r"rec\.onnx: step_px is 4, .* it should be 8"):
        OcrEngine(bundle)


def test_swapped_models_are_both_named(own: Path) -> None:
    def swap(described: dict[str, Any]) -> None:
        files = [described[part]["file"] for part in ("recognition", "detection")]
        described["detection"]["file"], described["recognition"]["file"] = files

    problems = problems_of(own, swap)

    assert "a detector's output has 4 axes, this one has 3" in problems
    assert "a recognizer's output has 3 axes, this one has 4" in problems


def test_a_folder_without_a_recognizer_is_refused(own: Path) -> None:
    (own / "rec.onnx").unlink()

    with pytest.raises(ModelFileError, match=r"one recognizer .* found none"):
        propose_manifest(own)


def test_a_manifest_is_not_written_over(own: Path) -> None:
    write_manifest(own)

    with pytest.raises(ModelFileError, match="already"):
        write_manifest(own)
