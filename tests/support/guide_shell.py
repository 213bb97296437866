"""A user's shell, in which the commands of a guide are run one after the other."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.support.commands import ROOT
from tests.support.models import missing
from workers.settings import models_dir

_PROGRAM: Final = """#!/bin/sh
exec {python} -m cli "$@"
"""
# A refusal ends the block with an error, where a reader would see it in the answer. Where the guide
# says so itself (-f), curl does not take both.
_CURL: Final = """#!/bin/sh
case " $* " in *" -f"*) ;; *) set -- --fail-with-body "$@" ;; esac
exec {curl} --silent --show-error --max-time 120 "$@"
"""


class GuideShell:
    """A folder, a program ``pagefleet``, and variables that last from block to block.

    Args:
        folder: where the commands run; made where it is not there.
        variables: of the environment, beside those that any program needs.
        replaced: patterns of what is only an example in a guide, and what ``re.sub`` takes for it.
    """

    def __init__(
        self, folder: Path, *, variables: Mapping[str, str], replaced: Mapping[str, str]
    ) -> None:
        self.folder = folder
        self._replaced = dict(replaced)
        self._kept = folder / ".variables"
        programs = folder / ".venv" / "bin"
        programs.mkdir(parents=True)
        _write_program(programs / "pagefleet", _PROGRAM.format(python=shlex.quote(sys.executable)))
        _write_program(programs / "curl", _CURL.format(curl=_curl()))
        self._kept.write_text("")
        self._environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PAGEFLEET_MODELS_DIR": str(models_dir()),
            "NO_PROXY": "127.0.0.1",
            "HOME": str(folder),
            **variables,
        }

    def give(self, variables: Mapping[str, str]) -> None:
        """Set variables for the blocks that follow."""
        with self._kept.open("a") as kept:
            kept.writelines(
                f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()
            )

    def sh(
        self, code: str, *, stdin: str = "", timeout_s: float = 600
    ) -> "subprocess.CompletedProcess[str]":
        """Run a block as it stands there; what it sets is kept."""
        kept = shlex.quote(str(self._kept))
        script = f"set -ae\n. {kept}\n{self.real(code)}\nexport -p >{kept}\n"
        return self._run(["/bin/sh", "-c", script], stdin=stdin, timeout_s=timeout_s)

    def python(self, code: str, *, timeout_s: float = 600) -> "subprocess.CompletedProcess[str]":
        """Run a program; it sees the variables that blocks of shell have set."""
        kept = shlex.quote(str(self._kept))
        script = f'set -ae\n. {kept}\nexec {shlex.quote(sys.executable)} -c "$0"'
        return self._run(["/bin/sh", "-c", script, self.real(code)], stdin="", timeout_s=timeout_s)

    @contextmanager
    def started(self, code: str, log: Path) -> "Iterator[subprocess.Popen[bytes]]":
        """Run a block whose last line becomes a service; it is killed, if it still runs at the end.

        Signals reach the service itself, which takes the place of the shell.
        """
        *before, last = self.real(code).strip().splitlines()
        *assignments, service = re.split(r" (?=pagefleet )", last, maxsplit=1)
        script = [
            f"set -ae\n. {shlex.quote(str(self._kept))}",
            *before,
            *assignments,
            f"exec {service}",
        ]
        with log.open("ab") as output:
            process = subprocess.Popen(  # noqa: S603 - our own guides
                ["/bin/sh", "-c", "\n".join(script)],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # all has ended
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def real(self, code: str) -> str:
        """Return what to run for what stands in a guide."""
        for pattern, value in self._replaced.items():
            code = re.sub(pattern, value, code)
        return code

    def _run(
        self, command: list[str], *, stdin: str, timeout_s: float
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(  # noqa: S603 - our own guides
            command,
            check=False,
            cwd=self.folder,
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )


def _write_program(file: Path, script: str) -> None:
    file.write_text(script)
    file.chmod(0o755)


def _curl() -> str:
    found = shutil.which("curl")
    if found is None:
        missing("curl is not installed, so the guides are NOT checked (Debian: apt install curl)")
    return str(found)
