"""Where other people's files lie, which are not part of the repository."""

import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]


def corpus_files(folder: str) -> list[Path]:
    """Return the files below ``folder`` of the corpus beside the checkout, none where it lacks."""
    for parent in (_REPOSITORY.parent, _REPOSITORY.parent.parent):
        found = parent / "shared" / "corpus" / folder
        if found.is_dir():
            return sorted(path for path in found.rglob("*") if path.is_file())
    return []


def require_corpus(name: str) -> Path:
    """Return the one corpus file of this name; skip on a laptop, fail in CI where it is absent."""
    for path in corpus_files("."):
        if path.name == name:
            return path
    if os.environ.get("CI"):
        pytest.fail(f"CI has no corpus file {name}")
    pytest.skip(f"no corpus beside the checkout: {name} is not tried")
