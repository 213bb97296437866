"""Ids of rows."""

from uuid import UUID

import uuid_utils.compat


def new_id() -> UUID:
    """Return a UUIDv7: unique without asking anybody, and ordered by time of creation."""
    return uuid_utils.compat.uuid7()
