"""A clock that a test sets."""


class Clock:
    """Stands until the test moves it."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s
