"""Where requests may go: addresses behind every spelling, redirect and changing name; nothing else is asked."""

from __future__ import annotations

import asyncio
import base64
import gzip
import ipaddress
import json
import shutil
import socket
import ssl
import subprocess
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.errors import WorkerFault
from pool_registry.network import address_policy, http_client
from pool_registry.network.address_policy import CONFIGURED, OPEN_WEB, AddressPolicy, AddressRefused
from tests.machine import needs

PRIVATE = AddressPolicy(private=True)


class Site(BaseHTTPRequestHandler):
    """`/to/URL-in-base64` redirects there with the status of `?code=`; everything else tells what it was asked."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str, dict[str, str], bytes]] = []

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        Site.seen.append((self.command, self.path, headers, body))
        place, _, code = self.path.partition("?code=")
        if place.startswith("/to/"):
            self._send(int(code or 302), b"", location=base64.urlsafe_b64decode(place[4:]).decode())
        elif place == "/cookie":
            self._send(200, b"{}", set_cookie="session=of-another-worker; Path=/")
        elif place == "/gzip":
            self._send(200, gzip.compress(b'{"packed": true}'), content_encoding="gzip")
        elif place == "/deflate":
            self._send(200, zlib.compress(b'{"packed": true}'), content_encoding="deflate")
        elif place == "/bomb":
            self._send(200, gzip.compress(b"0" * 50_000_000), content_encoding="gzip")
        elif place == "/brotli":
            self._send(200, b"\x0b", content_encoding="br")
        elif place == "/notgzip":
            self._send(200, b"plain", content_encoding="gzip")
        else:
            self._send(200, json.dumps({"path": self.path, "method": self.command}).encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _answer

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def site(context: ssl.SSLContext | None = None, address: str = "127.0.0.1") -> Iterator[int]:
    server = ThreadingHTTPServer((address, 0), Site)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with site() as found:
        yield found


@pytest.fixture(autouse=True)
def nothing_seen():
    Site.seen.clear()


def ask(url: str, method: str = "GET", **options) -> http_client.Answer:
    return asyncio.run(http_client.ask(method, url, **{"timeout_s": 5.0, **options}))


def code_of(url: str, **options) -> str:
    with pytest.raises(WorkerFault) as caught:
        ask(url, **options)
    return caught.value.code


def to(target: str, code: int = 302) -> str:
    return f"/to/{base64.urlsafe_b64encode(target.encode()).decode()}?code={code}"


@pytest.fixture
def names(monkeypatch) -> dict[str, list[str]]:
    """A resolver of our own: each name leads to its list of addresses; a list of lists changes with each look."""
    known: dict[str, list] = {}
    real = socket.getaddrinfo

    def getaddrinfo(host, port, *args, **kwargs):
        name = host.decode() if isinstance(host, bytes) else host
        if name not in known:
            return real(host, port, *args, **kwargs)
        found = known[name]
        if found and isinstance(found[0], list):
            found = found.pop(0)
        families = {4: socket.AF_INET, 6: socket.AF_INET6}
        return [
            (families[ipaddress.ip_address(each).version], socket.SOCK_STREAM, 6, "", (each, port)) for each in found
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


# Spellings

LOOPBACK = [
    "127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "127.127.127.127", "2130706433", "0x7f000001", "0x7F.0x0.0x0.0x1",
    "0177.0.0.1", "017700000001", "0177.1", "0x7f.1", "127.000.000.001", "[::1]", "[0:0:0:0:0:0:0:1]", "[::0001]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "localhost", "LOCALHOST", "localhost.", "LocalHost.", "①②⑦.⓪.⓪.①",
    "127。0。0。1", "１２７.０.０.１", "127．0．0．1", "loc%61lhost", "%31%32%37.0.0.1", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "xn--localhost-",
    "127.0.0.1%00", "127.0.0.1%23.example.com",
]  # fmt: skip
PRIVATE_NETWORK = [
    "10.0.0.1", "10.1", "167772161", "0xa000001", "012.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1",
    "3232235521", "0xC0A80001", "192.168.1", "100.64.0.1", "100.127.255.254", "198.18.0.1", "192.0.2.1", "192.0.0.8",
    "[fd00::1]", "[fc00::1]", "[fec0::1]", "[::ffff:10.0.0.1]", "[::ffff:192.168.0.1]", "[64:ff9b::a00:1]",
    "[2002:c0a8:1::]", "[2001:db8::1]", "[::ffff:0:10.0.0.1]",
]  # fmt: skip
NEVER = [
    "169.254.169.254", "169.254.169.254.", "2852039166", "0xA9FEA9FE", "0251.0376.0251.0376", "169.254.43518",
    "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[fe80::1]",
    "[fd00:ec2::254]", "[fd20:ce::254]", "100.100.100.200", "168.63.129.16", "192.0.0.192", "0.0.0.0", "0", "0x0",
    "0.0.0.1", "[::]", "224.0.0.1", "[ff02::1]", "255.255.255.255", "240.0.0.1", "[::ffff:0.0.0.0]",
    "169。254。169。254", "①⑥⑨.②⑤④.①⑥⑨.②⑤④",
]  # fmt: skip


def test_enough_spellings_are_tried():
    assert len(set(LOOPBACK + PRIVATE_NETWORK + NEVER)) >= 60


@pytest.mark.parametrize("host", LOOPBACK + PRIVATE_NETWORK + NEVER)
def test_no_spelling_of_a_private_address_is_reached_from_the_open_web(port, host):
    assert code_of(f"http://{host}:{port}/", policy=OPEN_WEB, timeout_s=3.0) in (
        "address_refused", "bad_url", "connection", "invalid_response",
    )  # fmt: skip
    assert not Site.seen


@pytest.mark.parametrize(
    "url",
    [
        "http://user@127.0.0.1:{port}/", "http://user:password@127.0.0.1:{port}/", "http://example.com@127.0.0.1:{port}/",
        "http://127.0.0.1:{port}@example.com/", "http://example.com#@127.0.0.1:{port}/", "http:///127.0.0.1:{port}/",
        "http:127.0.0.1:{port}/", "//127.0.0.1:{port}/", "127.0.0.1:{port}", "ftp://127.0.0.1:{port}/", "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/", "http://", "http://:{port}/", "http://[::1", "http://[fe80::1%25lo]:{port}/", "",
        "http://127.0.0.1\\@example.com/", "http://127.0.0.1:{port} .example.com/", "http://127.0.0.1:99999/",
        "data:text/html,x", "javascript:alert(1)", "unix:///var/run/docker.sock", "http+unix://%2Fvar%2Frun/",
    ],
)  # fmt: skip
def test_no_odd_url_reaches_this_machine_from_the_open_web(port, names, url):
    names["example.com"] = ["127.0.0.1"]
    assert code_of(url.format(port=port), policy=OPEN_WEB, timeout_s=3.0) in (
        "bad_url", "address_refused", "connection", "invalid_response",
    )  # fmt: skip
    assert not Site.seen


@pytest.mark.parametrize("host", NEVER)
@pytest.mark.parametrize("policy", [CONFIGURED, PRIVATE, AddressPolicy(private=True, typed=True)])
def test_metadata_and_link_local_addresses_are_refused_whatever_is_allowed(host, policy):
    assert code_of(f"http://{host}/latest/meta-data/", policy=policy, timeout_s=3.0) in ("address_refused", "bad_url")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0x7f000001", "[::ffff:127.0.0.1]"])
def test_a_person_may_name_this_machine_outright(port, host):
    assert ask(f"http://{host}:{port}/x", policy=CONFIGURED).status == 200


@pytest.mark.parametrize("host", PRIVATE_NETWORK)
def test_other_private_addresses_need_the_switch_also_when_typed(host):
    with pytest.raises(ValueError, match=r"allow_private|Invalid IPv4"):  # some spellings are no URL at all
        http_client.check_url(f"http://{host}/", CONFIGURED)
    with pytest.raises(AddressRefused, match="allow_private"):
        address_policy.check("host", address_policy.literal_address(host), CONFIGURED)
    address_policy.check("host", address_policy.literal_address(host), PRIVATE)


@given(st.ip_addresses())
def test_an_address_is_public_or_refused_on_the_open_web(address):
    try:
        address_policy.check("name", address, OPEN_WEB)
    except AddressRefused:
        return
    assert address.is_global and not address.is_multicast and not address.is_link_local
    assert str(address) not in ("168.63.129.16", "192.0.0.192")


# Names


def test_a_name_that_leads_to_a_private_address_needs_the_switch(port, names):
    names["intranet.example"] = ["127.0.0.1"]
    for policy in (OPEN_WEB, CONFIGURED):
        assert code_of(f"http://intranet.example:{port}/", policy=policy) == "address_refused"
    assert not Site.seen
    assert ask(f"http://intranet.example:{port}/", policy=PRIVATE).status == 200
    assert Site.seen[0][2]["host"] == f"intranet.example:{port}"


def test_one_private_address_among_public_ones_refuses_the_name(names):
    names["both.example"] = ["93.184.216.34", "127.0.0.1"]
    assert code_of("http://both.example/", policy=OPEN_WEB) == "address_refused"


def test_a_name_that_changes_its_mind_is_connected_to_where_it_was_checked(port, names, monkeypatch):
    connected = []

    async def connect(self, host, *args, **kwargs):
        connected.append(host)
        raise http_client.httpcore.ConnectError("no way there")

    monkeypatch.setattr(http_client.httpcore.AnyIOBackend, "connect_tcp", connect)
    names["rebind.example"] = [["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"]]
    assert code_of(f"http://rebind.example:{port}/", policy=OPEN_WEB) == "connection"
    assert connected == ["93.184.216.34"]
    assert code_of(f"http://rebind.example:{port}/", policy=OPEN_WEB) == "address_refused"


def test_a_kept_connection_serves_only_those_who_may_open_one(port, names):
    names["intranet.example"] = ["127.0.0.1"]

    async def both() -> str:
        await http_client.ask("GET", f"http://intranet.example:{port}/", timeout_s=5, policy=PRIVATE)
        try:
            await http_client.ask("GET", f"http://intranet.example:{port}/", timeout_s=5, policy=OPEN_WEB)
        except WorkerFault as fault:
            return fault.code
        return "reached"

    assert asyncio.run(both()) == "address_refused"


def test_the_next_address_is_tried_when_one_is_dead(names):
    with site(address="127.0.0.2") as port:
        names["two.example"] = ["127.0.0.3", "127.0.0.2"]
        assert ask(f"http://two.example:{port}/", policy=PRIVATE).status == 200


def test_a_name_that_does_not_exist_is_a_connection_fault(names):
    names["nowhere.invalid"] = []
    assert code_of("http://nowhere.invalid/", policy=OPEN_WEB) == "connection"


@needs(shutil.which("openssl") is not None, "openssl")
def test_the_certificate_is_checked_against_the_name_though_an_address_is_connected_to(names, tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=good.example",
         "-addext", "subjectAltName=DNS:good.example"],
        check=True, capture_output=True,
    )  # fmt: skip
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(certificate, key)
    asked: list[str | None] = []
    served.sni_callback = lambda _socket, name, _context: asked.append(name)
    trusting = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(httpx, "create_ssl_context", lambda **_: trusting)
    names["good.example"] = names["other.example"] = ["127.0.0.1"]
    with site(served) as port:
        assert ask(f"https://good.example:{port}/", policy=PRIVATE).status == 200
        assert code_of(f"https://other.example:{port}/", policy=PRIVATE) == "connection"
    assert asked == ["good.example", "other.example"]


# Redirects


def test_a_redirect_is_followed_only_on_demand_and_at_most_five_times(port):
    here = f"http://127.0.0.1:{port}"
    assert ask(here + to("/end")).status == 302
    assert ask(here + to("/end"), follow=1).url == f"{here}/end"
    chain = "/end"
    for _ in range(5):
        chain = to(chain)
    assert ask(here + chain, follow=5).url == f"{here}/end"
    assert code_of(here + to(chain), follow=5) == "invalid_response"
    assert code_of(here + to(chain), follow=50) == "invalid_response"


def test_a_redirect_to_a_private_address_is_refused_though_the_first_one_was_typed(port, names):
    names["intranet.example"] = ["127.0.0.1"]
    here = f"http://127.0.0.1:{port}"
    with site() as other:
        for target in (f"http://127.0.0.1:{other}/", f"http://localhost:{port}/", f"http://intranet.example:{port}/",
                       "http://169.254.169.254/", f"//127.0.0.1:{other}/"):  # fmt: skip
            assert code_of(here + to(target), follow=5) == "address_refused"
    assert [path.startswith("/to/") for _, path, _, _ in Site.seen] == [True] * 5
    assert code_of(here + to("http://169.254.169.254/"), follow=5, policy=PRIVATE) == "address_refused"


@pytest.mark.parametrize("target", ["file:///etc/passwd", "http://user:pw@127.0.0.1/", "http://[", "javascript:x", ""])
def test_a_redirect_to_what_is_no_url_is_a_fault(port, target):
    assert code_of(f"http://127.0.0.1:{port}{to(target)}", follow=3) in ("bad_url", "invalid_response")


def test_keys_stay_with_their_origin(port):
    keys = {"Authorization": "Bearer KEY", "X-Api-Key": "KEY", "Cookie": "KEY", "Accept": "text/html"}
    here = f"http://127.0.0.1:{port}"
    ask(here + to("/same"), headers=keys, follow=1)
    assert Site.seen[-1][2]["authorization"] == "Bearer KEY"
    with site() as other:
        ask(here + to(f"http://127.0.0.1:{other}/"), headers=keys, follow=1, policy=PRIVATE)
        assert "KEY" not in json.dumps(Site.seen[-1][2]) and Site.seen[-1][2]["accept"] == "text/html"


@pytest.mark.parametrize(
    ("code", "method", "body"), [(303, "GET", b""), (302, "GET", b""), (307, "POST", b"b"), (308, "POST", b"b")]
)
def test_what_becomes_of_a_body_that_is_redirected(port, code, method, body):
    ask(f"http://127.0.0.1:{port}{to('/end', code)}", "POST", body=b"b", follow=1)
    assert (Site.seen[-1][0], Site.seen[-1][3]) == (method, body)


def test_a_body_goes_to_no_other_origin(port):
    with site() as other:
        url = f"http://127.0.0.1:{port}{to(f'http://127.0.0.1:{other}/', 307)}"
        assert code_of(url, method="POST", body=b"secret", follow=1, policy=PRIVATE) == "invalid_response"
    assert len(Site.seen) == 1


# Answers


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_any_method_is_asked_and_answered(port, method):
    answer = ask(f"http://127.0.0.1:{port}/x", method, body=b"b" if method != "GET" else None)
    assert answer.ok and json.loads(answer.body)["method"] == method and "content-length" in answer.headers
    assert Site.seen[-1][2]["accept-encoding"] == "identity"


def test_cookies_of_one_call_are_not_sent_with_another(port):
    async def both() -> None:
        for path in ("cookie", "x"):
            await http_client.ask("GET", f"http://127.0.0.1:{port}/{path}", timeout_s=5)

    asyncio.run(both())
    assert "cookie" not in Site.seen[-1][2]


@pytest.mark.parametrize(
    ("path", "result"),
    [("gzip", b'{"packed": true}'), ("deflate", b'{"packed": true}'), ("bomb", "output_too_large"),
     ("brotli", "invalid_response"), ("notgzip", "invalid_response")],
)  # fmt: skip
def test_what_comes_packed_unasked_is_unpacked_within_the_limit(port, path, result):
    url = f"http://127.0.0.1:{port}/{path}"
    assert (ask(url).body if isinstance(result, bytes) else code_of(url)) == result


def test_the_size_limit_is_the_callers(port):
    assert code_of(f"http://127.0.0.1:{port}/x", max_bytes=10) == "output_too_large"


def test_headers_that_cannot_be_sent_are_told_without_their_value(port):
    with pytest.raises(WorkerFault) as caught:
        ask(f"http://127.0.0.1:{port}/x", headers={"x-key": "line\nbreak"})
    assert caught.value.code == "bad_url" and "line\nbreak" not in str(caught.value)
