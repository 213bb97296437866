from collections.abc import AsyncIterator, Mapping
from functools import partial
from uuid import UUID

import anyio
import pytest

from api.errors import ApiError
from api.multipart import MalformedFormError
from api.upload_form import (
    FORM_OVERHEAD_BYTES,
    MAX_FIELD_BYTES,
    WRITE_BYTES,
    UploadFields,
    parse_fields,
    receive_form,
    resolve_options,
    timely,
)

BATCH_ID = "0190b2f2-0000-7000-8000-000000000001"
CONTENT_TYPE = "multipart/form-data; boundary=b"
FILE = ('file"; filename="scan.pdf', b"%PDF-1.7 content")


def body_of(*parts: tuple[str, bytes]) -> bytes:
    return (
        b"".join(
            b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
            % (name.encode(), content)
            for name, content in parts
        )
        + b"--b--\r\n"
    )


async def let_all_in(_: Mapping[str, str]) -> None:
    pass


def receive(body: bytes, *, max_file_bytes: int = 2**30) -> tuple[str, UploadFields, list[bytes]]:
    written: list[bytes] = []

    async def write(block: bytes) -> None:
        written.append(block)

    async def blocks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    filename, fields = anyio.run(
        partial(
            receive_form,
            blocks(),
            CONTENT_TYPE,
            before_file=let_all_in,
            write=write,
            max_file_bytes=max_file_bytes,
        )
    )
    return filename, fields, written


def problems_of(body: bytes) -> list[tuple[str, str]]:
    with pytest.raises(ApiError) as refusal:
        receive(body)
    assert refusal.value.code == "invalid_request"
    return [(problem.field, problem.message) for problem in refusal.value.fields]


def test_a_file_is_refused_by_the_fields_before_it_when_it_begins() -> None:
    known: list[dict[str, str]] = []
    passed: list[int] = []

    async def refuse(fields: Mapping[str, str]) -> None:
        known.append(dict(fields))
        raise ApiError("system_full")

    async def write(block: bytes) -> None:
        passed.append(len(block))

    async def blocks() -> AsyncIterator[bytes]:
        body = body_of(("priority", b"bulk"), ('file"; filename="a', bytes(5 * WRITE_BYTES)))
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    with pytest.raises(ApiError, match="system_full"):
        anyio.run(
            partial(
                receive_form,
                blocks(),
                CONTENT_TYPE,
                before_file=refuse,
                write=write,
                max_file_bytes=2**30,
            )
        )

    assert known == [{"priority": "bulk"}]
    assert passed == []


def test_fields_are_read_before_and_after_the_file() -> None:
    body = body_of(("priority", b"bulk"), FILE, ("batch_id", BATCH_ID.encode()))

    filename, fields, written = receive(body)

    assert filename == "scan.pdf"
    assert fields == UploadFields(priority="bulk", batch_id=UUID(BATCH_ID))
    assert written == [FILE[1]]


