"""``pagefleet ingest`` that is run again: after its end, a kill, or whatever else came between."""

import json
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from cli.client import ApiClient
from cli.ingest.archives import ArchiveLimits
from cli.ingest.journal import Journal
from cli.ingest.patience import Patience
from cli.ingest.run import run
from cli.ingest.source import source_of
from cli.ingest.upload import Uploader
from cli.main import app
from db.models import Batch
from tests.support.api_server import ServedApi
from tests.support.commands import ROOT
from tests.support.ingest import documents, ingest, pdf, report, report_lines, runner, states
from tests.support.processes import wait_until

pytestmark = pytest.mark.usefixtures("client_settings", "ingest_work_dir")


def test_a_second_run_sends_what_is_new_and_nothing_twice(
    served_api: ServedApi, folder: Path
) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    ingest(folder)
    before = report()
    (folder / "b.pdf").write_bytes(pdf("b"))
    (folder / "c.pdf").write_bytes(pdf("a"))

    ingest(folder)

    assert report()["a.pdf"] == before["a.pdf"]
    assert states()["c.pdf"] == ("duplicate", None)
    assert [each.filename for each in documents(served_api)] == ["a.pdf", "b.pdf"]
    with served_api.database.transaction() as session:
        assert session.query(Batch).count() == 1


def test_a_file_that_was_written_again_is_another_document(
    served_api: ServedApi, folder: Path
) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    ingest(folder)
    (folder / "a.pdf").write_bytes(pdf("another"))

    ingest(folder)

    assert len(report()) == 1
    assert len(documents(served_api)) == 2


def test_rows_of_a_manifest_may_move_between_two_runs(served_api: ServedApi, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    manifest = folder / "m.ndjson"
    row = json.dumps({"path": "a.pdf", "id": 7, "metadata": {"x": "ä"}})
    manifest.write_text(f"{row}\n")
    ingest(manifest)
    manifest.write_text(f'{{"path": "a.pdf"}}\nno json\n\n{row}\n')

    ingest(manifest, exit_code=1)

    assert sorted(each["state"] for each in report_lines()) == ["queued", "queued", "refused"]
    assert sorted(each.external_id or "" for each in documents(served_api)) == ["", "7"]


def test_a_batch_goes_on_with_its_options(served_api: ServedApi, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))

    ingest(folder, "--options", '{"dpi": 300}')
    ingest(folder, exit_code=2)

    assert [each.options["dpi"] for each in documents(served_api)] == [300]


def test_a_cancelled_batch_ends_the_run_with_a_remedy(served_api: ServedApi, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    ingest(folder)
    (batch,) = served_api.client.batches()
    served_api.client.cancel_batch(batch.id)
    (folder / "b.pdf").write_bytes(pdf("b"))

    result = runner.invoke(app, ["ingest", str(folder), "--batch", "boxes"])

    assert result.exit_code == 1
    assert "takes no further documents" in result.stderr


def forget(*statements: str) -> None:
    """Put the journal into the state that a kill between two of its lines leaves."""
    (path,) = (Path.cwd().parent / "ingest").glob("*.sqlite")
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


@pytest.mark.parametrize(
    "statements",
    [
        [
            "UPDATE contents SET document_id = NULL, owner = NULL",
            "UPDATE entries SET state = 'pending'",
        ],
        ["UPDATE entries SET state = 'pending', identity = NULL", "DELETE FROM contents"],
        [
            "DELETE FROM entries",
            "DELETE FROM contents",
            "DELETE FROM facts WHERE name = 'batch_id'",
        ],
    ],
    ids=["after the upload", "before the claim", "after the batch"],
)
def test_what_was_not_noted_is_found_again(
    served_api: ServedApi, folder: Path, statements: list[str]
) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.pdf").write_bytes(pdf(name))
    (folder / "copy.pdf").write_bytes(pdf("a"))
    ingest(folder)
    before = report()
    forget(*statements)

    ingest(folder)

    assert {path: each["document_id"] for path, each in report().items()} == {
        path: each["document_id"] for path, each in before.items()
    }
    assert len(documents(served_api)) == 2
    assert len(list(served_api.client.batches())) == 1


def test_a_content_that_was_sent_under_a_name_that_nobody_knows_any_more_is_found(
    served_api: ServedApi, folder: Path
) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    ingest(folder)
    before = report()["a.pdf"]["document_id"]
    forget(
        "DELETE FROM entries",
        "DELETE FROM contents",
        "DELETE FROM facts WHERE name = 'batch_id'",
    )
    (folder / "a.pdf").rename(folder / "z.pdf")

    ingest(folder)

    assert report()["z.pdf"]["document_id"] == before
    assert [each.filename for each in documents(served_api)] == ["a.pdf"]


def test_the_first_name_of_a_content_stands_though_its_file_has_gone(
    served_api: ServedApi, folder: Path
) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    (folder / "b.pdf").write_bytes(pdf("a"))
    ingest(folder, "--jobs", "1")  # of several senders any may be the first
    forget(
        "UPDATE contents SET document_id = NULL, owner = NULL",
        "UPDATE entries SET state = 'pending'",
    )
    (folder / "a.pdf").unlink()

    ingest(folder)

    assert states() == {"b.pdf": ("queued", None)}
    assert [each.filename for each in documents(served_api)] == ["a.pdf"]


def test_a_second_process_with_the_same_journal_is_refused(
    served_api: ServedApi, folder: Path, tmp_path: Path
) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))

    with Journal(tmp_path / "journal.sqlite"):
        result = runner.invoke(
            app,
            ["ingest", str(folder), "--batch", "b", "--journal", str(tmp_path / "journal.sqlite")],
        )

    assert result.exit_code == 1
    assert "another process" in result.stderr
    assert documents(served_api) == []


