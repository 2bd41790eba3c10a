"""How decompositions change while an orchestrator learns: width, depth, parallelism, worker shares, turns, accuracy.

By training step, from metrics.jsonl and the recorded turns of the job's episodes; by checkpoint, from every
evaluation that measured one. Of a step at most SAMPLED episodes are looked at, and of a long job SHOWN steps.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pydantic import ValidationError
from sqlmodel import Session, col, select

from orchestrator.engine.events import TurnTaken, load_event
from orchestrator.layers import layer_sizes
from orchestrator.plan import Step
from orchestrator.traces.store import EventRow
from studio.pages.compare.results import ResultShelf, Selection
from studio.pages.compare.schema import DriftDocument, MeasuredCheckpoint, TracedShapes
from studio.pages.compare.suite import SEEN, get_interval
from studio.pages.train.curves import MetricsReader, round_figure
from studio.pages.train.job_document import load_job_recipe
from studio.pages.train.rollouts import RolloutIndex
from studio.runtime import Runtime
from trainer.jobs.queue import JobStore
from trainer.results.figures import Figures, compute_figures, group_rows
from trainer.results.statistics import entropy, mean

SAMPLED = 8
SHOWN = 60
WORKER = "worker/"
TAKEN = {
    "accuracy": "rollout/correct",
    "validation": "check/correct",
    "turns": "rollout/turns",
    "width": "rollout/width",
}


@dataclass(frozen=True, slots=True)
class Topology:
    """The shape of one episode: `depth` counts layers over all its rounds, `parallelism` is steps per layer."""

    steps: int
    depth: int
    width: int
    workers: Mapping[str, int]

    @property
    def parallelism(self) -> float:
        return self.steps / self.depth if self.depth else 0.0


def measure_topology(rounds: Iterable[Sequence[Step]]) -> Topology:
    """The shape of an episode with these steps, round by round."""
    depth, width, workers, count = 0, 0, Counter[str](), 0
    for steps in rounds:
        sizes = layer_sizes(steps)
        depth += len(sizes)
        width = max([width, *sizes])
        workers.update(step.worker for step in steps)
        count += len(steps)
    return Topology(count, depth, width, workers)


class DriftReader:
    """Builds the view of a job; the shapes of recorded episodes are cached, because they never change."""

    def __init__(self, runtime: Runtime, jobs: JobStore, shelf: ResultShelf) -> None:
        self._engine = runtime.store.engine
        self._jobs, self._shelf = jobs, shelf
        self._metrics: dict[str, MetricsReader] = {}
        self._indexes: dict[str, RolloutIndex] = {}
        self._shapes: dict[str, Topology] = {}
        self._lock = threading.Lock()

    def document(self, job: str) -> DriftDocument:
        """The whole view of a job; of a running one only what was added since is read. Raises JobNotFound."""
        with self._lock:  # two viewers do not read on in the same file at once
            return self._build(job)

    def _build(self, job: str) -> DriftDocument:
        row = self._jobs.get(job)
        metrics = self._metrics.setdefault(job, MetricsReader(self._jobs.folder(job).metrics))
        metrics.poll()
        recipe = load_job_recipe(self._jobs, job)
        columns = metrics.columns.document()
        return DriftDocument(
            job=row.id,
            state=row.state,
            title=recipe.title if recipe else "",
            steps=columns.steps,
            series={name: columns.series[key] for name, key in TAKEN.items() if key in columns.series},
            workers={key.removeprefix(WORKER): row for key, row in columns.series.items() if key.startswith(WORKER)},
            traces=self._trace_shapes(job),
            checkpoints=self._list_checkpoints(job),
        )

    def _trace_shapes(self, job: str) -> TracedShapes:
        """What the recorded episodes say, by step."""
        index = self._indexes.setdefault(job, RolloutIndex(self._jobs.folder(job).rollouts))
        index.refresh()
        steps = pick_evenly(sorted(index.steps), SHOWN)
        episodes = {step: self._episodes(index, step) for step in steps}
        self._read([key for keys in episodes.values() for key in keys if key not in self._shapes])
        shapes_by_step = {
            step: [self._shapes[key] for key in keys if key in self._shapes] for step, keys in episodes.items()
        }
        there = {step: shapes for step, shapes in shapes_by_step.items() if shapes}
        return TracedShapes(
            steps=list(there),
            series={
                "depth": [_mean([shape.depth for shape in shapes]) for shapes in there.values()],
                "steps": [_mean([shape.steps for shape in shapes]) for shapes in there.values()],
                "parallelism": [_mean([shape.parallelism for shape in shapes]) for shapes in there.values()],
                "tools": [_mean([len(shape.workers) for shape in shapes]) for shapes in there.values()],
                "entropy": [_diversity(shapes) for shapes in there.values()],
            },
            episodes=SAMPLED,
            lost=sum(len(keys) for keys in episodes.values()) - sum(map(len, shapes_by_step.values())),
        )

    def _episodes(self, index: RolloutIndex, step: int) -> list[str]:
        """Choose some episodes of a step, of every group equally many."""
        groups = [
            [str(episode.get("id")) for episode in group.get("episodes") or [] if isinstance(episode, dict)]
            for group in index.groups(step, 0, SAMPLED)
        ]
        longest = max(map(len, groups), default=0)
        return [group[place] for place in range(longest) for group in groups if place < len(group)][:SAMPLED]

    def _read(self, episodes: Sequence[str]) -> None:
        """Read the recorded turns of episodes, a few hundred at a time."""
        for first in range(0, len(episodes), 400):
            keys = list(episodes[first : first + 400])
            query = select(EventRow.episode, EventRow.body).order_by(col(EventRow.id))
            query = query.where(col(EventRow.episode).in_(keys), EventRow.type == "turn_taken")
            rounds: dict[str, list[Sequence[Step]]] = {}
            with Session(self._engine) as session:
                for episode, body in session.exec(query):
                    with suppress(ValidationError):  # a damaged trace: its episode counts without this turn
                        event = load_event(body)
                        if isinstance(event, TurnTaken):
                            rounds.setdefault(episode, []).append(event.turn.steps)
            self._shapes.update({key: measure_topology(turns) for key, turns in rounds.items()})

    def _list_checkpoints(self, job: str) -> list[MeasuredCheckpoint]:
        """What evaluations of this and of other jobs measured of this job's checkpoints in the seen pool, by step."""
        jobs = tuple(line.id for line in self._shelf.jobs() if _measures(line.orchestrators, job))
        if not jobs:
            return []

        def make() -> list[MeasuredCheckpoint]:
            seen = [row for row in self._shelf.rows(Selection(jobs)) if row.condition == SEEN]
            measured = [
                (checkpoint_step(name, job), name, rows) for name, rows in group_rows(seen, "orchestrator").items()
            ]
            checkpoints = [
                _build_checkpoint(step, name, compute_figures(rows))
                for step, name, rows in measured
                if step is not None
            ]
            return sorted(checkpoints, key=lambda checkpoint: checkpoint.step)

        return self._shelf.once(("drift", job), jobs, make)


