"""How much one process does at once, and how many connections that takes."""

from dataclasses import dataclass

from api.settings import ApiSettings

_PROBES = 1  # of each server at a time; see api.readiness
_COUNTS = 4  # dry runs, each of another tenant: few, as each takes seconds and asks the store often


@dataclass(frozen=True, slots=True)
class Capacity:
    """Threads by what they do; the connections follow from them.

    Attributes:
        asking_threads: run the operations that are plain functions, which ask the database.
        accepting_threads: complete uploads, with calls to storage and to the database.
        storage_threads: pass uploads and results on, and never ask the database.
        counting_threads: count what batches would be filled with.
        uploads_per_tenant: at the same time; half of all, and at least one.
    """

    asking_threads: int
    accepting_threads: int
    storage_threads: int
    counting_threads: int
    uploads_per_tenant: int

    @property
    def database_connections(self) -> int:
        """As many as threads that may ask at once, so that none waits in vain for another."""
        return self.asking_threads + self.accepting_threads + _PROBES

    @property
    def storage_connections(self) -> int:
        """As many as are kept open: one a thread, and as many for results that are being read.

        A result holds its connection while its reader is slow, without a thread. Where more are
        read than that, a further one is made for each and closed at its end.
        """
        return 2 * self.storage_threads + self.accepting_threads + self.counting_threads + _PROBES


def capacity_of(settings: ApiSettings) -> Capacity:
    """Return what the settings allow; the database is asked by three times its pool at most."""
    pool_size = settings.api_database_pool_size
    return Capacity(
        asking_threads=2 * pool_size - _PROBES,
        accepting_threads=pool_size,
        storage_threads=settings.api_storage_threads,
        counting_threads=_COUNTS,
        uploads_per_tenant=(settings.api_max_uploads + 1) // 2,
    )
