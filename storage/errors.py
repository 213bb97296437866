"""Errors of object storage."""


class StorageError(Exception):
    """The store refused: credentials, bucket, policy, or a request it does not take."""


class StorageUnavailableError(StorageError):
    """The store is unreachable, throttles, or failed on its side; trying again may help."""


class BucketNotFoundError(StorageError):
    """There is no bucket of this name."""


class ObjectNotFoundError(StorageError):
    """No object has this key."""


class ObjectChangedError(StorageError):
    """The object is no longer the one that was asked for: its etag or its length differs."""


class SourceNotFoundError(StorageError):
    """A user named an object, or a version of it, that is not there."""


class SourceRefusedError(StorageError):
    """The store does not hand out an object that a user named."""


class ObjectCorruptError(StorageError):
    """The bytes that came are not the bytes that were put: a checksum or a length differs."""
