from collections.abc import Iterator

import pytest

from tests.support.aws_servers import AwsServer, running_aws_server

# Amazon's protocol is spoken by two servers of different minds: keys are encoded in different
# ways, one has no sequencer, and one tells of a multipart upload twice.
SERVERS = ["moto", "ministack"]


@pytest.fixture(scope="session", params=SERVERS)
def aws_server(request: pytest.FixtureRequest) -> Iterator[AwsServer]:
    with running_aws_server(request.param) as server:
        yield server


@pytest.fixture
def aws(aws_server: AwsServer) -> AwsServer:
    """Each server in turn, with nothing in it."""
    aws_server.reset()
    return aws_server
