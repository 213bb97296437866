"""What each sender writes, with its traps."""

import base64
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.s3_events.event import ObjectEvent, UnreadableEventError, is_later
from api.s3_events.parse import parse

KEYS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60
)
HOSTILE = "in/a b+c%20d%2Fe/Größe 文\n.pdf"


def record(
    key: str, *, source: str = "aws:s3", name: str = "ObjectCreated:Put", **of_object: Any
) -> dict[str, Any]:
    return {
        "eventVersion": "2.4",
        "eventSource": source,
        "eventName": name,
        "somethingNew": {"x": [1]},
        "s3": {
            "s3SchemaVersion": "1.0",
            "bucket": {"name": "scans", "arn": "arn:aws:s3:::scans"},
            "object": {"key": key, **of_object},
        },
    }


def body(*records: Any) -> bytes:
    return json.dumps({"Records": list(records)}).encode()


def only(message: bytes | str) -> ObjectEvent:
    (event,) = parse(message)
    return event


def event_bridge(key: str, *, kind: str = "Object Created") -> dict[str, Any]:
    return {
        "version": "0",
        "detail-type": kind,
        "source": "aws.s3",
        "detail": {
            "bucket": {"name": "scans"},
            "object": {"key": key, "size": 5, "etag": "e1", "version-id": "v", "sequencer": "0A"},
            "reason": "PutObject",
        },
    }


def seaweedfs(path: str, *, kind: str = "create", **entry: Any) -> bytes:
    parent, _, name = path.rpartition("/")
    message = {
        "new_entry": {
            "name": name,
            "attributes": {"file_size": 10_000, "mtime": 1},
            "extended": {"Seaweed-X-Amz-ETag": base64.b64encode(b"11e6").decode()},
            **entry,
        },
        "new_parent_path": parent,
    }
    return json.dumps({"event_type": kind, "key": path, "message": message}).encode()


def test_a_record_of_amazon_says_all_there_is_to_know() -> None:
    event = only(
        body(record("in/a.pdf", size=5, eTag="d41d", versionId="v1", sequencer="0055AED6"))
    )

    assert event == ObjectEvent("scans", "in/a.pdf", "v1", "d41d", 5, "0055AED6")


def test_what_a_record_need_not_have_may_be_missing() -> None:
    assert only(body(record("in/a.pdf"))) == ObjectEvent("scans", "in/a.pdf")


def test_quotes_around_an_etag_are_no_part_of_it() -> None:
    assert only(body(record("a", eTag='"d41d"'))).etag == "d41d"


@pytest.mark.parametrize("written", ["null", ""])
def test_a_version_of_a_bucket_without_versions_is_none(written: str) -> None:
    assert only(body(record("a", versionId=written))).version_id is None


@pytest.mark.parametrize(
    ("written", "size"),
    [
        *((7, 7), ("7", 7), ("", None), ("7 MB", None), (-1, None), (True, None)),
        ("1" * 5_000, None),
    ],
)
def test_a_size_is_a_number_however_it_is_written(written: object, size: int | None) -> None:
    assert only(body(record("a", size=written))).size_bytes == size


@pytest.mark.parametrize("kind", ["Put", "Post", "Copy", "CompleteMultipartUpload"])
@pytest.mark.parametrize("prefix", ["", "s3:"])
def test_new_objects_are_told_by_these_names(kind: str, prefix: str) -> None:
    assert only(body(record("a", name=f"{prefix}ObjectCreated:{kind}"))).key == "a"


@pytest.mark.parametrize(
    "name",
    [
        "ObjectRemoved:Delete",
        "ObjectTagging:Put",
        "ObjectRestore:Post",
        "ReducedRedundancyLostObject",
        "s3:ObjectCreated:PutTagging",
        "s3:ObjectCreated:DeleteTagging",
        "s3:ObjectCreated:PutRetention",
        "s3:ObjectCreated:PutLegalHold",
        "s3:ObjectCreated:*",
    ],
)
def test_what_is_about_no_new_object_is_left_out(name: str) -> None:
    assert parse(body(record("a", name=name, source="minio:s3"))) == []


def test_the_test_event_of_amazon_says_nothing() -> None:
    message = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "scans"}

    assert parse(json.dumps(message)) == []


@pytest.mark.parametrize("inner", [body(record("a+b")).decode(), '{"Event": "s3:TestEvent"}'])
def test_what_sns_has_wrapped_is_what_counts(inner: str) -> None:
    wrapped = json.dumps({"Type": "Notification", "TopicArn": "arn", "Message": inner})

    assert parse(wrapped) == parse(inner)


@pytest.mark.parametrize("kind", ["Object Deleted", "Object Tags Added", "Object Restored"])
def test_other_events_of_event_bridge_are_left_out(kind: str) -> None:
    assert parse(json.dumps(event_bridge("a", kind=kind))) == []


def test_an_event_of_event_bridge_says_all_there_is_to_know() -> None:
    event = only(json.dumps(event_bridge("in/a.pdf")))

    assert event == ObjectEvent("scans", "in/a.pdf", "v", "e1", 5, "0A")


