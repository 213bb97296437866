import os
from pathlib import Path

import pytest

from cli.stack.errors import FolderLockedError
from cli.stack.folder_lock import FolderLock, is_alive, locked_by
from tests.support.processes import running_python, wait_until

NO_SUCH_PID = 2**22 + 1  # above what Linux numbers processes with


@pytest.fixture
def lock(tmp_path: Path) -> FolderLock:
    return FolderLock(tmp_path)


def test_a_locked_folder_is_refused_and_the_owner_named(lock: FolderLock, tmp_path: Path) -> None:
    lock.acquire()

    with pytest.raises(FolderLockedError, match=f"process {os.getpid()}") as refused:
        FolderLock(tmp_path).acquire()

    assert refused.value.owner_pid == os.getpid()
    lock.release()


def test_a_folder_can_be_locked_again_after_its_release(lock: FolderLock, tmp_path: Path) -> None:
    lock.acquire()
    lock.release()
    lock.release()
    again = FolderLock(tmp_path)

    again.acquire()

    assert locked_by(tmp_path) == os.getpid()
    again.release()
    assert locked_by(tmp_path) is None


def test_a_folder_that_never_was_locked_has_no_owner(tmp_path: Path) -> None:
    assert locked_by(tmp_path) is None


def test_the_children_of_a_dead_owner_are_waited_for(lock: FolderLock, tmp_path: Path) -> None:
    lock.acquire()
    os.pwrite(lock.descriptor, f"{NO_SUCH_PID}\n".encode(), 0)
    heir = os.dup(lock.descriptor)
    lock.release()

    with pytest.raises(FolderLockedError):
        FolderLock(tmp_path).acquire(dying_owner_timeout_s=0.1)
    os.close(heir)
    again = FolderLock(tmp_path)
    again.acquire(dying_owner_timeout_s=0.1)

    assert locked_by(tmp_path) == os.getpid()
    again.release()


def test_the_kernel_gives_a_lock_back_when_its_owner_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from cli.stack.folder_lock import FolderLock\n"
        "FolderLock(Path(sys.argv[1])).acquire(); sys.stdin.read()"
    )
    with running_python(code, str(tmp_path)) as owner:
        wait_until(lambda: locked_by(tmp_path) == owner.pid)
        owner.kill()
        owner.wait()

        assert locked_by(tmp_path) is None


def test_an_unlocked_folder_has_no_descriptor(lock: FolderLock) -> None:
    with pytest.raises(RuntimeError):
        _ = lock.descriptor


def test_a_process_is_alive_until_it_is_not() -> None:
    assert is_alive(os.getpid())
    assert is_alive(1)
    assert not is_alive(NO_SUCH_PID)
