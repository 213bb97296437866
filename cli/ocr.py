"""``pagefleet ocr``: files in, results out, in one process and without any server."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import json_line, notices, quiet_logs, shown
from cli.counting import count_of
from cli.errors import EXIT_FAILED, CommandError
from cli.format_option import FormatOption, known_format
from cli.progress import Bar, progress_bar

if TYPE_CHECKING:
    from cli.ocr_inputs import FoundInputs
    from cli.ocr_run import FileOutcome, FileReader
    from cli.ocr_tally import RunTally
    from workers.ocr.exports.formats import ExportFormat
    from workers.ocr.options import OcrOptions
    from workers.settings import OcrSettings

# Enough to see what kind of files they are.
_SKIPPED_SHOWN = 5
WARNINGS: Mapping[str, str] = {
    "languages_without_effect": "--languages had no effect: one model reads them all",
    "pages_beyond_end": "--pages asks for pages behind the last one",
}


def ocr(  # noqa: PLR0913 - each argument is an option of the command
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…",
            help="PDF, PNG, JPEG, TIFF, WebP or BMP files; folders are searched for them.",
        ),
    ],
    *,
    out_dir: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where results go.")
    ] = Path(),
    output_format: FormatOption = "json",
    mode: Annotated[
        str,
        typer.Option(
            metavar="auto|ocr|text",
            help="auto takes sound text from PDF pages and recognizes the rest; ocr recognizes "
            "every page; text recognizes none.",
        ),
    ] = "auto",
    text_order: Annotated[
        str,
        typer.Option(
            metavar="reading|file",
            help="Order of the lines that a PDF states: as one reads, or as the file has them.",
        ),
    ] = "reading",
    dpi: Annotated[
        int, typer.Option(min=72, max=600, help="Resolution at which PDF pages are rendered.")
    ] = 200,
    pages: Annotated[
        str | None,
        typer.Option(metavar="1-3,7", help="Read these pages and leave out the others."),
    ] = None,
    max_pages: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Refuse files with more pages than that."),
    ] = None,
    languages: Annotated[
        str | None,
        typer.Option(
            metavar="de,en",
            help="A hint; without effect as long as one model reads all languages.",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="fast|balanced|FOLDER",
            help="Models: tiny and quick, the usual ones, or a folder of one's own. Default:"
            " PAGEFLEET_PROFILE, else balanced.",
        ),
    ] = None,
    password: Annotated[
        str | None,
        typer.Option(
            metavar="-",
            help="'-' asks for the password of encrypted files."
            " Default: PAGEFLEET_CLIENT_FILE_PASSWORD.",
        ),
    ] = None,
    password_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file whose first line is that password."),
    ] = None,
    skip_existing: Annotated[
        bool,
        typer.Option(
            "--skip-existing", help="Leave out files whose whole result an earlier run has written."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a file on standard output.")
    ] = False,
) -> None:
    """Recognize text in files, without any server.

    scan.pdf gives DIR/scan.json. Files of one run that would share a name keep their endings:
    scan.pdf.json, scan.png.json. A folder's files keep their way below the folder. A file that
    cannot be read is reported, and the others go on; the exit code is then 1.
    """
    from cli.ocr_choices import chosen_options, require_profile
    from cli.ocr_inputs import output_paths
    from cli.ocr_tally import RunTally
    from cli.secret_options import read_secret
    from cli.settings import file_password, load_settings
    from workers.ocr.exports.formats import FORMATS
    from workers.settings import OcrSettings

    chosen = known_format(output_format)
    options = chosen_options(
        mode=mode,
        text_order=text_order,
        dpi=dpi,
        pages=pages,
        max_pages=max_pages,
        languages=languages,
    )
    settings = load_settings(OcrSettings)
    if profile is not None:
        settings = settings.model_copy(update={"profile": profile})
    require_profile(settings.profile)
    password = read_secret(password, password_file, label="password") or file_password()
    found = _find(files)
    targets = output_paths(found.files, out_dir, suffix=FORMATS[chosen].extension)
    wanted = [(each.path, target) for each, target in zip(found.files, targets, strict=True)]
    if skip_existing:
        wanted = _without_done(wanted, output_format=chosen)
    tally = RunTally(files=len(targets), skipped=len(targets) - len(wanted))
    with _summed_up(tally):
        if not wanted:
            return
        with _file_reader(settings, options, output_format=chosen, password=password) as reader:
            _read_all(reader, wanted, tally, as_json=as_json)
    if tally.not_succeeded:
        raise typer.Exit(EXIT_FAILED)


def _without_done(
    wanted: Sequence[tuple[Path, Path]], *, output_format: "ExportFormat"
) -> list[tuple[Path, Path]]:
    from cli.earlier_results import is_done

    left = []
    with progress_bar("files") as bar:
        for number, (path, target) in enumerate(wanted):
            bar.show("looking for earlier results", number, len(wanted))
            if not is_done(path, target, output_format=output_format):
                left.append((path, target))
    return left


@contextmanager
def _file_reader(
    settings: "OcrSettings",
    options: "OcrOptions",
    *,
    output_format: "ExportFormat",
    password: str | None,
) -> Iterator["FileReader"]:
    """Load the models, start the renderer, and translate what neither can help.

    Raises:
        CommandError: the models, the device or the render child fail, whatever the file.
    """
    from cli.ocr_run import FileReader
    from workers import devices
    from workers.engine_setup import make_engine, render_limits
    from workers.ocr.errors import OcrError
    from workers.page_renderer import PageRenderer

    quiet_logs()
    try:
        device = devices.choose_device(settings.device, slot=0, gpu_count=devices.count_gpus())
        devices.pin(device)
        engine = make_engine(settings, device)
        with PageRenderer(render_limits(settings)) as renderer:
            yield FileReader(
                renderer,
                engine,
                options=options,
                output_format=output_format,
                password=password,
            )
    except OcrError as error:
        raise CommandError(str(error), "`pagefleet doctor` looks for the cause.") from error


def _read_all(
    reader: "FileReader", wanted: Sequence[tuple[Path, Path]], tally: "RunTally", *, as_json: bool
) -> None:
    is_one = len(wanted) == 1
    tally.start()
    with progress_bar("pages" if is_one else "files") as bar:

        def show(name: str, done: int, total: int) -> None:
            if is_one:
                bar.show(name, done, total, note=tally.pace(done))
            else:
                place = f"{name} {done}/{total}"
                bar.show(place, tally.read, len(wanted), note=tally.pace(done))

        for path, target in wanted:
            outcome = _read(reader, path, target, show=show)
            tally.add(outcome)
            _report(outcome, bar=bar, as_json=as_json)


def _read(
    reader: "FileReader", path: Path, target: Path, *, show: Callable[[str, int, int], None]
) -> "FileOutcome":
    try:
        return reader.read(
            path, target, on_page=lambda done, total: show(shown(path.name), done, total)
        )
    except OSError as error:
        raise CommandError(
            f"{shown(target)} cannot be written: {error.strerror or error}",
            "Choose another folder with -o DIR, or free some space.",
        ) from error


def _report(outcome: "FileOutcome", *, bar: Bar, as_json: bool) -> None:
    if as_json:
        bar.print_result(json_line(outcome.as_record()))
    if outcome.error_code:
        bar.print(f"{shown(outcome.path)}: {outcome.error_code}: {outcome.error_message}")
    elif not as_json:
        bar.print_result(_summary(outcome))


@contextmanager
def _summed_up(tally: "RunTally") -> Iterator[None]:
    """Say at the end, however it comes, what became of the files."""
    try:
        yield
    except KeyboardInterrupt:
        _sum_up(tally)
        notices().print("Stopped. The same command with --skip-existing goes on from here.")
        raise
    except CommandError:
        _sum_up(tally)
        raise
    _sum_up(tally)


def _sum_up(tally: "RunTally") -> None:
    # Of one file that was read its own line says it all.
    if tally.files > 1 or tally.skipped or tally.not_succeeded:
        for line in tally.summary():
            notices().print(line, markup=False)


def _summary(outcome: "FileOutcome") -> str:
    pages = count_of(outcome.pages, "page")
    if outcome.pages_failed:
        pages += f", {outcome.pages_failed} of them failed"
    if outcome.pages_skipped:
        pages += f", {outcome.pages_skipped} of them left out"
    for warning in outcome.warnings:
        pages += f", {WARNINGS.get(warning, warning)}"
    if outcome.truncated:
        pages += ", not all text lines were read: a page has more than the limit"
    return (
        f"{shown(outcome.path)}: {outcome.state}, {pages}, {outcome.seconds:.1f} s"
        f" -> {shown(outcome.output or '')}"
    )


def _find(named: list[Path]) -> "FoundInputs":
    """Return what is to be read, and name what folders hold besides.

    Raises:
        CommandError: there is nothing.
    """
    from cli.ocr_inputs import find_inputs

    with progress_bar("files") as bar:
        found = find_inputs(
            named, on_look=lambda count: bar.show("looking for documents", count, None)
        )
    if found.skipped:
        names = ", ".join(shown(path) for path in found.skipped[:_SKIPPED_SHOWN])
        more = " and others" if len(found.skipped) > _SKIPPED_SHOWN else ""
        notices().print(
            f"skipped, no documents by their content: {len(found.skipped)} ({names}{more})",
            markup=False,
        )
    if not found.files:
        raise CommandError(
            "no documents were found", "PDF, PNG, JPEG, TIFF, WebP and BMP files are read."
        )
    return found
