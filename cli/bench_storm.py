"""``pagefleet bench storm``: faults at random over a whole fleet, with a verdict."""

import json
import random
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Table

from cli.bench import OutOption, ProfileOption, bench_errors, new_folder
from cli.console import notices, output
from cli.errors import EXIT_FAILED, EXIT_USAGE, CommandError
from cli.progress import Bar, is_terminal, progress_bar

if TYPE_CHECKING:
    from cli.storm.rounds import Storm, StormOptions
    from workers.settings import OcrSettings

_MINUTE_S: Final = 60.0
_HOUR_S: Final = 3_600.0
_LINE_EVERY_S: Final = 15.0
_PROBLEMS_SHOWN: Final = 40


def measure_storm(  # noqa: PLR0913 - each is an option
    *,
    documents: Annotated[int, typer.Option(min=1, help="In all; in a soak, of each round.")] = 200,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="For which faults happen; in a soak, in each round.")
    ] = 5,
    seed: Annotated[
        int | None, typer.Option(help="Draws the faults. Default: another each time.")
    ] = None,
    faults: Annotated[
        str, typer.Option(metavar="KIND,…", help="Only these. Default: all kinds.")
    ] = "",
    pace: Annotated[
        float,
        typer.Option(min=0.1, help="Faults are so many times as far apart: for a slow machine."),
    ] = 1,
    drop_percent: Annotated[
        float, typer.Option(min=0, max=100, help="Of messages, which vanish when they are sent.")
    ] = 10,
    without_reconciler: Annotated[
        bool, typer.Option("--without-reconciler", help="Nobody repairs: this must break.")
    ] = False,
    light: Annotated[
        bool, typer.Option("--light", help="No scans of whole pages: for a slow machine.")
    ] = False,
    soak: Annotated[
        float, typer.Option(min=0, metavar="HOURS", help="Storm after storm for so long.")
    ] = 0,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="A soak goes on after a round that broke.")
    ] = False,
    profile: ProfileOption = "balanced",
    out: OutOption = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the verdict there too.")
    ] = None,
) -> None:
    """Kill, stop and cut off everything at random while clients send documents.

    Servers and fleet are its own. Exit status 0: HELD, every document ended once and as without
    faults. 1: BROKEN. Logs and faults are kept in the folder of --out.
    """
    with bench_errors():
        from cli.storm.rounds import StormOptions, is_held

        options = StormOptions(
            documents=documents,
            duration_s=minutes * _MINUTE_S,
            seed=random.randrange(10**6) if seed is None else seed,  # noqa: S311 - no secret
            kinds=_kinds(faults),
            pace=pace,
            drop_share=drop_percent / 100,
            with_reconciler=not without_reconciler,
            is_light=light,
        )
        settings = _settings()
        target = (out or new_folder(settings.home)).absolute()
        target.mkdir(parents=True, exist_ok=True)
        records = []
        with _storm(settings, profile, options, target) as storm:
            ends_s = time.monotonic() + soak * _HOUR_S
            for record in _rounds(storm, options, ends_s):
                records.append(record)
                _append(record, target / "rounds.jsonl")
                _show(record)
                if not (is_held(record) or keep_going):
                    break
    result = {"held": all(map(is_held, records)), "rounds": records} if soak else records[0]
    for file in filter(None, (target / "storm.json", json_file)):
        file.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    notices().print(f"logs, faults and results: {target}", markup=False)
    if not all(map(is_held, records)):
        raise typer.Exit(EXIT_FAILED)


def _rounds(storm: "Storm", options: "StormOptions", ends_s: float) -> Iterator[dict[str, Any]]:
    """Yield one round, and more while there is time."""
    from dataclasses import replace

    storm.prepare()
    number = 1
    while True:
        yield storm.run_round(number, replace(options, seed=options.seed + number - 1))
        number += 1
        if time.monotonic() >= ends_s:
            return


