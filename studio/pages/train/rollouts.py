"""The rollout browser: the groups of a training step, each episode with its small graph and its reward terms."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, ValidationError

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import Outcome
from orchestrator.errors import DamagedTrace, EpisodeNotFound
from orchestrator.traces.store import EpisodeRow
from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.worker import Role
from studio.episode_documents.schema import StepStatus
from studio.episode_documents.view import build_episode_view
from studio.frame.document import PageDocument
from studio.pages.train.curves import whole
from studio.runtime import Runtime

MAX_GROUPS = 6  # in one answer
MAX_EPISODES = 32  # of one group
MAX_WRITTEN = 1_200  # characters of a turn
MAX_NODES = 60  # a small graph with more steps is only counted
FOLLOWED = 16  # jobs whose index is kept


class SmallNode(PageDocument):
    """A step on a small graph."""

    id: int
    x: int
    y: int
    role: Role
    status: StepStatus
    worker: str


class SmallEdge(PageDocument):
    """From a step to one that may see it."""

    path: str
    used: bool


class SmallAnswer(PageDocument):
    """The answer on a small graph."""

    x: float
    y: float
    paths: list[str]


class SmallGraph(PageDocument):
    """The graph of an episode without its words; `node` is (width, height) of a step's card."""

    width: float
    height: float
    node: tuple[int, int]
    steps: int
    rounds: int
    failed: int
    answer_text: str | None
    outcome: Outcome | None
    nodes: list[SmallNode]
    edges: list[SmallEdge]
    answer: SmallAnswer | None


class RolloutEpisode(PageDocument):
    """An episode of a group with its reward; its graph is None when its trace is not in this data folder. `written` is
    what the model wrote in each of its turns, the first characters of them."""

    model_config = ConfigDict(extra="ignore")

    id: str
    correct: bool
    reward: float
    advantage: float
    terms: dict[str, float]
    graph: SmallGraph | None = None
    written: list[str] = []
    starred: bool = False


class RolloutGroupDocument(PageDocument):
    """Episodes on one task: `solved` of them were right; `equal` when all had one outcome, `kept` when it trains."""

    model_config = ConfigDict(extra="ignore")

    query: str
    family: str = ""
    level: int | None = None
    index: int | None = None
    equal: bool | None = None
    kept: bool | None = None
    solved: int
    of: int
    episodes: list[RolloutEpisode]


class RolloutPage(PageDocument):
    """Groups of one step from number `first` on, and which steps there are; `equal` groups of it had one outcome."""

    step: int | None
    steps: list[int]
    groups: list[RolloutGroupDocument]
    first: int
    of: int
    equal: int