def test_a_large_file_is_passed_on_while_it_arrives() -> None:
    content = bytes(range(256)) * (3 * WRITE_BYTES // 256)

    _, _, written = receive(body_of((FILE[0], content)))

    assert b"".join(written) == content
    assert max(map(len, written)) < 2 * WRITE_BYTES


def test_a_form_without_a_file_is_refused() -> None:
    assert [field for field, _ in problems_of(body_of(("priority", b"bulk")))] == ["file"]


def test_a_form_with_two_files_is_refused() -> None:
    assert [field for field, _ in problems_of(body_of(FILE, FILE))] == ["file"]


def test_a_file_that_is_sent_as_a_field_is_refused() -> None:
    assert [field for field, _ in problems_of(body_of(("file", b"%PDF-")))] == ["file"]


def test_a_file_with_an_endless_name_is_refused() -> None:
    name = f'file"; filename="{"x" * 300}'

    assert [field for field, _ in problems_of(body_of((name, b"%PDF-")))] == ["file"]


def test_an_unknown_field_is_refused_without_repeating_it() -> None:
    ((_, message),) = problems_of(body_of(FILE, ("<script>", b"x")))

    assert "unknown" in message
    assert "script" not in message


def test_a_field_that_comes_twice_is_refused() -> None:
    body = body_of(FILE, ("priority", b"bulk"), ("priority", b"bulk"))

    assert [field for field, _ in problems_of(body)] == ["priority"]


def test_a_field_without_end_is_refused() -> None:
    body = body_of(("options", b"x" * (MAX_FIELD_BYTES + 1)), FILE)

    assert [field for field, _ in problems_of(body)] == ["options"]


def test_a_field_that_is_not_utf_8_is_refused() -> None:
    assert problems_of(body_of(FILE, ("options", b"\xff"))) == [("options", "is not UTF-8")]


def test_a_body_that_is_cut_off_is_malformed() -> None:
    with pytest.raises(MalformedFormError):
        receive(body_of(FILE)[:-10])


def test_a_body_that_goes_on_after_its_form_is_refused() -> None:
    body = body_of(FILE) + b"x" * (FORM_OVERHEAD_BYTES + 100)

    with pytest.raises(ApiError) as refusal:
        receive(body, max_file_bytes=100)

    assert refusal.value.code == "body_too_large"


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"options": "{"}, "options"),
        ({"options": "[" * 10_000}, "options"),
        ({"options": "[]"}, "options"),
        ({"options": '{"dpi": 7}'}, "options.dpi"),
        ({"options": '{"dpi": NaN}'}, "options.dpi"),
        ({"options": '{"dpy": 300}'}, "options.dpy"),
        ({"options": '{"mode": "magic"}'}, "options.mode"),
        ({"options": '{"text_order": "rows"}'}, "options.text_order"),
        ({"batch_id": "1"}, "batch_id"),
        ({"priority": "urgent"}, "priority"),
    ],
)
def test_a_wrong_field_is_named(sent: dict[str, str], field: str) -> None:
    with pytest.raises(ApiError) as refusal:
        parse_fields(sent)

    assert refusal.value.code == "invalid_request"
    assert [problem.field for problem in refusal.value.fields] == [field]


def test_an_empty_field_counts_as_not_sent() -> None:
    assert parse_fields({"options": "", "batch_id": "", "priority": ""}) == UploadFields()


def test_the_order_of_stated_text_is_an_option_of_a_document_and_of_its_batch() -> None:
    fields = parse_fields({"options": '{"text_order": "file"}'})

    assert resolve_options({}, fields.options).text_order == "file"
    assert resolve_options({"text_order": "file"}, {"dpi": 100}).text_order == "file"
    assert resolve_options({}, {}).text_order == "reading"


def test_the_options_of_a_document_stand_above_those_of_its_batch() -> None:
    assert resolve_options({"dpi": 300, "mode": "ocr"}, {"dpi": 100}).dpi == 100
    assert resolve_options({"dpi": 300}, {}).dpi == 300


def received(blocks: AsyncIterator[bytes], *, pause_s: float = 0, **limits: float) -> bytes:
    """What arrives of a body at somebody who needs ``pause_s`` seconds for each block."""

    async def take() -> bytes:
        taken = b""
        async for block in timely(blocks, **limits):
            taken += block
            await anyio.sleep(pause_s)
        return taken

    return anyio.run(take)


async def dripping(*, every_s: float, count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        await anyio.sleep(every_s)
        yield b"x"


def test_a_body_that_only_drips_is_refused() -> None:
    drops = dripping(every_s=0.02, count=1_000)

    with pytest.raises(ApiError) as refusal:
        received(drops, idle_s=0.1, min_bytes_per_s=1_000)

    assert refusal.value.code == "request_timeout"


def test_a_slow_body_that_keeps_the_least_rate_is_taken() -> None:
    assert received(dripping(every_s=0.02, count=20), idle_s=0.1, min_bytes_per_s=5) == b"x" * 20


def test_a_client_that_is_kept_waiting_is_not_slow() -> None:
    drops = dripping(every_s=0, count=10)

    assert received(drops, pause_s=0.03, idle_s=0.1, min_bytes_per_s=1_000) == b"x" * 10
