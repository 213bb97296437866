"""Who is compared, how each is started, and how it gets the use of all cores."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.environments import python_of
from bench.errors import BenchError
from workers.devices import Wanted
from workers.ocr.engine_options import EngineChoice
from workers.ocr.modes import TextOrder

OURS: Final = "pagefleet"
PEERS: Final = ("rapidocr", "tesseract", "faster-paddle")
# Besides the usual way of RapidOCR, one process with all threads: one of one thread a core.
MORE_PEERS: Final = ("rapidocr-per-core",)


@dataclass(frozen=True, slots=True)
class Contender:
    """A program and how it uses the cores.

    Attributes:
        name: short, for tables.
        commands: one for each process that runs at a time; pages are dealt out to them.
        environment: all that the processes have.
        how: for readers.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    environment: dict[str, str]
    how: str


@dataclass(frozen=True, slots=True)
class Setting:
    """What all contenders share.

    Attributes:
        cores: that they may use.
        profile: of this project; ``fast`` is compared with the tiny size of faster-paddle.
        route: of this project, ``ocr`` or ``auto``.
        device: of this project.
        home: where environments are made.
        environment: of this project's processes: where its models are.
        slots: processes of this project; they share the cores.
        engine: of this project; None leaves it to the environment.
        text_order: of this project, where a PDF states its text.
    """

    cores: int
    profile: str
    route: str
    device: Wanted
    home: Path
    environment: dict[str, str]
    slots: int = 1
    engine: EngineChoice | None = None
    text_order: TextOrder = "reading"


def ours(setting: Setting) -> Contender:
    """Return this project as a worker runs it: slots that share the cores."""
    threads = max(1, setting.cores // setting.slots)
    program = (
        *(sys.executable, "-m", "bench.programs.pagefleet"),
        *("--profile", setting.profile, "--route", setting.route, "--device", setting.device),
        *("--text-order", setting.text_order, "--slots", str(setting.slots)),
    )
    name, environment = OURS, setting.environment
    if setting.engine is not None:
        name = f"{OURS} {setting.engine}"
        environment = environment | {"PAGEFLEET_ENGINE": setting.engine}
    how = "1 slot" if setting.slots == 1 else f"{setting.slots} slots"
    return Contender(
        name,
        tuple((*program, "--slot", str(slot)) for slot in range(setting.slots)),
        environment,
        f"{how} on {threads} cores each, documents as they are",
    )


def peer(name: str, setting: Setting, *, say: Callable[[str], None]) -> Contender:
    """Return a peer, having made its environment.

    Raises:
        BenchError: there is no such peer, or it cannot be installed here.
    """
    cores = str(setting.cores)
    # A numerical library of a peer may start threads of its own.
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(setting.home)}
    if name == "tesseract":
        program = shutil.which("tesseract")
        if program is None:
            raise BenchError(
                "not installed; Debian: apt install tesseract-ocr and"
                " tesseract-ocr-{eng,deu,fra,nld,jpn,jpn-vert,chi-sim}"
            )
        command = (sys.executable, "-m", "bench.programs.tesseract", "--program", program)
        return Contender(
            name,
            (command,) * setting.cores,
            {**environment, "OMP_THREAD_LIMIT": "1"},
            f"{cores} processes of 1 thread, told the language",
        )
    if name in {"rapidocr", "rapidocr-per-core"}:
        python = python_of("rapidocr", setting.home, say=say)
        is_one = name == "rapidocr"
        threads = cores if is_one else "1"
        reader = (str(python), "-m", "bench.programs.rapidocr", "--threads", threads)
        how = f"1 process of {cores} threads" if is_one else f"{cores} processes of 1 thread"
        return Contender(name, (reader,) * (1 if is_one else setting.cores), environment, how)
    if name == "faster-paddle":
        python = python_of("faster-paddle", setting.home, say=say)
        size = "tiny" if setting.profile == "fast" else "small"
        options = ("--size", size, "--threads", cores)
        batches = (str(python), "-m", "bench.programs.faster_paddle", *options)
        return Contender(name, (batches,), environment, f"1 process of {cores} threads, batches")
    known = ", ".join((*PEERS, *MORE_PEERS))
    raise BenchError(f"no peer {name!r}; there are {known}")
