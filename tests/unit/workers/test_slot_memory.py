import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from billiard import pool

from workers.tasks import slot_memory

MIB = 2**20


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "mem_rss", pool.mem_rss)  # type: ignore[attr-defined]


@pytest.fixture
def render_child() -> Iterator[int]:
    """A process that holds more than 64 MiB."""
    code = "import sys; held = b'x' * 64 * 2**20; print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(  # noqa: S603 - the test's own code
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


@pytest.mark.usefixtures("restored")
def test_a_slot_counts_with_its_render_child(render_child: int) -> None:
    slot_memory.measure_with(lambda: None)
    alone_kib = pool.mem_rss()  # type: ignore[attr-defined]
    slot_memory.measure_with(lambda: render_child)
    both_kib = pool.mem_rss()  # type: ignore[attr-defined]

    assert alone_kib > 0
    assert both_kib - alone_kib > 60 * 1024


def test_memory_that_was_given_back_does_not_count() -> None:
    held = bytearray(b"x" * 128 * MIB)
    most = slot_memory.resident_bytes(os.getpid())
    del held
    now = slot_memory.resident_bytes(os.getpid())

    assert most is not None
    assert now is not None
    assert most - now > 100 * MIB


def test_a_process_that_is_gone_has_no_memory() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass

    assert slot_memory.resident_bytes(process.pid) is None
