"""The proxy between a fleet and its storage, before a real S3 server."""

import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from bench.faults.s3_proxy import S3Proxy, Weather
from tests.support.processes import wait_until
from tests.support.services import S3Bucket, s3_client

BODY = b"storm " * 300_000


@pytest.fixture
def proxy(s3_bucket: S3Bucket) -> Iterator[S3Proxy]:
    proxy = S3Proxy(urlsplit(s3_bucket.endpoint_url).port or 0)
    proxy.start()
    yield proxy
    proxy.stop()


def through(proxy: S3Proxy, bucket: S3Bucket) -> S3Bucket:
    return S3Bucket(
        name=bucket.name,
        endpoint_url=proxy.endpoint_url,
        access_key_id=bucket.access_key_id,
        secret_access_key=bucket.secret_access_key,
        region=bucket.region,
    )


def test_in_good_weather_bytes_pass_as_they_are(proxy: S3Proxy, s3_bucket: S3Bucket) -> None:
    client = s3_client(through(proxy, s3_bucket))
    client.put_object(Bucket=s3_bucket.name, Key="a", Body=BODY)

    read = client.get_object(Bucket=s3_bucket.name, Key="a")["Body"].read()
    client.close()

    assert read == BODY
    assert proxy.troubled == 0


def test_a_refused_request_is_told_to_slow_down(proxy: S3Proxy, s3_bucket: S3Bucket) -> None:
    client = s3_client(through(proxy, s3_bucket))
    proxy.weather = Weather("refuse")

    with pytest.raises(ClientError) as refusal:
        client.head_bucket(Bucket=s3_bucket.name)
    proxy.weather = Weather()
    client.head_bucket(Bucket=s3_bucket.name)
    client.close()

    assert refusal.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    assert proxy.troubled == 1


def test_an_answer_that_is_cut_off_is_an_error_to_the_client(
    proxy: S3Proxy, s3_bucket: S3Bucket
) -> None:
    client = s3_client(through(proxy, s3_bucket))
    proxy.weather = Weather("cut")

    with pytest.raises(BotoCoreError):
        client.put_object(Bucket=s3_bucket.name, Key="b", Body=b"small")
    with pytest.raises(BotoCoreError):
        client.get_object(Bucket=s3_bucket.name, Key="b")["Body"].read()
    proxy.weather = Weather()
    stored = client.get_object(Bucket=s3_bucket.name, Key="b")["Body"].read()
    client.close()

    assert stored == b"small"  # it was done, and the client was not told


def test_a_slow_answer_comes_in_the_end(proxy: S3Proxy, s3_bucket: S3Bucket) -> None:
    client = s3_client(through(proxy, s3_bucket))
    proxy.weather = Weather("slow", delay_s=0.2)

    client.put_object(Bucket=s3_bucket.name, Key="c", Body=b"late")
    client.close()

    assert proxy.troubled >= 1


def test_what_waits_is_let_go_when_the_weather_changes(proxy: S3Proxy, s3_bucket: S3Bucket) -> None:
    client = s3_client(through(proxy, s3_bucket))
    put = threading.Thread(
        target=client.put_object, kwargs={"Bucket": s3_bucket.name, "Key": "d", "Body": b"held"}
    )

    with proxy.during(Weather("slow", delay_s=3_600, matching="^PUT .*/d$")):
        client.head_bucket(Bucket=s3_bucket.name)  # does not match
        put.start()
        wait_until(lambda: proxy.troubled == 1)
    put.join(timeout=30)
    stored = client.get_object(Bucket=s3_bucket.name, Key="d")["Body"].read()
    client.close()

    assert stored == b"held"
