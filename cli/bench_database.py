"""``pagefleet bench database``: what a ledger of many pages takes, on a server of its own."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.bench import OutOption, bench_errors, new_folder, observed
from cli.bench_fleet import JsonOption, ocr_settings, show_record, write_record
from cli.console import notices

if TYPE_CHECKING:
    from bench.comparison import Observer


def measure_database(
    *,
    documents: Annotated[int, typer.Option(min=10, help="That are finished.")] = 1_000,
    pages: Annotated[int, typer.Option(min=1, help="Of each document.")] = 100,
    queued: Annotated[int, typer.Option(min=0, help="Documents that wait after that.")] = 10_000,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Time the statements of a fleet on an empty Postgres and on a full one, and weigh the rows.

    No page is read and nothing stored: rows alone. Writes database.json.
    """
    with bench_errors(), tempfile.TemporaryDirectory(prefix="pagefleet-bench-") as folder:
        with observed() as observer:
            record = _measure(Path(folder), documents, pages, queued, observer)
        target = write_record(record, "database.json", out or new_folder(ocr_settings().home))
    show_record(record, _summary(record), as_json=as_json)
    notices().print(f"written to {target}", markup=False)


def _measure(
    home: Path, documents: int, pages: int, queued: int, observer: "Observer"
) -> dict[str, Any]:
    from bench.full_database import measure
    from cli.stack.commands import stack_errors
    from cli.stack.postgres import Postgres
    from db.engine import Database
    from db.migrate import migrate

    home.chmod(0o711)  # Postgres runs as another user when this is root
    postgres = Postgres(home / "postgres")
    with stack_errors():
        postgres.start()
        try:
            postgres.wait_ready(60)
            migrate(postgres.url())
            database = Database(postgres.url())
            try:
                return measure(
                    database,
                    documents_done=documents,
                    pages_each=pages,
                    queued=queued,
                    on_done=observer.show,
                )
            finally:
                database.dispose()
        finally:
            postgres.stop()
            postgres.remove_data()


def _summary(record: dict[str, Any]) -> str:
    empty, full = record["empty"], record["full"]
    counts = f"{record['documents']:,} documents, {record['pages']:,} pages"
    weights = (
        f"{record['bytes_per_page']:,} bytes a page, {record['bytes_per_document']:,} a document"
    )
    lines = [f"{counts}, {record['queued']:,} queued: {weights} with its chunks"]
    lines += [f"{name}: {empty[name]:,} empty, {full[name]:,} full" for name in full]
    return "\n".join(lines)
