"""Errors of object storage."""


class StorageError(Exception):
    """The store refused: credentials, bucket, policy, or a request it does not take."""


class StorageUnavailableError(StorageError):
    """The store is unreachable, throttles, or failed on its side; trying again may help."""


class ObjectNotFoundError(StorageError):
    """No object has this key."""


class ObjectCorruptError(StorageError):
    """The bytes that came are not the bytes that were put: a checksum or a length differs."""
