import signal
import subprocess
import sys

# As Flower does where its exception gets lost: it is told to end, and goes on.
DEAF = """
import signal, time
from cli.flower_process import end_in_time

signal.signal(signal.SIGTERM, lambda *_: print("told", flush=True))
end_in_time(0.2)
print("ready", flush=True)
while True:
    time.sleep(60)
"""


def test_a_process_that_does_not_heed_the_signal_is_ended() -> None:
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", DEAF], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)

    assert (process.returncode, output) == (0, "told\n")
    assert "did not end in time" in errors
