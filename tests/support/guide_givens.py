"""What blocks of the guides need, made on a running stack: ``<!-- given: NAME, and NAME -->``.

Each returns the variables that the block uses.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from uuid import UUID

import httpx

from cli.api_views import DocumentStatus
from cli.client import ApiClient
from cli.samples import Sample
from db import documents
from db.engine import Database, Session
from storage import keys
from tests.support.embedded_stack import EmbeddedStack
from tests.support.fleet import wait_for
from tests.support.models import require_bundle
from tests.support.rows import NOT_DUE_S, make_document
from tests.support.text_pdfs import prose_page, write_lines

_LIMIT_S: Final = 300.0
_PAGES: Final = 10
_TENANT: Final = "default"  # of the key that ``up`` makes
SCANS: Final = "scans"
FILE_PASSWORD: Final = "blotting-paper"  # noqa: S105 - of a document of the tests


class Givens:
    """Makes what a block needs, anew for each.

    Args:
        stack: on which.
        samples: documents by their names.
        folder: where the commands of the guide run.
    """

    def __init__(self, stack: EmbeddedStack, samples: Mapping[str, Sample], folder: Path) -> None:
        self._stack = stack
        self._samples = samples
        self._folder = folder
        self._makers: dict[str, Callable[[], dict[str, str]]] = {
            "a document that was read": self._read_document,
            "an open document": self._open_document,
            "a cancelled document": self._cancelled_document,
            "a batch that was read": self._read_batch,
            "a batch with a failed document": self._failed_batch,
            "an open batch": self._open_batch,
            "a webhook": self._webhook,
            "a message to a webhook": self._delivery,
            "an object in a bucket": self._object,
            "models": self._models,
            "the settings of the servers": self._stack.state.environment,
            "Flower": self._flower,
        }

    def make(self, names: str) -> dict[str, str]:
        """Return the variables of all that a note names.

        Raises:
            KeyError: nobody knows how to make it.
        """
        made: dict[str, str] = {}
        for name in names.split(", and "):
            made |= self._makers[name]()
        return made

    def _read_document(self) -> dict[str, str]:
        with self._stack.client() as client:
            document = client.submit(self._folder / "ledger.pdf")
            self._until_final(client, document.id)
            return _ids(document.id)

    def _open_document(self) -> dict[str, str]:
        return _ids(self._waiting_document())

    def _cancelled_document(self) -> dict[str, str]:
        document_id = self._waiting_document()
        with self._stack.client() as client:
            client.cancel_document(document_id)
        return _ids(document_id)

    def _read_batch(self) -> dict[str, str]:
        return self._batch("letters.pdf")

    def _failed_batch(self) -> dict[str, str]:
        return self._batch("encrypted.pdf")

    def _batch(self, sample: str) -> dict[str, str]:
        with self._stack.client() as client:
            batch = client.create_batch("letters 1911")
            document = client.submit(self._samples[sample].path, batch_id=batch.id)
            self._until_final(client, document.id)
            return {"BATCH": str(batch.id)}

    def _open_batch(self) -> dict[str, str]:
        with self._stack.client() as client:
            batch = client.create_batch("letters 1912")
        self._waiting_document(batch_id=batch.id, priority="bulk")
        return {"BATCH": str(batch.id)}

    def _webhook(self) -> dict[str, str]:
        made = self._api("POST", "/v1/webhooks", json={"url": "https://hooks.example.com/"})
        return {"HOOK": made["id"]}

    def _delivery(self) -> dict[str, str]:
        given = self._webhook()
        self._read_document()
        path = f"/v1/webhooks/{given['HOOK']}/deliveries"
        found = wait_for(
            "a message",
            lambda: self._api("GET", path)["deliveries"],
            timeout_s=_LIMIT_S,
        )
        return {**given, "DELIVERY": found[0]["id"]}

    def _object(self) -> dict[str, str]:
        store = self._stack.state.make_store().other_bucket(SCANS)
        store.ensure_bucket()
        body = (self._folder / "ledger.pdf").read_bytes()
        store.put("in/ledger.pdf", body, media_type="application/pdf")
        store.close()
        return {}

    def _models(self) -> dict[str, str]:
        folder = self._folder / "models"
        if not folder.exists():
            bundle = require_bundle()
            folder.mkdir()
            shutil.copy(bundle.detection_path, folder / "detection.onnx")
            shutil.copy(bundle.recognition_path, folder / "recognition.onnx")
        return {"MODELS": str(folder)}

    def _flower(self) -> dict[str, str]:
        state = self._stack.state
        account = f"{state.flower_user}:{state.flower_password}"
        return {"FLOWER": state.flower_url, "FLOWER_ACCOUNT": account}

    def _waiting_document(self, **values: object) -> UUID:
        """Accept a document that no worker begins: it stays open for as long as a guide takes."""
        content = (self._folder / "letter.pdf").read_bytes()
        document = make_document(
            tenant=_TENANT,
            size_bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            **values,
        )
        document_id = document.id
        with closing(self._stack.state.make_store()) as store:
            store.put(keys.source_key(document_id), content, media_type=document.media_type)
        with self._transaction() as session:
            documents.insert(session, document, dispatch_after_s=NOT_DUE_S)
        return document_id

    @contextmanager
    def _transaction(self) -> Iterator[Session]:
        database = Database(self._stack.state.database_url, pool_size=1)
        with database.transaction() as session:
            yield session
        database.dispose()

    def _until_final(self, client: ApiClient, document_id: UUID) -> DocumentStatus:
        def look() -> DocumentStatus | None:
            document = client.document(document_id)
            return document if document.is_final else None

        return wait_for(f"document {document_id}", look, timeout_s=_LIMIT_S)

    def _api(self, method: str, path: str, **options: object) -> dict[str, object]:
        state = self._stack.state
        answer = httpx.request(
            method,
            state.api_url + path,
            headers={"Authorization": f"Bearer {state.api_key}"},
            trust_env=False,
            **options,  # type: ignore[arg-type]
        )
        found: dict[str, object] = answer.raise_for_status().json()
        return found


def _ids(document_id: UUID) -> dict[str, str]:
    return {"ID": str(document_id), "DOCUMENT": str(document_id)}


def write_files(folder: Path, samples: Mapping[str, Sample]) -> None:
    """Write the files that the guides speak of; small, as each is read several times."""
    letter = samples["letters.pdf"].path
    document, _ = prose_page()
    for number in range(2, _PAGES + 1):
        write_lines(document.new_page(width=595, height=842), [f"Page {number} of the ledger."])
    document.save(folder / "ledger.pdf")
    document.save(
        folder / "secret.pdf",
        encryption=5,  # AES-256
        owner_pw=FILE_PASSWORD,
        user_pw=FILE_PASSWORD,
    )
    (folder / "pw.txt").write_text(FILE_PASSWORD + "\n")
    for name in ("letter.pdf", "contract.pdf", "report.pdf", "form.pdf"):
        shutil.copy(letter, folder / name)
    for name in ("letters", "archive"):
        (folder / name).mkdir()
        shutil.copy(letter, folder / name / "1.pdf")
    shutil.copy(samples["label.png"].path, folder / "letters" / "2.png")
    shutil.copy(samples["label.png"].path, folder / "scan.tif")
