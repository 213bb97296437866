"""The owner's side of one render child: start it, ask it, end it.

It knows the protocol of ``workers.render_child``, which ``workers.searchable_child`` shares, and
nothing of pages or retries; those are ``workers.page_renderer``'s. A Celery prefork slot is
daemonic and may start no ``multiprocessing.Process``, so the child is a program of its own.
"""

import contextlib
import fcntl
import json
import mmap
import os
import select
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.errors import RenderChildError

_BYTES_PER_PIXEL: Final = 3
# A page's text with a place for each word; 60,000 characters that are a word each need 3 MB.
_MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
_READ_BYTES: Final = 64 * 1024
_READY_TIMEOUT_S: Final = 60.0
# A page buffer above it is given back to the system after each page, so that one huge page does
# not stay resident for the life of the slot. An A4 page at 300 dpi has 26 MB.
_KEPT_BUFFER_BYTES: Final = 32 * 1024 * 1024


class ChildDiedError(Exception):
    """The child is gone, by a crash or its own limits; it has been reaped."""


class ChildOvertimeError(Exception):
    """No answer came in time; the child has been killed."""


class RenderProcess:
    """One running child. Not for two threads at once; ``close`` it when done.

    On Linux the child dies with the *thread* that started it, at once, even within a page.
    """

    def __init__(
        self,
        *,
        memory_bytes: int,
        max_pixels: int,
        max_pages: int,
        max_file_bytes: int,
        program: str = "workers.render_child",
        output: tuple[int, int] | None = None,
    ) -> None:
        """Start the program and wait until it is ready.

        Args:
            memory_bytes: see ``workers.page_renderer.RenderLimits``, as the next three.
            max_pixels: likewise.
            max_pages: likewise.
            max_file_bytes: likewise.
            program: the module that is run.
            output: a descriptor that it may write to, and how many bytes.

        Raises:
            RenderChildError: it does not start: the machine has no process, descriptor or memory
                left, an installation is broken, or a limit is far too low.
        """
        self.asked_count = 0
        self._received = b""
        self._max_bytes = max_pixels * _BYTES_PER_PIXEL
        with contextlib.ExitStack() as opened:
            try:
                self._complaints = opened.enter_context(tempfile.TemporaryFile())
                self._pixels_fd = _anonymous_file(self._max_bytes)
                opened.callback(os.close, self._pixels_fd)
                self._pixels = opened.enter_context(mmap.mmap(self._pixels_fd, self._max_bytes))
                self._output_fds = () if output is None else output[:1]
                self._process = self._start(
                    program,
                    {
                        "parent_pid": os.getpid(),
                        "memory_bytes": memory_bytes,
                        "pixels_fd": self._pixels_fd,
                        "max_pixels": max_pixels,
                        "max_pages": max_pages,
                        "max_file_bytes": max_file_bytes,
                        **_output_config(output),
                    },
                )
            except OSError as error:
                raise RenderChildError(
                    f"The render child did not start: {error.strerror}."
                ) from error
            self._opened = opened.pop_all()
        self._deadline = time.monotonic() + _READY_TIMEOUT_S
        try:
            self.receive()
        except (ChildDiedError, ChildOvertimeError) as error:
            raise RenderChildError(
                f"The render child did not start. Check the installation: {error}"
            ) from error
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def _start(self, program: str, config: dict[str, int]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own program, arguments made here
            [sys.executable, "-P", "-s", "-m", program, json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            bufsize=0,
            cwd="/",
            env=_environment(),
            pass_fds=(self._pixels_fd, *self._output_fds),
            # Ctrl-C at a terminal is for the owner, who then ends the child.
            start_new_session=True,
        )

    def ask(self, request: dict[str, Any], *, timeout_s: float) -> None:
        """Send a request; its time runs from now on.

        Where the child is gone already, ``receive`` tells.
        """
        self.asked_count += 1
        self._deadline = time.monotonic() + timeout_s
        line = json.dumps({**request, "id": self.asked_count, "cpu_s": timeout_s})
        assert self._process.stdin is not None  # noqa: S101 - stdin=PIPE, for the type checker
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line.encode() + b"\n")

    def receive(self) -> dict[str, Any]:
        """Wait for the answer to the last request.

        An answer that lies ready is taken even when its time is over: the caller was slow then.
        Answers to earlier requests, whose owner was interrupted while waiting, are passed over.

        Raises:
            ChildDiedError: the child died instead of answering, or answered nonsense.
            ChildOvertimeError: its time is over; it has been killed.
        """
        while True:
            line = self._read_line()
            try:
                answer = json.loads(line)
                if answer["id"] == self.asked_count:
                    return dict(answer)
            except (ValueError, TypeError, KeyError) as error:
                raise self._died() from error

    def _read_line(self) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - stdout=PIPE, for the type checker
        while b"\n" not in self._received:
            if not self._wait_readable():
                self.close()
                raise ChildOvertimeError("it took too long")
            part = os.read(self._process.stdout.fileno(), _READ_BYTES)
            self._received += part
            if not part or len(self._received) > _MAX_ANSWER_BYTES:
                raise self._died()
        line, _, self._received = self._received.partition(b"\n")
        return line

    def copy_pixels(self, width_px: int, height_px: int) -> NDArray[np.uint8]:
        """Take the page image out of the shared buffer, (H, W, 3) uint8 RGB, page pixels.

        Raises:
            ChildDiedError: the sizes exceed the buffer: the child is not to be trusted any more.
        """
        size_bytes = width_px * height_px * _BYTES_PER_PIXEL
        if not (width_px > 0 and height_px > 0 and size_bytes <= self._max_bytes):
            raise self._died()
        shared = np.frombuffer(self._pixels, np.uint8, count=size_bytes)
        pixels = shared.reshape(height_px, width_px, _BYTES_PER_PIXEL).copy()
        del shared  # The map cannot be closed while an array looks at it.
        if size_bytes > _KEPT_BUFFER_BYTES and hasattr(mmap, "MADV_REMOVE"):
            self._pixels.madvise(mmap.MADV_REMOVE)
        return pixels

    def close(self) -> None:
        """End the child, whatever it does; a second call does nothing."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._opened.close()

    def _wait_readable(self) -> bool:
        assert self._process.stdout is not None  # noqa: S101 - stdout=PIPE, for the type checker
        poll = select.poll()
        poll.register(self._process.stdout.fileno(), select.POLLIN | select.POLLHUP)
        remaining_s = max(0.0, self._deadline - time.monotonic())
        return bool(poll.poll(remaining_s * 1000))

    def _died(self) -> ChildDiedError | ChildOvertimeError:
        """End what is left of the child; say how it ended and what it complained of last."""
        try:
            self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
        status = self._process.wait()
        self._complaints.seek(0)
        last_words = self._complaints.read().decode(errors="replace").strip().splitlines()[-1:]
        self.close()
        if status == -signal.SIGXCPU:
            return ChildOvertimeError("it used more processor time than its limit")
        return ChildDiedError(": ".join([f"it ended with status {status}", *last_words]))


def _output_config(output: tuple[int, int] | None) -> dict[str, int]:
    if output is None:
        return {}
    descriptor, max_bytes = output
    return {"output_fd": descriptor, "max_output_bytes": max_bytes}


def _anonymous_file(size_bytes: int) -> int:
    """Make a file without a name and return its descriptor; pages of it exist once written to.

    Raises:
        OSError: the machine has no descriptor or memory for it.
    """
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryFile() as file:
            file.truncate(size_bytes)
            return os.dup(file.fileno())
    descriptor = os.memfd_create("pagefleet-page", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, size_bytes)
    except OSError:
        os.close(descriptor)
        raise
    # A child in an attacker's hands could otherwise cut the file under its owner's feet (SIGBUS).
    fcntl.fcntl(
        descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    )
    return descriptor


def _environment() -> dict[str, str]:
    """Return all that the child's environment has: no secret of the owner's is in it."""
    # One thread renders; OpenBLAS would reserve address space for one per core, which counts.
    environment = {"OPENBLAS_NUM_THREADS": "1"}
    packages = str(Path(__file__).resolve().parent.parent)
    # A source checkout is not on the child's path; site-packages is, and must stay behind the
    # standard library.
    if packages != str(Path(sysconfig.get_path("purelib")).resolve()):
        environment["PYTHONPATH"] = packages
    return environment
