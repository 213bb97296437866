"""Faults on purpose: what the storm and the tests under ``tests/faults`` do to real processes."""
