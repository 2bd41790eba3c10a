"""Everything in a data folder that a person can go to by its name: pages, pools, workers, orchestrators, jobs, runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from orchestrator.traces.store import TraceFilter
from pool_registry.errors import PoolError
from pool_registry.pool import Pool
from pool_registry.text import count_of, one_line, shorten
from studio.frame.document import PageDocument
from studio.orchestrators.choices import orchestrator_choices
from studio.runtime import Runtime

MOST = 6  # of a kind
MAX_CHARS = 90  # of a title or note
MAX_WORDS = 8  # of what was typed; more do not narrow a list of so few


class SearchHit(PageDocument):
    """A place to go to: what it is, its name, a few words on it, and its address."""

    kind: str
    title: str
    note: str
    address: str


@dataclass(frozen=True, slots=True)
class Place:
    """A place that may be looked for; `other_names` are not shown."""

    title: str
    note: str
    address: str
    other_names: str = ""


def find_places(runtime: Runtime, text: str) -> list[SearchHit]:
    """At most `MOST` places of each kind that have every word of `text` in their title or note, first those whose title
    begins with it. Without words: the pages and the newest runs."""
    words = text.casefold().split()[:MAX_WORDS]
    pools = _read_pools(runtime)
    kinds: dict[str, Iterator[Place]] = {"Page": _list_pages()}
    if words:
        kinds |= {
            "Pool": _list_pools(pools),
            "Worker": _list_workers(pools),
            "Orchestrator": _list_orchestrators(),
            "Job": _list_jobs(runtime),
        }
    kinds["Run"] = _list_runs(runtime, " ".join(text.split()))
    return [
        SearchHit(kind=kind, title=_cut(place.title), note=_cut(place.note), address=place.address)
        for kind, places in kinds.items()
        for place in _choose(places, words)
    ]


def _cut(text: str) -> str:
    return shorten(one_line(text), MAX_CHARS)


def _choose(places: Iterator[Place], words: Sequence[str]) -> list[Place]:
    """The first places that match; those whose title begins as the person began come before the others."""
    matching = [place for place in places if _matches(place, words)]
    matching.sort(key=lambda place: not place.title.casefold().startswith(" ".join(words)))
    return matching[:MOST]


def _matches(place: Place, words: Sequence[str]) -> bool:
    text = f"{place.title} {place.note} {place.other_names}".casefold()
    return all(word in text for word in words)


def _read_pools(runtime: Runtime) -> dict[str, Pool | None]:
    """The pools by name; None for one whose newest version cannot be read, which its page explains."""
    pools: dict[str, Pool | None] = {}
    for name in runtime.store.pools.names():
        pools[name] = None
        with suppress(PoolError):
            pools[name] = runtime.store.pools.latest(name).pool
    return pools


def _list_pages() -> Iterator[Place]:
    from studio.frame.navigation import PAGES  # imports Gradio, which takes a second

    for page in PAGES.values():
        yield Place(page.title, "", page.address)


def _list_pools(pools: dict[str, Pool | None]) -> Iterator[Place]:
    for name, pool in pools.items():
        note = "cannot be read" if pool is None else count_of(len(pool.workers), "worker")
        yield Place(name, note, f"/pool?pool={quote(name, safe='')}")


def _list_workers(pools: dict[str, Pool | None]) -> Iterator[Place]:
    for name, pool in pools.items():
        for spec in pool.workers if pool is not None else ():
            address = f"/pool?pool={quote(name, safe='')}&worker={quote(spec.name, safe='')}"
            yield Place(spec.name, f"{name}: {spec.description}", address)


def _list_orchestrators() -> Iterator[Place]:
    for label, name in orchestrator_choices():
        yield Place(label, name, f"/?orchestrator={quote(name, safe='')}")


def _list_jobs(runtime: Runtime) -> Iterator[Place]:
    for job in runtime.jobs.all():
        yield Place(job.name or job.id, f"{job.id}, {job.state}", f"/train?job={quote(job.id, safe='')}")


def _list_runs(runtime: Runtime, text: str) -> Iterator[Place]:
    """The newest runs of people whose query, answer or id has the text as it was typed."""
    rows = runtime.store.traces.search(TraceFilter(text=text, source="mine", limit=MOST))
    for row in rows:
        yield Place(row.query, f"{row.pool}: {row.answer or row.state}", f"/?episode={row.id}", row.id)
