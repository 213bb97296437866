"""A clock that a test sets."""


class Clock:
    """Tells the time in seconds that ``now_s`` holds."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s
