from tests.support.models import require_bundle
from workers.ocr.engine_models import recognition_preparation
from workers.ocr.inference import count_node_providers


def test_on_the_cpu_every_node_runs_on_the_cpu() -> None:
    bundle = require_bundle()
    preparation = recognition_preparation(bundle, "cuda")

    nodes = count_node_providers(bundle.recognition_path, preparation, "cpu", (1, 48, 64, 3))

    assert set(nodes) == {"CPUExecutionProvider"}
    assert nodes.total() > 0
