import tomllib

import pytest

from tests.support.commands import ROOT


@pytest.fixture(scope="session")
def version() -> str:
    """The version of the project, which its images carry."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return str(project["project"]["version"])
