"""Whatever text a client sends is stored or refused, and never breaks the API or its database."""

import json
from urllib.parse import quote

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.api_server import RunningApi, client_of

# What Postgres refuses in text (NUL), what UTF-8 cannot say (lone surrogates), and what may hide.
STRANGE = st.text(
    st.one_of(
        st.sampled_from("\0\ud800\udfff\x1b\r\n\u202e\"\\%;'=\ufffe\U0010ffff"),
        st.characters(categories=["L", "N", "P", "C", "Z"]),
    ),
    min_size=1,
    max_size=20,
)
FEW = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@FEW
@given(name=STRANGE)
@example(name="\0")
@example(name="\ud800")
def test_a_batch_may_be_named_anything(api: RunningApi, name: str) -> None:
    answer = api.client.post(
        "/v1/batches",
        content=json.dumps({"name": name}),
        headers={"Content-Type": "application/json"},
    )

    assert answer.status_code in {201, 422}
    assert answer.status_code == 422 or answer.json()["name"] == name


@FEW
@given(name=STRANGE, value=STRANGE)
@example(name="\0", value="\0")
@example(name="\ud800", value="\ud800")
@example(name="mode", value="\ud800")
def test_an_option_of_a_batch_may_be_called_anything(
    api: RunningApi, name: str, value: str
) -> None:
    answer = api.client.post(
        "/v1/batches",
        content=json.dumps({"name": "ledgers", "options": {name: value}, value: name}),
        headers={"Content-Type": "application/json"},
    )

    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_request"


@FEW
@given(filename=STRANGE)
@example(filename="a\0b.pdf")
@example(filename="a\ud800b.pdf")
def test_a_file_may_be_named_anything(api: RunningApi, filename: str) -> None:
    quoted = raw(filename.replace("\\", "\\\\").replace('"', '\\"'))
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n%%PDF-\r\n--b--'
        b"\r\n"
    ) % quoted

    answer = api.client.post(
        "/v1/documents",
        content=body,
        headers={"Content-Type": "multipart/form-data; boundary=b"},
    )

    assert answer.status_code in {202, 400, 422}


@FEW
@given(field=st.sampled_from(["options", "priority", "batch_id"]), value=STRANGE)
@example(field="options", value='{"\\u0000": "\\u0000"}')
@example(field="options", value='{"\\ud800": "\\ud800"}')
@example(field="options", value='{"mode": "\\u0000"}')
@example(field="batch_id", value="\0")
@example(field="priority", value="\ud800")
def test_a_field_may_have_any_value(api: RunningApi, field: str, value: str) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n%%PDF-\r\n'
        b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n--b--\r\n'
    ) % (field.encode(), raw(value))

    answer = api.client.post(
        "/v1/documents",
        content=body,
        headers={"Content-Type": "multipart/form-data; boundary=b"},
    )

    assert answer.status_code in {400, 422}


@FEW
@given(key=st.binary(min_size=1, max_size=20).map(lambda key: key.strip()).filter(bool))
@example(key=b"\xff")
@example(key=b"\xed\xa0\x80")
def test_an_idempotency_key_may_be_anything(api: RunningApi, key: bytes) -> None:
    printable = bytes(octet for octet in key if octet not in b"\0\r\n" and octet > 31) or b"k"

    answer = api.client.post(
        "/v1/documents",
        files={"file": ("a.pdf", b"%PDF-" + printable)},
        headers={b"Idempotency-Key": printable.strip() or b"k"},
    )

    assert answer.status_code in {202, 400, 422}


@FEW
@given(value=STRANGE)
@example(value="\0")
@example(value="\ud800")
def test_an_address_may_hold_anything(api: RunningApi, value: str) -> None:
    part = quote(raw(value), safe="")

    answers = [
        api.client.get(f"/v1/documents/{part}"),
        *(
            api.client.get(f"/v1/documents?{name}={part}")
            for name in ("cursor", "state", "batch_id")
        ),
    ]

    assert {answer.status_code for answer in answers} <= {200, 404, 422}


@FEW
@given(key=STRANGE)
@example(key="pf_\0_\0")
def test_a_key_may_be_anything(api: RunningApi, key: str) -> None:
    with client_of(api.url, None) as client:
        answer = client.get(
            "/v1/documents",
            headers={b"Authorization": b"Bearer " + quote(raw(key)).encode()},
        )

    assert answer.status_code == 401