def _build_checkpoint(step: int, name: str, figures: Figures) -> MeasuredCheckpoint:
    """What is drawn of an evaluated checkpoint."""
    return MeasuredCheckpoint(
        step=step,
        orchestrator=name,
        tasks=figures.tasks,
        mean=get_interval(figures.mean),
        depth=figures.depth,
        width=figures.width,
        turns=figures.turns,
        steps=figures.steps,
        parallelism=figures.steps / figures.depth if figures.depth else None,
        entropy=figures.entropy,
        shares=figures.shares,
    )


def checkpoint_step(name: str, job: str) -> int | None:
    """The step of the checkpoint `JOB@STEP`; None for every other orchestrator."""
    before, _, step = name.partition("@")
    return int(step) if before == job and step.isdigit() else None


def pick_evenly(steps: Sequence[int], most: int) -> list[int]:
    """Pick at most `most` of the steps, evenly spread, the first and the last among them."""
    if len(steps) <= most:
        return list(steps)
    return [steps[round(k * (len(steps) - 1) / (most - 1))] for k in range(most)]


def _measures(orchestrators: Sequence[str], job: str) -> bool:
    return any(checkpoint_step(name, job) is not None for name in orchestrators)


def _diversity(shapes: Sequence[Topology]) -> float | None:
    """The entropy, in bits, of which workers the steps go to."""
    calls: Counter[str] = Counter()
    for shape in shapes:
        calls.update(shape.workers)
    return round_figure(entropy(list(calls.values())))


def _mean(values: Sequence[float]) -> float | None:
    return round_figure(mean(list(values)))
