"""Makes tasks with a panel: writes and answers questions until enough are kept, a cap is reached or nothing new comes.

Everything that is written or answered goes into a journal at once, from which the tasks are selected.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pool_registry.actions import as_text
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.spending import Spending, charge_calls_to
from pool_registry.text import count_of
from trainer.tasks.practice.agents.ask import Asker, Stopped
from trainer.tasks.practice.agents.estimate import PER_REQUEST, PER_TASK, Estimate, estimate_work
from trainer.tasks.practice.agents.journal import Journal, hold_journal
from trainer.tasks.practice.agents.keep import list_candidates, select_tasks
from trainer.tasks.practice.agents.panel import Panel, PanelOptions, choose_panel, find_member
from trainer.tasks.practice.agents.propose import Subject
from trainer.tasks.practice.calls import PASSAGES, CallBook
from trainer.tasks.practice.progress import ASKING, Watch
from trainer.tasks.sources.jsonl import TaskLine, compute_digest

MAX_PER_TASK = 2 * PER_TASK  # questions that are written for each task that is wanted, at most
MAX_PASSAGES = 200
HOPELESS = 40  # questions of which none could be kept, after which no more are written


@dataclass(frozen=True, slots=True)
class AgentTasks:
    """Lines of a task file; why questions were left out, as sentences; why it ended before so many were kept, "" where
    it did not; and what was spent now, in US dollars."""

    lines: tuple[TaskLine, ...]
    left_out: tuple[str, ...]
    ending: str
    cost: float

    def describe(self) -> str:
        """What was kept, what was not and why, in one paragraph."""
        kept = f"{count_of(len(self.lines), 'question')} of agents kept"
        cost = f"${self.cost:.4f} spent" if self.cost else ""
        return "; ".join(filter(None, (kept, *self.left_out, cost, self.ending)))


def list_subjects(pool: LivePool, book: CallBook) -> list[Subject]:
    """What questions can be asked about: the field of every agent, and passages that a look-up of the pool found."""
    fields = [Subject(spec.name, spec.description) for spec in pool.pool.agents()]
    passages = {
        as_text(call.value): Subject(name, as_text(call.value), is_passage=True)
        for name, calls in book.calls.items()
        if pool.workers[name].spec.kind in PASSAGES and pool.workers[name].instruction_parameter is not None
        for call in calls
    }
    return [*fields, *list(passages.values())[:MAX_PASSAGES]]


def open_journal(file: Path | None, pool: LivePool, panel: Panel, seed: int) -> Journal:
    """The journal of a panel on a pool. Another panel, seed or content of an agent begins anew."""
    identities = {name: find_member(pool, name).identity for name in panel.members}
    roles = {"author": panel.author, "answerers": sorted(panel.answerers), "judge": panel.judge, "seed": seed}
    return Journal(file, compute_digest(json.dumps([identities, roles], sort_keys=True)))


def estimate_agent_tasks(
    pool: LivePool, options: PanelOptions, count: int, latencies: Mapping[str, float], file: Path | None, seed: int = 0
) -> Estimate:
    """What `make_agent_tasks` will take, less what a journal holds. Raises UnusableTasks."""
    panel = choose_panel(pool, options)
    journal = open_journal(file, pool, panel, seed)
    kept = len(select_tasks(journal, panel, pool, count).lines)
    return estimate_work(pool, panel, count - kept, latencies)


async def make_agent_tasks(
    pool: LivePool,
    options: PanelOptions,
    book: CallBook,
    count: int,
    file: Path | None,
    *,
    seed: int = 0,
    others: int = 0,
    watch: Watch | None = None,
) -> AgentTasks:
    """At most `count` tasks. `others` tasks of the same task file are there; `file` is the journal's. `watch` hears how
    far it is, and may stop it.

    Raises UnusableTasks for a panel that cannot work, and while another call makes them. A cap, or calls that fail, end
    it with what is kept."""
    panel = choose_panel(pool, options)
    spending = Spending(max_cost=options.max_cost, exact=True)
    with hold_journal(file), charge_calls_to(spending):
        journal = open_journal(file, pool, panel, seed)
        asker = Asker(pool, panel, journal, watch or Watch(), spending)
        ending = await _work(asker, list_subjects(pool, book), count, others)
    selection = select_tasks(journal, panel, pool, count, others)
    reasons = [f"{number:,} {reason}" for reason, number in selection.left_out.items()]
    failed = asker.failures.by_worker.items()
    reasons += [f"{count_of(len(texts), 'call')} of {name} failed, the first so: {texts[0]}" for name, texts in failed]
    return AgentTasks(selection.lines, tuple(reasons), ending, spending.used.cost)


async def _work(asker: Asker, subjects: Sequence[Subject], count: int, others: int) -> str:
    """Write and answer questions; returns why it ended early, "" where enough are kept."""
    workers = {subject.worker for subject in subjects}
    per_request = max(1, min(PER_REQUEST, math.ceil(count / len(workers))))  # so that each has its turn
    journal, watch, fruitless = asker.journal, asker.watch, 0
    try:
        while True:
            candidates, _ = list_candidates(journal, asker.pool)
            watch.update(stage=ASKING, count=count, written=len(candidates), cost=asker.spending.used.cost)
            await asker.answer_all(candidates)
            kept = len(select_tasks(journal, asker.panel, asker.pool, count, others).lines)
            watch.update(kept=kept)
            if kept >= count:
                return ""
            if len(candidates) >= (MAX_PER_TASK * count if kept else HOPELESS):
                return f"ended after {len(candidates):,} questions, of which too few could be kept"
            if fruitless >= len(workers) + 1:
                return f"ended because {asker.panel.author} wrote no new questions"
            if await asker.propose(_choose_subject(journal, subjects), per_request):
                is_new = len(list_candidates(journal, asker.pool)[0]) > len(candidates)
                fruitless = 0 if is_new else fruitless + 1
    except Stopped as stop:
        return f"stopped early: {str(stop).rstrip('.')}. What is kept so far is saved, and making them again goes on"


def _choose_subject(journal: Journal, subjects: Sequence[Subject]) -> Subject:
    """The subject of the worker that has been asked about least; of its passages the next one."""
    counts = {subject.worker: 0 for subject in subjects}
    for request in journal.requests:
        counts[request.worker] = counts.get(request.worker, 0) + 1
    worker = min(dict.fromkeys(subject.worker for subject in subjects), key=lambda name: counts[name])
    own = [subject for subject in subjects if subject.worker == worker]
    return own[counts[worker] % len(own)]
