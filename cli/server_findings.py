"""What ``pagefleet doctor`` finds out about servers: does each answer, with these credentials."""

from collections.abc import Callable, Iterator

from cli.findings import Finding
from workers.settings import WorkerSettings


def check_servers(settings: WorkerSettings) -> Iterator[Finding]:
    """Ask database, broker and storage for an answer, as a worker would."""
    from db.engine import Database
    from db.errors import DatabaseError
    from storage.errors import StorageError
    from workers import dispatch
    from workers.object_storage import make_store

    database = Database(settings.database_url.get_secret_value(), pool_size=1)
    try:
        yield _answer(
            "Database",
            database.check,
            DatabaseError,
            "Check PAGEFLEET_DATABASE_URL, that the server runs, and `pagefleet migrate`.",
        )
    finally:
        database.dispose()
    yield _answer(
        "Broker",
        dispatch.check,
        dispatch.DispatchError,
        "Check PAGEFLEET_REDIS_URL, its password, and that the server runs.",
    )
    store = make_store(settings)
    try:
        yield _answer(
            "Storage",
            store.check,
            StorageError,
            "Check PAGEFLEET_S3_ENDPOINT_URL, the bucket and the access key.",
        )
    finally:
        store.close()


def check_api(address: str | None, key: str | None) -> Iterator[Finding]:
    """Ask the API whether it is ready; nothing when no address is known.

    Args:
        address: of the API, None when neither the settings nor a running stack name one.
        key: presented to it, None for none.
    """
    from cli.client import ApiClient
    from cli.errors import ApiError

    if address is None:
        return
    with ApiClient(address, key) as client:
        yield _answer(
            f"API at {address}",
            client.require_ready,
            ApiError,
            "Start it with `pagefleet up`, or look at its log.",
        )


def _answer(name: str, ask: Callable[[], None], refusal: type[Exception], remedy: str) -> Finding:
    try:
        ask()
    except refusal as error:
        return Finding(name, "failed", str(error), remedy)
    return Finding(name, "ok", "answers")
