"""One running program: pages go in by the round, answers come out, and it is watched meanwhile."""

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Self

from bench.errors import BenchError
from bench.process_usage import usage_of_tree
from bench.programs.answering import PageAnswer, PageRequest

ROOT: Final = Path(__file__).resolve().parents[1]
_READ_BYTES: Final = 1 << 20
_SHOWN_LINES: Final = 3


class ProgramProcess:
    """A program that speaks ``bench.programs.answering``; a context manager that ends it."""

    def __init__(self, command: Sequence[str], *, environment: dict[str, str]) -> None:
        """Start it; ``wait_until_ready`` is next.

        Args:
            command: runs in the checkout's root, so that ``-m bench.programs.…`` is found.
            environment: all that it has.
        """
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(  # noqa: S603 - a program of the benchmark
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
        )
        self._command = command
        self._received = b""
        self.name = ""
        self.child_peak_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def peak_bytes(self) -> int:
        """The most that it held: with its living children, else with the largest that ended."""
        usage = usage_of_tree(self.pid)
        ended = self.child_peak_bytes if usage.process_count <= 1 else 0
        return usage.peak_bytes + ended

    def wait_until_ready(self, *, timeout_s: float) -> None:
        """Wait until it has loaded its models, and keep its name.

        Raises:
            BenchError: it ended, or took too long.
        """
        (record,) = self._records(until="ready", deadline=time.monotonic() + timeout_s)
        self.name = record["ready"]["program"]

    def ask(self, pages: Sequence[PageRequest]) -> None:
        """Send a round of pages.

        Raises:
            BenchError: it has ended.
        """
        assert self._process.stdin is not None  # noqa: S101 - stdin=PIPE, for the type checker
        line = json.dumps({"pages": [asdict(page) for page in pages]}) + "\n"
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except BrokenPipeError as exc:
            raise self._ended() from exc

    def answers(
        self, *, deadline: float, on_answer: Callable[[PageAnswer], None] | None = None
    ) -> list[PageAnswer]:
        """Wait for all answers to the round.

        Args:
            deadline: of ``time.monotonic()``.
            on_answer: told each as it comes.

        Raises:
            BenchError: it ended, or took too long.
        """
        answers = []
        for record in self._records(until="done", deadline=deadline):
            if "done" in record:
                self.child_peak_bytes = record["done"]["child_peak_bytes"]
                break
            answer = PageAnswer(**record)
            answers.append(answer)
            if on_answer is not None:
                on_answer(answer)
        return answers

    def close(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._complaints.close()

    def _records(self, *, until: str, deadline: float) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = []
        while not records or until not in records[-1]:
            records.append(json.loads(self._line(deadline)))
        return records

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - stdout=PIPE, for the type checker
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._received:
            remaining_s = max(0.0, deadline - time.monotonic())
            if not select.select([descriptor], [], [], remaining_s)[0]:
                raise BenchError(f"{' '.join(self._command)} took too long")
            part = os.read(descriptor, _READ_BYTES)
            if not part:
                raise self._ended()
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _ended(self) -> BenchError:
        status = self._process.wait()
        self._complaints.seek(0)
        said = self._complaints.read().decode(errors="replace").strip().splitlines()
        shown = " / ".join(said[-_SHOWN_LINES:])
        return BenchError(f"{' '.join(self._command)} ended with status {status}: {shown}")