@given(KEYS)
def test_a_key_of_amazon_comes_back_as_it_was(key: str) -> None:
    assert only(body(record(quote_plus(key, safe="/")))).key == key


@given(KEYS)
def test_a_key_of_event_bridge_is_taken_as_it_is(key: str) -> None:
    assert only(json.dumps(event_bridge(key))).key == key


@given(KEYS)
def test_a_key_of_minio_comes_back_as_it_was(key: str) -> None:
    message = body(record(quote_plus(key), source="minio:s3", name="s3:ObjectCreated:Put"))

    assert only(message).key == key


@given(KEYS)
def test_a_key_of_ceph_is_taken_as_it_is(key: str) -> None:
    message = body(record(key, source="ceph:s3", size="1024", versionId=""))

    assert only(message) == ObjectEvent("scans", key, size_bytes=1024)


@given(KEYS.map(lambda key: key.strip("/")).filter(lambda key: key and key[0] != "."))
def test_a_key_of_seaweedfs_is_taken_as_it_is(key: str) -> None:
    event = only(seaweedfs(f"/buckets/scans/{key}"))

    assert event == ObjectEvent("scans", key, etag="11e6", size_bytes=10_000)


def test_a_key_that_is_escaped_by_its_user_is_not_decoded_twice() -> None:
    assert only(body(record(quote(HOSTILE)))).key == HOSTILE


def test_an_object_that_is_written_over_in_seaweedfs_is_an_update() -> None:
    assert only(seaweedfs("/buckets/scans/in/a.pdf", kind="update")).key == "in/a.pdf"


def test_an_object_that_is_renamed_in_seaweedfs_is_where_it_went() -> None:
    message = json.loads(seaweedfs("/buckets/scans/in/new.pdf", kind="rename"))
    message["key"] = "/buckets/scans/out/old.pdf"

    assert only(json.dumps(message)).key == "in/new.pdf"


@pytest.mark.parametrize(
    ("path", "kind", "entry"),
    [
        ("/buckets/scans/in", "create", {"is_directory": True}),
        ("/buckets/scans", "create", {"is_directory": True}),
        ("/buckets/scans", "create", {}),
        ("/buckets/scans/.uploads/53673f/0001.part", "create", {}),
        ("/buckets/.system/owners/scans", "create", {}),
        ("/etc/seaweedfs/filer.conf", "update", {}),
        ("/buckets/scans/in/a.pdf", "delete", {}),
    ],
)
def test_what_is_no_object_in_seaweedfs_is_left_out(
    path: str, kind: str, entry: dict[str, Any]
) -> None:
    assert parse(seaweedfs(path, kind=kind, **entry)) == []


def test_a_deletion_in_seaweedfs_has_no_new_entry() -> None:
    message = {"event_type": "delete", "key": "/buckets/b/a", "message": {"old_entry": {}}}

    assert parse(json.dumps(message)) == []


def test_a_message_of_several_records_tells_of_each() -> None:
    message = body(record("a"), record("b", name="ObjectRemoved:Delete"), record("c"))

    assert [event.key for event in parse(message)] == ["a", "c"]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'{"Records": 1}',
        b'{"Records": [1]}',
        b'{"Records": [{}]}',
        b'{"Records": [{"eventName": "ObjectCreated:Put"}]}',
        b'{"Records": [{"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "b"}}}]}',
        b'{"Type": "Notification", "Message": 1}',
        b'{"Type": "Notification", "Message": "hello"}',
        b'{"Type": "SubscriptionConfirmation"}',
        b'{"detail-type": "Object Created", "source": "aws.s3"}',
        b'{"event_type": "create", "message": 1}',
        b'{"event_type": ["create"], "message": {}, "Records": [2]}',
        b"[" * 100_000,
    ],
)
def test_what_nobody_sends_is_unreadable(message: bytes) -> None:
    with pytest.raises(UnreadableEventError):
        parse(message)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([
                    *(
                        "Records",
                        "Event",
                        "Type",
                        "Message",
                        "detail-type",
                        "detail",
                        "source",
                        "s3",
                    ),
                    *("eventName", "bucket", "object", "name", "key", "event_type", "message"),
                    *("new_entry", "new_parent_path", "extended", "attributes", "size", "eTag"),
                ]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_nothing_that_anybody_sends_is_a_mistake_of_ours(message: Any) -> None:
    try:
        parse(json.dumps(message))
    except UnreadableEventError:
        return


@pytest.mark.parametrize(
    ("sequencer", "than", "later"),
    [
        ("0055AED6DCD90281E6", "0055AED6DCD90281E5", True),
        ("0055AED6DCD90281E5", "0055AED6DCD90281E5", False),
        ("0055aed6dcd90281e6", "0055AED6DCD90281E5", True),
        ("01", "0055AED6DCD90281E5", True),
        ("0055", "0055AED6DCD90281E5", False),
        ("00550", "0055", False),
    ],
)
def test_sequencers_are_compared_as_their_sender_says(
    sequencer: str, than: str, later: object
) -> None:
    assert is_later(sequencer, than) is later
