from collections.abc import Iterator

import pytest

from tests.support.aws_servers import AwsServer, running_aws_server

# Amazon's protocol is spoken by two servers of different minds: keys are encoded in different
# ways, one has no sequencer, and one tells of a multipart upload twice.
SERVERS = ["moto", "ministack"]


@pytest.fixture(params=SERVERS)
def aws(request: pytest.FixtureRequest) -> Iterator[AwsServer]:
    """Each server in turn, with nothing in it."""
    with running_aws_server(request.param) as server:
        yield server
