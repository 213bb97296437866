"""A driver with one GPU, in place of NVIDIA's library, where this folder is on Python's path.

``FAKE_NVML_FILE`` names a file of JSON with ``used`` and ``total``, in bytes; it is read at each
question.
"""

import json
import os
from pathlib import Path
from types import SimpleNamespace


class NVMLError(Exception):
    """What the driver refuses with."""


def nvmlInit() -> None: ...  # noqa: N802 - the library's names, as those that follow


def nvmlShutdown() -> None: ...  # noqa: N802


def nvmlDeviceGetCount() -> int:  # noqa: N802
    return 1


def nvmlDeviceGetHandleByIndex(index: int) -> int:  # noqa: N802
    return index


def nvmlDeviceGetHandleByUUID(uuid: str) -> str:  # noqa: N802
    return uuid


def nvmlDeviceGetUUID(handle: int) -> str:  # noqa: N802
    return f"GPU-fake-{handle}"


def nvmlDeviceGetMemoryInfo(_handle: int | str) -> SimpleNamespace:  # noqa: N802
    return SimpleNamespace(**json.loads(Path(os.environ["FAKE_NVML_FILE"]).read_text("utf-8")))
