import pytest

from cli.engine_finding import check_engine, has_flag
from cli.findings import Finding
from workers.settings import OcrSettings


def found(
    engine: str = "auto",
    *,
    device: str = "cpu",
    is_installed: bool = True,
    has_bfloat16: bool = True,
) -> Finding:
    (finding,) = check_engine(
        OcrSettings.model_validate({"engine": engine}),
        device=device,
        is_installed=lambda: is_installed,
        multiplies_bfloat16=lambda: has_bfloat16,
    )
    return finding


def test_auto_takes_openvino_where_it_is_installed_and_bfloat16_is_in_hardware() -> None:
    finding = found()

    assert (finding.level, finding.remedy) == ("ok", "")
    assert finding.detail.startswith("openvino, bf16: ")


def test_openvino_that_would_be_faster_and_is_not_there_is_a_warning_with_the_command() -> None:
    finding = found(is_installed=False)

    assert finding.level == "warning"
    assert finding.detail.startswith("onnxruntime, fp32: ")
    assert "pip install --require-hashes -r requirements/openvino.txt" in finding.remedy


def test_a_processor_without_bfloat16_misses_nothing() -> None:
    finding = found(is_installed=False, has_bfloat16=False)

    assert finding.level == "ok"
    assert finding.detail.startswith("onnxruntime, fp32: ")


def test_auto_takes_onnxruntime_beside_a_gpu() -> None:
    finding = found(device="cuda")

    assert finding.level == "ok"
    assert finding.detail.startswith("onnxruntime, fp32: ")


def test_a_choice_of_onnxruntime_is_no_warning() -> None:
    assert found("onnxruntime", is_installed=False).level == "ok"


@pytest.mark.parametrize(("has_bfloat16", "precision"), [(True, "bf16"), (False, "fp32")])
def test_openvino_by_choice_says_its_precision(precision: str, *, has_bfloat16: bool) -> None:
    assert found("openvino", has_bfloat16=has_bfloat16).detail.startswith(f"openvino, {precision}")


@pytest.mark.parametrize(("device", "is_installed"), [("cpu", False), ("cuda", True)])
def test_openvino_by_choice_that_cannot_run_is_a_failure(
    device: str, *, is_installed: bool
) -> None:
    finding = found("openvino", device=device, is_installed=is_installed)

    assert finding.level == "failed"
    assert "PAGEFLEET_ENGINE=auto" in finding.remedy


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("flags\t\t: fpu amx_bf16 amx_tile", True),
        ("flags\t\t: fpu avx512_bf16", True),
        ("flags\t\t: fpu avx512f avx512_bf16x", False),
        ("model name\t: amx_bf16", False),
    ],
)
def test_bfloat16_is_read_from_the_flags_of_the_processor(line: str, *, expected: bool) -> None:
    assert has_flag(f"processor\t: 0\n{line}\n") is expected
