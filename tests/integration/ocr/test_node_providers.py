from tests.support.models import require_bundle
from workers.ocr.inference import count_node_providers


def test_on_the_cpu_every_node_runs_on_the_cpu() -> None:
    nodes = count_node_providers(require_bundle().detection_path, "cpu", (1, 3, 64, 64))

    assert set(nodes) == {"CPUExecutionProvider"}
    assert nodes.total() > 0
