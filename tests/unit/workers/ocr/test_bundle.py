import hashlib
import json
from pathlib import Path

import pytest

from workers.ocr.bundle import (
    BundleFile,
    WheelSource,
    load_bundle,
    parse_manifest,
    read_charset,
    read_manifest,
    require_file,
    sha256_of,
)
from workers.ocr.errors import ModelFileError
from workers.ocr.inference import ModelFacts
from workers.ocr.model_files import wheel_source
from workers.ocr.profiles import PROFILES


def file_of(content: bytes, name: str = "model.onnx") -> BundleFile:
    return BundleFile(
        name=name,
        sha256=hashlib.sha256(content).hexdigest(),
        license="Apache-2.0",
        source=WheelSource(distribution="models", version="1.0", path=f"models/{name}"),
    )


def test_a_missing_model_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"PP-OCRv6_det_small\.onnx.*pagefleet models fetch"):
        load_bundle(tmp_path)


def test_a_model_with_another_hash_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "PP-OCRv6_det_small.onnx").write_bytes(b"not the model")

    with pytest.raises(ModelFileError, match=r"SHA-256.*pagefleet models fetch"):
        load_bundle(tmp_path)


def test_the_right_file_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"weights")

    require_file(tmp_path, file_of(b"weights"))

    assert sha256_of(tmp_path / "model.onnx") == file_of(b"weights").sha256


def test_an_unknown_bundle_names_those_that_are_known() -> None:
    with pytest.raises(ModelFileError, match="ppocrv6-small"):
        read_manifest("ppocrv9-huge")


def test_a_malformed_manifest_says_where() -> None:
    manifest = read_manifest().model_dump()
    manifest["detection"]["pixel_threshold"] = 3

    with pytest.raises(ModelFileError, match="pixel_threshold"):
        parse_manifest(json.dumps(manifest))


@pytest.mark.parametrize("name", sorted(PROFILES.values()))
def test_every_bundled_file_has_a_license_in_the_same_wheel(name: str) -> None:
    manifest = read_manifest(name)

    licensed = {wheel_source(file).distribution for file in manifest.license_files}
    assert {wheel_source(file).distribution for file in manifest.model_files} <= licensed


def test_two_charsets_are_one_too_many() -> None:
    manifest = read_manifest("ppocrv6-tiny").model_dump()
    manifest["recognition"]["charset_metadata_key"] = "character"

    with pytest.raises(ModelFileError, match="either charset_metadata_key or charset_file"):
        parse_manifest(json.dumps(manifest))


@pytest.mark.parametrize("name", ["../secret.onnx", "/etc/passwd", "a/../b.onnx", ".hidden"])
def test_a_file_name_leads_nowhere_outside_the_folder(name: str) -> None:
    manifest = read_manifest().model_dump()
    manifest["detection"]["file"]["name"] = name

    with pytest.raises(ModelFileError, match=r"detection\.file\.name"):
        parse_manifest(json.dumps(manifest))


def test_the_hash_of_an_own_file_is_shown_whole(tmp_path: Path) -> None:
    (tmp_path / "own.onnx").write_bytes(b"weights")
    wanted = BundleFile(name="own.onnx", sha256="0" * 64)

    with pytest.raises(ModelFileError, match=hashlib.sha256(b"weights").hexdigest()):
        require_file(tmp_path, wanted)


def test_the_model_version_changes_with_weights_and_with_thresholds() -> None:
    manifest = read_manifest()
    other_weights = manifest.model_dump()
    other_weights["detection"]["file"]["sha256"] = "0" * 64
    other_threshold = manifest.model_dump()
    other_threshold["detection"]["box_threshold"] = 0.6

    versions = {
        manifest.model_version,
        parse_manifest(json.dumps(other_weights)).model_version,
        parse_manifest(json.dumps(other_threshold)).model_version,
    }

    assert len(versions) == 3
    assert all(version.startswith("ppocrv6-small@") for version in versions)


def test_a_charset_is_split_at_line_feeds_alone_and_nothing_is_stripped() -> None:
    listed = "a\n\u2028\n　\n\x85\n\r\n\x0b"

    charset = read_charset(ModelFacts({"character": listed}, 8), "character")

    assert charset == ("a", "\u2028", "　", "\x85", "\r", "\x0b", " ")


@pytest.mark.parametrize("class_count", [4, 6, None])
def test_a_charset_that_does_not_fit_the_output_is_refused(class_count: int | None) -> None:
    facts = ModelFacts({"character": "a\nb\nc"}, class_count)

    with pytest.raises(ModelFileError, match="4 characters"):
        read_charset(facts, "character")


def test_a_model_without_a_charset_is_refused() -> None:
    with pytest.raises(ModelFileError, match="character"):
        read_charset(ModelFacts({}, 5), "character")


def test_a_bundle_may_come_without_an_orientation_model() -> None:
    manifest = read_manifest().model_dump(exclude={"orientation"})

    bundle = parse_manifest(json.dumps(manifest))

    assert bundle.orientation is None
    assert len(bundle.model_files) == 2


def test_the_default_bundle_knows_how_pages_stand() -> None:
    manifest = read_manifest()

    assert manifest.orientation is not None
    assert manifest.orientation.file in manifest.model_files
