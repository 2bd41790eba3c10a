"""Kind `documents`: BM25 over your own files, passage by passage, each with its source.

Files are read and indexed in a thread, once for their content; a changed, new or deleted file is noticed at
the next call. A first call on many PDFs may run out of time: the work goes on, and the next call finds it done.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from pydantic import Field

from pool_registry.atomic_write import make_once
from pool_registry.documents import bm25_index, passages
from pool_registry.documents.bm25_index import Index
from pool_registry.documents.passages import Collection, DocumentFiles, Passage
from pool_registry.errors import WorkerFault
from pool_registry.storage.data_folder import Home, find_home
from pool_registry.strict_model import StrictModel
from pool_registry.text import count_of, shorten
from pool_registry.worker import Call, PackedFiles, Reply, SampleCall, Worker, one_string

INDEX_VERSION = 1
MAX_NAMED = 5  # skipped files that a check names
MAX_TITLES = 12
MAX_DESCRIBED_CHARS = 600  # of titles in a description


class DocumentsConfig(StrictModel):
    path: str = Field(min_length=1, description="A file or folder of .txt, .md, .pdf, .csv and .jsonl on this machine.")
    top_k: int = Field(default=3, ge=1, le=50, description="How many passages a search returns.")


class Documents(Worker[DocumentsConfig]):
    label = "Documents"
    summary = "BM25 over your own txt, md, pdf, csv and jsonl files."
    icon = "M8 3h8l4 4v11H8z M16 3v4h4 M4 7v14h12"
    Config = DocumentsConfig
    cacheable = True
    sample = {"query": "summary"}
    parameters = one_string("query", "Words that the passage should hold.")

    @classmethod
    def stays_because(cls, config: DocumentsConfig) -> str:  # noqa: ARG003
        return "its documents are files on this machine"

    @classmethod
    def reads(cls, config: DocumentsConfig) -> tuple[str, ...]:
        return (f"the documents {config.path}",)

    @classmethod
    def pack(cls, config: DocumentsConfig, folder: str) -> PackedFiles | None:
        documents = passages.find_documents(config.path)
        return PackedFiles({f"{folder}/{documents.name(file)}": file for file in documents.files}, {"path": folder})

    async def call(self, call: Call) -> Reply:
        query, top_k = call.text("query"), self.config.top_k
        library = await asyncio.to_thread(open_library, self.config.path)
        matches = await asyncio.to_thread(library.search, query, top_k)
        if not matches:
            raise WorkerFault("no_hits", f"nothing matches {query[:120]!r}; use other words")
        return Reply([{"source": passage.source, "text": passage.text} for passage in matches])

    async def list_sample_calls(self, count: int) -> Sequence[SampleCall]:
        """The titles of passages, evenly drawn. Raises WorkerFault when the files cannot be read."""
        library = await asyncio.to_thread(open_library, self.config.path)
        titles = list(dict.fromkeys(passage.title for passage in library.collection.passages if passage.title))
        drawn = titles[:: max(1, len(titles) // count)][:count]
        return [SampleCall({"query": title}, f"the passage on {title} in the documents") for title in drawn]

    async def describe_source(self) -> str:
        """What the passages are about, by their titles."""
        library = await asyncio.to_thread(open_library, self.config.path)
        titles = list(dict.fromkeys(passage.title for passage in library.collection.passages if passage.title))
        return shorten(f"They are about: {', '.join(titles[:MAX_TITLES])}", MAX_DESCRIBED_CHARS) if titles else ""

    async def check(self) -> str:
        library = await asyncio.to_thread(open_library, self.config.path)
        passages = count_of(len(library.collection.passages), "passage")
        summary = f"{count_of(library.files, 'file')}, {passages}"
        skipped = library.collection.skipped
        named = "; ".join(f"{name} ({reason})" for name, reason in skipped[:MAX_NAMED])
        more = f" and {len(skipped) - MAX_NAMED:,} more" if len(skipped) > MAX_NAMED else ""
        return f"{summary}; skipped: {named}{more}" if skipped else summary


@dataclass(frozen=True, slots=True)
class Library:
    """The passages below a path with their index. `files` counts those that were read."""

    files: int
    collection: Collection
    index: Index

    def search(self, query: str, top_k: int) -> list[Passage]:
        return [self.collection.passages[place] for place in self.index.places(query, top_k)]


State = tuple[tuple[str, int, int], ...]  # name, size and time of every file
_open: dict[tuple[str, str], tuple[State, Library]] = {}
_locks: defaultdict[tuple[str, str], threading.Lock] = defaultdict(threading.Lock)


def open_library(path: str, home: Home | None = None) -> Library:
    """Return the library at `path`, read again when a file has changed. Raises WorkerFault."""
    home = home or find_home()
    key = path, str(home.root)
    with _locks[key]:
        files = passages.find_documents(path)
        state = _state(files)
        if key not in _open or _open[key][0] != state:
            _open[key] = state, _load(files, home)
        return _open[key][1]


def _state(files: DocumentFiles) -> State:
    stats = [(files.name(file), file.stat()) for file in files.files]
    skipped = [(f"{name}: {reason}", 0, 0) for name, reason in files.skipped]
    return (*((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats), *skipped)


def _load(files: DocumentFiles, home: Home) -> Library:
    """Load passages and index from the data folder, where new content is indexed first."""

    def make(folder: Path) -> None:
        collection = passages.read_passages(files)
        bm25_index.build([(passage.title, passage.text) for passage in collection.passages], folder)
        stored = {"passages": [astuple(passage) for passage in collection.passages], "skipped": collection.skipped}
        (folder / "passages.json").write_text(json.dumps(stored), encoding="utf-8")

    folder = make_once(home.artifacts / f"documents-v{INDEX_VERSION}-{_fingerprint(files)}", make)
    stored = json.loads((folder / "passages.json").read_text(encoding="utf-8"))
    indexed = [Passage(*row) for row in stored["passages"]]
    skipped = [(name, reason) for name, reason in stored["skipped"]]
    read = len(files.files) - (len(skipped) - len(files.skipped))
    return Library(
        read, Collection(indexed, skipped), Index(bm25_index.load(folder), [passage.text for passage in indexed])
    )


def _fingerprint(files: DocumentFiles) -> str:
    """Hash names and contents: equal files in another folder share an index."""
    digest = hashlib.blake2b(json.dumps(files.skipped).encode(), digest_size=12)
    for file in files.files:
        try:
            with file.open("rb") as opened:
                content = hashlib.file_digest(opened, "blake2b").digest()
        except OSError:  # told as skipped when it is read
            content = b"unreadable"
        digest.update(files.name(file).encode("utf-8", "surrogateescape") + b"\0" + content)
    return digest.hexdigest()
