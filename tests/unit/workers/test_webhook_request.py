"""What is written to an endpoint, for every URL that a tenant may give."""

from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from workers.webhook_post import _request
from workers.webhook_target import WebhookTargetError, parse_url

# Mostly of what may be in a URL, with what only looks like it.
URLS = st.from_regex(
    r"https://[a-zA-Z0-9\u212a\u017f._-]{1,20}(:[0-9]{1,5})?([/?][!-~\u0130\u212a]{0,20})?",
    fullmatch=True,
)


@given(URLS)
@example("https://example.com/\u212a")
@example("https://\u212a.example/?\u212a")
def test_whatever_url_is_taken_can_be_sent_to(url: str) -> None:
    with suppress(WebhookTargetError):  # what is refused is sent to nobody
        head = _request(parse_url(url, allow_loopback=False), b"{}", {"webhook-id": "msg_1"})

        assert head.startswith(b"POST /")
        assert head.isascii()
