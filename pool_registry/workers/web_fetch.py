"""Kind `web_fetch`: reads one public page, PDF or text whose URL the caller chose.

A model chooses the URL, so only public addresses are reached (address_policy.py), every redirect is checked again,
and no key is ever sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit

from pydantic import Field, field_validator

from pool_registry.actions import JsonValue
from pool_registry.documents.extract_text import MAX_HTML_BYTES, Readable
from pool_registry.documents.extract_text_process import read_document
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.network import http_client
from pool_registry.network.address_policy import ALLOW_PRIVATE, AddressPolicy, AddressRefused
from pool_registry.network.http_client import REDIRECTS, Answer
from pool_registry.network.http_values import CHECK_S, content_type, decode_text
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker

MAX_BYTES = 8_000_000
MAX_REDIRECTS = 5
_HEADERS = {
    "accept": "text/html, application/pdf, text/*;q=0.9, application/json;q=0.9, */*;q=0.5",
    "user-agent": "Podium/0.1 (web_fetch)",
}


class WebFetchConfig(StrictModel):
    allowed_hosts: list[str] = Field(
        default_factory=list, description="Only these hosts and their subdomains; empty for the whole public web."
    )
    max_chars: int = Field(default=20_000, ge=200, le=500_000, description="Of the text; what is cut is said.")
    allow_private: bool = Field(default=False, description=ALLOW_PRIVATE)

    @field_validator("allowed_hosts")
    @classmethod
    def _are_hosts(cls, value: list[str]) -> list[str]:
        plain = [host.strip().lower().strip(".") for host in value]
        for host in plain:
            if not host or set(host) & set("/:@? *"):
                raise ValueError(f"{host!r} is no host; write it like example.com")
        return plain


class WebFetch(Worker[WebFetchConfig]):
    label = "Web fetch"
    summary = "Reads one public page as text."
    icon = "M12 4a8 8 0 1 0 .01 0 M4 12h16 M12 4c-5 5-5 11 0 16 M12 4c5 5 5 11 0 16"
    Config = WebFetchConfig
    remote = True
    cacheable = True
    sample = {"url": "https://example.com/"}

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return {
            "type": "object",
            "properties": {
                "url": {"type": "string", "minLength": 1, "description": "Of the page, with https://."},
                "start": {"type": "integer", "minimum": 0, "description": "Character to start at, when it was cut."},
            },
            "required": ["url"],
            "additionalProperties": False,
        }

    async def call(self, call: Call) -> Reply:
        start = call.arguments.get("start", 0)
        assert isinstance(start, int)
        answer = await self._fetch(call.text("url").strip())
        page = await read_answer(answer)
        head = f"Title: {page.title}\nURL: {answer.url}" if page.title else f"URL: {answer.url}"
        return Reply(f"{head}\n\n{_cut(page.text, start, self.config.max_chars)}")

    async def check(self) -> str:
        for host in self.config.allowed_hosts:
            await http_client.ask("GET", f"https://{host}/", timeout_s=CHECK_S, policy=self._policy)
        return f"reaches {', '.join(self.config.allowed_hosts)}" if self.config.allowed_hosts else "ready"

    @property
    def _policy(self) -> AddressPolicy:
        return AddressPolicy(private=self.config.allow_private)

    async def _fetch(self, url: str) -> Answer:
        """Fetch `url`, following redirects to allowed hosts. Raises BadCall and WorkerFault."""
        try:
            self._check(url)
        except ValueError as error:
            raise BadCall(f"url: {error}") from error
        for _ in range(MAX_REDIRECTS + 1):
            answer = await http_client.ask(
                "GET", url, headers=_HEADERS, timeout_s=self.spec.timeout_s, policy=self._policy, max_bytes=MAX_BYTES
            )
            target = answer.headers.get("location")
            if answer.status not in REDIRECTS or target is None:
                return http_client.demand(answer)
            try:
                url = urljoin(url, target)
                self._check(url)
            except ValueError as error:
                sentence = f"{urlsplit(answer.url).netloc} redirects to what is no URL: {target[:120]!r}"
                raise WorkerFault("invalid_response", sentence) from error
        raise WorkerFault("invalid_response", f"{urlsplit(url).netloc} redirects more than {MAX_REDIRECTS} times")

    def _check(self, url: str) -> None:
        """Raise WorkerFault for a host that is not allowed, ValueError for what is no URL."""
        try:
            http_client.check_url(url, self._policy)
        except AddressRefused as error:
            raise WorkerFault("address_refused", str(error)) from error
        allowed, host = self.config.allowed_hosts, (urlsplit(url).hostname or "").rstrip(".")
        if allowed and not any(host == name or host.endswith(f".{name}") for name in allowed):
            raise WorkerFault("host_not_allowed", f"{host} is not among the allowed hosts: {', '.join(allowed)}")


async def read_answer(answer: Answer) -> Readable:
    """Read a fetched document as text, by its media type. Raises WorkerFault."""
    kind, charset = content_type(answer)
    raw = answer.body
    if kind == "application/pdf" or raw.startswith(b"%PDF-"):
        return await read_document("pdf", raw)
    if kind in ("text/html", "application/xhtml+xml") or (not kind and raw.lstrip()[:1] == b"<"):
        page, over = await read_document("html", raw, charset), len(raw) - MAX_HTML_BYTES
        rest = f"\n(cut: {over:,} more bytes of the page were not read)" if over > 0 else ""
        return Readable(page.title, page.text + rest)
    if kind.startswith("text/") or kind == "application/json" or kind.endswith(("+json", "+xml", "/xml", "/yaml")):
        return Readable("", decode_text(raw, charset))
    if not kind and b"\0" not in raw[:1000]:
        return Readable("", decode_text(raw, "utf-8"))
    return Readable("", f"(not text: {kind or 'no type given'}, {len(raw):,} bytes)")


def _cut(text: str, start: int, most: int) -> str:
    if start and start >= len(text):
        raise BadCall(f"start: the text has only {len(text):,} characters")
    left = len(text) - start - most
    shown = text[start : start + most]
    return f"{shown}\n(cut: {left:,} more characters; go on with start={start + most})" if left > 0 else shown
