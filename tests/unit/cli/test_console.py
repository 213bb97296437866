import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.console import report_error, shown
from cli.errors import CommandError
from tests.support.commands import ROOT

WRITE_THREE_LINES = """
import sys
from cli.console import notices, output, print_json_line
for number in range(3):
    output().print(f"line {number}")
    notices().print(f"notice {number}")
    print_json_line({"line": number})
open(sys.argv[1], "w").write("the end was reached")
"""


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_reader_that_has_gone_ends_nothing(tmp_path: Path, closed: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # as `head -1` does after its line
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, closed: writing}
    done = subprocess.run(  # noqa: S603 - the test's own code
        [sys.executable, "-c", WRITE_THREE_LINES, str(tmp_path / "end")],
        cwd=ROOT,
        check=False,
        text=True,
        **streams,
    )
    os.close(writing)

    assert done.returncode == 0
    assert (tmp_path / "end").read_text() == "the end was reached"
    assert (done.stdout or done.stderr).splitlines()[-1].endswith(("2", "2}"))


def test_a_name_that_is_no_utf8_is_shown_with_a_replacement() -> None:
    assert shown(os.fsdecode(b"\xe9 \xc3\xa9.png")) == "\ufffd é.png"


@pytest.mark.parametrize(
    "name", ["\x1b]0;title\x07.pdf", "\x1b[2J.pdf", "a\nb.pdf", "\x9b2J.pdf", "\u202efdp.exe"]
)
def test_a_name_shows_nothing_that_a_terminal_would_act_upon(name: str) -> None:
    assert shown(name).isprintable()
    assert len(shown(name)) == len(name)


def test_an_error_shows_its_lines_and_nothing_else_of_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report_error(CommandError("no \x1b[2J.pdf\nsecond line", ""))

    assert capsys.readouterr().err == "error: no \ufffd[2J.pdf\nsecond line\n"
