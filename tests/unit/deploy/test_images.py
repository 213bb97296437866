"""The images: no engine builds them here, so what they copy, install and start is looked up."""

import ast
import fnmatch
import json
import re
import stat
from pathlib import Path

import pytest

from tests.support.commands import ROOT
from tests.support.deployed_programs import parse_command
from tests.support.dockerfiles import Instruction, instructions, of
from tests.support.manifests import K8S, OVERLAYS, overlay, render, workloads
from workers.ocr.model_files import wheel_source
from workers.ocr.profiles import PROFILES, find_profile

DOCKER = ROOT / "deploy" / "docker"
IMAGES = sorted(path.name.removesuffix(".Dockerfile") for path in DOCKER.glob("*.Dockerfile"))
FINAL = 1
# Of wheels, which bring these themselves, and of Python's own image.
BASE_PROGRAMS = {"python", "groupadd", "useradd", "install"}
PLACES = {"/var/lib/pagefleet", "/run/pagefleet", "/models"}
MEBIBYTE = 2**20


@pytest.fixture(params=IMAGES)
def image(request: pytest.FixtureRequest) -> Path:
    return DOCKER / f"{request.param}.Dockerfile"


def copied_from_context(image: Path) -> list[Instruction]:
    return [each for each in of("COPY", image) if not each.text.startswith("--from=")]


def sources(copy: Instruction) -> list[str]:
    return [word for word in copy.words[:-1] if not word.startswith("--")]


def test_there_is_an_image_for_each_flavor_of_the_runtime() -> None:
    assert IMAGES == ["cpu", "gpu"]


def test_an_image_has_two_stages_on_one_pinned_base(image: Path) -> None:
    (base,) = of("ARG", image, stage=-1)
    stages = [each.words[0] for each in of("FROM", image)]

    assert stages == ["${PYTHON_IMAGE}"] * 2
    # A full version of both: a tag that moves is no pin.
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+\.\d+-slim-[a-z]+", base.text)


def test_what_is_copied_is_there_and_is_let_through(image: Path) -> None:
    allowed = [
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    ]
    for copy in copied_from_context(image):
        for source in sources(copy):
            assert (ROOT / source).exists(), source
            assert any(
                source.rstrip("/") == each or source.startswith(f"{each}/") for each in allowed
            ), source


def test_nothing_reaches_an_image_that_is_not_named() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()

    assert [line for line in lines if line and not line.startswith(("#", "!"))] == [
        "*",
        "**/__pycache__",
    ]


def test_all_packages_of_the_project_are_copied(image: Path) -> None:
    copied = {source.rstrip("/") for copy in copied_from_context(image) for source in sources(copy)}

    assert {"api", "cli", "db", "storage", "workers", "pyproject.toml"} <= copied


def test_everything_is_installed_by_its_hash_or_is_our_own_wheel(image: Path) -> None:
    runs = [each.text for each in of("RUN", image)]
    installs = [
        command.strip() for run in runs for command in run.split("&&") if "pip install" in command
    ]

    copied = {source for copy in copied_from_context(image) for source in sources(copy)}
    assert len(installs) == 3
    for command in installs:
        named = re.findall(r"-r (\S+)", command)
        if named:
            assert "--require-hashes --only-binary :all:" in command
            assert set(named) <= copied
        else:
            assert command.endswith("--no-deps --no-index /wheels/*.whl")
    assert not any(re.search(r"\b(apt|apt-get|curl|wget|git)\b", run) for run in runs)


@pytest.mark.parametrize("flavor", IMAGES)
def test_the_image_has_the_runtime_of_its_name(flavor: str) -> None:
    text = (DOCKER / f"{flavor}.Dockerfile").read_text("utf-8")
    other = {"cpu": "gpu", "gpu": "cpu"}[flavor]

    assert f"requirements/{flavor}.txt" in text
    assert f"requirements/{other}.txt" not in text


def test_the_final_stage_installs_nothing_and_runs_as_nobody(image: Path) -> None:
    runs = " ".join(each.text for each in of("RUN", image, stage=FINAL))
    programs = {part.split()[0] for part in re.split("&&", runs)}

    assert programs <= BASE_PROGRAMS
    assert of("USER", image)[-1].text == "10001:10001"
    assert [each.keyword for each in instructions(image)][-4:] == [
        *("USER", "WORKDIR", "ENTRYPOINT", "CMD")
    ]


