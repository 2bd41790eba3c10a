"""Bytes of a document as text that a model can read: HTML, PDF, JSON, plain text.

HTML is parsed by lxml, whose parser bounds nesting; the libraries that turn whole pages into text (trafilatura,
inscriptis, html-to-markdown, resiliparse) took minutes on some hostile pages. It too can be kept busy for most of a
minute: extract_text_process.py runs this file in a process of its own for documents that come from elsewhere.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pool_registry.errors import WorkerFault

MAX_HTML_BYTES = 1_500_000
MAX_PAGES = 500
_LEFT_OUT = {
    *("script", "style", "noscript", "template", "svg", "math", "iframe", "object", "embed", "canvas", "audio"),
    *("video", "head", "nav", "footer", "aside", "form", "button", "select", "input", "textarea", "dialog"),
}
_BLOCKS = {
    *("address", "article", "blockquote", "body", "br", "caption", "dd", "details", "div", "dl", "dt", "figcaption"),
    *("figure", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "ol", "p", "pre", "section"),
    *("summary", "table", "tbody", "tfoot", "thead", "tr", "ul"),
}
_BEFORE = {"li": "- ", "h1": "# ", "h2": "## ", "h3": "### ", "h4": "#### ", "h5": "##### ", "h6": "###### "}


@dataclass(frozen=True, slots=True)
class Readable:
    """A document's title ("" when it has none) and its text."""

    title: str
    text: str


def html_text(raw: bytes, charset: str = "") -> Readable:
    """Extract the text of a page, block by block, without scripts, navigation and forms. Raises WorkerFault."""
    import lxml.html
    from lxml import etree

    try:
        parser = lxml.html.HTMLParser(encoding=charset or None, no_network=True, huge_tree=False)
    except LookupError:  # an unknown character set: the page's own declaration, or a guess
        parser = lxml.html.HTMLParser(no_network=True, huge_tree=False)
    try:
        tree = lxml.html.document_fromstring(raw[:MAX_HTML_BYTES] or b" ", parser=parser)
    except (etree.ParserError, ValueError):
        return Readable("", "")  # nothing but comments or white space
    title = next(tree.iter("title"), None)
    named = " ".join("".join(title.itertext()).split()) if title is not None else ""
    return Readable(named, _join(_pieces(tree)))


def _pieces(tree: Any) -> Iterator[str]:
    """Yield texts in reading order, with a line break at each edge of a block. Iterative: nesting may be deep."""
    from lxml import etree

    skipped = None
    for event, node in etree.iterwalk(tree, events=("start", "end", "comment", "pi")):
        name = node.tag if isinstance(node.tag, str) else ""
        if event == "start" and skipped is None:
            if name in _LEFT_OUT:
                skipped = node
            else:
                if name in _BLOCKS:
                    yield "\n"
                yield _BEFORE.get(name, "")
                if node.text:
                    yield node.text if name == "pre" else _squeeze(node.text)
        elif event in ("end", "comment", "pi"):
            if skipped is None:
                if name in ("td", "th"):
                    yield " | "
                elif name in _BLOCKS:
                    yield "\n"
            elif skipped is node:
                skipped = None
            if skipped is None and node.tail:
                yield _squeeze(node.tail)


def _squeeze(text: str) -> str:
    """Collapse white space as a browser does: one space, no line breaks."""
    inner = " ".join(text.split())
    if not inner:
        return " "
    return f"{' ' if text[0].isspace() else ''}{inner}{' ' if text[-1].isspace() else ''}"


def _join(pieces: Iterator[str]) -> str:
    lines = ("".join(pieces)).split("\n")
    kept = (line.strip().removesuffix("|").rstrip() for line in lines)
    return "\n".join(line for line in kept if line and line not in ("-", "#", "##", "###", "####", "#####", "######"))


def pdf_pages(raw: bytes, max_pages: int = MAX_PAGES) -> tuple[Readable, list[str]]:
    """Return a PDF's title and text, and the text of each page. Raises WorkerFault for a broken or locked one."""
    import logging

    import pypdf
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        reader = pypdf.PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise WorkerFault("document_unreadable", "the PDF is locked with a password")
        if len(reader.pages) > max_pages:
            raise WorkerFault("document_too_large", f"the PDF has {len(reader.pages):,} pages; {max_pages} are read")
        pages = [page.extract_text() for page in reader.pages]
        title = str((reader.metadata.title if reader.metadata else "") or "")
    except WorkerFault:
        raise
    except (PyPdfError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        # pypdf meets a damaged file with any of these
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise WorkerFault("document_unreadable", f"the PDF cannot be read: {reason}") from error
    return Readable(title.strip(), "\n\n".join(pages).strip()), pages


def serve() -> None:
    """Read one document from standard input (a line of JSON that says what it is, then its bytes), and write what
    it says as JSON to standard output."""
    head = json.loads(sys.stdin.buffer.readline())
    raw = sys.stdin.buffer.read()
    try:
        page = pdf_pages(raw)[0] if head["kind"] == "pdf" else html_text(raw, head["charset"])
        reply = {"title": page.title, "text": page.text}
    except WorkerFault as fault:
        reply = {"code": fault.code, "message": str(fault)}
    sys.stdout.write(json.dumps(reply))
