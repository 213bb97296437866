"""What programs that open hostile files have in common: their limits, and how they are asked.

Requests come on standard input and answers go to standard output, one JSON object a line.
"""

import ctypes
import json
import math
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Final

from workers.ocr.errors import DocumentTooLargeError, OcrError, PageCrashedError

_MAX_OPEN_FILES: Final = 64
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NO_NEW_PRIVS: Final = 38


def take_protocol_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep the pipes for the protocol alone: a library's print must not end up in an answer."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return requests, answers


def serve(
    requests: BinaryIO, answers: BinaryIO, answer: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Answer requests, one at a time, until there are no more.

    What is no fault of the document ends the program, and is seen. So does a lack of memory, after
    its answer: nobody knows what state it leaves a library in.

    Args:
        requests: from ``take_protocol_pipes``.
        answers: likewise.
        answer: returns the answer to a request.
    """
    send(answers, 0, {"ok": {}})
    for line in requests:
        request = json.loads(line)
        _allow_cpu(request["cpu_s"])
        answered = _answered(request, answer)
        send(answers, request["id"], answered)
        if answered.get("error", {}).get("code") == PageCrashedError.code:
            return


def _answered(
    request: dict[str, Any], answer: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    try:
        return {"ok": answer(request)}
    except OcrError as error:
        sizes = (
            {"limit": error.limit, "actual": error.actual}
            if isinstance(error, DocumentTooLargeError)
            else {}
        )
        return {"error": {"code": error.code, "message": str(error), **sizes}}
    except MemoryError:
        return {"error": {"code": PageCrashedError.code, "message": "out of memory"}}


def send(answers: BinaryIO, request_id: int, answer: dict[str, Any]) -> None:
    """Answer the request of this id."""
    line = json.dumps({"id": request_id, **answer}, ensure_ascii=False)
    # A lone surrogate is no text of anybody's, and must not end the program.
    answers.write(line.encode(errors="replace") + b"\n")
    answers.flush()


def limit_itself(*, memory_bytes: int, write_bytes: int, parent_pid: int) -> None:
    """Keep this program to what it needs, for good, and let it die with its owner.

    Args:
        memory_bytes: of address space.
        write_bytes: length of any file that it writes.
        parent_pid: the owner.
    """
    # An import past the size limit would leave a cut .pyc behind, which breaks every later import.
    sys.dont_write_bytecode = True
    _lower(resource.RLIMIT_AS, memory_bytes)
    _lower(resource.RLIMIT_FSIZE, write_bytes)
    _lower(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES)
    _lower(resource.RLIMIT_CORE, 0)
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        # A closed pipe ends the program between two pages; this one in the middle of a page too.
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The owner may have died before the signal was asked for.
    if os.getppid() != parent_pid:
        sys.exit(0)


def _allow_cpu(cpu_s: float) -> None:
    """Grant processor time for one request, in case the owner is not there to look at the clock."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    # One second more, since the kernel counts whole ones.
    soft = math.ceil(usage.ru_utime + usage.ru_stime + cpu_s) + 1
    resource.setrlimit(
        resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
    )


def _lower(limit: int, value: int) -> None:
    """Set a limit for good, at most what it is already."""
    _, hard = resource.getrlimit(limit)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(limit, (value, value))
