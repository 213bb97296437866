"""The object store that settings name; worker, API and doctor make theirs here."""

from storage.s3 import S3ObjectStore
from workers.program_metrics import count_storage_error
from workers.settings import WorkerSettings

_WORKER_ATTEMPTS = 8  # a worker has time; minutes pass before it gives up
_WORKER_CONNECTIONS = 16


def make_store(
    settings: WorkerSettings,
    *,
    attempts: int = _WORKER_ATTEMPTS,
    connections: int = _WORKER_CONNECTIONS,
    public_endpoint_url: str | None = None,
) -> S3ObjectStore:
    """Make the object store; it is first talked to when it is first needed.

    Args:
        settings: that name bucket, service and credentials.
        attempts: of one request, with back-off between them.
        connections: that are kept open.
        public_endpoint_url: address of the service for others; None: the same.
    """
    secret = settings.s3_secret_access_key
    return S3ObjectStore(
        bucket=settings.s3_bucket,
        endpoint_url=settings.s3_endpoint_url,
        public_endpoint_url=public_endpoint_url,
        region=settings.s3_region,
        access_key_id=settings.s3_access_key_id,
        secret_access_key=None if secret is None else secret.get_secret_value(),
        checksums=settings.s3_checksums,
        attempts=attempts,
        connections=connections,
        on_error=count_storage_error,
    )