def test_pods_run_as_the_user_of_the_image(image: Path) -> None:
    pods = [each.pod["securityContext"] for each in workloads(overlay("gpu"))]

    assert {f"{pod['runAsUser']}:{pod['runAsGroup']}" for pod in pods} == {
        of("USER", image)[-1].text
    }


def test_the_places_that_are_written_belong_to_the_user(image: Path) -> None:
    made = " ".join(each.text for each in of("RUN", image, stage=FINAL))

    found = re.search(r"install -d -o 10001 -g 10001 (.*)$", made)
    assert found is not None
    assert set(found[1].split()) == PLACES
    assert of("WORKDIR", image)[-1].text in PLACES


def test_the_entry_point_is_the_programs_own(image: Path) -> None:
    scripts = (ROOT / "pyproject.toml").read_text("utf-8")
    (entry,) = of("ENTRYPOINT", image)

    assert json.loads(entry.text) == ["pagefleet"]
    assert 'pagefleet = "cli.__main__:run"' in scripts
    assert "PATH=/opt/pagefleet/bin:$PATH" in of("ENV", image, stage=FINAL)[0].text


def test_the_version_of_an_image_is_the_projects(image: Path, version: str) -> None:
    assert f'org.opencontainers.image.version="{version}"' in of("LABEL", image)[0].text


def test_the_probe_is_copied_to_where_pods_look_for_it(image: Path) -> None:
    (probe,) = (each for each in of("COPY", image) if "probe" in each.text)

    assert probe.words == [
        *("--chmod=0755", "deploy/docker/pagefleet-probe", "/usr/local/bin/pagefleet-probe")
    ]
    assert (DOCKER / "pagefleet-probe").stat().st_mode & stat.S_IXUSR


def test_no_weights_are_in_an_image(image: Path) -> None:
    """Nor could they be: no file of what is copied has the name or the size of a model."""
    files = [
        path
        for copy in copied_from_context(image)
        for source in sources(copy)
        for path in ([ROOT / source] if (ROOT / source).is_file() else (ROOT / source).rglob("*"))
        if path.is_file()
    ]

    assert len(files) > 100
    assert [path for path in files if fnmatch.fnmatch(path.name, "*.onnx")] == []
    assert [path for path in files if path.stat().st_size > 2 * MEBIBYTE] == []


def test_the_job_that_fetches_models_finds_its_list_in_the_image(image: Path) -> None:
    (job,) = workloads(render(K8S / "models"))
    options = parse_command(job.main["args"])

    (copy,) = (each for each in of("COPY", image) if "models.txt" in each.text)
    folder = Path(copy.words[-1])
    assert options["requirements"] in {folder / Path(each).name for each in sources(copy)}


@pytest.mark.parametrize("profile", PROFILES)
def test_the_lists_in_the_image_name_the_wheels_of_every_profile(profile: str) -> None:
    manifest, _ = find_profile(profile, Path("models"))
    lists = "".join((ROOT / "requirements" / f"{name}.txt").read_text() for name in MODEL_LISTS)

    for file in manifest.files:
        source = wheel_source(file)
        assert f"{source.distribution}=={source.version}" in lists


MODEL_LISTS = ("models", "models-tiny")


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_image_that_pods_want_can_be_built(name: str) -> None:
    wanted = {
        container["image"].rpartition("/")[2].partition(":")[0]
        for each in workloads(overlay(name))
        for container in each.containers
    }

    assert wanted <= {f"pagefleet-{flavor}" for flavor in IMAGES}


def test_a_python_one_liner_of_the_compose_file_names_what_exists() -> None:
    """So that nothing here is started that no test has looked at."""
    text = (ROOT / "deploy" / "compose" / "compose.yaml").read_text("utf-8")
    imports = re.findall(r"from (workers\S*) import ([\w, ]+);", text)

    assert imports
    for module, names in imports:
        path = ROOT / f"{module.replace('.', '/')}.py"
        defined = {getattr(each, "name", "") for each in ast.parse(path.read_text("utf-8")).body}
        assert {name.strip() for name in names.split(",")} <= defined
