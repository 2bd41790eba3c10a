"""The page of a published Space: our modules as one classic script, our styles and fonts as one sheet.

A page that is opened from a file must not import modules (browsers refuse them there), and a Space must not ask
another host for anything: so everything is inlined. The page is the studio's own graph view, not a copy of it.
"""

from __future__ import annotations

import base64
import json
import re
from functools import cache
from html import escape
from pathlib import Path
from posixpath import dirname, normpath
from typing import Any

from assets import asset

ENTRY = "space/replay.js"
SHEETS = ("web/lib/tokens.css", "web/lib/app.css", "web/run/run_view.css", "space/space.css")
_IMPORT = re.compile(r'^import\s*\{([^}]*)\}\s*from\s*"(\.{1,2}/[\w./-]+\.js)";[ \t]*\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
_LEFT_OVER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_FONT = re.compile(r'url\("/podium/fonts/([\w-]+\.woff2)"\)')


@cache
def script() -> str:
    """The entry and everything it imports as one classic script; afterwards `PodiumReplay.mount` is there."""
    order: list[str] = []
    _visit(ENTRY, order)
    modules = "\n".join(_wrap(path) for path in order)
    return f'var PodiumReplay = (() => {{\n"use strict";\nconst M = {{}};\n{modules}\nreturn M["{ENTRY}"];\n}})();\n'


@cache
def stylesheet() -> str:
    """The styles, with the fonts inside."""
    text = "\n".join(asset(name).read_text(encoding="utf-8") for name in SHEETS)
    return _FONT.sub(lambda match: f"url(data:font/woff2;base64,{_base64(asset(f'fonts/{match[1]}'))})", text)


def static_page(info: dict[str, Any], traces: list[dict[str, Any]]) -> str:
    """One HTML file that replays the traces, from a server or from a disk."""
    data = _inline_json({"info": info, "traces": traces})
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(str(info['title']))}</title>\n"
        f"<style>\n{stylesheet()}</style>\n</head>\n<body>\n"
        '<div class="gradio-container space-alone"><main class="space-root"></main></div>\n'
        f'<script type="application/json" id="data">{data}</script>\n'
        f"<script>\n{script()}</script>\n"
        "<script>PodiumReplay.alone(document.querySelector('.space-root'), "
        "JSON.parse(document.getElementById('data').textContent));</script>\n</body>\n</html>\n"
    )


def _visit(path: str, order: list[str]) -> None:
    """Put a module into `order`, after those that it imports."""
    for _, imported in _IMPORT.findall(_text(path)):
        if (target := _resolve(path, imported)) not in order:
            _visit(target, order)
    if path not in order:
        order.append(path)


def _wrap(path: str) -> str:
    """A module as a function of its own: names stay apart, exports are what it returns."""
    text = _text(path)
    exported = ", ".join(_EXPORTED.findall(text))
    body = _IMPORT.sub(
        lambda match: f'const {{{match[1].replace(" as ", ": ")}}} = M["{_resolve(path, match[2])}"];\n', text
    )
    body = _EXPORT.sub("", body)
    rest = _LEFT_OVER.search(body)
    if rest is not None:
        raise ValueError(f"assets: {path} has an import or export that cannot be inlined: {rest[0][:80]}")
    return f'M["{path}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();'


def _resolve(importer: str, target: str) -> str:
    """The path below assets of what a module imports by a relative address."""
    return normpath(f"{dirname(importer)}/{target}")


@cache
def _text(path: str) -> str:
    return asset(path).read_text(encoding="utf-8")


def _inline_json(document: Any) -> str:
    """Write JSON that no parser of HTML takes for markup."""
    return json.dumps(document, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
