"""What has to be shown on a GPU machine, step by step; ``gpu_check.sh`` calls it.

Each step writes ``<out>/<step>.json`` and is bounded in time; what has been measured when that is
up stands there. With ``--device cpu`` the same steps
run without a GPU, so that all but CUDA is proven before a machine is at hand.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.contenders import Setting, ours
from bench.corpus import CorpusFile
from bench.machine import core_count, describe_machine
from bench.page_files import BenchPage, write_pages
from bench.report import table
from bench.rounds import RunningContender, running
from bench.scores import score
from workers import devices
from workers.ocr.engine_models import detection_preparation, recognition_preparation
from workers.ocr.errors import DocumentError
from workers.ocr.inference import Device, count_node_providers
from workers.ocr.profiles import open_profile
from workers.page_renderer import PageRenderer, RenderLimits
from workers.settings import OcrSettings, home_dir, project_environment, read_settings

# Arithmetic alone, of the balanced profile on an H200: 436 GFLOP for an A4 page of 100 lines at
# 8.4 ms in fp32 (ARCHITECTURE.md). A lighter page may be faster than this floor allows.
DENSE_PAGE_FLOOR_S: Final = 0.0084
MAX_CHANGED_LINES: Final = 0.01
_DPI: Final = 200
_ENDINGS: Final = {".pdf", ".png", ".tiff", ".tif", ".jpg"}
_MORE_PAGES_THAN_ANY: Final = 1_000
_DETECTION_SHAPE: Final = (1, 960, 704, 3)
_RECOGNITION_WIDTH_PX: Final = 640
_CPU_PROVIDER: Final = "CPUExecutionProvider"
_CUDA_PROVIDER: Final = "CUDAExecutionProvider"
# Nodes on shapes are placed on the CPU by design; they are few and touch no pixels.
_MAX_CPU_NODE_SHARE: Final = 0.2
_SMI_TIMEOUT_S: Final = 30


def prove_provider(setting: Setting, profiles: Sequence[str]) -> dict[str, Any]:
    """Run both models of each profile and count on which provider their nodes ran."""
    settings = read_settings(OcrSettings)
    device = devices.choose_device(setting.device, slot=0, gpu_count=devices.count_gpus())
    devices.pin(device)
    nodes: dict[str, dict[str, int]] = {}
    for profile in profiles:
        bundle = open_profile(profile, settings.models_dir)
        crop_height = bundle.manifest.recognition.crop_height_px
        crops_shape = (8, crop_height, _RECOGNITION_WIDTH_PX, 3)
        crops = recognition_preparation(bundle, device.kind)
        for name, path, preparation, shape in (
            ("detection", bundle.detection_path, detection_preparation(bundle), _DETECTION_SHAPE),
            ("recognition", bundle.recognition_path, crops, crops_shape),
        ):
            counted = count_node_providers(path, preparation, device.kind, shape)
            nodes[f"{profile} {name}"] = dict(counted)
    return {
        "device": device.kind,
        "nodes": nodes,
        "ok": all(_is_on(device.kind, counts) for counts in nodes.values()),
        "gpus": _smi("index,name,driver_version,memory.total"),
        "processes_on_gpu": _smi("pid,used_memory", query="compute-apps"),
    }


def compare_texts(setting: Setting, pages: Sequence[BenchPage]) -> dict[str, Any]:
    """Read the same pages on the CPU and on the device, and compare their lines."""
    texts = []
    for device in ("cpu", setting.device):
        with running(ours(replace(setting, device=device))) as runner:
            runner.read(pages)
            texts.append({each.id: each.text for each in runner.measurement.answers.values()})
    lines = changed = 0
    distances = []
    for page in pages:
        expected, actual = (each[page.request.id] for each in texts)
        pairs = list(zip(expected.splitlines(), actual.splitlines(), strict=False))
        lines += max(len(expected.splitlines()), len(actual.splitlines()))
        changed += sum(left != right for left, right in pairs)
        changed += abs(len(expected.splitlines()) - len(actual.splitlines()))
        distances.append(score(expected, actual, page.request.language).cer)
    return {
        "profile": setting.profile,
        "pages": len(pages),
        "lines": lines,
        "changed_lines": changed,
        "mean_cer": sum(distances) / max(len(distances), 1),
        "ok": changed <= MAX_CHANGED_LINES * lines,
    }


def measure_throughput(
    setting: Setting, pages: Sequence[BenchPage], *, slots: Sequence[int], seconds: float
) -> Iterator[dict[str, Any]]:
    """Read pages over and over for a while, for each number of slots."""
    for count in slots:
        with running(ours(replace(setting, slots=count))) as runner:
            runner.warm_up(pages[0])
            page_count = _read_for(runner, list(pages) * count, seconds)
        measured = runner.measurement
        pages_per_s = page_count / measured.seconds
        yield {
            "profile": setting.profile,
            "slots": count,
            "pages": page_count,
            "seconds": round(measured.seconds, 2),
            "pages_per_s": round(pages_per_s, 3),
            "cpu_s_per_page": round(measured.cpu_s / page_count, 3),
            "share_of_dense_floor": round(pages_per_s * DENSE_PAGE_FLOOR_S, 4),
            "failed": sum(each.error is not None for each in measured.answers.values()),
        }


def summary(folder: Path) -> tuple[dict[str, Any], str]:
    """Gather what the steps wrote; return it as one record and as Markdown."""
    steps = ("provider", "parity", "throughput", "memory")
    found = {name: _read_json(folder / f"{name}.json") for name in steps}
    machine = describe_machine()
    lines = ["# GPU check", "", f"- {machine['processor']}, {machine['cores']} cores"]
    provider = found["provider"]
    if provider is not None:
        lines += [f"- device {provider['device']}, GPUs: {'; '.join(provider['gpus']) or 'none'}"]
        lines += [f"- {name}: nodes by provider {each}" for name, each in provider["nodes"].items()]
        lines += [f"- provider proof: {'ok' if provider['ok'] else 'FAILED'}"]
    lines += [_parity_line(each) for each in (found["parity"] or {"runs": []})["runs"]]
    memory = found["memory"]
    if memory is not None:
        shown = f"peak {memory['peak_mib']} MiB, late / early {memory['growth']}"
        lines += [f"- memory over {memory['pages']} pages: {shown}"]
    lines += [
        f"- {name}: did not end, see {name}.log"
        for name in steps
        if found[name] is None or not found[name].get("is_whole", True)
    ]
    header = ("profile", "slots", "pages/s", "CPU s/page", "share of the dense floor", "failed")
    rows = [
        (
            each["profile"],
            str(each["slots"]),
            f"{each['pages_per_s']:.2f}",
            f"{each['cpu_s_per_page']:.3f}",
            f"{each['share_of_dense_floor']:.1%}",
            str(each["failed"]),
        )
        for each in (found["throughput"] or {"runs": []})["runs"]
    ]
    text = "\n".join([*lines, "", *table(header, rows)]) + "\n"
    return {"machine": machine, **found}, text


def main() -> None:
    """Run one step.

    Raises:
        SystemExit: with 1 when the step shows that something is wrong.
    """
    arguments = _arguments()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    if arguments.step == "report":
        record, text = summary(out)
        _write_json(out / "gpu_check.json", record)
        (out / "gpu_check.md").write_text(text, encoding="utf-8")
        sys.stdout.write(text)
        return
    setting = Setting(
        cores=core_count(),
        profile=arguments.profiles[0],
        route="ocr",
        device=arguments.device,
        home=home_dir(),
        environment=project_environment(),
    )
    if arguments.step == "provider":
        record = prove_provider(setting, arguments.profiles)
        _write_json(out / "provider.json", record)
    else:
        record = _write_runs(out / f"{arguments.step}.json", _run_with_pages(arguments, setting))
    if not record["ok"]:
        raise SystemExit(1)


def _write_runs(path: Path, runs: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """Write after each run all that there are, since the next one may not end in its time."""
    record: dict[str, Any] = {"runs": [], "ok": True, "is_whole": False}
    for run in runs:
        record["runs"].append(run)
        record["ok"] &= run.get("ok", run.get("failed") == 0)
        _write_json(path, record)
    record["is_whole"] = True
    _write_json(path, record)
    return record


def _run_with_pages(arguments: argparse.Namespace, setting: Setting) -> Iterator[dict[str, Any]]:
    """Read the documents for each profile.

    Raises:
        SystemExit: there are none, of which nothing must be shown to be well.
    """
    with TemporaryDirectory() as folder, PageRenderer(RenderLimits()) as renderer:
        files = [
            CorpusFile(path, path.name, "sample", "en", ("",) * _MORE_PAGES_THAN_ANY)
            for path in sorted(arguments.documents.rglob("*"))
            if path.suffix in _ENDINGS and not _is_refused(renderer, path)
        ]
        if arguments.device == "cpu":  # minutes on a CPU
            files = [file for file in files if file.path.name != "dense-index.png"]
        if not files:
            raise SystemExit(f"no document in {arguments.documents} can be read")
        pages = write_pages(
            files, Path(folder), renderer, dpi=_DPI, max_pages=0, on_file=lambda _file: None
        )
        for profile in arguments.profiles:
            chosen = replace(setting, profile=profile)
            if arguments.step == "parity":
                yield compare_texts(chosen, pages)
            else:
                yield from measure_throughput(
                    chosen, pages, slots=arguments.slots, seconds=arguments.seconds
                )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("provider", "parity", "throughput", "report"))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--documents", type=Path, help="readable documents, at any depth")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--profiles", nargs="+", default=["balanced"])
    parser.add_argument("--slots", nargs="+", type=int, default=[1])
    parser.add_argument("--seconds", type=float, default=20.0, help="of one throughput figure")
    return parser.parse_args()


def _read_for(runner: RunningContender, pages: Sequence[BenchPage], seconds: float) -> int:
    """Read the pages over and over until the time is up; return how many were read."""
    page_count = 0
    started = time.monotonic()
    while not page_count or time.monotonic() - started < seconds:
        runner.read(pages)
        page_count += len(pages)
    return page_count


def _is_refused(renderer: PageRenderer, path: Path) -> bool:
    """Tell whether it is one of the samples that no one can read."""
    try:
        renderer.open(path)
    except DocumentError:
        return True
    return False


def _is_on(device: Device, nodes: dict[str, int]) -> bool:
    if device == "cpu":
        return set(nodes) == {_CPU_PROVIDER}
    total = sum(nodes.values())
    return nodes.get(_CUDA_PROVIDER, 0) > 0 and nodes.get(_CPU_PROVIDER, 0) <= (
        _MAX_CPU_NODE_SHARE * total
    )


def _smi(fields: str, *, query: str = "gpu") -> list[str]:
    """Ask the driver's own program; nothing where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    done = subprocess.run(  # noqa: S603 - the driver's own program
        [program, f"--query-{query}={fields}", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        timeout=_SMI_TIMEOUT_S,
        check=False,
    )
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def _parity_line(parity: dict[str, Any]) -> str:
    return (
        f"- {parity['profile']}, CPU and device: {parity['changed_lines']} of"
        f" {parity['lines']} lines differ on"
        f" {parity['pages']} pages, mean CER between them {parity['mean_cer']:.5f}:"
        f" {'ok' if parity['ok'] else 'FAILED'}"
    )


def _read_json(path: Path) -> Any:  # noqa: ANN401 - whatever the step wrote
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _write_json(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
