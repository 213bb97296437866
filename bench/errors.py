"""Errors of the benchmarks; the message says what to do."""


class BenchError(Exception):
    """A benchmark cannot go on."""
