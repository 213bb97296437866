"""``pagefleet bench scale`` and ``bench fleet``: a whole fleet on servers of its own."""

import json
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.bench import OutOption, ProfileOption, bench_errors, new_folder, observed
from cli.console import notices, output

if TYPE_CHECKING:
    from bench.comparison import Observer
    from cli.stack.stack import StackPlan
    from cli.stack.state import StackState
    from workers.settings import OcrSettings

_PROGRAMS: Final = frozenset({"worker-recognize", "worker-split", "reconcile"})
_MIB: Final = 2**20
# What both sides read again and again must be read each time.
_NO_CACHE: Final = {
    "PAGEFLEET_CROP_CACHE_COUNT": "0",
    "PAGEFLEET_DOCUMENT_CACHE": "false",
    "PAGEFLEET_PAGE_CACHE": "false",
}

JsonOption = Annotated[bool, typer.Option("--json", help="The figures instead of text.")]


def measure_scale(
    *,
    documents: Annotated[int, typer.Option(min=100, help="Of one page with stated text.")] = 1_000,
    profile: ProfileOption = "fast",
    plot: Annotated[
        bool, typer.Option(help="Draw it; matplotlib gets an environment of its own.")
    ] = True,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Queue documents on servers of its own, and watch a fleet work them off.

    Rows wait in Postgres before the first process starts; nothing was sent. Writes scale.json and
    scale.png.
    """
    with bench_errors():
        from bench.comparison import draw
        from bench.fleet_curve import scale_record
        from bench.queued_documents import small_pdf

        settings = ocr_settings()
        with observed() as observer:
            backlog = _Backlog(documents, small_pdf, observer)
            backlog.work_off(_environment(settings, profile))
            record = scale_record(
                backlog.samples, backlog.finish_times_s, title=f"{documents:,} documents of a page"
            )
            target = write_record(record, "scale.json", out or new_folder(settings.home))
            if plot:
                png = target / "scale.png"
                draw("scale", target / "scale.json", png, home=settings.home, observer=observer)
    show_record(record, _scale_summary(record), as_json=as_json)
    notices().print(f"written to {target}", markup=False)


def measure_fleet(
    *,
    documents: Annotated[int, typer.Option(min=8, help="Of four scanned pages each.")] = 30,
    profile: ProfileOption = "balanced",
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a whole fleet with the bare core, on the same scanned pages and cores.

    The core reads before and after the fleet, so that a machine that slows down does so for both.
    Writes fleet.json.
    """
    with bench_errors(), tempfile.TemporaryDirectory() as folder:
        from bench.fleet_curve import PAGES_PER_CHUNK, fleet_record
        from bench.memory import Reading, memory_curve
        from cli.samples import write_long_document

        settings = ocr_settings()
        pdf = Path(folder) / "scans.pdf"
        write_long_document(pdf, PAGES_PER_CHUNK)
        pages = documents * PAGES_PER_CHUNK
        environment = {**_environment(settings, profile), **_NO_CACHE}
        reading = Reading(profile, "cpu", environment)
        with observed() as observer:

            def bare_pages_per_s() -> float:
                samples = memory_curve(
                    [pdf], pages, reading, on_pages=lambda n: observer.show("bare core", n, pages)
                )
                return float(samples[-1]["pages"] / samples[-1]["seconds"])

            before = bare_pages_per_s()
            backlog = _Backlog(documents, lambda _: pdf.read_bytes(), observer)
            backlog.work_off(environment)
            record = fleet_record(backlog.finish_times_s, bare=(before, bare_pages_per_s()))
            target = write_record(record, "fleet.json", out or new_folder(settings.home))
    summary = (
        f"fleet {record['fleet_pages_per_s']:.2f} pages/s, bare core"
        f" {record['bare_pages_per_s'][0]:.2f} and {record['bare_pages_per_s'][1]:.2f}:"
        f" ratio {record['ratio']:.3f}"
    )
    show_record(record, summary, as_json=as_json)
    notices().print(f"written to {target}", markup=False)


class _Backlog:
    """Documents that are queued on the servers of a stack before its programs start.

    Attributes:
        samples: what was seen while they were worked off.
        finish_times_s: when each was finished, in order, as Unix time.
    """

    def __init__(self, documents: int, make: Callable[[int], bytes], observer: "Observer") -> None:
        self.samples: list[dict[str, Any]] = []
        self.finish_times_s: list[float] = []
        self._documents = documents
        self._make = make
        self._observer = observer
        self._said = ("", 0)
        self._stop = threading.Event()

    def work_off(self, environment: dict[str, str]) -> None:
        """Start servers in a folder of their own, queue, start the programs, and watch.

        Raises:
            CommandError: something does not start.
            BenchError: the fleet is stuck, or was stopped.
        """
        from cli.stack.commands import stack_errors
        from cli.stack.stack import run_stack
        from cli.stop_signals import stop_on_signals

        with (
            tempfile.TemporaryDirectory(prefix="pagefleet-bench-") as folder,
            stack_errors(),
            stop_on_signals() as self._stop,
        ):
            home = Path(folder)
            home.chmod(0o711)  # Postgres runs as another user when this is root
            run_stack(
                home,
                lambda state: self._plan(state, home, environment),
                report=self._observer.say,
                stop=self._stop,
                ready=self._watch,
            )

    def _plan(self, state: "StackState", home: Path, environment: dict[str, str]) -> "StackPlan":
        from bench.queued_documents import queue_documents
        from cli.stack.stack import StackPlan, project_plan
        from db.engine import Database
        from db.migrate import migrate

        migrate(state.database_url)
        database, store = Database(state.database_url), state.make_store()
        try:
            queue_documents(
                self._documents,
                make=self._make,
                database=database,
                store=store,
                on_queued=lambda count: self._tell("queued", count),
            )
        finally:
            store.close()
            database.dispose()
        plan = project_plan(state, home=home, inherited=environment)
        programs = [program for program in plan.programs if program.name in _PROGRAMS]
        return StackPlan(steps=[], programs=programs, environment=plan.environment)

    def _watch(self, state: "StackState") -> None:
        from bench.fleet_curve import FleetWatch
        from db.engine import Database

        watch = FleetWatch(Database(state.database_url), redis_url=state.redis_url)
        try:
            self.samples = watch.until_finished(
                self._documents,
                on_finished=lambda count: self._tell("finished", count),
                stop=self._stop,
            )
            self.finish_times_s = watch.finish_times_s()
        finally:
            watch.close()
            self._stop.set()

    def _tell(self, what: str, count: int) -> None:
        self._observer.show(what, count, self._documents)
        tenths = 10 * count // self._documents
        if (what, tenths) != self._said:
            self._said = (what, tenths)
            self._observer.say(f"{what}: {count:,} of {self._documents:,}")


def ocr_settings() -> "OcrSettings":
    """Return what says where models and results lie."""
    from cli.settings import load_settings
    from workers.settings import OcrSettings

    return load_settings(OcrSettings)


def _environment(settings: "OcrSettings", profile: str) -> dict[str, str]:
    from cli.settings import own_environment

    return {
        **own_environment(),
        # The home of the fleet is another one.
        "PAGEFLEET_MODELS_DIR": str(settings.models_dir),
        "PAGEFLEET_PROFILE": profile,
    }


def write_record(record: dict[str, Any], name: str, folder: Path) -> Path:
    """Write figures into a folder, which is made and returned."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return folder


def show_record(record: dict[str, Any], summary: str, *, as_json: bool) -> None:
    """Print figures for a machine, or their summary."""
    output().print(json.dumps(record) if as_json else summary, markup=False)


def _scale_summary(record: dict[str, Any]) -> str:
    rates = " ".join(f"{rate:.1f}" for rate in record["documents_per_s_by_tenth"])
    cpu_ms = " ".join(f"{each:.0f}" for each in record["cpu_ms_per_document_by_tenth"])
    yardsticks = " ".join(f"{each:.0f}" for each in record["yardstick_ms_by_tenth"])
    messages = ", ".join(f"{queue} {most}" for queue, most in record["messages_peak"].items())
    return (
        f"{record['title']}: {record['documents_per_s']:.1f} documents/s; by tenth {rates};"
        f" last / first {record['last_to_first']:.3f},"
        f" at equal speed of the machine {record['last_to_first_at_equal_speed']:.3f}\n"
        f"Processor time, ms per document by tenth: {cpu_ms}; of a fixed work: {yardsticks}\n"
        f"Redis: at most {record['redis_peak_bytes'] / _MIB:.1f} MiB; waiting at most: {messages}\n"
        f"Postgres, per document: {record['rows_written_per_document']} rows,"
        f" {record['transactions_per_document']} transactions,"
        f" {record['wal_bytes_per_document']:,} bytes of WAL,"
        f" {record['database_bytes_per_document']:,} bytes kept;"
        f" {record['connections_peak']} connections"
    )
