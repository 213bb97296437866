import resource
from pathlib import Path

import pytest

from cli import findings
from cli.findings import Finding
from workers.settings import OcrSettings


def levels(found: object) -> list[str]:
    return [each.level for each in found]  # type: ignore[attr-defined]


def test_an_old_python_is_a_failure() -> None:
    assert levels(findings.check_python((3, 10, 14))) == ["failed"]


def test_this_python_is_fine() -> None:
    assert levels(findings.check_python()) == ["ok"]


def test_two_distributions_of_onnxruntime_are_a_failure_with_a_remedy() -> None:
    (finding,) = findings.check_runtime_distributions(lambda _: "1.31.1")

    assert finding.level == "failed"
    assert "onnxruntime 1.31.1 and onnxruntime-gpu 1.31.1" in finding.detail
    assert "pip uninstall -y onnxruntime onnxruntime-gpu" in finding.remedy


@pytest.mark.parametrize("name", ["onnxruntime", "onnxruntime-gpu"])
def test_one_distribution_of_onnxruntime_is_fine(name: str) -> None:
    found = findings.check_runtime_distributions({name: "1.31.1"}.get)

    assert levels(found) == ["ok"]


def test_no_onnxruntime_is_a_failure() -> None:
    assert levels(findings.check_runtime_distributions(lambda _: None)) == ["failed"]


@pytest.mark.parametrize(
    ("version", "level"),
    [("1.28.2", "ok"), ("1.29.0", "ok"), ("2.0.0", "failed"), ("1.28.1", "failed")],
)
def test_pymupdf_is_new_enough_and_below_2(version: str, level: str) -> None:
    assert levels(findings.check_pdf_reader({"pymupdf": version}.get)) == [level]


def test_missing_models_are_a_failure_that_names_the_command(tmp_path: Path) -> None:
    (finding,) = findings.check_models(OcrSettings(models_dir=tmp_path))

    assert finding.level == "failed"
    assert "pagefleet models fetch" in finding.remedy


def test_a_file_that_is_not_the_pinned_model_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "PP-OCRv6_det_small.onnx").write_bytes(b"something else")

    (finding,) = findings.check_models(OcrSettings(models_dir=tmp_path))

    assert finding.level == "failed"
    assert "SHA-256" in finding.detail


def test_few_open_files_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        resource,
        "getrlimit",
        lambda which: (256, 256) if which == resource.RLIMIT_NOFILE else (-1, -1),
    )

    assert levels(findings.check_limits(OcrSettings())) == ["failed"]


def test_an_address_space_below_that_of_a_render_child_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        resource,
        "getrlimit",
        lambda which: (2**28, 2**28) if which == resource.RLIMIT_AS else (4096, 4096),
    )

    assert levels(findings.check_limits(OcrSettings())) == ["ok", "failed"]


def test_space_is_looked_at_where_the_home_will_be(tmp_path: Path) -> None:
    found = list(findings.check_space(OcrSettings(home=tmp_path / "not" / "yet")))

    assert found[0].name == "Disk"
    assert str(tmp_path) in found[0].detail


def test_every_finding_that_is_not_ok_has_a_remedy(tmp_path: Path) -> None:
    settings = OcrSettings(models_dir=tmp_path, home=tmp_path, device="cuda")
    found: list[Finding] = [
        *findings.check_models(settings),
        *findings.check_device(settings),
        *findings.check_runtime_distributions(lambda _: None),
        *findings.check_pdf_reader(lambda _: None),
        *findings.check_python((3, 9)),
    ]

    assert {each.level for each in found} == {"failed"}
    assert all(each.remedy for each in found)
