"""A door to boto3: S3, and everything that speaks it. The other one is ``storage.sqs``."""

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's own name for it
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
)

from storage.errors import (
    BucketNotFoundError,
    ObjectChangedError,
    ObjectCorruptError,
    ObjectNotFoundError,
    StorageError,
    StorageUnavailableError,
)
from storage.object_store import PART_BYTES, ObjectWriter, StoredObject, check_range
from storage.s3_part_uploads import S3PartUploads

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Checksums = Literal["when_required", "when_supported"]
OnError = Callable[[str, str], None]

_KEYS_PER_DELETE = 1_000  # the most that one request takes
_PAST_THE_END = "InvalidRange"
_NO_BUCKET = "NoSuchBucket"
_MISSING = frozenset({"NoSuchKey", "404", "NotFound", "NoSuchUpload", "NoSuchVersion"})
_CHANGED = frozenset({"PreconditionFailed", "412"})
_PARTS_CHANGED = frozenset({"InvalidPart", "EntityTooSmall"})
_PASSING = frozenset({
    "500",
    "502",
    "503",
    "504",
    "InternalError",
    "RequestTimeout",
    "RequestTimeTooSkewed",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequests",
})


class S3ObjectStore:
    """One bucket. The client is made at first use, once per process: never across a fork."""

    def __init__(  # noqa: PLR0913 - one argument for each setting, all by name
        self,
        *,
        bucket: str,
        endpoint_url: str | None = None,
        public_endpoint_url: str | None = None,
        region: str = "us-east-1",
        access_key_id: str | None = None,
        secret_access_key: str | None = None,
        checksums: Checksums = "when_required",
        attempts: int = 8,
        connect_timeout_s: float = 5,
        read_timeout_s: float = 60,
        connections: int = 16,
        on_error: OnError | None = None,
    ) -> None:
        """Describe the bucket.

        Args:
            bucket: its name.
            endpoint_url: address of the service; None: AWS.
            public_endpoint_url: its address for others, in ``part_uploads``; None: the same.
            region: of the bucket.
            access_key_id: None: the machine's own role.
            secret_access_key: goes with ``access_key_id``.
            checksums: since 1.36 boto3 sends checksums that some compatible stores refuse;
                ``when_supported`` asks for them.
            attempts: of one request, with back-off between them.
            connect_timeout_s: of one attempt.
            read_timeout_s: of one attempt, between two pieces of the answer.
            connections: that are kept open for the next request; as many as threads that use the
                store at once.
            on_error: is told of each call that fails for good: ``own``, or ``other`` for a bucket
                of ``other_bucket``, and ``unavailable``, ``refused`` or ``corrupt``. That there is
                no such object, or another one by now, is an answer and no failure.
        """
        self._bucket = bucket
        self._on_error = on_error or _tell_nobody
        self._whose = "own"
        self._public_endpoint_url = public_endpoint_url
        self._client_options: dict[str, Any] = {
            "endpoint_url": endpoint_url,
            "region_name": region,
            "aws_access_key_id": access_key_id,
            "aws_secret_access_key": secret_access_key,
            "config": Config(
                connect_timeout=connect_timeout_s,
                read_timeout=read_timeout_s,
                retries={"mode": "standard", "total_max_attempts": attempts},
                request_checksum_calculation=checksums,
                response_checksum_validation=checksums,
                signature_version="s3v4",
                # Compatible stores have no name in DNS for every bucket.
                s3={"addressing_style": "path" if endpoint_url else "auto"},
                max_pool_connections=connections,
            ),
        }

    @cached_property
    def _client(self) -> "S3Client":
        # A session of its own: boto3's default one is shared and not thread-safe when made.
        return boto3.session.Session().client("s3", **self._client_options)

    @cached_property
    def _plain_client(self) -> "S3Client":
        if self._client_options["config"].request_checksum_calculation == "when_required":
            return self._client
        return self._client_without_checksums(self._client_options["endpoint_url"])

    @cached_property
    def _public_client(self) -> "S3Client":
        endpoint_url = self._public_endpoint_url
        return self._client_without_checksums(endpoint_url) if endpoint_url else self._plain_client

    def _client_without_checksums(self, endpoint_url: str | None) -> "S3Client":
        without_checksums = Config(
            request_checksum_calculation="when_required",
            s3={"addressing_style": "path" if endpoint_url else "auto"},
        )
        options: dict[str, Any] = {
            **self._client_options,
            "endpoint_url": endpoint_url,
            "config": self._client_options["config"].merge(without_checksums),
        }
        return boto3.session.Session().client("s3", **options)

    @property
    def part_uploads(self) -> S3PartUploads:
        return S3PartUploads(
            self._bucket,
            inside=lambda: self._plain_client,
            outside=lambda: self._public_client,
            translated=partial(self._translated, changed=_PARTS_CHANGED),
        )

    def other_bucket(self, name: str) -> "S3ObjectStore":
        # On the same client: one takes tens of milliseconds and megabytes to make.
        other = copy.copy(self)
        other.__dict__.update(_bucket=name, _client=self._client, _whose="other")
        return other

    def close(self) -> None:
        """Close the pooled connections; the next call opens new ones."""
        for name in ("_client", "_plain_client", "_public_client"):
            client = self.__dict__.pop(name, None)  # each is made at first use
            if client is not None:
                client.close()

    def put(self, key: str, body: bytes, *, media_type: str) -> None:
        with self._translated(key):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=media_type)

    @contextmanager
    def writer(self, key: str, *, media_type: str) -> Iterator[ObjectWriter]:
        upload = _Upload(self, key, media_type)
        try:
            yield upload
            upload.finish()
        except BaseException:
            upload.abort()
            raise

    def get(self, key: str) -> bytes:
        with self._translated(key):
            return self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()

    def read_range(self, key: str, *, start: int, stop: int) -> bytes:
        check_range(start, stop)
        if start == stop:
            self.head(key)  # HTTP has no empty range, and a missing object is an error all the same
            return b""
        with self._translated(key):
            try:
                answer = self._client.get_object(
                    Bucket=self._bucket, Key=key, Range=f"bytes={start}-{stop - 1}"
                )
            except ClientError as error:
                if _code(error) == _PAST_THE_END:
                    return b""
                raise
            return answer["Body"].read()

    def stream(
        self,
        key: str,
        *,
        part_bytes: int = PART_BYTES,
        version_id: str | None = None,
        etag: str | None = None,
        start: int = 0,
    ) -> Iterator[bytes]:
        pinned: dict[str, Any] = _version(version_id)
        if etag is not None:
            pinned["IfMatch"] = f'"{etag}"'
        if start:
            pinned["Range"] = f"bytes={start}-"
        with self._translated(key):
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=key, **pinned)
            except ClientError as error:
                if start and _code(error) == _PAST_THE_END:
                    return iter(())
                raise
        body = answer["Body"]
        # A store that does not know If-Match sends whatever it has.
        if etag is not None and answer["ETag"].strip('"') != etag:
            body.close()
            raise ObjectChangedError(key)

        def parts() -> Iterator[bytes]:
            with self._translated(key), body:
                yield from body.iter_chunks(part_bytes)

        return parts()

    def head(self, key: str, *, version_id: str | None = None) -> StoredObject:
        pinned: dict[str, Any] = _version(version_id)
        with self._translated(key):
            answer = self._client.head_object(Bucket=self._bucket, Key=key, **pinned)
        return StoredObject(
            key, answer["ContentLength"], answer["ETag"].strip('"'), answer.get("VersionId")
        )

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredObject]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=prefix, StartAfter=after
        )
        with self._translated(prefix):
            for page in pages:
                for found in page.get("Contents", []):
                    yield StoredObject(found["Key"], found["Size"], found["ETag"].strip('"'))

    def delete(self, keys: Iterable[str]) -> None:
        remaining = iter(keys)
        while batch := list(islice(remaining, _KEYS_PER_DELETE)):
            with self._translated(batch[0]):
                answer = self._client.delete_objects(
                    Bucket=self._bucket,
                    Delete={"Objects": [{"Key": key} for key in batch], "Quiet": True},
                )
                _require_deleted(answer.get("Errors", []))

    def presign_get(self, key: str, *, expires_s: int) -> str:
        with self._translated(key):
            return self._client.generate_presigned_url(
                "get_object", Params={"Bucket": self._bucket, "Key": key}, ExpiresIn=expires_s
            )

    def presign_put(self, key: str, *, media_type: str, expires_s: int) -> str:
        with self._translated(key):
            return self._client.generate_presigned_url(
                "put_object",
                Params={"Bucket": self._bucket, "Key": key, "ContentType": media_type},
                ExpiresIn=expires_s,
            )

    def check(self) -> None:
        try:
            with self._translated(self._bucket):
                self._client.head_bucket(Bucket=self._bucket)
        except ObjectNotFoundError as error:
            self._on_error(self._whose, "refused")
            raise StorageError(f"there is no bucket {self._bucket}") from error

    def ensure_bucket(self) -> None:
        """Make the bucket unless it is there; for stores that Pagefleet runs itself."""
        with self._translated(self._bucket):
            buckets = self._client.list_buckets()["Buckets"]
            if self._bucket not in {bucket["Name"] for bucket in buckets}:
                self._client.create_bucket(Bucket=self._bucket)

    @contextmanager
    def _translated(self, key: str, *, changed: Collection[str] = _CHANGED) -> Iterator[None]:
        """Raise botocore's errors as ours, and tell of those that are failures.

        Raises:
            StorageError: one of its kinds, as the function of the same name says.
        """
        try:
            with _translated(key, changed=changed):
                yield
        except StorageError as error:
            kind = _kind_of(error)
            if kind is not None:
                self._on_error(self._whose, kind)
            raise


