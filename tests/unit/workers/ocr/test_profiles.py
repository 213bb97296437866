import json
from pathlib import Path

import pytest

from workers.ocr.bundle import read_manifest
from workers.ocr.errors import ModelFileError
from workers.ocr.profiles import PROFILES, find_profile, open_profile


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_a_named_profile_lies_in_the_models_folder(profile: str, tmp_path: Path) -> None:
    manifest, folder = find_profile(profile, tmp_path)

    assert (manifest.name, folder) == (PROFILES[profile], tmp_path)


def test_a_folder_with_a_manifest_is_a_profile(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    described = {**read_manifest().model_dump(mode="json"), "name": "mine"}
    (own / "bundle.json").write_text(json.dumps(described), encoding="utf-8")

    manifest, folder = find_profile(str(own), tmp_path / "models")

    assert (manifest.name, folder) == ("mine", own)


def test_a_folder_without_a_manifest_is_none(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"balanced or fast, or the path of a folder"):
        find_profile(str(tmp_path), tmp_path)


def test_missing_files_of_a_profile_name_the_command_that_fetches_them(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"run `pagefleet models fetch --profile fast`"):
        open_profile("fast", tmp_path)
