import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.multipart import (
    FormReader,
    MalformedFormError,
    NotAFormError,
    PartContent,
    PartEnded,
    PartStarted,
)

BOUNDARY = b"-b0undary"
CONTENT_TYPE = 'multipart/form-data; boundary="-b0undary"'

# Bytes that a search for the boundary stumbles over are more likely than by chance.
contents = st.lists(
    st.sampled_from([b"\r", b"\n", b"\r\n", b"--", b"\r\n--", b"\r\n---b0undar", b"-b0undary"])
    | st.binary(max_size=20),
    max_size=8,
).map(b"".join)
names = st.text(st.characters(codec="utf-8", exclude_characters='"\\\r\n\0'), min_size=1)
parts = st.lists(st.tuples(names, st.none() | names, contents), min_size=1, max_size=4)


def encode(sent: list[tuple[str, str | None, bytes]]) -> bytes:
    body = b""
    for name, filename, content in sent:
        disposition = f'form-data; name="{name}"'
        if filename is not None:
            disposition += f'; filename="{filename}"'
        body += b"--" + BOUNDARY + b"\r\n"
        body += b"Content-Disposition: " + disposition.encode() + b"\r\n\r\n"
        body += content + b"\r\n"
    return body + b"--" + BOUNDARY + b"--\r\n"


def read(blocks: list[bytes]) -> list[tuple[str, str | None, bytes]]:
    reader = FormReader(CONTENT_TYPE)
    received: list[tuple[str, str | None, bytes]] = []
    content = b""
    for event in (event for block in blocks for event in reader.feed(block)):
        match event:
            case PartStarted(name, filename):
                received.append((name, filename, b""))
                content = b""
            case PartContent(more):
                content += more
            case PartEnded():
                received[-1] = (*received[-1][:2], content)
    reader.close()
    return received


def cut(body: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(body) + 1) for place in places), len(body)]
    return [body[start:stop] for start, stop in itertools.pairwise(edges)]


def has_no_boundary(sent: list[tuple[str, str | None, bytes]]) -> bool:
    return not any(b"\r\n--" + BOUNDARY in b"\r\n" + content for _, _, content in sent)


@given(parts.filter(has_no_boundary), st.lists(st.integers(min_value=0), max_size=30))
def test_a_form_reads_the_same_however_its_body_is_cut(
    sent: list[tuple[str, str | None, bytes]], places: list[int]
) -> None:
    body = encode(sent)

    received = read(cut(body, places))

    assert received == read([body])


@given(st.lists(st.tuples(st.just("f"), st.just("a b.pdf"), contents), min_size=1, max_size=4))
def test_the_content_of_a_part_arrives_as_it_was_sent(
    sent: list[tuple[str, str | None, bytes]],
) -> None:
    kept = [part for part in sent if has_no_boundary([part])]
    body = encode([*kept, ("last", None, b"x")])

    received = read([body[i : i + 1] for i in range(len(body))])

    assert received == [*kept, ("last", None, b"x")]


def test_a_name_in_another_script_is_read_as_utf_8() -> None:
    assert read([encode([("file", "契約書.pdf", b"")])]) == [("file", "契約書.pdf", b"")]


def test_what_follows_the_closing_boundary_is_ignored() -> None:
    assert read([encode([("f", None, b"x")]), b"epilogue"]) == [("f", None, b"x")]


def test_a_body_that_ends_early_is_malformed() -> None:
    reader = FormReader(CONTENT_TYPE)
    reader.feed(encode([("f", None, b"x")])[:-8])

    with pytest.raises(MalformedFormError):
        reader.close()


def test_an_empty_body_is_malformed() -> None:
    with pytest.raises(MalformedFormError):
        FormReader(CONTENT_TYPE).close()


@pytest.mark.parametrize(
    "body",
    [
        b"no boundary at all",
        b"---b0undary\r\nContent-Disposition: form-data\r\n\r\nx",
        b"---b0undary\r\nBad header\r\n\r\nx",
        b"---b0undary\r\n" + b"X: y\r\n" * 100 + b"\r\nx",
        b"---b0undary\r\nX: " + b"y" * 10_000 + b"\r\n\r\nx",
        (
            b'---b0undary\r\nContent-Disposition: form-data; name="f"\r\n'
            b"Content-Transfer-Encoding: base64\r\n\r\nx"
        ),
    ],
    ids=["no boundary", "no name", "no colon", "many headers", "long header", "encoded"],
)
def test_a_body_that_is_no_form_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedFormError):
        FormReader(CONTENT_TYPE).feed(body)


@pytest.mark.parametrize(
    "content_type", ["multipart/form-data", f"multipart/form-data; boundary={'b' * 300}"]
)
def test_a_form_needs_a_boundary_of_a_sane_length(content_type: str) -> None:
    with pytest.raises(MalformedFormError):
        FormReader(content_type)


@pytest.mark.parametrize("content_type", [None, "", "application/json", "multipart/mixed"])
def test_another_content_type_is_no_form(content_type: str | None) -> None:
    with pytest.raises(NotAFormError):
        FormReader(content_type)
