"""Where the tests find the model files and the corpus, and what happens when they are absent."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from workers.ocr.bundle import ModelBundle, load_bundle
from workers.ocr.errors import ModelFileError
from workers.settings import home_dir, models_dir

CHECKOUT = Path(__file__).resolve().parents[2]


def missing(what: str) -> None:
    """Skip on a laptop, fail where CI is set: nothing goes untested unseen."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def require_bundle() -> ModelBundle:
    """Return the default bundle from the models folder."""
    try:
        return load_bundle(models_dir())
    except ModelFileError as exc:
        missing(f"{exc}")
        raise


def share_prepared_graphs(home: Path) -> None:
    """Let a home find the graphs that were made ready in others; else each slot takes seconds."""
    kept = home_dir() / "cache"
    kept.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):  # it had a fleet before
        (home / "cache").symlink_to(kept)


def require_corpus() -> Path:
    """Return the folder of real files that lies beside the checkout."""
    for folder in (CHECKOUT.parent, CHECKOUT.parent.parent):
        corpus = folder / "shared" / "corpus"
        if corpus.is_dir():
            return corpus
    missing("../shared/corpus is not there: the texts of real scans are NOT checked")
    raise FileNotFoundError("shared/corpus")
