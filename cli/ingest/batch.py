"""The batch of a journal: created by the first run, and found by every later one."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from cli.client import ApiClient
from cli.errors import EXIT_USAGE, CommandError
from cli.ingest.journal import Journal


def batch_of(
    client: ApiClient,
    journal: Journal,
    name: str,
    options: Mapping[str, Any],
    source: Mapping[str, Any] | None = None,
) -> UUID:
    """Return the batch of the journal.

    Args:
        client: of the API that the journal is about.
        journal: of this source and this name.
        name: of the batch.
        options: of its documents.
        source: what the API fills it from; None: it is filled by uploads.

    Raises:
        CommandError: it was begun with other options.
    """
    wanted = json.dumps(options, sort_keys=True)
    if journal.batch_options(wanted) != wanted:
        raise CommandError(
            f"the batch {name!r} was begun with other options",
            "Leave --options as they were, or choose another name for the batch.",
            exit_code=EXIT_USAGE,
        )
    known = journal.batch_id()
    if known is not None:
        return known
    created = client.create_batch(
        name,
        options=options,
        source=source,
        idempotency_key=f"ingest-{journal.batch_key()}",
    )
    journal.note_batch(created.id)
    return created.id
