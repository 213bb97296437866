import os
import subprocess
import sys

from bench.process_usage import children_of, resident_bytes, usage_of_tree

BUSY_CHILD = """
import subprocess, sys
waits = [sys.executable, "-c", "import sys; sys.stdin.read()"]
child = subprocess.Popen(waits, stdin=subprocess.PIPE)
held = bytearray(64 << 20)
total = sum(range(3_000_000))
print("ready", flush=True)
sys.stdin.read()
child.communicate()
"""


def test_a_tree_is_counted_with_its_children() -> None:
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", BUSY_CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()

    usage = usage_of_tree(process.pid)

    process.communicate("")
    assert usage.process_count == 2
    assert usage.cpu_s > 0
    assert usage.peak_bytes >= usage.resident_bytes > 64 << 20


def test_a_process_that_is_gone_used_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()

    assert usage_of_tree(process.pid).process_count == 0
    assert resident_bytes(process.pid) == 0


def test_a_child_is_known_until_it_ends() -> None:
    waits = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    process = subprocess.Popen(waits, stdin=subprocess.PIPE)  # noqa: S603 - our own program

    (mark,) = (child for child in children_of(os.getpid()) if child.pid == process.pid)
    was_alive = mark.is_alive()
    process.communicate(b"")

    assert "stdin.read" in mark.command
    assert was_alive
    assert not mark.is_alive()
