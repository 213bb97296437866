"""Send files past the API, as its clients do, and look at what is left of them."""

from typing import Any
from uuid import UUID

import httpx
from sqlalchemy import select, text, update

from db.engine import Database
from db.intake_models import DirectUpload
from storage.object_store import ObjectStore
from tests.support.services import S3Bucket, s3_client
from workers.clear_storage import clear_storage
from workers.work_rules import WorkRules

RULES = WorkRules(
    worker="test:1",
    lease_s=60,
    max_attempts=3,
    retry_delay_s=5,
    dispatch_grace_s=30,
    queue_limit=256,
)


def announce(
    client: httpx.Client, content: bytes, *, key: str | None = None, **fields: Any
) -> httpx.Response:
    return client.post(
        "/v1/uploads",
        json={"filename": "ledger.pdf", "size_bytes": len(content), **fields},
        headers={} if key is None else {"Idempotency-Key": key},
    )


def send(upload: dict[str, Any], content: bytes, *numbers: int) -> dict[int, str]:
    """PUT parts of a file, by default all that have an address; return their ETags."""
    etags = {}
    for part in upload["parts"]:
        number, size_bytes = part["part_number"], part["size_bytes"]
        if numbers and number not in numbers:
            continue
        start = (number - 1) * upload["part_bytes"]
        answer = httpx.put(part["url"], content=content[start : start + size_bytes])
        answer.raise_for_status()
        etags[number] = answer.headers["ETag"]
    return etags


def complete(
    client: httpx.Client,
    upload: dict[str, Any],
    etags: dict[int, str] | None = None,
    *,
    password: str | None = None,
) -> httpx.Response:
    """Complete an upload; without a body where nothing goes with it."""
    body: dict[str, Any] = {}
    if etags is not None:
        body["parts"] = [{"part_number": number, "etag": each} for number, each in etags.items()]
    if password is not None:
        body["password"] = password
    return client.post(f"/v1/uploads/{upload['id']}/complete", json=body or None)


def announced(client: httpx.Client, content: bytes, **fields: Any) -> dict[str, Any]:
    """Announce a file that is taken."""
    answer = announce(client, content, **fields)
    assert answer.status_code == 201, answer.text
    upload: dict[str, Any] = answer.json()
    return upload


def sent(client: httpx.Client, content: bytes, **fields: Any) -> dict[str, Any]:
    """Announce a file, and send all of it."""
    upload = announced(client, content, **fields)
    send(upload, content)
    return upload


def rows_in(database: Database) -> list[UUID]:
    with database.transaction() as session:
        return list(session.scalars(select(DirectUpload.id)))


def parts_in(bucket: S3Bucket) -> list[str]:
    """Return the keys of objects of which parts are in storage."""
    found = s3_client(bucket).list_multipart_uploads(Bucket=bucket.name).get("Uploads", [])
    return [each["Key"] for each in found]


def let_pass(database: Database, seconds: float) -> None:
    """Let time pass for all uploads, and for whoever holds one."""
    moved = text(f"interval '{seconds} s'")
    with database.transaction() as session:
        session.execute(
            update(DirectUpload).values(
                expires_at=DirectUpload.expires_at - moved,
                clear_after=DirectUpload.clear_after - moved,
                checked_until=DirectUpload.checked_until - moved,
            )
        )


def clear(database: Database, store: ObjectStore) -> None:
    clear_storage(transaction=database.transaction, store=store, rules=RULES)