@dataclass(slots=True)
class RolloutIndex:
    """Where the groups of each step lie in rollouts.jsonl: (offset, length) by step."""

    path: Path
    steps: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    equal: dict[int, int] = field(default_factory=dict)
    inode: int = 0
    offset: int = 0

    def refresh(self) -> None:
        """Index the lines that were appended; start over when a resumed job has rewritten the file."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return
        if status.st_ino != self.inode or status.st_size < self.offset:
            self.steps, self.equal, self.inode, self.offset = {}, {}, status.st_ino, 0
        with self.path.open("rb") as file:
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._take(line)
                self.offset += len(line)

    def _take(self, line: bytes) -> None:
        try:
            row = json.loads(line)
        except ValueError:  # torn by a kill in the middle of a write
            return
        if isinstance(row, dict):
            step = whole(row.get("step"))
            self.steps.setdefault(step, []).append((self.offset, len(line)))
            self.equal[step] = self.equal.get(step, 0) + bool(row.get("equal"))

    def groups(self, step: int, first: int, most: int) -> list[dict[str, Any]]:
        """The groups of a step as they were written."""
        groups = []
        with self.path.open("rb") as file:
            for offset, length in self.steps.get(step, [])[first : first + most]:
                file.seek(offset)
                with suppress(ValueError):  # the file was edited since it was indexed
                    groups.append(json.loads(file.read(length)))
        return [group for group in groups if isinstance(group, dict)]


class RolloutBrowser:
    """Builds the documents of the rollout browser; keeps the indexes of the jobs viewed last."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._indexes: dict[str, RolloutIndex] = {}

    def document(self, job: str, path: Path, step: int | None, first: int) -> RolloutPage:
        """The groups of `step` (the newest when None) from number `first` on, and which steps there are."""
        index = self._index(job, path)
        steps = sorted(index.steps)
        chosen = step if step in index.steps else (steps[-1] if steps else None)
        groups = index.groups(chosen, first, MAX_GROUPS) if chosen is not None else []
        starred = set(self._runtime.store.traces.list_starred()) if groups else set()
        return RolloutPage(
            step=chosen,
            steps=steps,
            groups=list(self._build_groups(groups, starred)),
            first=first,
            of=len(index.steps.get(chosen, [])) if chosen is not None else 0,
            equal=index.equal.get(chosen, 0) if chosen is not None else 0,
        )

    def _index(self, job: str, path: Path) -> RolloutIndex:
        index = self._indexes.pop(job, None) or RolloutIndex(path)
        self._indexes[job] = index  # the newest last
        while len(self._indexes) > FOLLOWED:
            self._indexes.pop(next(iter(self._indexes)))
        index.refresh()
        return index

    def _build_groups(
        self, rows: Sequence[Mapping[str, JsonValue]], starred: set[str]
    ) -> Iterator[RolloutGroupDocument]:
        """Yield the groups that can be read; a person may have edited their file."""
        for row in rows:
            listed = row.get("episodes")
            episodes = [episode for episode in listed if isinstance(episode, dict)] if isinstance(listed, list) else []
            counts = {"solved": sum(bool(episode.get("correct")) for episode in episodes), "of": len(episodes)}
            with suppress(ValidationError):
                shown = [self._build_episode(episode, starred) for episode in episodes[:MAX_EPISODES]]
                yield RolloutGroupDocument.model_validate({**row, **counts, "episodes": shown})

    def _build_episode(self, figures: Mapping[str, JsonValue], starred: set[str]) -> RolloutEpisode:
        """An episode with its figures, also where its trace is gone. Raises ValidationError for damaged figures."""
        episode = RolloutEpisode.model_validate(figures)
        shown = dict[str, SmallGraph | list[str]]()
        with suppress(EpisodeNotFound, DamagedTrace):
            row = self._runtime.store.traces.row(episode.id)
            trace = self._runtime.store.traces.episode(episode.id)
            shown = {"graph": build_small_graph(trace, row, self._pool(row)), "written": list_written(trace)}
        return episode.model_copy(update={**shown, "starred": episode.id in starred})

    def _pool(self, row: EpisodeRow) -> Pool | None:
        stored = self._runtime.store.pools.by_hash(row.pool, row.pool_hash)
        return stored.pool if stored else None


def list_written(episode: Episode) -> list[str]:
    """What the model wrote in each turn, the first MAX_WRITTEN characters of it."""
    texts = [played.turn.text for played in episode.rounds if played.turn is not None]
    return [text if len(text) <= MAX_WRITTEN else f"{text[:MAX_WRITTEN]} …" for text in texts]


def build_small_graph(episode: Episode, row: EpisodeRow, pool: Pool | None) -> SmallGraph:
    """The graph of the Run page without its words: places, states and edges."""
    view = build_episode_view(episode, row, pool, None)
    graph, answer = view.graph, view.graph.answer
    drawn = len(graph.nodes) <= MAX_NODES
    return SmallGraph(
        width=graph.width,
        height=graph.height,
        node=(graph.node_width, graph.node_height),
        steps=len(graph.nodes),
        rounds=len(view.turns),
        failed=sum(turn.error is not None for turn in view.turns),
        answer_text=(view.episode.answer or "")[:80] or None,
        outcome=view.episode.outcome,
        nodes=[
            SmallNode(id=node.id, x=node.x, y=node.y, role=node.role, status=node.status, worker=node.worker)
            for node in graph.nodes
            if drawn
        ],
        edges=[SmallEdge(path=edge.path, used=edge.used) for edge in graph.edges if drawn],
        answer=SmallAnswer(x=answer.x, y=answer.y, paths=answer.paths) if answer and drawn else None,
    )
