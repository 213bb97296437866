"""Multipart uploads of S3 whose parts others send."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from storage.errors import ObjectNotFoundError
from storage.part_uploads import StoredPart

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_MEDIA_TYPE = "application/octet-stream"  # nobody has looked at the bytes yet


class S3PartUploads:
    """The objects of one bucket that are sent in parts."""

    def __init__(
        self,
        bucket: str,
        *,
        inside: Callable[[], "S3Client"],
        outside: Callable[[], "S3Client"],
        translated: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        """Describe the bucket.

        Args:
            bucket: its name.
            inside: returns the client that talks to the store. It must add no checksums of its own:
                with one at the beginning every part would have to come with another.
            outside: returns the client of the address that others know; it only signs.
            translated: raises the errors of the client as those of storage.
        """
        self._bucket = bucket
        self._inside = inside
        self._outside = outside
        self._translated = translated

    def begin(self, key: str) -> str:
        with self._translated(key):
            return self._inside().create_multipart_upload(
                Bucket=self._bucket, Key=key, ContentType=_MEDIA_TYPE
            )["UploadId"]

    def presign(
        self, key: str, parts_id: str, *, number: int, size_bytes: int, expires_s: int
    ) -> str:
        with self._translated(key):
            # What stands in a header is signed: another length is another signature.
            return self._outside().generate_presigned_url(
                "upload_part",
                Params={
                    "Bucket": self._bucket,
                    "Key": key,
                    "UploadId": parts_id,
                    "PartNumber": number,
                    "ContentLength": size_bytes,
                },
                ExpiresIn=expires_s,
            )

    def list(self, key: str, parts_id: str, *, after: int = 0) -> Iterator[StoredPart]:
        is_empty = True
        marker, is_truncated = after, True
        with self._translated(key):
            while is_truncated:
                page = self._inside().list_parts(
                    Bucket=self._bucket, Key=key, UploadId=parts_id, PartNumberMarker=marker
                )
                # A store may keep what was sent under a number before, and list it in any order;
                # and list the number again that it is to begin after.
                parts = sorted(
                    (part for part in page.get("Parts", []) if part["PartNumber"] > marker),
                    key=lambda part: (part["PartNumber"], part["LastModified"]),
                )
                for part in parts:
                    yield StoredPart(part["PartNumber"], part["Size"], part["ETag"].strip('"'))
                is_empty = is_empty and not page.get("Parts")
                is_truncated = page.get("IsTruncated", False) and bool(parts)
                marker = parts[-1]["PartNumber"] if parts else marker
        if is_empty and parts_id not in self._ids_of(key):
            raise ObjectNotFoundError(key)  # not every store says so itself

    def finish(self, key: str, parts_id: str, parts: Iterable[StoredPart]) -> None:
        with self._translated(key):
            self._inside().complete_multipart_upload(
                Bucket=self._bucket,
                Key=key,
                UploadId=parts_id,
                MultipartUpload={
                    "Parts": [{"PartNumber": part.number, "ETag": part.etag} for part in parts]
                },
            )

    def abort(self, key: str, parts_id: str | None) -> None:
        for each in self._ids_of(key) if parts_id is None else [parts_id]:
            with suppress(ObjectNotFoundError), self._translated(key):
                self._inside().abort_multipart_upload(Bucket=self._bucket, Key=key, UploadId=each)

    def _ids_of(self, key: str) -> Iterator[str]:
        pages = self._inside().get_paginator("list_multipart_uploads")
        with self._translated(key):
            for page in pages.paginate(Bucket=self._bucket, Prefix=key):
                for found in page.get("Uploads", []):
                    if found["Key"] == key:
                        yield found["UploadId"]
