import json
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.models import app, default_requirements, download_wheels, install_files
from workers.ocr.bundle import BundleFile, WheelSource, sha256_of
from workers.ocr.errors import ModelFileError


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "models"
    monkeypatch.setenv("PAGEFLEET_MODELS_DIR", str(folder))
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


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("command", ["list", "fetch"])
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
