"""What an engine tells of its work to whoever counts it; the core itself counts nothing."""

from typing import Protocol


class EngineObserver(Protocol):
    """Is told by any thread of an engine, and neither blocks nor raises."""

    def minibatch_read(self, *, inputs: int, columns_px: int, padded_columns_px: int) -> None:
        """Take note of a minibatch that went through the recognizer.

        Args:
            inputs: crops, or pieces of long ones.
            columns_px: of the inputs, together.
            padded_columns_px: that the model looked through.
        """

    def ran_out_of_memory(self) -> None:
        """Take note of an inference that the device had no memory for; it is tried again."""

    def hung(self) -> None:
        """Take note of an inference that took too long: the process ends after this call."""


class NobodyObserves:
    """An observer that takes no note."""

    def minibatch_read(self, *, inputs: int, columns_px: int, padded_columns_px: int) -> None: ...

    def ran_out_of_memory(self) -> None: ...

    def hung(self) -> None: ...
