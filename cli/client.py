"""The HTTP API as the command line uses it; the only door to httpx."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from typing import IO, Any, Final, Self
from urllib.parse import urlsplit
from uuid import UUID

import httpx

from cli.api_views import (
    BatchStatus,
    DocumentStatus,
    Listing,
    PlannedBatch,
    SystemLoad,
    batch_of,
    document_of,
    listing_of,
    load_of,
    plan_of,
)
from cli.errors import ApiError
from cli.whole_file import whole_file

UNREACHABLE: Final = "unreachable"
_TIMEOUT_S: Final = 30.0
_CONNECT_TIMEOUT_S: Final = 5.0
# The API answers an upload when its bytes are safe in storage.
_UPLOAD_TIMEOUT_S: Final = 600.0
_LISTED_AT_ONCE: Final = 100
_RETRY_AFTER_S: Final = 2.0
_TOO_OFTEN: Final = "too_many_requests"
_UNAUTHENTICATED: Final = "unauthenticated"
# Nothing was done, and the same request is answered when its time has come.
_WAITED_FOR: Final = frozenset({_TOO_OFTEN, "too_many_dry_runs"})
_MOST_TRIES: Final = 30
_REMEDIES: Final = {
    401: "Set PAGEFLEET_CLIENT_API_KEY to a valid key, or pass --api-key-file FILE or --api-key -."
    " `pagefleet keys list` shows which are valid.",
    500: "The API's log says more, under the request's id.",
    503: "`pagefleet doctor` asks its servers, one by one.",
}
# These say themselves what to do, and no server fails.
_NO_FAULT: Final = frozenset({"system_full", "busy", "too_many_uploads"})
_NO_PROBLEM_REMEDY: Final = "Is this the address of a Pagefleet API? Name the right one: --api-url."


class ApiClient:
    """Calls to one API with one key; every method raises ``ApiError``.

    A key that has asked too often waits for as long as the API says, and asks again. Not so where a
    file is sent, which has been read by then and is its sender's to rewind, and not in
    ``fetch_result``, which returns how long to wait.

    Args:
        address: of the API, with scheme and host.
        key: presented with every call; None for none.
        key_name: what people call the key, behind these words.
        transport: what carries the calls; None for the network.
        wait: lets so many seconds pass; None for those of the clock.
    """

    def __init__(
        self,
        address: str,
        key: str | None,
        *,
        key_name: str = "that was sent",
        transport: httpx.BaseTransport | None = None,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        self.address = address.rstrip("/")
        self._wait: Callable[[float], object] = wait or threading.Event().wait
        self._key_name = key_name if key else None
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(
            base_url=self.address,
            headers=headers,
            timeout=httpx.Timeout(_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
            # A proxy from the environment knows nothing of this machine's own addresses.
            trust_env=not _is_loopback(address),
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._http.close()

    def require_ready(self) -> None:
        """Return when the API and its servers answer."""
        self._call("GET", "/readyz")

    def create_batch(
        self,
        name: str,
        *,
        options: Mapping[str, Any] | None = None,
        source: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> BatchStatus:
        """Create a batch; ``source`` is what it is filled from, None: from uploads."""
        return batch_of(
            self._call(
                "POST",
                "/v1/batches",
                json={"name": name, "options": dict(options or {}), **(source or {})},
                headers=_key_header(idempotency_key),
            )
        )

    def plan_batch(
        self,
        name: str,
        *,
        options: Mapping[str, Any],
        source: Mapping[str, Any],
        cursor: str | None = None,
    ) -> PlannedBatch:
        """Count what a batch would be filled with, from ``cursor`` on and for some seconds."""
        return plan_of(
            self._call(
                "POST",
                "/v1/batches",
                json={
                    "name": name,
                    "options": dict(options),
                    "dry_run": True,
                    "cursor": cursor,
                    **source,
                },
            )
        )

    def submit(
        self,
        path: Path,
        *,
        batch_id: UUID | None = None,
        priority: str | None = None,
        idempotency_key: str | None = None,
    ) -> DocumentStatus:
        """Send a file; it is read from disk while it goes out.

        Args:
            path: the file.
            batch_id: None for a document of its own.
            priority: None: the batch's, or the API's default.
            idempotency_key: names the request, so that it can be made again.

        Raises:
            ApiError: refused, with the code of the error table; or not reachable.
            OSError: the file cannot be read.
        """
        fields = {"batch_id": None if batch_id is None else str(batch_id), "priority": priority}
        with path.open("rb") as stream:
            return self.submit_stream(
                stream, path.name, fields=fields, idempotency_key=idempotency_key
            )

    def submit_stream(
        self,
        stream: IO[bytes],
        filename: str,
        *,
        fields: Mapping[str, str | None],
        idempotency_key: str | None = None,
    ) -> DocumentStatus:
        """Send bytes while they are read.

        Args:
            stream: seekable, at its beginning; what it raises ends the request before it is whole.
            filename: what the document is to be called.
            fields: of the form; those of None are left out.
            idempotency_key: names the request, so that it can be made again.

        Raises:
            ApiError: refused, with the code of the error table; or not reachable.
        """
        return document_of(
            self._call(
                "POST",
                "/v1/documents",
                data={name: value for name, value in fields.items() if value is not None},
                headers=_key_header(idempotency_key),
                files={"file": (filename, stream)},
                is_repeatable=False,  # the stream has been read
                timeout=httpx.Timeout(_UPLOAD_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
            )
        )

    def document(self, document_id: UUID) -> DocumentStatus:
        return document_of(self._call("GET", f"/v1/documents/{document_id}"))

    def cancel_document(self, document_id: UUID) -> DocumentStatus:
        return document_of(self._call("POST", f"/v1/documents/{document_id}/cancel"))

    def retry_document(self, document_id: UUID) -> DocumentStatus:
        return document_of(self._call("POST", f"/v1/documents/{document_id}/retry"))

    def delete_document(self, document_id: UUID) -> None:
        self._call("DELETE", f"/v1/documents/{document_id}")

    def retry_batch(self, batch_id: UUID, *, only_failed: bool) -> BatchStatus:
        return batch_of(
            self._call(
                "POST",
                f"/v1/batches/{batch_id}/retry",
                params={"only_failed": str(only_failed).lower()},
            )
        )

    def report(self, batch_id: UUID, *, report_format: str) -> Iterator[str]:
        """Yield the lines of the report of a batch as they come, each with its end."""
        path = f"/v1/batches/{batch_id}/report"
        for tries in count():
            with (
                self._errors(),
                self._http.stream("GET", path, params={"format": report_format}) as response,
            ):
                if response.is_success:
                    yield from _lines_of(response)
                    return
                response.read()
                refusal = self._refusal(response, response.json())
            self._wait_before_another(tries, refusal)

    def batches(self) -> Iterator[BatchStatus]:
        """Yield batches, newest first, asking for more as they are taken."""
        parameters: dict[str, str] = {}
        while True:
            page = self._call("GET", "/v1/batches", params=parameters)
            yield from map(batch_of, page["batches"])
            if page["next_cursor"] is None:
                return
            parameters = {"cursor": page["next_cursor"]}

    def cancel_batch(self, batch_id: UUID) -> BatchStatus:
        return batch_of(self._call("POST", f"/v1/batches/{batch_id}/cancel"))

    def load(self) -> SystemLoad:
        return load_of(self._call("GET", "/v1/capacity"))

    def batch(self, batch_id: UUID) -> BatchStatus:
        return batch_of(self._call("GET", f"/v1/batches/{batch_id}"))

    def documents(
        self, *, batch_id: UUID | None = None, state: str | None = None
    ) -> Iterator[DocumentStatus]:
        """Yield documents, newest first, asking for more as they are taken."""
        for page in self.listings(batch_id=batch_id, state=state):
            yield from page.documents

    def listings(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        batch_id: UUID | None = None,
        state: str | None = None,
    ) -> Iterator[Listing]:
        """Yield documents, newest first, as they come from the API; one listing at least.

        Args:
            limit: documents in all; None for all there are.
            cursor: ``next_cursor`` of the listing after which it goes on.
            batch_id: only those of this batch.
            state: only those in this state.
        """
        wanted = {"batch_id": batch_id and str(batch_id), "state": state, "cursor": cursor}
        parameters = {name: value for name, value in wanted.items() if value is not None}
        left = limit
        while left is None or left > 0:
            asked = _LISTED_AT_ONCE if left is None else min(left, _LISTED_AT_ONCE)
            listing = listing_of(
                self._call("GET", "/v1/documents", params={**parameters, "limit": str(asked)})
            )
            yield listing
            if listing.next_cursor is None:
                return
            parameters["cursor"] = listing.next_cursor
            left = None if left is None else left - len(listing.documents)

    def result(self, document: DocumentStatus) -> dict[str, Any]:
        """Return the result of a document that has one."""
        if document.result_path is None:
            raise ApiError(
                f"document {document.id} has no result",
                f"`pagefleet status {document.id}` says why.",
                code="not_found",
            )
        return self._call("GET", document.result_path)

    def fetch_result(
        self, document_id: UUID, output: Path, *, name: str, pages: str | None = None
    ) -> float | None:
        """Write a document's result to a file, whole or not at all.

        Args:
            document_id: its id.
            output: the file.
            name: of the format.
            pages: one page or a range; None for all.

        Returns:
            None when the file is written; else in how many seconds to ask again, since a worker
            is making it, or the key has asked too often.

        Raises:
            ApiError: refused; or not reachable.
            OSError: the file cannot be written.
        """
        parameters = {"format": name, **({} if pages is None else {"pages": pages})}
        path = f"/v1/documents/{document_id}/result"
        try:
            with self._http.stream("GET", path, params=parameters) as response:
                if response.status_code == httpx.codes.OK:
                    with whole_file(output) as stream:
                        for part in response.iter_bytes():
                            stream.write(part)
                    return None
                response.read()
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if response.status_code == httpx.codes.ACCEPTED:
            return float(response.headers.get("Retry-After", _RETRY_AFTER_S))
        try:
            answer = response.json()
        except ValueError:
            answer = {}
        refusal = self._refusal(response, answer)
        if refusal.code == _TOO_OFTEN:
            return refusal.retry_after_s or _RETRY_AFTER_S
        raise refusal

    def _refusal(
        self,
        response: httpx.Response,
        answer: Any,  # noqa: ANN401 - whatever JSON came
    ) -> ApiError:
        problem = answer if isinstance(answer, dict) else {}
        if problem.get("code") == _UNAUTHENTICATED:
            # The answer speaks of headers, which are this client's to send.
            wanted = (
                "wants a key"
                if self._key_name is None
                else f"does not know the key {self._key_name}"
            )
            problem = {**problem, "detail": f"the API at {self.address} {wanted}"}
        return _refusal(response.status_code, problem, response.headers)

    def _unreachable(self, error: httpx.HTTPError) -> ApiError:
        return ApiError(
            f"the API at {self.address} does not answer ({type(error).__name__})",
            "Start it with `pagefleet up`, or name another with --api-url.",
            code=UNREACHABLE,
        )

    def _call(
        self,
        method: str,
        path: str,
        *,
        is_repeatable: bool = True,
        **arguments: Any,  # noqa: ANN401 - handed on to httpx
    ) -> dict[str, Any]:
        tries = count()
        while True:
            with self._errors():
                response = self._http.request(method, path, **arguments)
                answer = response.json() if response.content else {}
            if response.is_success and isinstance(answer, dict):
                return answer
            refusal = self._refusal(response, answer)
            if not is_repeatable:
                raise refusal
            self._wait_before_another(next(tries), refusal)

    def _wait_before_another(self, tries: int, refusal: ApiError) -> None:
        """Wait for as long as the API asks whoever came too early; it has done nothing.

        Raises:
            ApiError: the refusal, which is another one, or came too many times.
        """
        if refusal.code not in _WAITED_FOR or tries + 1 == _MOST_TRIES:
            raise refusal
        self._wait(refusal.retry_after_s or _RETRY_AFTER_S)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        except ValueError as error:
            raise ApiError(
                f"what answers at {self.address} is no Pagefleet API",
                "Name the right address with --api-url.",
                code=UNREACHABLE,
            ) from error


def _lines_of(response: httpx.Response) -> Iterator[str]:
    """Yield the lines of an answer as they come, each with its end."""
    rest = ""
    for text in response.iter_text():
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            yield f"{line}\n"
    if rest:
        yield rest


def _key_header(idempotency_key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": idempotency_key} if idempotency_key else {}


def _refusal(
    status: int,
    problem: Mapping[str, Any],
    headers: Mapping[str, str],
) -> ApiError:
    # A problem's detail says what to do; these are about this command line and its machine.
    remedy = _REMEDIES.get(status, "" if problem.get("detail") else _NO_PROBLEM_REMEDY)
    if problem.get("code") in _NO_FAULT:
        remedy = ""
    fields = "".join(
        f"; {each.get('field')} {each.get('message')}" for each in problem.get("errors") or ()
    )
    detail = str(problem.get("detail") or f"the API answered with status {status}")
    return ApiError(
        f"{detail.removesuffix('.') if fields else detail}{fields}",
        remedy,
        code=str(problem.get("code") or "internal"),
        status=status,
        retry_after_s=_seconds(headers.get("Retry-After")),
        document_id=_uuid(problem.get("document_id")),
        of_document=_named_error(problem.get("document_error")),
    )


def _named_error(said: object) -> tuple[str, str] | None:
    """Return code and message of an error within a problem."""
    if not isinstance(said, dict):
        return None
    return str(said.get("code")), str(said.get("message"))


def _uuid(said: object) -> UUID | None:
    try:
        return UUID(str(said))
    except ValueError:
        return None


def _seconds(header: str | None) -> float | None:
    """Return what a Retry-After says; None for none, and for a date, which the API never sends."""
    return float(header) if header is not None and header.isdecimal() else None


def _is_loopback(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
