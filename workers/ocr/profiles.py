"""Profiles: which models an operator asks for, by a short name or by a folder of his own."""

from pathlib import Path
from typing import Final

from workers.ocr.bundle import (
    MANIFEST_NAME,
    BundleManifest,
    ModelBundle,
    open_bundle,
    parse_manifest,
    read_manifest,
)
from workers.ocr.errors import ModelFileError

DEFAULT_PROFILE: Final = "balanced"
# The bundle of each.
PROFILES: Final[dict[str, str]] = {"balanced": "ppocrv6-small", "fast": "ppocrv6-tiny"}


def open_profile(profile: str, models_dir: Path) -> ModelBundle:
    """Check the files of a profile's models and read their charset.

    Args:
        profile: a name of ``PROFILES``, or the path of a folder with a ``bundle.json``.
        models_dir: where the files of the named profiles lie.

    A profile that is not known, and a file that is missing or does not fit, end in a
    ``ModelFileError`` that names the remedy.
    """
    manifest, folder = find_profile(profile, models_dir)
    return open_bundle(folder, manifest, remedy=_remedy(profile))


def find_profile(profile: str, models_dir: Path) -> tuple[BundleManifest, Path]:
    """Return a profile's manifest and the folder of its files, without looking at these.

    Args:
        profile: see ``open_profile``.
        models_dir: see ``open_profile``.

    Raises:
        ModelFileError: there is no such profile, or its manifest is malformed.
    """
    if profile in PROFILES:
        return read_manifest(PROFILES[profile]), models_dir
    folder = Path(profile)
    path = folder / MANIFEST_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise ModelFileError(
            f"no profile {profile!r}: it is {' or '.join(sorted(PROFILES))}, or the path of a"
            f" folder with a {MANIFEST_NAME} (docs/models.md)"
        ) from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise ModelFileError(f"{path} cannot be read: {exc}") from exc
    return parse_manifest(text), folder.absolute()


def _remedy(profile: str) -> str | None:
    """Return the command that fetches a profile's files; None for a folder of one's own."""
    if profile not in PROFILES:
        return None
    chosen = "" if profile == DEFAULT_PROFILE else f" --profile {profile}"
    return f"run `pagefleet models fetch{chosen}`"
