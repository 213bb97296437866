"""Where webhooks may go; each line of the lists is a way into a private network, or none."""

from ipaddress import ip_address

import pytest

from workers.webhook_target import WebhookTargetError, is_public, parse_url, require_allowed

PUBLIC = ["8.8.8.8", "93.184.215.14", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
NOT_PUBLIC = [
    "0.0.0.0",  # noqa: S104 - nobody listens
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::808:808",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::808:808",
    "100::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:a00:1::1",
    "2001:0:a00:1::",
    "2001:0:808:808:0:0:f5ff:fffe",
    "2606:4700::200:5efe:a00:1",
    "2606:4700::5efe:7f00:1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_host_on_the_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_whatever_leads_elsewhere_is_not(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine_is_reached_only_where_a_setting_allows_it(address: str) -> None:
    loopback = ip_address(address)

    require_allowed(loopback, is_plain=True, allow_loopback=True)
    with pytest.raises(WebhookTargetError):
        require_allowed(loopback, is_plain=False, allow_loopback=False)


@pytest.mark.parametrize("address", ["8.8.8.8", "10.0.0.1", "169.254.169.254"])
def test_nobody_but_this_machine_is_talked_to_without_tls(address: str) -> None:
    with pytest.raises(WebhookTargetError):
        require_allowed(ip_address(address), is_plain=True, allow_loopback=True)


@pytest.mark.parametrize(
    ("url", "authority", "path"),
    [
        ("https://example.com", "example.com", "/"),
        ("https://EXAMPLE.com./a?b=c", "example.com", "/a?b=c"),
        ("https://example.com:8443/a%20b", "example.com:8443", "/a%20b"),
        ("https://example.com:443/?", "example.com", "/"),
        ("https://[2606:4700::1111]/x", "[2606:4700::1111]", "/x"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", "/"),
    ],
)
def test_a_url_is_taken_apart_once(url: str, authority: str, path: str) -> None:
    parsed = parse_url(url, allow_loopback=False)

    assert (parsed.authority, parsed.path, parsed.is_plain) == (authority, path, False)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "ftp://example.com",
        "http://example.com",
        "http://127.0.0.1:1",
        "https://",
        "https:///x",
        "https://user:password@example.com",
        "https://example.com@127.0.0.1/",
        "https://example.com#@127.0.0.1/",
        "https://example.com/#",
        "https://example.com\\@127.0.0.1/",
        "https://exam ple.com",
        "https://example.com/a\r\nX-Injected: 1",
        "https://example.com/ü",
        "https://bücher.example/",
        "https://example.com/\u212a",  # whose small letter is k
        "https://\u212a.example/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com:x/",
        "https://[::1",
        "https://[fe80::1%25eth0]/",
        "https://127.0.0.1/",
        "https://[::ffff:10.0.0.1]/",
        "https://169.254.169.254/latest/meta-data",
        f"https://example.com/{'x' * 2_000}",
    ],
)
def test_what_is_no_address_of_https_is_refused(url: str) -> None:
    with pytest.raises(WebhookTargetError):
        parse_url(url, allow_loopback=False)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/x", "http://localhost:1", "http://[::1]/"])
def test_http_goes_to_this_machine_where_a_setting_allows_it(url: str) -> None:
    assert parse_url(url, allow_loopback=True).is_plain


@pytest.mark.parametrize(
    "url", ["http://example.com", "http://10.0.0.1", "http://localhost.example.com", "https://[::]"]
)
def test_the_setting_allows_nothing_else(url: str) -> None:
    with pytest.raises(WebhookTargetError):
        parse_url(url, allow_loopback=True)
