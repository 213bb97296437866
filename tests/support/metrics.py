"""How texts are compared: as the corpus asks for it, and as the benchmarks do."""

from bench.scores import score


def character_error_rate(expected: str, actual: str) -> float:
    """Return edit distance over the expected length, after normalization; 0 is perfect."""
    return score(expected, actual, "mul").cer


def error_rate_without_spaces(expected: str, actual: str) -> float:
    """Return ``character_error_rate`` for scripts in which white space means nothing."""
    return score(expected, actual, "ja").cer