class _Upload:
    """Collects parts; small objects become one PUT, larger ones a multipart upload."""

    def __init__(self, store: S3ObjectStore, key: str, media_type: str) -> None:
        self._store = store
        self._key = key
        self._media_type = media_type
        self._pending = bytearray()
        self._upload_id: str | None = None
        self._etags: list[str] = []

    def write(self, part: bytes) -> None:
        self._pending += part
        while len(self._pending) >= PART_BYTES:
            # Cut off and sent as it is: each copy would be a part more for every upload at a time.
            full, self._pending = self._pending, self._pending[PART_BYTES:]
            del full[PART_BYTES:]
            self._send(full)

    def finish(self) -> None:
        if self._upload_id is None:
            self._store.put(self._key, bytes(self._pending), media_type=self._media_type)
            return
        if self._pending:
            self._send(self._pending)
        self._call(
            self._store._client.complete_multipart_upload,  # noqa: SLF001 - same module
            UploadId=self._upload_id,
            MultipartUpload={
                "Parts": [
                    {"PartNumber": number, "ETag": etag}
                    for number, etag in enumerate(self._etags, start=1)
                ]
            },
        )

    def abort(self) -> None:
        """Leave nothing behind; a store that is away keeps parts that its lifecycle removes."""
        if self._upload_id is None:
            return
        try:
            self._call(
                self._store._client.abort_multipart_upload,  # noqa: SLF001 - same module
                UploadId=self._upload_id,
            )
        except StorageError:
            return  # the first error is the one to report

    def _send(self, part: bytearray) -> None:
        client = self._store._client  # noqa: SLF001 - same module
        if self._upload_id is None:
            answer = self._call(client.create_multipart_upload, ContentType=self._media_type)
            self._upload_id = answer["UploadId"]
        answer = self._call(
            client.upload_part,
            UploadId=self._upload_id,
            PartNumber=len(self._etags) + 1,
            Body=part,
        )
        self._etags.append(answer["ETag"])

    def _call(self, operation: Callable[..., Any], **arguments: Any) -> Any:  # noqa: ANN401 - boto3's answers are dictionaries of their own
        with self._store._translated(self._key):  # noqa: SLF001 - same module
            return operation(Bucket=self._store._bucket, Key=self._key, **arguments)  # noqa: SLF001 - same module


