"""The peers' own virtual environments, made from hash-locked lists."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.errors import BenchError

REQUIREMENTS: Final = Path(__file__).resolve().parent / "requirements"
_MADE: Final = "made-from"  # holds the hash of the list
_TIMEOUT_S: Final = 900


def python_of(name: str, home: Path, *, say: Callable[[str], None]) -> Path:
    """Return the interpreter of an environment; make it where it is missing or its list changed.

    Args:
        name: of a list in ``bench/requirements``, without its ending.
        home: the environment becomes ``<home>/bench/<name>``.
        say: told when it is made, which takes a while.

    Raises:
        BenchError: it cannot be made.
    """
    wanted = REQUIREMENTS / f"{name}.txt"
    folder = home / "bench" / name
    python = folder / "bin" / "python"
    checksum = hashlib.sha256(wanted.read_bytes()).hexdigest()
    made = folder / _MADE
    if python.exists() and made.is_file() and made.read_text(encoding="ascii") == checksum:
        return python
    say(f"making the environment of {name} in {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)], name)
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input")
    locked = ("--require-hashes", "--only-binary", ":all:", "--requirement", str(wanted))
    _run([str(python), *install, *locked], name)
    made.write_text(checksum, encoding="ascii")
    return python


def _run(command: list[str], name: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIMEOUT_S)  # noqa: S603 - our own
    except subprocess.CalledProcessError as exc:
        lines = [line for line in (exc.stderr or exc.stdout).splitlines() if line.strip()]
        reason = lines[-1] if lines else f"exit status {exc.returncode}"
        raise BenchError(f"the environment of {name} cannot be made: {reason}") from exc
    except subprocess.TimeoutExpired as exc:
        raise BenchError(f"the environment of {name} was not made in {_TIMEOUT_S} s") from exc
