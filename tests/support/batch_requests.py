"""Requests for batches that are filled from buckets, and what goes into the buckets."""

import json
from collections.abc import Sequence
from typing import Any

import httpx

from db.models import Batch
from tests.support.api_server import RunningApi
from tests.support.services import S3Bucket, s3_client


def create_batch(client: httpx.Client, *, headers: Any = None, **fields: Any) -> httpx.Response:
    return client.post("/v1/batches", json={"name": "boxes", **fields}, headers=headers)


def prefix_of(bucket: S3Bucket, prefix: str = "in/") -> dict[str, Any]:
    return {"prefix": {"bucket": bucket.name, "prefix": prefix}}


def objects_of(bucket: S3Bucket, *keys: str, **fields: Any) -> dict[str, Any]:
    return {"objects": [{"bucket": bucket.name, "key": key, **fields} for key in keys]}


def manifest_text(bucket: S3Bucket, keys: Sequence[str]) -> str:
    """Return a manifest in NDJSON that names these keys, with their positions as ids."""
    rows = [{"path": f"s3://{bucket.name}/{key}", "id": number} for number, key in enumerate(keys)]
    return "".join(json.dumps(row) + "\n" for row in rows)


def put_text(bucket: S3Bucket, key: str, text: str) -> None:
    s3_client(bucket).put_object(Bucket=bucket.name, Key=key, Body=text.encode())


def batches_in(api: RunningApi) -> list[Batch]:
    with api.database.transaction() as session:
        return session.query(Batch).all()
