"""``pagefleet bench``: measure this core, beside its peers and over many pages."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from cli.console import notices, output
from cli.errors import EXIT_USAGE, CommandError
from cli.progress import progress_bar

if TYPE_CHECKING:
    from bench.comparison import Observer
    from bench.contenders import Setting
    from workers.devices import Wanted as Device
    from workers.ocr.engine_options import EngineChoice
    from workers.ocr.modes import TextOrder

app = typer.Typer(
    no_args_is_help=True, help="Measure this core, beside its peers and over many pages."
)

# 2,000 regions on a page: minutes each on a CPU, and one of them says as much as a hundred.
_SLOW_SAMPLES: Final = {"dense-index.png"}

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
DeviceOption = Annotated[
    Literal["cpu", "cuda", "auto"], typer.Option("--device", help="Where this core computes.")
]


@app.command(name="ocr")
def compare_ocr(  # noqa: PLR0913 - each is an option
    *,
    corpus: CorpusOption = None,
    only: Annotated[
        str, typer.Option(metavar="all|scans|born-digital|screenshots|handwriting")
    ] = "all",
    route: Annotated[
        Literal["ocr", "auto"], typer.Option(help="How this core gets at the text.")
    ] = "ocr",
    text_order: Annotated[
        Literal["reading", "file"],
        typer.Option(help="How this core orders what a PDF states, with --route auto."),
    ] = "reading",
    profile: ProfileOption = "balanced",
    engines: Annotated[
        str,
        typer.Option(
            metavar="onnxruntime,openvino",
            help="Of this core, with commas; each takes part. Default: PAGEFLEET_ENGINE.",
        ),
    ] = "",
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
    slots: Annotated[
        int, typer.Option(min=1, help="Processes of this core; they share the cores.")
    ] = 1,
    device: DeviceOption = "cpu",
    out: OutOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="The figures instead of tables.")] = False,
) -> None:
    """Compare this core with RapidOCR, Tesseract and faster-paddle, in one run on one machine.

    Each peer runs in an environment of its own, made at the first run. Writes ocr.json, ocr.md
    and ocr.png.
    """
    with bench_errors():
        from bench.comparison import Selection, compare, write_result
        from bench.corpus import KINDS
        from bench.report import markdown

        if only not in KINDS:
            raise CommandError(
                f"no kind {only!r}", f"There are: {', '.join(KINDS)}.", exit_code=EXIT_USAGE
            )
        chosen = _engines(engines)
        selection = Selection(corpus or default_corpus(), only, files, pages)
        setting = bench_setting(
            profile=profile,
            route=route,
            cores=cores,
            device=device,
            slots=slots,
            text_order=text_order,
        )
        with observed() as observer:
            names = [name for name in peers.split(",") if name]
            result = compare(selection, setting, names, observer, engines=chosen)
            folder = out or new_folder(setting.home)
            write_result(result, folder, home=setting.home, observer=observer)
    if as_json:
        output().print(json.dumps(result, ensure_ascii=False), markup=False)
    else:
        output().print(markdown(result), markup=False)
    notices().print(f"written to {folder}", markup=False)


@app.command(name="memory")
def measure_memory(  # noqa: PLR0913 - each is an option
    *,
    pages: Annotated[int, typer.Option(min=10, help="Of all samples in turn.")] = 2_000,
    long_pages: Annotated[
        int, typer.Option(min=0, help="Of the long document; 0 leaves that out.")
    ] = 600,
    short_pages: Annotated[int, typer.Option(min=1, help="Of the short document.")] = 20,
    seconds: Annotated[
        float, typer.Option(min=0, help="Stop each reading after so long; 0: never.")
    ] = 0,
    profile: ProfileOption = "balanced",
    device: DeviceOption = "cpu",
    plot: Annotated[
        bool, typer.Option(help="Draw it; matplotlib gets an environment of its own.")
    ] = True,
    out: OutOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="The figures instead of text.")] = False,
) -> None:
    """Read thousands of sample pages in one process and record what it holds.

    Then compares the peak of a long document with that of a short one. Writes memory.json and
    memory.png.
    """
    with bench_errors():
        from bench.comparison import draw
        from bench.memory import Reading, curve_record, length_record, memory_curve

        setting = bench_setting(profile=profile, route="ocr", cores=None, device=device)
        reading = Reading(profile, device, setting.environment, seconds)
        with observed() as observer, tempfile.TemporaryDirectory() as folder:
            documents, long_document = write_documents(Path(folder), long_pages)

            def curve(which: list[Path], count: int) -> list[dict[str, Any]]:
                label = f"{which[0].name} and others" if len(which) > 1 else which[0].name
                return memory_curve(
                    which, count, reading, on_pages=lambda done: observer.show(label, done, count)
                )

            record = curve_record(curve(documents, pages), title=f"Memory, profile {profile}")
            if long_document is not None:
                peaks = (curve([long_document], count) for count in (short_pages, long_pages))
                record["length"] = length_record(*peaks)
            target = out or new_folder(setting.home)
            target.mkdir(parents=True, exist_ok=True)
            figures = target / "memory.json"
            figures.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
            if plot:
                draw("memory", figures, target / "memory.png", home=setting.home, observer=observer)
    if as_json:
        output().print(json.dumps(record), markup=False)
    else:
        output().print(_memory_summary(record), markup=False)
    notices().print(f"written to {target}", markup=False)


def write_documents(folder: Path, long_pages: int) -> tuple[list[Path], Path | None]:
    """Write the readable samples, and a document of so many pages, None for none."""
    from cli.samples import write_long_document, write_samples

    documents = [
        sample.path
        for sample in write_samples(folder / "samples")
        if sample.error_code is None and sample.path.name not in _SLOW_SAMPLES
    ]
    if not long_pages:
        return documents, None
    long_document = folder / "long.pdf"
    write_long_document(long_document, long_pages)
    return documents, long_document


def _memory_summary(record: dict[str, Any]) -> str:
    first = (
        f"{record['title']}: peak {record['peak_mib']:,} MiB, late / early {record['growth']:.3f},"
        f" {record['pages_per_s']:.2f} pages/s, {record['pages_failed']} pages failed"
    )
    lines = [first]
    if "length" in record:
        length = record["length"]
        short, long = length["pages"]
        lines.append(
            f"Peak of {long} pages over that of {short}: {length['ratio']:.3f}"
            f" ({length['peak_mib'][1]:,} and {length['peak_mib'][0]:,} MiB)"
        )
    return "\n".join(lines)


def bench_setting(
    *,
    profile: str,
    route: str,
    cores: int | None,
    device: "Device",
    slots: int = 1,
    text_order: "TextOrder" = "reading",
) -> "Setting":
    """Return what all programs share, and keep this process and all below it to those cores."""
    from bench.contenders import Setting
    from bench.machine import core_count, restrict_to
    from cli.settings import load_settings
    from workers.settings import OcrSettings, project_environment

    settings = load_settings(OcrSettings)
    if cores is not None:
        restrict_to(cores)
    return Setting(
        cores=core_count(),
        profile=profile,
        route=route,
        device=device,
        home=settings.home,
        environment=project_environment(),
        slots=slots,
        text_order=text_order,
    )


def _engines(names: str) -> list["EngineChoice"]:
    """Return the engines of a list with commas.

    Raises:
        CommandError: there is no engine of such a name.
    """
    from pydantic import TypeAdapter, ValidationError

    from workers.ocr.engine_options import EngineChoice

    try:
        return TypeAdapter(list[EngineChoice]).validate_python([
            name for name in names.split(",") if name
        ])
    except ValidationError as error:
        raise CommandError(
            f"no engine in {names!r}",
            "There are: auto, onnxruntime, openvino.",
            exit_code=EXIT_USAGE,
        ) from error


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
def bench_errors() -> Iterator[None]:
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
        raise CommandError(str(error), "`pagefleet doctor` looks for the usual causes.") from error


@contextmanager
def observed() -> Iterator["Observer"]:
    """Show progress, and give what a benchmark reports it to."""
    from bench.comparison import Observer

    with progress_bar("steps") as bar:
        yield Observer(say=bar.print, show=bar.show)
