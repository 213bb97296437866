"""Documents for a fleet to work off, by the hundred thousand: made, not read from files."""

import hashlib
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from db import documents
from db.engine import Database
from db.ids import new_id
from db.models import Batch, Document
from storage import keys
from storage.object_store import ObjectStore
from workers.ocr.options import OcrOptions

TENANT: Final = "bench"
_WORDS: Final = (
    *("the", "of", "and", "harbour", "ledger", "ship", "captain", "paid", "for", "rope", "sail"),
    *("three", "barrels", "salt", "herring", "weather", "north", "wind", "calm", "arrived"),
    *("departed", "cargo", "timber", "coal", "iron", "tallow", "received", "account", "balance"),
)
_LINES: Final = 12
_WORDS_PER_LINE: Final = 9
_BATCHES: Final = 4
_PUT_AT_ONCE: Final = 8
_ROWS_AT_ONCE: Final = 500


def small_pdf(seed: int) -> bytes:
    """Return a PDF of one A4 page with twelve lines of text; the same seed gives the same bytes."""
    choose = random.Random(seed)  # noqa: S311 - words of a test page
    lines = [f"Ledger page {seed}"]
    lines += [" ".join(choose.choices(_WORDS, k=_WORDS_PER_LINE)) for _ in range(_LINES - 1)]
    shown = " ".join(f"({line}) Tj T*" for line in lines)
    content = f"BT /F1 12 Tf 15 TL 72 770 Td {shown} ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources 6 0 R>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        b"<</Font<</F1 5 0 R>>>>",
    ]
    body = b"%PDF-1.4\n"
    table = b"0000000000 65535 f \n"
    for number, each in enumerate(objects, start=1):
        table += b"%010d 00000 n \n" % len(body)
        body += b"%d 0 obj%s\nendobj\n" % (number, each)
    size = len(objects) + 1
    trailer = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, len(body))
    return body + b"xref\n0 %d\n" % size + table + trailer


def queue_documents(
    count: int,
    *,
    make: Callable[[int], bytes],
    database: Database,
    store: ObjectStore,
    on_queued: Callable[[int], None],
) -> None:
    """Put sources and rows as the API does for a bulk submission, and send no message.

    Args:
        count: of documents, spread over four batches.
        make: returns the PDF of the n-th, from 0.
        database: gets the rows.
        store: gets the sources.
        on_queued: told how many are queued.
    """
    batches = [Batch(id=new_id(), tenant=TENANT, name=f"bench {n}") for n in range(_BATCHES)]
    with database.transaction() as session:
        session.add_all(batches)

    def put(number: int) -> Document:
        return _put(number, make(number), batch=batches[number % _BATCHES], store=store)

    with ThreadPoolExecutor(_PUT_AT_ONCE) as pool:
        for start in range(0, count, _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, count)
            rows = list(pool.map(put, range(start, stop)))
            with database.transaction() as session:
                documents.insert_all(session, rows, dispatch_after_s=0)
            on_queued(stop)


def _put(number: int, body: bytes, *, batch: Batch, store: ObjectStore) -> Document:
    document_id = new_id()
    key = keys.source_key(document_id)
    store.put(key, body, media_type="application/pdf")
    options = OcrOptions()
    return Document(
        id=document_id,
        tenant=TENANT,
        source={"kind": "upload", "key": key},
        filename=f"{number}.pdf",
        media_type="application/pdf",
        size_bytes=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        options=options.model_dump(mode="json"),
        options_hash=options.digest(),
        batch_id=batch.id,
        priority="bulk",
    )
