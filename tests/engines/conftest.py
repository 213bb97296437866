import pytest

from tests.support.models import require_bundle
from workers.ocr.bundle import ModelBundle


@pytest.fixture(scope="session")
def bundle() -> ModelBundle:
    return require_bundle()
