"""``pagefleet bench ocr``: this core and its peers, in one run, on the same pages."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.contenders import Contender, Setting, ours, peer
from bench.corpus import CorpusFile, read_corpus, spread
from bench.environments import python_of
from bench.errors import BenchError
from bench.machine import describe_machine
from bench.page_files import BenchPage, write_pages
from bench.program_process import ROOT
from bench.report import contender_record, file_records, markdown
from bench.rounds import running, take_turns
from workers.ocr.engine_options import EngineChoice
from workers.page_renderer import PageRenderer, RenderLimits

_DPI: Final = 200
_PAGES_PER_CORE_AND_ROUND: Final = 6
_PLOT_TIMEOUT_S: Final = 120


@dataclass(frozen=True, slots=True)
class Selection:
    """What is read.

    Attributes:
        corpus: the folder.
        only: a key of ``corpus.KINDS``.
        max_files: 0 for all; else spread over languages and kinds.
        max_pages: of each document; 0 for all.
    """

    corpus: Path
    only: str = "all"
    max_files: int = 0
    max_pages: int = 0


@dataclass(frozen=True, slots=True)
class Observer:
    """Whoever watches: ``say`` gets sentences; ``show`` a label, steps done and steps in all."""

    say: Callable[[str], None]
    show: Callable[[str, int, int | None], None]


def compare(
    selection: Selection,
    setting: Setting,
    peers: Sequence[str],
    observer: Observer,
    *,
    engines: Sequence[EngineChoice] = (),
) -> dict[str, Any]:
    """Measure this core and the peers that can be had here.

    Args:
        selection: what is read.
        setting: what all share.
        peers: names; one that is not to be had is reported, and the others are compared.
        observer: told how far it is.
        engines: of this core, each of which takes part; none for the one of ``setting``.

    A ``BenchError`` passes through: the corpus is not there, or a program ended.
    """
    files = read_corpus(selection.corpus, only=selection.only)
    if selection.max_files:
        files = spread(files, selection.max_files)
    contenders, left_out = _gather(setting, engines, peers, observer)
    before = describe_machine()
    with tempfile.TemporaryDirectory(prefix="pagefleet-bench-") as folder:
        pages = _rendered(files, selection.max_pages, Path(folder), observer)
        with ExitStack() as stack:
            runners = []
            for each in contenders:
                observer.show(f"{each.name} loads", 0, None)
                runners.append(stack.enter_context(running(each)))
            total = len(pages) * len(runners)
            take_turns(
                runners,
                pages,
                pages_per_round=_PAGES_PER_CORE_AND_ROUND * setting.cores,
                on_turn=lambda label, done: observer.show(label, done, total),
            )
    measurements = [runner.measurement for runner in runners]
    records = file_records(pages, measurements)
    return {
        "title": f"OCR of {len(pages)} pages: {selection.only}, route {setting.route},"
        f" text order {setting.text_order}, profile {setting.profile}",
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {**before, "load_after": describe_machine()["load"]},
        "selection": {
            "only": selection.only,
            "max_files": selection.max_files,
            "max_pages": selection.max_pages,
        },
        "notes": _notes(before, setting, pages),
        "contenders": [contender_record(each, records) for each in measurements],
        "left_out": left_out,
        "files": records,
    }


def compare_among(
    contenders: Sequence[Contender], pages: Sequence[BenchPage], *, pages_per_round: int
) -> list[dict[str, Any]]:
    """Measure any contenders on pages that are there already; return their figures."""
    with ExitStack() as stack:
        runners = [stack.enter_context(running(each)) for each in contenders]
        take_turns(
            runners, pages, pages_per_round=pages_per_round, on_turn=lambda _label, _done: None
        )
    measurements = [runner.measurement for runner in runners]
    records = file_records(pages, measurements)
    return [contender_record(each, records) for each in measurements]


def write_result(result: dict[str, Any], folder: Path, *, home: Path, observer: Observer) -> None:
    """Write ``ocr.json``, ``ocr.md`` and, where matplotlib can be had, ``ocr.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = folder / "ocr.json"
    figures.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "ocr.md").write_text(markdown(result), encoding="utf-8")
    draw("ocr", figures, folder / "ocr.png", home=home, observer=observer)


def draw(kind: str, figures: Path, target: Path, *, home: Path, observer: Observer) -> None:
    """Draw a plot with the matplotlib of the benchmark's own environment.

    Args:
        kind: ``ocr``, ``memory`` or ``scale``.
        figures: the JSON file.
        target: the PNG file.
        home: where the environment is.
        observer: told when there is no plot, and why.
    """
    try:
        python = python_of("plot", home, say=observer.say)
        subprocess.run(  # noqa: S603 - our own program
            [str(python), "-m", "bench.programs.plot", kind, str(figures), str(target)],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
            timeout=_PLOT_TIMEOUT_S,
        )
    except BenchError as error:
        observer.say(f"no plot: {error}")
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = str(error.stderr or error).strip().splitlines()
        observer.say(f"no plot: {said[-1] if said else error}")


def _gather(
    setting: Setting, engines: Sequence[EngineChoice], peers: Sequence[str], observer: Observer
) -> tuple[list[Contender], dict[str, str]]:
    own = [replace(setting, engine=engine) for engine in engines] or [setting]
    contenders, left_out = [ours(each) for each in own], {}
    for name in peers:
        try:
            contenders.append(peer(name, setting, say=observer.say))
        except BenchError as error:
            left_out[name] = str(error)
            observer.say(f"{name} is left out: {error}")
    return contenders, left_out


def _rendered(
    files: Sequence[CorpusFile], max_pages: int, folder: Path, observer: Observer
) -> list[BenchPage]:
    done = 0

    def on_file(file: CorpusFile) -> None:
        nonlocal done
        observer.show(f"renders {file.path.name}", done, len(files))
        done += 1

    with PageRenderer(RenderLimits()) as renderer:
        return write_pages(files, folder, renderer, dpi=_DPI, max_pages=max_pages, on_file=on_file)


def _notes(machine: dict[str, Any], setting: Setting, pages: Sequence[BenchPage]) -> list[str]:
    documents = len({page.file.name for page in pages})
    return [
        (
            f"{documents} documents, {len(pages)} pages; {machine['processor']},"
            f" {setting.cores} cores for everybody; load before {machine['load'][0]}"
        ),
        (
            "Programs take turns, a few pages each, another one first in each round; loading and"
            " one page of warm-up are not counted."
        ),
        (
            f"Pagefleet opens and renders the documents itself, at {_DPI} dpi, and that is counted;"
            " the others get the same pages rendered before, uncompressed."
        ),
        (
            "Peak memory is the sum over a program's processes. CER counts reading order, F1 does"
            " not; both are means over documents."
        ),
    ]
