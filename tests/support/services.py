"""Real servers for tests: one of each in a session, and something of its own for each test."""

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import boto3
import psycopg
import pytest
from botocore.config import Config
from psycopg import sql

from cli.stack.errors import WheelMissingError
from cli.stack.postgres import Postgres
from cli.stack.seaweedfs import SeaweedFS
from cli.stack.servers import ChildServer

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

TEMPLATE_DATABASE = "template_pagefleet"
_READY_TIMEOUT_S = 60.0

Server = TypeVar("Server", bound=ChildServer)


@dataclass(frozen=True, kw_only=True)
class S3Bucket:
    """An empty bucket, and what a client needs to use it."""

    name: str
    endpoint_url: str
    access_key_id: str
    secret_access_key: str
    region: str

    def environment(self) -> dict[str, str]:
        """Return the settings that name it."""
        return {
            "PAGEFLEET_S3_ENDPOINT_URL": self.endpoint_url,
            "PAGEFLEET_S3_BUCKET": self.name,
            "PAGEFLEET_S3_REGION": self.region,
            "PAGEFLEET_S3_ACCESS_KEY_ID": self.access_key_id,
            "PAGEFLEET_S3_SECRET_ACCESS_KEY": self.secret_access_key,
        }


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Run a server; without its wheel skip on a laptop, and fail where ``CI`` is set."""
    try:
        server.start()
    except WheelMissingError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"SKIPPED, NOT TESTED: {error}")
    try:
        server.wait_ready(_READY_TIMEOUT_S)
        yield server
    finally:
        server.stop()


def make_database(postgres: Postgres, name: str, *, template: str = "template0") -> str:
    """Make a database as a copy of ``template``, to which nobody may be connected."""
    _execute(
        postgres,
        sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(name), sql.Identifier(template)
        ),
    )
    return postgres.url(name)


def drop_database(postgres: Postgres, name: str) -> None:
    """Drop a database, whoever is still connected."""
    _execute(
        postgres,
        sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)),
    )


@contextmanager
def fresh_database(postgres: Postgres) -> Iterator[str]:
    """Lend a database with the newest schema; yields its address."""
    name = f"test_{uuid4().hex}"
    yield make_database(postgres, name, template=TEMPLATE_DATABASE)
    drop_database(postgres, name)


@contextmanager
def fresh_bucket(object_storage: SeaweedFS) -> Iterator[S3Bucket]:
    """Lend an empty bucket; it goes with all that is in it."""
    bucket = S3Bucket(
        name=f"test-{uuid4().hex}",
        endpoint_url=object_storage.endpoint_url,
        access_key_id=object_storage.access_key_id,
        secret_access_key=object_storage.secret_access_key,
        region=object_storage.region,
    )
    client = s3_client(bucket)
    client.create_bucket(Bucket=bucket.name)
    yield bucket
    client.delete_bucket(Bucket=bucket.name)  # SeaweedFS deletes what is in it, as an exception
    client.close()


def s3_client(bucket: S3Bucket) -> "S3Client":
    """Return a client that tries once; for looking behind the store's back.

    It is the same one for all buckets of a server, and can be used on after it was closed.
    """
    return _client_of(
        bucket.endpoint_url, bucket.region, bucket.access_key_id, bucket.secret_access_key
    )


@functools.cache
def _client_of(
    endpoint_url: str, region: str, access_key_id: str, secret_access_key: str
) -> "S3Client":
    return boto3.session.Session().client(
        "s3",
        endpoint_url=endpoint_url,
        region_name=region,
        aws_access_key_id=access_key_id,
        aws_secret_access_key=secret_access_key,
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )


def put_with_a_key_of_its_own(bucket: S3Bucket, key: str) -> None:
    """Put an object that the store encrypts, and hands out to nobody without the sender's key."""
    s3_client(bucket).put_object(
        Bucket=bucket.name,
        Key=key,
        Body=b"%PDF-1.7",
        SSECustomerAlgorithm="AES256",
        SSECustomerKey="0" * 32,
    )


def _execute(postgres: Postgres, statement: sql.Composed) -> None:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute(statement)
