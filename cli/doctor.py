"""``pagefleet doctor``: looks at everything that has to be right, and says how to mend it."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.console import output, print_json_line, quiet_logs
from cli.errors import EXIT_FAILED, CommandError

if TYPE_CHECKING:
    from cli.findings import Finding
    from workers.settings import OcrSettings

_MARKS = {"ok": "[green]ok     [/green]", "warning": "[yellow]warning[/yellow]"}
_FAILED_MARK = "[red]FAILED [/red]"


def doctor(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a finding, for machines.")
    ] = False,
) -> None:
    """Check Python, libraries, models, GPU, limits, space and servers; exit 1 if one fails."""
    quiet_logs()
    findings = []
    for finding in examine():
        findings.append(finding)
        _show(finding, as_json=as_json)
    if any(finding.level == "failed" for finding in findings):
        raise typer.Exit(EXIT_FAILED)


def examine() -> Iterator["Finding"]:
    """Yield all findings; servers are looked at when settings or a running stack name them."""
    from cli import findings, server_findings
    from cli.settings import adopt_running_stack, find_api, is_worker_configured, load_settings
    from workers.settings import OcrSettings, WorkerSettings

    yield from findings.check_python()
    yield from findings.check_runtime_distributions()
    yield from findings.check_pdf_reader()
    adopt_running_stack()
    try:
        settings = load_settings(WorkerSettings if is_worker_configured() else OcrSettings)
    except CommandError as error:
        yield findings.Finding("Settings", "failed", error.message, error.remedy)
        return
    yield findings.Finding("Settings", "ok", f"home is {settings.home}")
    yield from findings.check_models(settings)
    yield from findings.check_device(settings)
    yield from _engine_findings(settings)
    yield from findings.check_limits(settings)
    yield from findings.check_space(settings)
    if isinstance(settings, WorkerSettings):
        yield from server_findings.check_servers(settings)
    try:
        yield from server_findings.check_api(*find_api(None, None))
    except CommandError as error:
        yield findings.Finding("API", "failed", error.message, error.remedy)


def _engine_findings(settings: "OcrSettings") -> Iterator["Finding"]:
    from cli.engine_finding import check_engine
    from workers.devices import choose_device, count_gpus
    from workers.ocr.errors import OcrError

    try:
        device = choose_device(settings.device, slot=0, gpu_count=count_gpus())
    except OcrError:
        return  # said by the device's own finding
    yield from check_engine(settings, device=device.kind)


def _show(finding: "Finding", *, as_json: bool) -> None:
    if as_json:
        print_json_line(asdict(finding))
        return
    mark = _MARKS.get(finding.level, _FAILED_MARK)
    output().print(f"{mark} {finding.name}: {escape(finding.detail)}")
    if finding.remedy:
        output().print(f"        {escape(finding.remedy)}")
