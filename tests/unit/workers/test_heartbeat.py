import os
from pathlib import Path

import pytest

from workers import heartbeat
from workers.heartbeat import Heartbeat


def test_a_heartbeat_is_as_old_as_the_sign_of_life_that_it_tells_of(tmp_path: Path) -> None:
    file = heartbeat.default_file(tmp_path, "recognize")

    Heartbeat(file, name="recognize").beat(age_s=100)

    sign = heartbeat.read(file)
    assert sign is not None
    assert (sign.name, sign.pid) == ("recognize", os.getpid())
    assert 100 <= sign.age_s < 160


def test_the_latest_sign_counts(tmp_path: Path) -> None:
    beats = Heartbeat(heartbeat.default_file(tmp_path, "recognize"), name="recognize")

    beats.beat(age_s=100)
    beats.beat()

    (sign,) = heartbeat.read_all(tmp_path)
    assert sign.age_s < 60


def test_a_heartbeat_that_was_taken_away_is_none(tmp_path: Path) -> None:
    beats = Heartbeat(heartbeat.default_file(tmp_path, "recognize"), name="recognize")

    beats.beat()
    beats.remove()
    beats.remove()

    assert heartbeat.read_all(tmp_path) == []


def test_a_heartbeat_that_cannot_be_written_does_not_stop_the_work(tmp_path: Path) -> None:
    (tmp_path / "heartbeats").write_text("a file where a folder should be")

    Heartbeat(heartbeat.default_file(tmp_path, "recognize"), name="recognize").beat()

    assert heartbeat.read_all(tmp_path) == []


@pytest.mark.parametrize("name", ["gpu/0", "../gpu", "w@%h"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    file = heartbeat.default_file(tmp_path, name)

    assert file.resolve().parent == heartbeat.heartbeats_folder(tmp_path).resolve()


def test_a_file_that_is_no_heartbeat_is_none(tmp_path: Path) -> None:
    file = heartbeat.default_file(tmp_path, "recognize")
    file.parent.mkdir()
    file.write_text("{")

    assert heartbeat.read(file) is None