def test_a_full_api_is_waited_for(served_api: ServedApi, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    refusals = [503, 429]

    def refuse_first(request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and request.url.path == "/v1/documents" and refusals:
            request.read()
            return httpx.Response(
                refusals.pop(), json={"code": "system_full"}, headers={"Retry-After": "1"}
            )
        return network.handle_request(request)

    network = httpx.HTTPTransport()
    journal = folder.parent / "journal.sqlite"
    with (
        network,
        ApiClient(
            served_api.url, served_api.key, transport=httpx.MockTransport(refuse_first)
        ) as client,
        Journal(journal) as kept,
    ):
        batch = client.create_batch("boxes")
        stop = threading.Event()
        said: list[str] = []
        tally = run(
            source_of(folder, ArchiveLimits()),
            journal=kept,
            uploader=Uploader(
                client, kept, batch.id, Patience(stop, max_wait_s=60, report=said.append)
            ),
            senders=2,
            stop=stop,
            report=lambda *_: None,
        )

    assert tally.states == {"sent": 1}
    assert len(said) == 2
    assert refusals == []
    assert len(documents(served_api)) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_was_stopped_goes_on(
    served_api: ServedApi, folder: Path, number: signal.Signals
) -> None:
    for each in range(60):
        (folder / f"{each}.pdf").write_bytes(pdf(each % 50) + bytes(2**18))
    with subprocess.Popen(  # noqa: S603 - our own program
        [
            *(sys.executable, "-m", "cli", "ingest"),
            str(folder),
            *("--batch", "boxes", "--jobs", "2"),
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_until(lambda: len(documents(served_api)) > 3, timeout_s=60)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    stopped_at = len(documents(served_api))

    ingest(folder)

    (batch,) = served_api.client.batches()
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert ("Stopped. " in said) == (number != signal.SIGKILL)
    assert (f"sent; batch {batch.id}." in said) == (number != signal.SIGKILL)
    assert stopped_at < 50
    assert len(documents(served_api)) == 50
    assert len(report()) == 60
    assert len(list(served_api.client.batches())) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("as_json", [True, False])
def test_a_run_that_is_stopped_while_it_waits_says_and_reports_what_is_done(
    served_api: ServedApi,
    folder: Path,
    number: signal.Signals,
    as_json: bool,  # noqa: FBT001 - a case of the test
) -> None:
    (folder / "a.pdf").write_bytes(pdf("a"))
    (folder / "empty.pdf").touch()
    with subprocess.Popen(  # noqa: S603 - our own program
        [
            *(sys.executable, "-m", "cli", "ingest", str(folder), "--batch", "boxes", "--wait"),
            *("--report", str(Path.cwd() / "ingest-report"), *(["--json"] if as_json else [])),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while " final" not in (line := process.stderr.readline()):
            assert line or process.poll() is None, "it ended before it waited"
        process.send_signal(number)
        told, said = process.communicate(timeout=60)

    (batch,) = served_api.client.batches()
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert "Stopped. 1 of 2 files is sent, and read without this command" in said
    assert f"batch {batch.id}" in said
    assert states() == {"a.pdf": ("queued", None), "empty.pdf": ("refused", "empty")}
    if as_json:
        last = json.loads(told.splitlines()[-1])
        assert (last["batch_id"], last["stopped"]) == (str(batch.id), True)
    else:
        assert "2 files: 1 queued, 1 refused" in told
