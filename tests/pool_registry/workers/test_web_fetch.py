"""Web fetch: pages become text, and nothing but what is allowed is reached."""

from __future__ import annotations

import asyncio
import io

import psutil
import pypdf
import pytest
from fastapi import FastAPI
from fastapi.responses import RedirectResponse, Response
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import live_pool, open_live_pool
from pool_registry.documents.extract_text import html_text
from pool_registry.documents.extract_text_process import read_document
from pool_registry.errors import InvalidPool, WorkerFault
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from tests.pool_registry.support.documents import pdf
from tests.pool_registry.support.openapi_service import served

pytestmark = pytest.mark.medium

PAGE = """<!doctype html><html><head><title>Bees &amp; wasps</title><style>p{}</style><script>alert(1)</script></head>
<body><nav><a href=/>Home</a></nav><h1>Bees</h1><p>They <b>fly</b>
  far.</p><ul><li>honey bee</li><li>bumble bee</li></ul><table><tr><th>Kind</th><th>Wings</th></tr>
<tr><td>Bee</td><td>4</td></tr></table><!-- hidden --><form>log in</form><footer>imprint</footer></body></html>"""


# A tag with many attributes: each is compared with all before it. lxml needs more than a minute for these.
HOSTILE = b"<p " + b" ".join(b"a%d" % number for number in range(200_000)) + b">"


def make_app() -> FastAPI:
    app = FastAPI()
    pages = {
        "page": (PAGE.encode(), "text/html"),
        "latin": ("<p>grüße</p>".encode("latin-1"), "text/html; charset=latin-1"),
        "unknown": (b"<p>words</p>", "text/html; charset=nobody-knows"),
        "text": (b"plain words", "text/plain"),
        "json": (b'{"a": 1}', "application/json"),
        "picture": (b"\x89PNG\x00", "image/png"),
        "pdf": (pdf("First page", "Second page"), "application/pdf"),
        "broken": (b"%PDF-1.7 rubbish", "application/pdf"),
        "long": (b"word " * 1000, "text/plain"),
        "deep": (b"<div>" * 100_000 + b"end", "text/html"),
        "empty": (b"", "text/html"),
        "attributes": (HOSTILE, "text/html"),
    }

    @app.get("/to/{target:path}")
    def to(target: str) -> Response:
        return RedirectResponse(target)

    @app.get("/loop")
    def loop() -> Response:
        return RedirectResponse("/loop")

    @app.get("/{name}")
    def page(name: str) -> Response:
        if name not in pages:
            return Response("no such page", 404)
        body, kind = pages[name]
        return Response(body, headers={"content-type": kind})

    return app


@pytest.fixture(scope="module")
def address():
    with served(make_app()) as found:
        yield found


def fetch(url: str, start: int | None = None, timeout_s: float = 20, **config) -> Observation:
    config = {"allow_private": True, **config}
    spec = WorkerSpec(name="web", kind="web_fetch", description="d", config=config, timeout_s=timeout_s)

    async def once() -> Observation:
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            return await pool.call(Action("web", {"url": url} if start is None else {"url": url, "start": start}))

    return asyncio.run(once())


def test_a_page_is_its_words_without_what_surrounds_them(address):
    assert fetch(f"{address}/page").value == (
        f"Title: Bees & wasps\nURL: {address}/page\n\n"
        "# Bees\nThey fly far.\n- honey bee\n- bumble bee\nKind | Wings\nBee | 4"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("latin", "grüße"),
        ("unknown", "words"),
        ("text", "plain words"),
        ("json", '{"a": 1}'),
        ("picture", "(not text: image/png, 5 bytes)"),
        ("pdf", "First page\n\nSecond page"),
        ("empty", ""),
    ],
)
def test_documents_of_other_kinds(address, name, text):
    assert fetch(f"{address}/{name}").value.partition("\n\n")[2] == text


def test_a_long_text_is_cut_and_can_be_read_on(address):
    first = fetch(f"{address}/long", max_chars=3000).value
    assert first.endswith("(cut: 2,000 more characters; go on with start=3000)")
    rest = fetch(f"{address}/long", start=3000, max_chars=3000).value
    assert rest.count("word") == 400 and "cut" not in rest
    assert fetch(f"{address}/long", start=9000).status is Status.PARSE_ERR


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("missing", "not_found"),
        ("broken", "document_unreadable"),
        ("to/http://[", "invalid_response"),
        ("loop", "invalid_response"),
    ],
)
def test_what_cannot_be_read_has_a_code(address, path, code):
    assert fetch(f"{address}/{path}").error.code == code


@pytest.mark.parametrize("url", ["", "no url", "ftp://example.com/", "http://a:b@example.com/", "javascript:alert(1)"])
def test_what_is_no_url_is_the_callers_mistake(url):
    assert fetch(url).status is Status.PARSE_ERR


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://localhost:1/", "http://169.254.169.254/latest/meta-data"]
)
def test_private_addresses_are_out_of_reach_unless_allowed(url):
    assert fetch(url, allow_private=False).error.code == "address_refused"


def test_a_redirect_is_checked_like_the_first_url(address):
    assert "They fly" in fetch(f"{address}/to/{address}/page").value
    assert fetch(f"{address}/to/http://169.254.169.254/latest").error.code == "address_refused"
    refused = fetch(f"{address}/to/http://localhost:1/x", allowed_hosts=["127.0.0.1"])
    assert refused.error.code == "host_not_allowed"


def test_allowed_hosts_are_whole_names():
    for url in ("http://notexample.com/", "http://example.com.evil.org/"):
        assert fetch(url, allowed_hosts=["example.com"]).error.code == "host_not_allowed"
    with pytest.raises(InvalidPool):
        open_live_pool(
            Pool(
                name="p",
                workers=(
                    WorkerSpec(
                        name="w", kind="web_fetch", description="d", config={"allowed_hosts": ["https://example.com/"]}
                    ),
                ),
            )
        )


def test_hostile_nesting_does_not_hold_up_the_reader(address):
    assert fetch(f"{address}/deep").ok


def test_a_page_that_keeps_its_reader_busy_is_cut_off_and_nothing_goes_on_reading(address):
    before = set(psutil.Process().children(recursive=True))
    late = fetch(f"{address}/attributes", timeout_s=2)
    assert late.status is Status.TIMEOUT
    assert not set(psutil.Process().children(recursive=True)) - before


def test_a_document_that_takes_too_long_says_so():
    with pytest.raises(WorkerFault, match="cannot be read within 1 s") as fault:
        asyncio.run(read_document("html", HOSTILE, within_s=1))
    assert fault.value.code == "document_too_complex"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.sampled_from(["<p>", "<div>", "</div>", "<b", ">", "<!--", "-->", "<table><td>", "x", "&amp;", "<li>", "\0",
                         "<script>", "</script>", "<![CDATA[", "<?a", "<title>", "é", "<pre>", "</body>", "<svg>"]),
        max_size=30,
    ).map("".join).map(str.encode) | st.binary(max_size=100)
)  # fmt: skip
def test_any_bytes_are_some_text(raw):
    page = html_text(raw)
    assert isinstance(page.text, str)
    assert "<script>" not in page.text or b"<title>" in raw  # a title is plain text, whatever stands in it


def test_a_locked_pdf_says_so(tmp_path):
    from pool_registry.documents.extract_text import pdf_pages

    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("secret")))
    writer.encrypt("password", algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    with pytest.raises(WorkerFault, match="locked"):
        pdf_pages(buffer.getvalue())
