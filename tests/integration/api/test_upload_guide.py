"""The examples of docs/api.md that send files straight to storage, run as they stand there."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import keys
from tests.support.api_server import RunningApi, Serve, documents_in
from tests.support.direct_uploads import rows_in
from tests.support.guides import DOCS

SECTION = re.findall(
    r"^### Large files, straight to storage\n(.*?)^File names are data",
    (DOCS / "api.md").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)[0]
SH = re.findall(r"^```sh\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
PYTHON = re.findall(r"^```python\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
# Two parts.
LARGE = b"%PDF-1.7\n" + bytes(range(256)) * (7 * 2**12)


@pytest.fixture
def api(serve: Serve) -> Iterator[RunningApi]:
    with serve(settings={"api_direct_upload_part_bytes": 5 * 2**20}) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ledger.pdf").write_bytes(LARGE)
    return tmp_path


def run(
    api: RunningApi, folder: Path, *command: str, upload_id: str = ""
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 - the guide's own commands
        command,
        check=False,
        cwd=folder,
        env={
            **os.environ,
            "API": api.url,
            "KEY": api.client.headers["Authorization"].removeprefix("Bearer "),
            "UPLOAD": upload_id,
        },
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def _curl() -> None:
    """Skips on a laptop without curl, and fails where ``CI`` is set."""
    if shutil.which("curl") is None and not os.environ.get("CI"):
        pytest.skip("SKIPPED, NOT TESTED: there is no curl")


def assert_is_whole(api: RunningApi) -> None:
    (row,) = documents_in(api.database)
    assert (row.filename, row.size_bytes) == ("ledger.pdf", len(LARGE))
    assert b"".join(api.store.stream(keys.source_key(row.id))) == LARGE


@pytest.mark.usefixtures("_curl")
def test_the_commands_send_a_file(api: RunningApi, folder: Path) -> None:
    done = run(api, folder, "/bin/sh", "-e", "-c", SH[0])

    assert done.returncode == 0, done.stderr
    assert_is_whole(api)


@pytest.mark.usefixtures("_curl")
def test_the_commands_ask_about_an_upload(api: RunningApi, folder: Path) -> None:
    upload = api.client.post("/v1/uploads", json={"filename": "a.pdf", "size_bytes": 1}).json()

    done = run(api, folder, "/bin/sh", "-e", "-c", SH[1], upload_id=upload["id"])

    assert done.returncode == 0, done.stderr
    assert '"state":"open"' in done.stdout
    assert '"parts":[]' in done.stdout
    assert api.client.get(upload["links"]["self"]).status_code == 404


def test_the_program_sends_a_file_once(api: RunningApi, folder: Path) -> None:
    program = folder / "send.py"
    program.write_text(PYTHON[0])

    first, again = (run(api, folder, sys.executable, str(program), "ledger.pdf") for _ in range(2))

    assert first.returncode == 0, first.stderr
    assert (again.returncode, again.stdout) == (0, first.stdout), again.stderr
    assert_is_whole(api)
    assert rows_in(api.database) == []


def test_the_guide_has_no_other_examples() -> None:
    assert (len(SH), len(PYTHON)) == (2, 1)
