"""The project as a distribution: its names, its files, its locks."""

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PACKAGES = ("api", "cli", "db", "storage", "workers")
LOCKS = sorted([
    *(ROOT / "requirements").glob("*.txt"),
    *(ROOT / "bench" / "requirements").glob("*.txt"),
])
# Each lock and the extras that it holds; test, dev and models are lists of their own.
LOCKED_EXTRAS = {"cpu": {"cpu"}, "gpu": {"gpu"}, "embedded": {"cpu", "embedded"}}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def owners(package: str) -> set[str]:
    """Return the installed distributions, ours aside, whose files stand under an import name."""
    return set(metadata.packages_distributions().get(package, [])) - {"pagefleet"}


def locked(lock: Path) -> dict[str, Version]:
    """Return the versions that a lock pins, by distribution."""
    pins = re.findall(
        r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)", lock.read_text(), re.MULTILINE
    )
    return {canonicalize_name(name): Version(version) for name, version in pins}


def requirements(project: dict[str, Any], extras: set[str]) -> Iterator[Requirement]:
    yield from map(Requirement, project["project"]["dependencies"])
    for extra in extras:
        yield from map(Requirement, project["project"]["optional-dependencies"][extra])


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_distribution_owns_one_of_our_import_names(package: str) -> None:
    assert owners(package) == set()


def test_the_packages_are_those_that_the_build_names(project: dict[str, Any]) -> None:
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]

    assert tuple(wheel["packages"]) == PACKAGES
    # bench belongs to the checkout alone.
    assert project["tool"]["importlinter"]["root_packages"] == sorted([*PACKAGES, "bench"])


def test_the_two_onnxruntimes_are_not_installed_together() -> None:
    found = [name for name in ("onnxruntime", "onnxruntime-gpu") if installed(name)]

    assert len(found) == 1


def test_both_onnxruntimes_are_pinned_to_one_version(project: dict[str, Any]) -> None:
    (cpu,) = requirements_of(project, "cpu")
    (gpu,) = requirements_of(project, "gpu")

    assert str(cpu.specifier) == str(gpu.specifier)
    assert str(cpu.specifier).startswith("==")


def requirements_of(project: dict[str, Any], extra: str) -> list[Requirement]:
    return [Requirement(line) for line in project["project"]["optional-dependencies"][extra]]


def test_pymupdf_is_below_2_where_it_would_bring_a_second_onnxruntime() -> None:
    version = installed("pymupdf")

    assert version is not None
    assert Version("1.28.2") <= Version(version) < Version("2")


def test_every_file_of_the_packages_is_in_the_wheel() -> None:
    builder = WheelBuilder(str(ROOT))
    shipped = {Path(each.path).relative_to(ROOT) for each in builder.recurse_included_files()}

    present = {
        path.relative_to(ROOT)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert present - shipped == set()


def test_there_are_locks() -> None:
    assert {lock.stem for lock in LOCKS} >= {*LOCKED_EXTRAS, "dev", "models", "models-tiny", "test"}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_pin_of_a_lock_has_hashes(lock: Path) -> None:
    entries = re.split(r"(?m)^(?=[A-Za-z0-9])", lock.read_text())[1:]

    without = [entry.split("==")[0] for entry in entries if "--hash=sha256:" not in entry]
    assert entries
    assert without == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_names_no_package_index(lock: Path) -> None:
    assert re.findall(r"(?m)^\s*-(?!-hash).*|\S+://\S+", lock.read_text()) == []


@pytest.mark.parametrize(("name", "extras"), LOCKED_EXTRAS.items())
def test_a_lock_pins_what_the_project_requires(
    project: dict[str, Any], name: str, extras: set[str]
) -> None:
    pins = locked(ROOT / "requirements" / f"{name}.txt")

    unmet = [
        str(wanted)
        for wanted in requirements(project, extras)
        if pins.get(canonicalize_name(wanted.name)) not in wanted.specifier
    ]
    assert unmet == []


@pytest.mark.parametrize("name", ["cpu", "embedded", "test", "dev"])
def test_locks_that_are_installed_together_agree(name: str) -> None:
    base = locked(ROOT / "requirements" / "embedded.txt")
    other = locked(ROOT / "requirements" / f"{name}.txt")

    assert {each: pin for each, pin in other.items() if base.get(each, pin) != pin} == {}


@pytest.mark.parametrize("name", LOCKED_EXTRAS)
def test_a_lock_holds_one_onnxruntime(name: str) -> None:
    pins = locked(ROOT / "requirements" / f"{name}.txt")

    assert len(pins.keys() & {"onnxruntime", "onnxruntime-gpu"}) == 1
