"""What an API key may do; which operation needs what, ``api.scopes`` says."""

from enum import StrEnum


class Scope(StrEnum):
    """None of them includes another."""

    READ = "read"
    WRITE = "write"
    WEBHOOKS = "webhooks"
