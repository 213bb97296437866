from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.samples import Sample, write_samples
from db.engine import Database
from tests.support.fleet import Fleet, fleet_environment, make_key
from tests.support.models import require_bundle
from tests.support.services import S3Bucket
from workers.settings import models_dir


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sample]:
    """The project's samples by file name."""
    written = write_samples(tmp_path_factory.mktemp("samples"))
    return {sample.path.name: sample for sample in written}


@pytest.fixture
def fleet(
    database_url: str, redis_url: str, s3_bucket: S3Bucket, tmp_path: Path
) -> Iterator[Fleet]:
    require_bundle()
    database = Database(database_url)
    fleet = Fleet(
        environment=fleet_environment(
            database_url=database_url,
            redis_url=redis_url,
            bucket=s3_bucket,
            home=tmp_path,
            models_dir=models_dir(),
        ),
        logs=tmp_path,
        key=make_key(database),
        database=database,
    )
    fleet.start_all()
    yield fleet
    fleet.stop()
    database.dispose()
