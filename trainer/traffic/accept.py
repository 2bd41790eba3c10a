"""A person accepts candidates, as they are or edited, or strikes them: neither comes back as a candidate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from orchestrator.traces.store import Store
from pool_registry.pool import Pool
from trainer.demonstrations.episode_task import Judgement, KeptRun, make_task_of_run, name_run
from trainer.errors import UnusableTasks
from trainer.tasks.practice.stored import change_tasks
from trainer.tasks.practice.task_book import TaskBook
from trainer.tasks.practice.traffic_record import TrafficRecord, change_traffic, digest_query
from trainer.tasks.sources.jsonl import TaskLine
from trainer.tasks.task import normalize_query
from trainer.traffic.candidates import NEEDS_ANSWER, Candidate, find_by_id, list_candidates, list_split_texts
from trainer.traffic.near_duplicates import choose_split
from trainer.traffic.personal_data import find_personal_data

MAX_TRIED = 16  # runs of a candidate that are searched for a plan
GONE = "it is no candidate any more: somebody has accepted or struck it, or its runs were deleted"


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate that a person accepts, by its id. Fields that are not empty take the place of its own; `confirmed`:
    what looks like personal data may stay."""

    id: str
    query: str = ""
    answer: str = ""
    split: str = ""
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The queries of the tasks that were added, and why others were not, by the ids of their candidates."""

    added: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def accept_candidates(store: Store, pool: str, choices: Sequence[Choice]) -> Acceptance:
    """Make candidates tasks of the pool: with the plan of a run that came to the right answer, a corrected plan first.
    What cannot be one stays a candidate, with the reason. Raises PoolNotFound."""
    acceptance = Acceptance()
    candidates = find_by_id(list_candidates(store, pool))
    with change_tasks(store.pools, pool) as book:
        for choice in choices:
            candidate = candidates.get(choice.id)
            try:
                if candidate is None:
                    raise UnusableTasks(GONE)
                line = write_task(store, store.pools.latest(pool).pool, candidate, choice, book)
                book.add([line])
            except UnusableTasks as error:
                acceptance.refused[choice.id] = str(error)
                continue
            _remember(pool, [candidate], "accepted")
            acceptance.added.append(line.query)
    return acceptance


def strike_candidates(store: Store, pool: str, ids: Sequence[str]) -> list[str]:
    """Strike candidates with all their wordings. Returns the digests to `restore_candidates` with."""
    candidates = find_by_id(list_candidates(store, pool))
    return _remember(pool, [candidates[name] for name in ids if name in candidates], "struck")


def restore_candidates(pool: str, digests: Sequence[str]) -> None:
    """Make struck questions candidates again."""
    change_traffic(pool, lambda old: old.model_copy(update={"struck": old.struck.difference(digests)}))


def set_consent(pool: str, clients: bool) -> TrafficRecord:
    """Say whether requests of clients may become tasks of a pool. What was accepted before stays a task."""
    return change_traffic(pool, lambda old: old.model_copy(update={"clients": clients}))


def write_task(store: Store, pool: Pool, candidate: Candidate, choice: Choice, book: TaskBook) -> TaskLine:
    """The line of the task that a candidate becomes. Raises UnusableTasks saying what keeps it from being one."""
    query, answer = choice.query.strip() or candidate.query, choice.answer.strip() or candidate.answer
    if not answer:
        raise UnusableTasks(candidate.reason if candidate.concern == "disputed" else NEEDS_ANSWER)
    split = choose_split([query], list_split_texts(book.read()), choice.split or candidate.split)
    kept, run = _find_best_run(store, pool, candidate, answer)
    is_edited = normalize_query(query) != normalize_query(candidate.query)
    plan = None if is_edited and _is_personal(kept.line) else kept.line.plan
    line = kept.line.model_copy(update={"query": query, "split": split, "plan": plan})
    _refuse_personal(line, choice.confirmed)
    row = store.traces.row(run)
    vouched = next(evidence.describe(with_name=False) for evidence in candidate.evidence if evidence.run == run)
    return line.model_copy(update={"run": name_run(store.traces, row, vouched)})


def _find_best_run(store: Store, pool: Pool, candidate: Candidate, answer: str) -> tuple[KeptRun, str]:
    """The run that the task is made of: one whose plan led to the right answer, a corrected plan first."""
    first: tuple[KeptRun, str] | None = None
    for run in islice(_order_runs(store, candidate), MAX_TRIED):
        kept = make_task_of_run(store.traces.episode(run), pool, Judgement(answer=answer))
        if kept.line.plan is not None:
            return kept, run
        first = first or (kept, run)
    if first is None:
        raise UnusableTasks(GONE)
    return first


def _order_runs(store: Store, candidate: Candidate) -> Iterator[str]:
    runs = dict.fromkeys(evidence.run for evidence in candidate.evidence)
    yield from sorted(runs, key=lambda run: store.traces.row(run).what_if_of is None)


def _refuse_personal(line: TaskLine, confirmed: bool) -> None:
    marks = find_personal_data(_list_texts(line))
    if marks and not confirmed:
        listed = ", ".join(f"{mark.kind} ({mark.text[:80]})" for mark in marks)
        raise UnusableTasks(f"it may hold {listed}: take it out, or confirm that it may stay")


def _is_personal(line: TaskLine) -> bool:
    return bool(find_personal_data([json.dumps(line.plan, ensure_ascii=False)]))


def _list_texts(line: TaskLine) -> list[str]:
    return [
        line.query,
        *(json.dumps(part, ensure_ascii=False) for part in (line.answer, line.plan) if part is not None),
    ]


def _remember(pool: str, candidates: Sequence[Candidate], how: str) -> list[str]:
    digests = [digest_query(text) for candidate in candidates for text in (candidate.query, *candidate.also)]
    change_traffic(pool, lambda old: old.model_copy(update={how: getattr(old, how) | set(digests)}))
    return digests
