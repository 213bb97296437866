import psycopg
import pytest
import redis

from tests.support.services import S3Bucket, s3_client


@pytest.mark.parametrize("_", range(2))
def test_each_test_gets_an_empty_redis(redis_url: str, _: int) -> None:
    with redis.Redis.from_url(redis_url) as client:
        size_before = client.dbsize()
        client.set("left", "behind")

    assert size_before == 0


@pytest.mark.parametrize("_", range(2))
def test_each_test_gets_a_database_of_its_own_with_the_newest_schema(
    database_url: str,
    _: int,
) -> None:
    with psycopg.connect(database_url) as connection:
        documents = connection.execute("SELECT count(*) FROM documents").fetchone()
        connection.execute("CREATE TABLE left_behind ()")

    assert documents == (0,)


@pytest.mark.parametrize("_", range(2))
def test_each_test_gets_an_empty_bucket(s3_bucket: S3Bucket, _: int) -> None:
    client = s3_client(s3_bucket)
    found = client.list_objects_v2(Bucket=s3_bucket.name)
    client.put_object(Bucket=s3_bucket.name, Key="left", Body=b"behind")
    client.close()

    assert found["KeyCount"] == 0
