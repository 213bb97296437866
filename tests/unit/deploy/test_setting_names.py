"""No guide, manifest or script names a setting that the code does not have."""

import re
from pathlib import Path

import pytest

from tests.support.commands import ROOT
from tests.support.deployed_programs import known_settings
from tests.support.guide_blocks import guides
from tests.support.guides import setting_rows

# A name that goes on (`PAGEFLEET_API_MAX_OPEN_…`) stands for all that begin with it.
NAME = re.compile(r"PAGEFLEET_[A-Z0-9_]*")
DEPLOYED = [
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "deploy").rglob("*"))
    if path.is_file() and path.suffix in {".yaml", ".env", ".Dockerfile", ".json", ".md", ""}
]


def unknown_in(text: str) -> set[str]:
    known = known_settings()
    return {
        name
        for name in NAME.findall(text)
        if name not in known
        and not (name.endswith("_") and any(each.startswith(name) for each in known))
    }


@pytest.mark.parametrize("file", sorted({*guides(), *DEPLOYED}))
def test_a_setting_that_is_named_exists(file: str) -> None:
    assert unknown_in((ROOT / file).read_text("utf-8")) == set()


def test_a_misspelt_setting_is_found() -> None:
    assert unknown_in("set PAGEFLEET_S3_BUKET, or PAGEFLEET_S3_…") == {"PAGEFLEET_S3_BUKET"}


def test_every_file_of_a_deployment_is_looked_at() -> None:
    assert {"deploy/compose/compose.yaml", "deploy/docker/pagefleet-probe"} <= set(DEPLOYED)
    assert len({Path(file).parts[1] for file in DEPLOYED}) >= 3


def test_what_a_cluster_has_to_be_told_is_in_its_guide() -> None:
    """Settings without a default: a program without one of them does not start."""
    guide = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")

    required = [row[0].strip("`") for row in setting_rows() if row[1] == "required"]
    assert [name for name in required if name not in guide] == []
