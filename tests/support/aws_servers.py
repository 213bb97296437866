"""Servers that speak S3 and SQS as Amazon does, each in an environment of its own."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config

from tests.support.api_server import free_port
from tests.support.plain_http import NO_TLS
from tests.support.services import S3Bucket
from workers.settings import home_dir

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
ACCOUNT = "123456789012"
REGION = "us-east-1"
_INSTALL_TIMEOUT_S = 280
_START_TIMEOUT_S = 60


# In its addresses a dot stands for all characters but a line break, which keys of Amazon may have.
_MOTO = """
import sys
from moto.moto_server import utilities
def init(self, url_map, *items):
    super(utilities.RegexConverter, self).__init__(url_map)
    self.regex = f"(?s:{items[0]})"
utilities.RegexConverter.__init__ = init
from moto.server import main
main(sys.argv[1:])
"""


@dataclass(frozen=True, slots=True)
class AwsServer:
    """A running server."""

    name: str
    url: str

    def reset(self) -> None:
        """Forget all buckets, objects, queues and messages."""
        path = {"moto": "/moto-api/reset", "ministack": "/_ministack/reset"}[self.name]
        httpx.post(self.url + path, trust_env=False, timeout=60, verify=NO_TLS).raise_for_status()

    def client(self, service: str) -> Any:
        return boto3.session.Session().client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=ACCOUNT,
            aws_secret_access_key="secret",  # noqa: S106 - it opens nothing
            config=Config(s3={"addressing_style": "path"}),
        )

    def make_bucket(self, name: str) -> None:
        self.client("s3").create_bucket(Bucket=name)

    def bucket(self, name: str) -> S3Bucket:
        """Say how to use a bucket, which need not be there yet."""
        return S3Bucket(
            name=name,
            endpoint_url=self.url,
            access_key_id=ACCOUNT,
            secret_access_key="secret",  # noqa: S106 - it opens nothing
            region=REGION,
        )

    def queue(self, name: str) -> tuple[str, str]:
        """Make a queue; return its address and its name in policies."""
        sqs = self.client("sqs")
        url = sqs.create_queue(QueueName=name)["QueueUrl"]
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return url, attributes["Attributes"]["QueueArn"]

    def notify(self, bucket: str, queue_arn: str, *, prefix: str) -> None:
        """Let a bucket tell a queue of new objects under a prefix."""
        self.client("s3").put_bucket_notification_configuration(
            Bucket=bucket,
            NotificationConfiguration={
                "QueueConfigurations": [
                    {
                        "QueueArn": queue_arn,
                        "Events": ["s3:ObjectCreated:*"],
                        "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": prefix}]}},
                    }
                ]
            },
        )


@contextmanager
def running_aws_server(name: str, *, port: int | None = None) -> Iterator[AwsServer]:
    """Run ``moto`` or ``ministack``, with nothing in it; by default on a free port."""
    folder = _environment(name)
    port = port or free_port()
    url = f"http://127.0.0.1:{port}"
    commands: Mapping[str, tuple[list[str], dict[str, str], str]] = {
        "moto": (
            [str(folder / "bin/python"), "-c", _MOTO, "-H", "127.0.0.1", "-p", str(port)],
            {},
            "/moto-api/data.json",
        ),
        "ministack": (
            [str(folder / "bin/ministack")],
            {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port)},
            "/_ministack/health",
        ),
    }
    argv, settings, probe_path = commands[name]
    process = subprocess.Popen(  # noqa: S603 - our own environment
        argv,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **settings},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait(url + probe_path, process)
        yield AwsServer(name, url)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _environment(name: str) -> Path:
    """Return the environment of a server; made where it is missing, or its list has changed.

    Without its wheels skip on a laptop, and fail where ``CI`` is set.
    """
    wanted = REQUIREMENTS / f"{name}.txt"
    checksum = hashlib.sha256(wanted.read_bytes()).hexdigest()
    folder = home_dir() / "test-servers" / name
    made = folder / "made-from"
    if made.is_file() and made.read_text(encoding="ascii") == checksum:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    locked = ["--require-hashes", "--only-binary", ":all:", "--requirement", str(wanted)]
    try:
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(folder / "bin/python"), *install, *locked],
        ):
            subprocess.run(  # noqa: S603 - our own
                command, check=True, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S
            )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"SKIPPED, NOT TESTED: {name} cannot be installed: {error}")
    made.write_text(checksum, encoding="ascii")
    return folder


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            answer = httpx.get(url, trust_env=False, verify=NO_TLS)
            if answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise TimeoutError("the server does not answer")
