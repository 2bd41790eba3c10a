"""Judges, before the first turn, whether a query and a pool are unlike everything that a checkpoint learnt."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from orchestrator.engine.episode import Episode
from orchestrator.out_of_depth.learnt_queries import FILE, load_learnt_queries
from orchestrator.plan import OutOfDepth
from orchestrator.retrieval import sentence_vectors

THRESHOLD = 0.5
MAX_QUERY_CHARS = 4000


@dataclass(frozen=True, slots=True)
class DepthGauge:
    """Measures queries against those that the checkpoint in `folder` learnt from."""

    folder: Path

    async def measure(self, episode: Episode, missing: float = 0.0) -> OutOfDepth | None:
        """How far out of its depth the checkpoint is with an episode, at its first turn; None at later ones.

        `missing` is the share of the workers that it learnt for which the pool has none.
        """
        if any(done.turn is not None for done in episode.rounds):
            return None
        return await asyncio.to_thread(measure_depth, self.folder, episode.query, missing)


def find_gauge(folder: Path) -> DepthGauge | None:
    """The gauge of a checkpoint; None where it has no learnt queries, or sentences cannot be compared here."""
    there = (folder / FILE).is_file() and sentence_vectors.find_weights() is not None
    return DepthGauge(folder) if there else None


def measure_depth(folder: Path, query: str, missing: float = 0.0) -> OutOfDepth | None:
    """How far out of its depth the checkpoint in a folder is with a query. Blocks: call it from a thread."""
    learnt = load_learnt_queries(folder)
    if learnt is None or sentence_vectors.find_weights() is None:
        return None
    nearest = float(learnt.compare(sentence_vectors.embed([query[:MAX_QUERY_CHARS]]))[0])
    # A query that it could plan for fails, too, where the workers of the plan are not there.
    probability = 1 - (1 - learnt.judge(nearest)) * (1 - missing)
    return OutOfDepth(round(probability, 4), round(nearest, 4), round(missing, 4))


def is_beyond(depth: OutOfDepth) -> bool:
    """Whether to warn."""
    return depth.probability >= THRESHOLD


def describe_depth(depth: OutOfDepth, orchestrator: str) -> str:
    """What the score says, in a sentence."""
    percent = f"{100 * min(depth.probability, 0.99):.0f} %"
    if not is_beyond(depth):
        return f"This query is like those that {orchestrator} learnt ({percent} out of its depth)."
    if depth.missing > 1 - depth.nearest:
        return f"This pool lacks workers that {orchestrator} learnt to call ({percent} out of its depth)."
    return f"This query is unlike anything that {orchestrator} learnt ({percent})."