@contextmanager
def _storm(
    settings: "OcrSettings", profile: str, options: "StormOptions", out: Path
) -> Iterator["Storm"]:
    from cli.settings import own_environment
    from cli.stack.commands import stack_errors
    from cli.stop_signals import stop_on_signals
    from cli.storm.documents import turns, write_files
    from cli.storm.fleet import StormFleet
    from cli.storm.rounds import Storm
    from cli.storm.servers import StormServers

    logs = out / "logs"
    logs.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="pagefleet-storm-") as folder,
        stack_errors(),
        stop_on_signals() as stop,
        progress_bar("documents") as bar,
    ):
        home = Path(folder)
        home.chmod(0o711)  # Postgres runs as another user when this is root
        bar.print(f"starting servers and fleet; seed {options.seed}, logs in {logs}")
        with StormServers(home, logs=logs, seed=options.seed) as servers:
            fleet = StormFleet(
                {
                    **own_environment(),
                    **servers.environment(),
                    "PAGEFLEET_HOME": str(home),
                    "PAGEFLEET_MODELS_DIR": str(settings.models_dir),
                    "PAGEFLEET_PROFILE": profile,
                },
                logs=logs,
                drop_file=home / "drop_share",
                leash=servers.leash,
                with_reconciler=options.with_reconciler,
            )
            try:
                fleet.start()
                yield Storm(
                    fleet,
                    servers,
                    files=write_files(home / "samples", turns(is_light=options.is_light)),
                    drop_file=home / "drop_share",
                    out=out,
                    show=_Shown(bar),
                    stop=stop,
                )
            finally:
                fleet.stop()


class _Shown:
    """Shows progress as a bar, or as a line now and again where nobody sees a bar."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._said_s = 0.0
        self._what = ""

    def __call__(self, what: str, done: int, total: int, note: str) -> None:
        self._bar.show(what, done, total, note=note)
        now_s = time.monotonic()
        if not is_terminal() and (what != self._what or now_s - self._said_s > _LINE_EVERY_S):
            self._what, self._said_s = what, now_s
            self._bar.print(f"{what}: {done} of {total} finished{', ' if note else ''}{note}")


def _kinds(listed: str) -> tuple[str, ...]:
    """Return the kinds of a list with commas.

    Raises:
        CommandError: there is no such kind.
    """
    from cli.storm.plan import KINDS

    chosen = tuple(filter(None, listed.split(","))) or KINDS
    if unknown := [kind for kind in chosen if kind not in KINDS]:
        raise CommandError(
            f"no fault is called {', '.join(unknown)}",
            f"There are: {', '.join(KINDS)}.",
            exit_code=EXIT_USAGE,
        )
    return chosen


def _settings() -> "OcrSettings":
    from cli.settings import load_settings
    from workers.settings import OcrSettings

    return load_settings(OcrSettings)


def _append(record: Mapping[str, Any], file: Path) -> None:
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(record) + "\n")


def _show(record: Mapping[str, Any]) -> None:
    table = Table(title=f"Storm {record['round']}, seed {record['seed']}", title_justify="left")
    table.add_column("documents")
    table.add_column("", justify="right")
    for name, count in record["counts"].items():
        table.add_row(name, f"{count:,}")
    table.add_section()
    for kind, count in record["faults"].items():
        table.add_row(kind, f"{count:,}")
    table.add_section()
    table.add_row("finished while faults happened", f"{record['finished_in_storm']:,}")
    table.add_row("seconds of storm", f"{record['storm_s']:,}")
    table.add_row("seconds in all", f"{record['total_s']:,}")
    console = output()
    console.print(table)
    for problem in record["problems"][:_PROBLEMS_SHOWN]:
        console.print(
            f"{problem['what']}: {problem['document']}: {problem['detail']}", markup=False
        )
    if (more := len(record["problems"]) - _PROBLEMS_SHOWN) > 0:
        console.print(f"and {more} more", markup=False)
    console.print(record["verdict"], markup=False)
