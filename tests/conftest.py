import functools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from botocore.loaders import JSONFileLoader
from hypothesis import HealthCheck, settings

from cli.samples import Sample, write_samples
from cli.stack.leash import Leash
from cli.stack.postgres import Postgres
from cli.stack.seaweedfs import SeaweedFS
from cli.stack.valkey import Valkey
from db.migrate import migrate
from tests.support import services
from tests.support.embedded_stack import lent_home
from tests.support.fleet import Fleet, lent_fleet
from tests.support.models import require_bundle, share_prepared_graphs
from tests.support.services import S3Bucket
from workers.settings import models_dir

# A machine that others use as well is slow at any moment, and no example fails for that.
settings.register_profile(
    "shared machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared machine")


@pytest.fixture(scope="session", autouse=True)
def _descriptions_read_once() -> Iterator[None]:
    """Let boto3 parse its megabytes of JSON about S3 once, and not for each client again."""
    read = functools.cache(JSONFileLoader().load_file)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(JSONFileLoader, "load_file", lambda _, path: read(path))
        yield


@pytest.fixture(scope="session")
def services_folder() -> Iterator[Path]:
    """Where servers keep their data; not below pytest's folder, which only its owner may enter."""
    folder = Path(tempfile.mkdtemp(prefix="pagefleet-test-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def leash() -> Iterator[Leash]:
    leash = Leash()
    leash.start()
    yield leash
    leash.stop()


@pytest.fixture(scope="session")
def valkey(services_folder: Path, leash: Leash) -> Iterator[Valkey]:
    with services.running(Valkey(services_folder / "valkey", leash=leash)) as server:
        yield server


@pytest.fixture(scope="session")
def postgres(services_folder: Path, leash: Leash) -> Iterator[Postgres]:
    server = Postgres(services_folder / "postgres", leash=leash, durable=False)
    with services.running(server):
        yield server
    server.remove_data()


@pytest.fixture(scope="session")
def object_storage(services_folder: Path, leash: Leash) -> Iterator[SeaweedFS]:
    with services.running(SeaweedFS(services_folder / "seaweedfs", leash=leash)) as server:
        yield server


@pytest.fixture(scope="session")
def template_database(postgres: Postgres) -> None:
    """The newest schema, made once; copying it takes a tenth of the time of making it."""
    migrate(services.make_database(postgres, services.TEMPLATE_DATABASE))


@pytest.fixture
def own_postgres(services_folder: Path, leash: Leash) -> Iterator[Postgres]:
    """A server of the test's own, which it may stop."""
    server = Postgres(services_folder / "own-postgres", leash=leash, durable=False)
    with services.running(server):
        yield server
    server.remove_data()


@pytest.fixture
def own_valkey(services_folder: Path, leash: Leash) -> Iterator[Valkey]:
    """A server of the test's own, which it may stop."""
    with services.running(Valkey(services_folder / "own-valkey", leash=leash)) as server:
        yield server


@pytest.fixture
def redis_url(valkey: Valkey) -> str:
    """The address of an empty Redis."""
    with redis.Redis.from_url(valkey.url()) as client:
        client.flushall()
    return valkey.url()


@pytest.fixture
def database_url(postgres: Postgres, template_database: None) -> Iterator[str]:  # noqa: ARG001 - it has to be there
    """The address of a database of the test's own, with the newest schema."""
    with services.fresh_database(postgres) as url:
        yield url


@pytest.fixture
def s3_bucket(object_storage: SeaweedFS) -> Iterator[S3Bucket]:
    """An empty bucket of the test's own."""
    with services.fresh_bucket(object_storage) as bucket:
        yield bucket


@pytest.fixture
def scans(object_storage: SeaweedFS) -> Iterator[S3Bucket]:
    """A bucket of the user's."""
    with services.fresh_bucket(object_storage) as bucket:
        yield bucket


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sample]:
    """The project's samples by file name."""
    written = write_samples(tmp_path_factory.mktemp("samples"))
    return {sample.path.name: sample for sample in written}


@pytest.fixture
def idle_fleet(
    database_url: str, redis_url: str, s3_bucket: S3Bucket, tmp_path: Path
) -> Iterator[Fleet]:
    """Processes of every kind, none of them started yet; all are ended with the test."""
    with lent_fleet(
        database_url=database_url, redis_url=redis_url, bucket=s3_bucket, home=tmp_path
    ) as fleet:
        yield fleet


@pytest.fixture
def fleet(idle_fleet: Fleet) -> Fleet:
    """Processes of every kind, running."""
    idle_fleet.start_all()
    return idle_fleet


@pytest.fixture
def stack_home(services_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A new home that all users may enter, with the models of this machine."""
    require_bundle()
    monkeypatch.setenv("PAGEFLEET_MODELS_DIR", str(models_dir()))
    with lent_home(services_folder) as home:
        share_prepared_graphs(home)
        yield home
