"""The servers of the compose file run as those of the embedded stack, on which the tests run."""

import os
import subprocess
import sys
from typing import Any

import boto3
import pytest
import yaml

from cli.stack.seaweedfs import _SIGNED, SeaweedFS
from cli.stack.valkey import Valkey
from tests.support.commands import ROOT
from tests.support.services import S3Bucket

TIMEOUT_S = 120
COMPOSE: dict[str, Any] = yaml.safe_load(
    (ROOT / "deploy" / "compose" / "compose.yaml").read_text("utf-8")
)
SERVICES = COMPOSE["services"]
CONFIGS = COMPOSE["configs"]
# Places and ports, which a container has to itself, and what ends a single server sooner.
OF_ONE_MACHINE = ("-logdir", "-dir", "-ip", "-s3.config", "-volume.preStopSeconds")


def is_chosen(option: str) -> bool:
    name = option.partition("=")[0]
    is_port = name.endswith((".port", ".port.grpc")) and not name.startswith("-s3.port.")
    return not is_port and name != "-s3.port.grpc" and name not in {*OF_ONE_MACHINE, "-ip.bind"}


def test_the_storage_has_the_options_of_the_embedded_one(object_storage: SeaweedFS) -> None:
    embedded = [each for each in object_storage._argv()[1:] if is_chosen(each)]

    assert sorted(filter(is_chosen, SERVICES["seaweedfs"]["command"])) == sorted(embedded)


def test_the_parts_of_the_storage_let_nobody_in_without_a_signature() -> None:
    text = CONFIGS["storage-signing"]["content"]

    assert [f"[jwt.{name}]" in text for name in _SIGNED] == [True] * len(_SIGNED)
    assert SERVICES["seaweedfs"]["configs"][1] == {
        "source": "storage-signing",
        "target": "/etc/seaweedfs/security.toml",  # where it looks
    }


def test_the_account_of_the_storage_is_the_one_that_programs_have() -> None:
    accounts = yaml.safe_load(CONFIGS["storage-accounts"]["content"])
    ((identity,),) = accounts.values()
    api = SERVICES["api"]["environment"]

    assert identity["credentials"] == [
        {
            "accessKey": api["PAGEFLEET_S3_ACCESS_KEY_ID"],
            "secretKey": api["PAGEFLEET_S3_SECRET_ACCESS_KEY"],
        }
    ]


def test_the_broker_has_the_options_of_the_embedded_one(valkey: Valkey) -> None:
    embedded = [str(each) for each in valkey._argv()]
    first = embedded.index("--appendonly")

    assert SERVICES["valkey"]["command"][2:] == embedded[first:]
    assert CONFIGS["valkey"]["content"].startswith("requirepass ${")


def test_the_database_is_made_as_the_embedded_one() -> None:
    made = (ROOT / "cli" / "stack" / "postgres.py").read_text("utf-8")
    options = SERVICES["postgres"]["environment"]["POSTGRES_INITDB_ARGS"].split()

    assert options
    assert [option for option in options if f'"{option}"' not in made] == []


def test_the_one_liner_makes_the_bucket_and_may_run_again(
    s3_bucket: S3Bucket, redis_url: str, database_url: str
) -> None:
    python, *arguments = SERVICES["bucket"]["entrypoint"]
    settings = {
        "PATH": os.environ["PATH"],
        **s3_bucket.environment(),
        "PAGEFLEET_S3_BUCKET": f"{s3_bucket.name}-made",
        "PAGEFLEET_REDIS_URL": redis_url,
        "PAGEFLEET_DATABASE_URL": database_url,
    }

    ends = [
        subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, *arguments], check=False, env=settings, cwd=ROOT, timeout=TIMEOUT_S
        ).returncode
        for _ in range(2)
    ]

    assert python == "python"
    assert ends == [0, 0]
    assert f"{s3_bucket.name}-made" in buckets(s3_bucket)


def buckets(bucket: S3Bucket) -> set[str]:
    client = boto3.client(
        "s3",
        endpoint_url=bucket.endpoint_url,
        aws_access_key_id=bucket.access_key_id,
        aws_secret_access_key=bucket.secret_access_key,
        region_name=bucket.region,
    )
    return {each["Name"] for each in client.list_buckets()["Buckets"]}


@pytest.mark.parametrize("name", ["postgres", "valkey", "seaweedfs"])
def test_a_server_keeps_what_it_has_in_a_volume(name: str) -> None:
    (volume,) = SERVICES[name]["volumes"]

    assert volume.partition(":")[0] in COMPOSE["volumes"]
