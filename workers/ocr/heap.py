"""The process's heap: what it has freed, it keeps until it is asked for it."""

import ctypes


def give_back_freed() -> None:
    """Give freed memory back to the system, where the C library can (glibc); elsewhere nothing.

    A model is parsed in many small pieces, between which others stay: without this a process that
    has loaded three of them holds a third more than they need.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
