"""Kind `search`: BM25 over a corpus, through bm25s.

A corpus is `starter:factbook`, a .jsonl file with `title` and `text`, or a folder of .txt and .md files.
The index is built once per data folder (of what ships, in `PODIUM_BUILT`) and corpus content, and shared by all workers
of a process.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from pool_registry.atomic_write import make_once
from pool_registry.documents import bm25_index
from pool_registry.documents.bm25_index import Index
from pool_registry.errors import WorkerFault
from pool_registry.storage.data_folder import Home, find_home
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, SampleCall, Worker, one_string

SHIPPED = "starter:factbook"  # the corpus that comes with Podium
INDEX_VERSION = 2
MAX_FILE_BYTES = 50_000_000
MAX_SHOWN_CHARS = 4000


class SearchConfig(StrictModel):
    corpus: str = Field(
        default=SHIPPED,
        min_length=1,
        description="starter:factbook, a .jsonl file with title and text, or a folder of .txt and .md files.",
    )
    top_k: int = Field(default=1, ge=1, le=50, description="How many passages a search returns.")


class Search(Worker[SearchConfig]):
    label = "Document search"
    summary = "BM25 over a corpus."
    icon = "M10.5 4a6.5 6.5 0 1 1 0 13a6.5 6.5 0 0 1 0-13z M15.5 15.5L21 21"
    cacheable = True
    Config = SearchConfig
    sample = {"query": "Mexico Geography Irrigated land"}
    parameters = one_string("query", "Words of the passage's title: country, section and field.")

    @classmethod
    def stays_because(cls, config: SearchConfig) -> str:
        return "" if config.corpus == SHIPPED else "its corpus is a file here"

    @classmethod
    def reads(cls, config: SearchConfig) -> tuple[str, ...]:
        return () if config.corpus == SHIPPED else (f"the corpus {config.corpus}",)

    async def call(self, call: Call) -> Reply:
        query, top_k = call.text("query"), self.config.top_k
        matches = await asyncio.to_thread(lambda: load_index(self.config.corpus).search(query, top_k))
        if not matches:
            raise WorkerFault("no_hits", f"nothing matches {query[:120]!r}; use other words")
        return Reply(matches[0] if top_k == 1 else matches)

    async def list_sample_calls(self, count: int) -> Sequence[SampleCall]:
        """The titles of passages, evenly drawn. Raises WorkerFault when the corpus cannot be read."""
        titled = await asyncio.to_thread(_read_corpus, self.config.corpus)
        titles = list(dict.fromkeys(title for title, _ in titled if title))
        drawn = titles[:: max(1, len(titles) // count)][:count]
        return [SampleCall({"query": title}, f"the passage on {title} in the documents") for title in drawn]

    async def check(self) -> str:
        index = await asyncio.to_thread(load_index, self.config.corpus)
        return f"{len(index.shown):,} passages"


_indexes: dict[tuple[str, str], tuple[float, Index]] = {}
_lock = threading.Lock()


def load_index(corpus: str, home: Home | None = None) -> Index:
    """Return the index of a corpus, built or loaded from the data folder when the corpus has changed."""
    place = _place_index(corpus, home or find_home())
    key, changed = (corpus, str(place)), _last_change(corpus)
    with _lock:
        if key not in _indexes or _indexes[key][0] != changed:
            _indexes[key] = changed, _load_or_build(corpus, place)
        return _indexes[key][1]


def _place_index(corpus: str, home: Home) -> Path:
    """Return the folder for the index of a corpus: what somebody's own files say stays in their data folder."""
    return home.built if corpus == SHIPPED else home.artifacts


def _last_change(corpus: str) -> float:
    """Return when a file, or any file of a folder, was last changed; 0 for what ships or is missing."""
    path = Path(corpus).expanduser()
    if corpus == SHIPPED or not path.exists():
        return 0.0
    return max(place.stat().st_mtime for place in (path, *_texts_in(path)))


def _load_or_build(corpus: str, place: Path) -> Index:
    titled = _read_corpus(corpus)
    folder = place / f"search-v{INDEX_VERSION}-{_fingerprint(titled)}"
    make_once(folder, lambda draft: bm25_index.build(titled, draft))
    shown = [f"{title}: {text}"[:MAX_SHOWN_CHARS] if title else text[:MAX_SHOWN_CHARS] for title, text in titled]
    return Index(bm25_index.load(folder), shown)


def _read_corpus(corpus: str) -> list[tuple[str, str]]:
    """Read (title, text) of every passage. Raises WorkerFault saying what is wrong with the corpus."""
    if corpus == SHIPPED:
        from pool_registry.starter.factbook import passages

        return [(passage.title, passage.text) for passage in passages()]
    path = Path(corpus).expanduser()
    try:
        titled = _read_jsonl(path) if path.is_file() else _read_folder(path)
    except (OSError, UnicodeDecodeError) as error:
        raise WorkerFault("corpus_unreadable", f"{corpus} cannot be read: {error}") from error
    if not titled:
        raise WorkerFault("corpus_empty", f"{corpus} holds no passage; give .jsonl or a folder of texts")
    return titled


def _read_jsonl(path: Path) -> list[tuple[str, str]]:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise WorkerFault("corpus_too_large", f"{path.name} is larger than {MAX_FILE_BYTES:,} bytes")
    titled = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            titled.append((str(entry.get("title", "")), str(entry["text"])))
        except (ValueError, KeyError, AttributeError) as error:
            sentence = f"{path.name}, line {number}: expected an object with title and text ({error})"
            raise WorkerFault("corpus_unreadable", sentence) from error
    return titled


def _read_folder(path: Path) -> list[tuple[str, str]]:
    if not path.is_dir():
        raise WorkerFault("corpus_missing", f"there is no file or folder {path}")
    return [
        (file.stem, paragraph.strip())
        for file in _texts_in(path)
        for paragraph in file.read_text(encoding="utf-8").split("\n\n")
        if paragraph.strip()
    ]


def _texts_in(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix in (".txt", ".md"))


def _fingerprint(titled: Sequence[tuple[str, str]]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for title, text in titled:
        digest.update(title.encode() + b"\0" + text.encode() + b"\0")
    return digest.hexdigest()
