"""What is tried before an input counts as too large for the memory there is.

The ladder: a minibatch is halved at the same width (``recognition``); one input is tried again
after the arena gave back what it only keeps, and once more in a session that was loaded again,
whose arena is not in pieces; then its page fails as ``gpu_out_of_memory``. A session that cannot
be loaded again leaves the process useless, and ends it.
"""

import threading
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from workers.ocr.errors import (
    InferenceError,
    OutOfMemoryError,
    PoisonedContextError,
    SessionLostError,
)
from workers.ocr.inference import Session


@runtime_checkable
class ShrinkableSession(Session, Protocol):
    """A session whose memory can be given back while it stays loaded."""

    def shrink(self) -> None:
        """Give back memory that is kept for later runs.

        Raises:
            InferenceError: the runtime failed; one of its kinds.
        """
        ...


class LadderSession:
    """A session that climbs the ladder for a single input; larger minibatches are the caller's.

    Several threads may run it where they may run the sessions that it opens.
    """

    def __init__(
        self,
        open_session: Callable[[], ShrinkableSession],
        *,
        on_out_of_memory: Callable[[], None] = lambda: None,
    ) -> None:
        """Load the first session; what ``open_session`` raises passes through.

        Args:
            open_session: loads one.
            on_out_of_memory: is told of each single input that the device had no memory for.
        """
        self._on_out_of_memory = on_out_of_memory
        self._open_session = open_session
        self._session: ShrinkableSession | None = open_session()
        self._rebuilding = threading.Lock()

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        session = self._current()
        try:
            return session.run(pixels, widths_px)
        except OutOfMemoryError:
            if len(pixels) > 1:
                raise
        self._on_out_of_memory()
        return self._run_again(session, pixels, widths_px)

    def shrink(self) -> None:
        """Give back memory that is kept for later runs; errors of the session pass through."""
        self._current().shrink()

    def _run_again(
        self,
        session: ShrinkableSession,
        pixels: NDArray[np.uint8],
        widths_px: NDArray[np.int64] | None,
    ) -> NDArray[np.float32]:
        try:
            session.shrink()
            return session.run(pixels, widths_px)
        except PoisonedContextError:
            raise
        except InferenceError:
            # Whatever failed, a fresh session is the next step.
            return self._replaced(session).run(pixels, widths_px)

    def _current(self) -> ShrinkableSession:
        session = self._session
        if session is None:
            # Another thread is loading, or found that it cannot.
            with self._rebuilding:
                session = self._session
        if session is None:
            raise SessionLostError("a model could not be loaded again; this process must end")
        return session

    def _replaced(self, broken: ShrinkableSession) -> ShrinkableSession:
        """Return a session that was loaded after ``broken``, by whichever thread came first.

        Raises:
            SessionLostError: it cannot be loaded.
        """
        with self._rebuilding:
            if self._session is not None and self._session is not broken:
                return self._session
            # Let go before loading: both together may be what does not fit.
            self._session = None
            del broken
            try:
                self._session = self._open_session()
            except InferenceError as exc:
                raise SessionLostError(
                    "a model could not be loaded again after running out of memory;"
                    " this process must end"
                ) from exc
            return self._session
