"""The use cases on one database, one store and one render child, called by hand in any order."""

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from PIL import Image

from db import chunks, document_sources, documents, pages
from db.engine import Database
from db.models import Document, Page
from storage import keys
from storage.memory import InMemoryObjectStore
from tests.support.engines import NumberingEngine
from tests.support.rows import NOT_DUE_S, TENANT, make_document
from workers.assemble_document import assemble_document
from workers.content_cache import ContentCache
from workers.copy_source import SourceCopier
from workers.ocr.modes import Mode, TextOrder
from workers.ocr.options import OcrOptions
from workers.open_source import SourceOpener
from workers.page_cache import PageCache
from workers.page_renderer import PageRenderer
from workers.recognize_chunk import ChunkOutcome, recognize_chunk
from workers.recover_stalled import Round, recover_stalled
from workers.source_file import SourceFile
from workers.split_document import split_document
from workers.work_rules import WorkRules


@dataclass
class Pipeline:
    """One worker that does what its test tells it."""

    database: Database
    store: InMemoryObjectStore
    source_file: SourceFile
    renderer: PageRenderer
    rules: WorkRules
    engine: Any = field(default_factory=NumberingEngine)
    cache: ContentCache | None = None
    page_cache: PageCache | None = None
    chunk_pages: int = 2
    max_file_bytes: int = 2**20

    def accept(
        self,
        body: bytes,
        *,
        media_type: str = "image/tiff",
        mode: Mode = "ocr",
        text_order: TextOrder = "reading",
        tenant: str = TENANT,
        password: str | None = None,
        **options: Any,
    ) -> UUID:
        """Do what the API does with an upload, short of sending a message."""
        document = make_document(
            tenant=tenant,
            media_type=media_type,
            size_bytes=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
            options=OcrOptions(mode=mode, text_order=text_order, **options).to_row(),
        )
        self.store.put(keys.source_key(document.id), body, media_type=media_type)
        with self.database.transaction() as session:
            documents.insert(session, document, dispatch_after_s=NOT_DUE_S)
            if password is not None:
                document_sources.keep_password(session, document.id, password)
        return document.id

    def split(self, document_id: UUID) -> int:
        return split_document(
            document_id,
            transaction=self.database.transaction,
            opener=SourceOpener(
                store=self.store,
                transaction=self.database.transaction,
                source_file=self.source_file,
                copier=SourceCopier(self.store, max_bytes=self.max_file_bytes),
                renderer=self.renderer,
            ),
            cache=self.cache,
            chunk_pages=self.chunk_pages,
            rules=self.rules,
        )

    def recognize(self, chunk_id: UUID) -> ChunkOutcome:
        return recognize_chunk(
            chunk_id,
            transaction=self.database.transaction,
            store=self.store,
            source_file=self.source_file,
            renderer=self.renderer,
            engine=self.engine,
            rules=self.rules,
            cache=self.page_cache,
        )

    def assemble(self, document_id: UUID, generation: int | None = None) -> str:
        return assemble_document(
            document_id,
            generation or self.document(document_id).generation,
            transaction=self.database.transaction,
            store=self.store,
            rules=self.rules,
        )

    def sweep(self) -> Round:
        return recover_stalled(transaction=self.database.transaction, rules=self.rules, limit=100)

    def finish(self, document_id: UUID) -> str:
        """Do all that is left to do for a document."""
        self.split(document_id)
        for chunk_id in self.chunk_ids(document_id):
            self.recognize(chunk_id)
        return self.assemble(document_id)

    def chunk_ids(self, document_id: UUID) -> list[UUID]:
        with self.database.transaction() as session:
            return [chunk.id for chunk in chunks.list_of_document(session, document_id)]

    def document(self, document_id: UUID) -> Document:
        with self.database.transaction() as session:
            return documents.get(session, document_id)

    def pages(self, document_id: UUID) -> list[Page]:
        with self.database.transaction() as session:
            return list(pages.list_of_document(session, document_id))

    def result(self, document_id: UUID) -> dict[str, Any]:
        key = self.document(document_id).result_key
        assert key is not None
        result: dict[str, Any] = json.loads(self.store.get(key))
        return result

    def expire_leases(self) -> None:
        """Let the time of every lease and every rest pass."""
        with self.database.transaction() as session:
            session.connection().exec_driver_sql(
                "UPDATE chunks SET lease_expires_at = now() - interval '1 s',"
                " dispatch_after = now() - interval '1 s' WHERE dispatch_after IS NOT NULL;"
                "UPDATE documents SET lease_expires_at = now() - interval '1 s',"
                " dispatch_after = now() - interval '1 s' WHERE dispatch_after IS NOT NULL"
            )


def tiff_of(pages: int) -> bytes:
    """Return a TIFF of small white pages."""
    return gray_tiff([255] * pages)


def gray_tiff(levels: Sequence[int]) -> bytes:
    """Return a TIFF of small pages, each of one gray."""
    frames = [Image.new("L", (60, 40), level) for level in levels]
    file = io.BytesIO()
    frames[0].save(file, "TIFF", save_all=True, append_images=frames[1:])
    return file.getvalue()
