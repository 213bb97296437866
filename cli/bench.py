"""``pagefleet bench``: measure this core, beside its peers and over many pages."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import notices, output
from cli.errors import EXIT_USAGE, CommandError
from cli.progress import progress_bar

if TYPE_CHECKING:
    from bench.comparison import Observer
    from bench.contenders import Setting

app = typer.Typer(
    no_args_is_help=True, help="Measure this core, beside its peers and over many pages."
)

CorpusOption = Annotated[
    Path | None,
    typer.Option(
        "--corpus",
        metavar="DIR",
        help="Files with their true texts and an INDEX.tsv. Default: ../shared/corpus.",
    ),
]
ProfileOption = Annotated[
    str, typer.Option("--profile", metavar="fast|balanced|FOLDER", help="Models of this core.")
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Default: a new folder in the home's bench/."),
]
CoresOption = Annotated[
    int | None, typer.Option("--cores", min=1, help="For every program. Default: all there are.")
]
DeviceOption = Annotated[str, typer.Option("--device", metavar="cpu|cuda|auto")]


@app.command(name="ocr")
def compare_ocr(  # noqa: PLR0913 - each is an option
    *,
    corpus: CorpusOption = None,
    only: Annotated[
        str, typer.Option(metavar="all|scans|born-digital|screenshots|handwriting")
    ] = "all",
    route: Annotated[
        str, typer.Option(metavar="ocr|auto", help="How this core gets at the text.")
    ] = "ocr",
    profile: ProfileOption = "balanced",
    peers: Annotated[
        str, typer.Option(help="With commas; also: rapidocr-per-core. Empty for none.")
    ] = "rapidocr,tesseract,faster-paddle",
    files: Annotated[
        int, typer.Option(min=0, help="At most so many documents, spread over languages; 0: all.")
    ] = 0,
    pages: Annotated[
        int, typer.Option(min=0, help="At most so many pages of a document; 0: all.")
    ] = 0,
    cores: CoresOption = None,
    device: DeviceOption = "cpu",
    out: OutOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="The figures instead of tables.")] = False,
) -> None:
    """Compare this core with RapidOCR, Tesseract and faster-paddle, in one run on one machine.

    Each peer runs in an environment of its own, made at the first run. Writes ocr.json, ocr.md
    and ocr.png.
    """
    with _bench_errors():
        from bench.comparison import Selection, compare, write_result
        from bench.corpus import KINDS
        from bench.report import markdown

        if only not in KINDS:
            raise CommandError(
                f"no kind {only!r}", f"There are: {', '.join(KINDS)}.", exit_code=EXIT_USAGE
            )
        selection = Selection(corpus or default_corpus(), only, files, pages)
        setting = bench_setting(profile=profile, route=route, cores=cores, device=device)
        with _observed() as observer:
            names = [name for name in peers.split(",") if name]
            result = compare(selection, setting, names, observer)
            folder = out or new_folder(setting.home)
            write_result(result, folder, home=setting.home, observer=observer)
    if as_json:
        output().print(json.dumps(result, ensure_ascii=False), markup=False)
    else:
        output().print(markdown(result), markup=False)
    notices().print(f"written to {folder}", markup=False)


def bench_setting(*, profile: str, route: str, cores: int | None, device: str) -> "Setting":
    """Return what all programs share, and keep this process and all below it to those cores."""
    from bench.contenders import Setting
    from bench.machine import core_count, restrict_to
    from cli.settings import inherited_environment, load_settings
    from workers.settings import OcrSettings

    settings = load_settings(OcrSettings)
    if cores is not None:
        restrict_to(cores)
    return Setting(
        cores=core_count(),
        profile=profile,
        route=route,
        device=device,
        home=settings.home,
        environment=inherited_environment(),
    )


def default_corpus() -> Path:
    """Return the corpus beside the checkout.

    Raises:
        CommandError: there is none.
    """
    checkout = Path(__file__).resolve().parents[1]
    for parent in (checkout.parent, checkout.parent.parent):
        if (parent / "shared" / "corpus").is_dir():
            return parent / "shared" / "corpus"
    raise CommandError(
        "no corpus lies beside the checkout", "Name one: --corpus DIR.", exit_code=EXIT_USAGE
    )


def new_folder(home: Path) -> Path:
    """Return a folder for the results of one run."""
    return home / "bench" / "results" / datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S")


@contextmanager
def _bench_errors() -> Iterator[None]:
    """Translate what ends a benchmark.

    Raises:
        CommandError: it cannot go on, or this installation has no benchmarks.
    """
    try:
        from bench.errors import BenchError
    except ModuleNotFoundError as error:
        raise CommandError(
            "this installation has no benchmarks: they are in the source checkout",
            "Run scripts/lint or scripts/test once there, then .venv/bin/pagefleet bench.",
        ) from error
    from workers.ocr.errors import OcrError

    try:
        yield
    except (BenchError, OcrError) as error:
        raise CommandError(str(error)) from error


@contextmanager
def _observed() -> Iterator["Observer"]:
    from bench.comparison import Observer

    with progress_bar("steps") as bar:
        yield Observer(say=bar.print, show=bar.show)
