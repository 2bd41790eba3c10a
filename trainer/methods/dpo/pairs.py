"""Pairs of recorded runs: a better and a worse one of the same query on the same pool.

What is better is what somebody said: a verifier, a judge or a person found one answer right and the other wrong, or a
person starred one of them. Runs on validation and test tasks are never learnt from. Both sides become the conversation
that the recipe's model would have had; what it wrote counts, what it was shown does not.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from orchestrator.engine.episode import Episode
from orchestrator.prompt_styles import PROMPTS
from orchestrator.retrieval.choose_workers import narrow_pool, select_workers
from orchestrator.traces.store import EpisodeRow, Store, TraceFilter
from pool_registry.calls.live_pool import LivePool
from trainer.demonstrations.transcripts import (
    Demonstration,
    ReaderLesson,
    can_demonstrate,
    make_demonstration,
)
from trainer.methods.dpo.section import PairSettings, Source
from trainer.recipe_sections import ModelSettings
from trainer.tasks.practice.traffic_record import read_traffic
from trainer.tasks.task import HELD_BACK, normalize_query

DIGEST_BITS = 32
HOW_TO_MAKE_PAIRS = (
    "a pair is a right and a wrong run of the same query. Let an orchestrator try training tasks several times "
    "(python -m trainer evaluate --orchestrator NAME --pool POOL --split train --samples 8), say of answers on the "
    "Run page whether they are right, or star the better of two runs"
)
Prefers = Callable[[EpisodeRow, EpisodeRow], bool]


class Pair(BaseModel):
    """One line of pairs.jsonl: two conversations that begin with the same prompt."""

    model_config = ConfigDict(extra="ignore")

    query: str
    better: Demonstration
    worse: Demonstration
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """Two runs by their ids, of which the first is better."""

    better: str
    worse: str


def count_candidates(store: Store, pool: str, settings: PairSettings) -> int:
    """Count the pairs of runs that have a better and a worse one; some of them may still write the same."""
    return len(find_candidates(store, pool, settings))


def find_candidates(store: Store, pool: str, settings: PairSettings) -> list[Candidate]:
    """The pairs of runs on a pool, newest first, at most `of_query` for each query and `most` in all. Runs of clients
    are among them only where their requests may become tasks."""
    traffic = read_traffic(pool)
    starred = set(store.traces.list_starred(pool))
    rows = store.traces.search(TraceFilter(pool=pool, limit=settings.newest))
    by_query: defaultdict[str, list[EpisodeRow]] = defaultdict(list)
    for row in rows:
        if traffic.allows(row.source) and (row.state == "answered" or row.correct is not None):
            by_query[normalize_query(row.query)].append(row)
    prefers = _make_preference(settings.source, starred)
    pairs = [pair for runs in by_query.values() for pair in _pair_up(runs, prefers, settings.of_query)]
    return pairs[: settings.most]


def _make_preference(source: Source, starred: set[str]) -> Prefers:
    """Whether the first of two runs is better, by what the recipe goes by. A verdict counts more than a star."""

    def by_verdict(one: EpisodeRow, other: EpisodeRow) -> bool:
        return one.correct is True and other.correct is False

    def by_star(one: EpisodeRow, other: EpisodeRow) -> bool:
        return one.id in starred and other.id not in starred and one.correct is not False and other.correct is not True

    if source == "verdicts":
        return by_verdict
    if source == "stars":
        return by_star
    return lambda one, other: by_verdict(one, other) or by_star(one, other)


def _pair_up(runs: Sequence[EpisodeRow], prefers: Prefers, most: int) -> list[Candidate]:
    """Pairs of the runs of one query, each run as rarely as can be."""
    pairs = [Candidate(one.id, other.id) for one in runs for other in runs if prefers(one, other)]
    used: Counter[str] = Counter()
    chosen: list[Candidate] = []
    while pairs and len(chosen) < most:
        pair = min(pairs, key=lambda pair: used[pair.better] + used[pair.worse])
        pairs.remove(pair)
        chosen.append(pair)
        used.update((pair.better, pair.worse))
    return chosen


def make_pairs(
    store: Store, pool: LivePool, model: ModelSettings, settings: PairSettings, measured: Set[str] = frozenset()
) -> Iterator[Pair]:
    """The pairs as conversations. Those whose sides the model would have written in the same words are left out, those
    of `measured` queries (normalized), and those of runs that this pool or a reader cannot repeat."""
    rounds = pool.pool.limits.max_rounds
    for candidate in find_candidates(store, pool.pool.name, settings):
        better, worse = (store.traces.episode(key) for key in (candidate.better, candidate.worse))
        if _is_held_back(better) or _is_held_back(worse) or normalize_query(better.query) in measured:
            continue
        sides = _write_sides((better, worse), pool, model, rounds)
        if sides is None or _read_turns(sides[0]) == _read_turns(sides[1]):
            continue
        held_out = is_held_out(better.query, settings.held_out)
        yield Pair(query=better.query, better=sides[0], worse=sides[1], held_out=held_out)


def _is_held_back(episode: Episode) -> bool:
    task = episode.started.task if episode.started else None
    return task is not None and task.split in HELD_BACK


def _write_sides(
    runs: tuple[Episode, Episode], pool: LivePool, model: ModelSettings, rounds: int
) -> tuple[Demonstration, Demonstration] | None:
    """Both runs as conversations that begin alike: with the better one's query, and each is shown the workers that
    either of them calls."""
    assert runs[0].started is not None and runs[1].started is not None, "the rows of both have a query"
    runs = (runs[0], replace(runs[1], started=replace(runs[1].started, query=runs[0].query)))
    called = {run.step.worker for episode in runs for run in episode.steps.values()}
    if not called.issubset(pool.workers) or not all(can_demonstrate(run, pool, model.prompt) for run in runs):
        return None
    knows_pool = PROMPTS[model.prompt].knows_one_pool
    seen = pool if knows_pool else narrow_pool(pool, select_workers(runs[0].query, pool, called))
    # A reader's needs in the words that it chose, and no card of a worker that does not fit: what differs is its doing.
    lesson = ReaderLesson(model.choose_listing(), listed_needs=0.0, unfit_cards=0.0)
    better, worse = (
        _count_every_turn(make_demonstration(run, seen, model.dialect, model.prompt, rounds, "pair", lesson))
        for run in runs
    )
    if not _read_turns(better) or not _read_turns(worse):
        return None
    return better, worse


def _count_every_turn(side: Demonstration) -> Demonstration:
    """The conversation with every turn of the model as a target: its mistakes are what the worse side is about."""
    messages = [message.model_copy(update={"learn": message.role == "assistant"}) for message in side.messages]
    return side.model_copy(update={"messages": messages})


def _read_turns(side: Demonstration) -> list[str]:
    return [message.content for message in side.messages if message.learn]


def is_held_out(query: str, share: float) -> bool:
    """Whether the pairs of a query are only measured on: its hash decides, and not the other queries."""
    digest = hashlib.sha256(normalize_query(query).encode()).digest()
    number = int.from_bytes(digest[: DIGEST_BITS // 8])
    return number < round(share * (1 << DIGEST_BITS))


def save_pairs(path: Path, pairs: Sequence[Pair]) -> None:
    """Write pairs as JSONL."""
    path.write_text("".join(f"{pair.model_dump_json()}\n" for pair in pairs), encoding="utf-8")


def load_pairs(path: Path) -> list[Pair]:
    """Read what `save_pairs` wrote."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [Pair.model_validate_json(line) for line in lines if line.strip()]
