"""Which objects of watched places became documents, so that each does so once."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from db.intake_models import S3Event


@dataclass(frozen=True, slots=True)
class SeenObject:
    """What tells one object from all others; ``version_id`` None: the bucket keeps none."""

    bucket: str
    key: str
    version_id: str | None
    etag: str


def lock_key(session: Session, bucket: str, key: str) -> None:
    """Let one transaction after the other add objects of this key, to the end of each."""
    session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"{bucket}/{key}", 0))))


def sequencers(session: Session, bucket: str, key: str) -> Sequence[str]:
    """Return the sequencers of all objects of this key that became documents."""
    return [
        sequencer
        for sequencer in session.scalars(
            select(S3Event.sequencer).where(
                S3Event.bucket == bucket, S3Event.key == key, S3Event.sequencer.is_not(None)
            )
        )
        if sequencer is not None
    ]


def add(session: Session, seen: SeenObject, *, document_id: UUID, sequencer: str | None) -> bool:
    """Note an object, in the transaction that adds its document; False: it is there already."""
    row = session.execute(
        insert(S3Event)
        .values(
            bucket=seen.bucket,
            key=seen.key,
            version_id=seen.version_id or "",
            etag=seen.etag,
            document_id=document_id,
            sequencer=sequencer,
        )
        .on_conflict_do_nothing()
        .returning(S3Event.document_id)
    ).one_or_none()
    return row is not None


def known(
    session: Session, bucket: str, objects: Sequence[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return those of some keys and etags that became documents, in whichever version."""
    # Two arrays in place of a list of pairs, which is another statement for every length.
    found = session.execute(
        text("""
            SELECT DISTINCT event.key, event.etag
            FROM unnest(CAST(:keys AS text[]), CAST(:etags AS text[])) AS asked(key, etag)
            JOIN s3_events AS event
              ON event.bucket = :bucket AND event.key = asked.key AND event.etag = asked.etag
        """),
        {
            "bucket": bucket,
            "keys": [key for key, _ in objects],
            "etags": [etag for _, etag in objects],
        },
    )
    return {(key, etag) for key, etag in found}
