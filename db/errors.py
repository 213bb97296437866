"""Errors of the database door."""


class DatabaseError(Exception):
    """The database refused a statement: a constraint, a permission, or a mistake of ours."""


class DatabaseUnavailableError(DatabaseError):
    """The database cannot be reached, or gave up the connection; trying again may help."""


class OutcomeUnknownError(DatabaseUnavailableError):
    """The connection was lost in a COMMIT: what was changed may stand or not."""


class RowNotFoundError(DatabaseError):
    """No row has this id, or it belongs to another tenant."""


class StaleStateError(DatabaseError):
    """Another worker moved the row first; whoever sees this stops quietly."""


class TooManyWebhooksError(DatabaseError):
    """The tenant has as many endpoints as it may."""


class TooManyListingsError(DatabaseError):
    """The tenant has as many open listings as it may."""


class DuplicateRowError(DatabaseError):
    """A row with this unique value is there already; ``constraint`` names the rule."""

    def __init__(self, constraint: str) -> None:
        super().__init__(f"unique constraint {constraint} is violated")
        self.constraint = constraint
