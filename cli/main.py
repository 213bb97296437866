"""The ``pagefleet`` command."""

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli.actions import cancel, delete, retry
from cli.alive import alive
from cli.api_server import api
from cli.batch_report import report
from cli.bench import app as bench
from cli.bench_database import measure_database
from cli.bench_fleet import measure_fleet, measure_scale
from cli.bench_storm import measure_storm
from cli.console import output, report_error, set_up_streams
from cli.database import migrate
from cli.demo import demo
from cli.doctor import doctor
from cli.errors import CommandError
from cli.export import export
from cli.flower import flower
from cli.ingest.command import ingest
from cli.keys import app as keys
from cli.models import app as models
from cli.ocr import ocr
from cli.reconcile import reconcile
from cli.s3_events import s3_events
from cli.stack.commands import down, up
from cli.status import status
from cli.webhooks import webhooks
from cli.worker import worker


class CommandGroup(TyperGroup):
    """Commands whose expected errors are one line with a remedy, without a traceback."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's own types of both are private
        """Run the chosen command.

        Raises:
            Exit: the command failed; the reason was shown.
        """
        try:
            return super().invoke(ctx)
        except CommandError as error:
            report_error(error)
            raise typer.Exit(error.exit_code) from error


app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a local variable may be a password
    help="Self-hosted bulk OCR: archives in, structured JSON out, nothing lost.",
    epilog="Exit codes: 0 done, 1 something failed, 2 wrong command line or settings.",
)


def run() -> None:
    """Run the command line; ``cli.__main__`` calls it."""
    set_up_streams()
    app(prog_name="pagefleet")


def _show_version(asked: bool) -> None:  # noqa: FBT001 - the signature that Typer calls
    if not asked:
        return
    try:
        output().print(f"pagefleet {version('pagefleet')}")
    except PackageNotFoundError:
        output().print("pagefleet, not installed: running from its source folder")
    raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def samples(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where they go; it is made.")],
) -> None:
    """Write the sample documents that `demo` works on."""
    # Draws with PyMuPDF, which an image for the API alone does not have.
    from cli.samples import write_samples

    for sample in write_samples(folder):
        outcome = sample.error_code or f"pages: {sample.page_count}"
        output().print(f"{sample.path}: {outcome}", markup=False)


_READ = "Read and ingest"
_STACK = "Run the stack on this machine"
_WATCH = "Watch and put right"
_PARTS = "The parts, one by one"
_CHECK = "Check and measure"
# In the order in which somebody new needs them.
_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    _STACK: (up, down, demo),
    _READ: (ocr, ingest, export),
    _WATCH: (status, report, cancel, retry, delete),
    _PARTS: (migrate, api, worker, reconcile, webhooks, s3_events, flower, alive),
    _CHECK: (doctor, samples),
}
for _panel, _of_panel in _COMMANDS.items():
    for _command in _of_panel:
        app.command(rich_help_panel=_panel)(_command)
bench.command(name="scale")(measure_scale)
bench.command(name="fleet")(measure_fleet)
bench.command(name="database")(measure_database)
bench.command(name="storm")(measure_storm)
app.add_typer(keys, name="keys", rich_help_panel=_PARTS)
app.add_typer(models, name="models", rich_help_panel=_CHECK)
app.add_typer(bench, name="bench", rich_help_panel=_CHECK)