@contextmanager
def _translated(key: str, *, changed: Collection[str] = _CHANGED) -> Iterator[None]:
    """Raise botocore's errors as ours, by code.

    Raises:
        BucketNotFoundError: there is no such bucket.
        ObjectNotFoundError: the store says that there is none.
        ObjectChangedError: it, or a part of it, has another etag than was asked for.
        ObjectCorruptError: the bytes do not have the checksum that the store gave with them.
        StorageUnavailableError: no connection or one that broke off, throttling, or an error of
            the server.
        StorageError: any other refusal.
    """
    try:
        yield
    except ClientError as error:
        code = _code(error)
        if code == _NO_BUCKET:
            raise BucketNotFoundError(key) from error
        if code in _MISSING:
            raise ObjectNotFoundError(key) from error
        if code in changed:
            raise ObjectChangedError(key) from error
        if code in _PASSING or _status(error) >= 500:  # noqa: PLR2004 - HTTP's server errors
            raise StorageUnavailableError(f"{code} for {key}") from error
        raise StorageError(f"{code} for {key}") from error
    except FlexibleChecksumError as error:
        raise ObjectCorruptError(key) from error
    except (ConnectionError, HTTPClientError, IncompleteReadError) as error:
        raise StorageUnavailableError(f"the store is not reachable for {key}") from error
    except BotoCoreError as error:
        raise StorageError(f"{type(error).__name__} for {key}") from error


def _require_deleted(errors: Sequence[Mapping[str, Any]]) -> None:
    """Check what a delete request says of those of its keys that it did not delete.

    Raises:
        StorageUnavailableError: none of them is refused for good; deleting all again may help.
        StorageError: at least one is.
    """
    failed = [error for error in errors if error.get("Code") not in _MISSING]
    refused = [error for error in failed if error.get("Code") not in _PASSING]
    for first, kind in ((refused, StorageError), (failed, StorageUnavailableError)):
        if first:
            code, key = first[0].get("Code"), first[0].get("Key")
            raise kind(f"{code} for {key}, one of {len(failed)} objects that were not deleted")


def _kind_of(error: StorageError) -> str | None:
    match error:
        case BucketNotFoundError():
            return "refused"
        case ObjectNotFoundError() | ObjectChangedError():
            return None
        case ObjectCorruptError():
            return "corrupt"
        case StorageUnavailableError():
            return "unavailable"
    return "refused"


def _tell_nobody(_whose: str, _kind: str) -> None: ...


def _version(version_id: str | None) -> dict[str, Any]:
    return {} if version_id is None else {"VersionId": version_id}


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
