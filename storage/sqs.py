"""A door to boto3: a queue of Amazon SQS, or of what speaks its protocol."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's own name for it
    HTTPClientError,
)

from storage.errors import StorageError, StorageUnavailableError

MAX_MESSAGES = 10  # the most that one request of SQS gives or takes
_ATTEMPTS = 2  # whoever reads asks again anyway
_CONNECT_TIMEOUT_S = 5
_LATE_ANSWER_S = 10
_SERVER_ERROR = 500
_THROTTLED = frozenset({"RequestThrottled", "ThrottlingException", "Throttling", "OverLimit"})


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message that is hidden from others for a while.

    Attributes:
        receipt: of this delivery; what the message is deleted by.
        body: as it was sent.
        deliveries: how often it was received, with this one.
    """

    receipt: str
    body: str
    deliveries: int


class SqsQueue:
    """One queue. The client is made at first use."""

    def __init__(
        self,
        *,
        url: str,
        endpoint_url: str | None = None,
        region: str = "us-east-1",
        access_key_id: str | None = None,
        secret_access_key: str | None = None,
        visibility_s: int,
        wait_s: int,
    ) -> None:
        """Describe the queue.

        Args:
            url: of the queue.
            endpoint_url: address of the service; None: AWS.
            region: of the queue.
            access_key_id: None: the machine's own role.
            secret_access_key: goes with ``access_key_id``.
            visibility_s: for how long a received message is hidden.
            wait_s: for how long ``receive`` waits for the first message, 0 to 20.
        """
        self._url = url
        self._visibility_s = visibility_s
        self._wait_s = wait_s
        self._client_options: dict[str, Any] = {
            "endpoint_url": endpoint_url,
            "region_name": region,
            "aws_access_key_id": access_key_id,
            "aws_secret_access_key": secret_access_key,
            "config": Config(
                connect_timeout=_CONNECT_TIMEOUT_S,
                read_timeout=wait_s + _LATE_ANSWER_S,
                retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            ),
        }

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - its types are a package of their own
        return boto3.session.Session().client("sqs", **self._client_options)

    def receive(self, *, at_most: int = MAX_MESSAGES) -> Sequence[QueuedMessage]:
        """Return up to ``at_most`` messages, 1 to ``MAX_MESSAGES``; none when none came in time."""
        with _translated():
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=at_most,
                WaitTimeSeconds=self._wait_s,
                VisibilityTimeout=self._visibility_s,
                AttributeNames=["ApproximateReceiveCount"],
            )
        return [
            QueuedMessage(
                found["ReceiptHandle"],
                found["Body"],
                int(found.get("Attributes", {}).get("ApproximateReceiveCount", 1)),
            )
            for found in answer.get("Messages", [])
        ]

    def delete(self, messages: Sequence[QueuedMessage]) -> None:
        """Take messages away for good; one that cannot be comes again, and is known then."""
        if not messages:
            return
        with _translated():
            self._client.delete_message_batch(
                QueueUrl=self._url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": message.receipt}
                    for number, message in enumerate(messages)
                ],
            )

    def give_back(self, messages: Sequence[QueuedMessage], *, delay_s: int) -> None:
        """Let others, or a later request, receive messages after ``delay_s`` seconds."""
        if not messages:
            return
        with _translated():
            self._client.change_message_visibility_batch(
                QueueUrl=self._url,
                Entries=[
                    {
                        "Id": str(number),
                        "ReceiptHandle": message.receipt,
                        "VisibilityTimeout": delay_s,
                    }
                    for number, message in enumerate(messages)
                ],
            )

    def close(self) -> None:
        """Close the pooled connections."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()


@contextmanager
def _translated() -> Iterator[None]:
    """Raise botocore's errors as ours.

    Raises:
        StorageUnavailableError: no connection, throttling, or an error of the server.
        StorageError: any other refusal, as of a queue that is not there.
    """
    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if code in _THROTTLED or status >= _SERVER_ERROR:
            raise StorageUnavailableError(f"the queue answers {code}") from error
        raise StorageError(f"the queue answers {code}") from error
    except (ConnectionError, HTTPClientError) as error:
        raise StorageUnavailableError("the queue is not reachable") from error
    except BotoCoreError as error:
        raise StorageError(f"{type(error).__name__} of the queue") from error
