import pytest

from tests.support.models import require_bundle
from workers.ocr.bundle import ModelBundle
from workers.ocr.engine import OcrEngine


@pytest.fixture(scope="session")
def bundle() -> ModelBundle:
    return require_bundle()


@pytest.fixture(scope="session")
def engine(bundle: ModelBundle) -> OcrEngine:
    return OcrEngine(bundle)
