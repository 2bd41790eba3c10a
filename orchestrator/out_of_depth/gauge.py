"""Judges, before the first turn, whether a query and a pool are unlike everything that a checkpoint learnt.

It compares words, before there is a plan: it can say that a question is foreign to a checkpoint, never that an answer
is right. So its probability decides whether to warn, and is shown to nobody as a percentage.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.engine.episode import Episode
from orchestrator.out_of_depth.learnt_queries import FILE, load_learnt_queries
from orchestrator.plan import OutOfDepth
from orchestrator.retrieval import sentence_vectors

THRESHOLD = 0.5
MAX_QUERY_CHARS = 4000
# A query that is less like every worker of a pool than the middle is rather one that no worker serves: of those that a
# pool can answer one in fifty is, in domains that no training has (bench/depth.py).
MIDDLE_LIKENESS = 0.36
LIKENESS_SPREAD = 0.04


@dataclass(frozen=True, slots=True)
class DepthGauge:
    """Measures queries against those that the checkpoint in `folder` learnt from.

    `compare` is that of a checkpoint that reads the pool at hand: the likeness of a query to the pool's most similar
    worker. What is like a worker is within its depth, however little it is like what was learnt.
    """

    folder: Path
    compare: Callable[[str], float] | None = None

    async def measure(self, episode: Episode, missing: float = 0.0) -> OutOfDepth | None:
        """How far out of its depth the checkpoint is with an episode, at its first turn; None at later ones.

        `missing` is the share of the workers that it learnt for which the pool has none.
        """
        if any(done.turn is not None for done in episode.rounds):
            return None
        return await asyncio.to_thread(self._measure, episode.query, missing)

    def _measure(self, query: str, missing: float) -> OutOfDepth | None:
        likeness = self.compare(query[:MAX_QUERY_CHARS]) if self.compare is not None else None
        return measure_depth(self.folder, query, missing, likeness)


def find_gauge(folder: Path, compare: Callable[[str], float] | None = None) -> DepthGauge | None:
    """The gauge of a checkpoint; None where it has no learnt queries, or sentences cannot be compared here."""
    there = (folder / FILE).is_file() and sentence_vectors.find_weights() is not None
    return DepthGauge(folder, compare) if there else None


def measure_depth(folder: Path, query: str, missing: float = 0.0, likeness: float | None = None) -> OutOfDepth | None:
    """How far out of its depth the checkpoint in a folder is with a query. Blocks: call it from a thread.

    `missing` and `likeness` are those of the pool at hand, see `DepthGauge`.
    """
    learnt = load_learnt_queries(folder)
    if learnt is None or sentence_vectors.find_weights() is None:
        return None
    nearest = float(learnt.compare(sentence_vectors.embed([query[:MAX_QUERY_CHARS]]))[0])
    # A query that it could plan for fails, too, where the workers of the plan are not there.
    probability = 1 - (1 - learnt.judge(nearest)) * (1 - missing)
    if likeness is None:
        return OutOfDepth(round(probability, 4), round(nearest, 4), round(missing, 4))
    probability *= 1 / (1 + math.exp((likeness - MIDDLE_LIKENESS) / LIKENESS_SPREAD))
    return OutOfDepth(round(probability, 4), round(nearest, 4), round(missing, 4), round(likeness, 4))


def is_beyond(depth: OutOfDepth) -> bool:
    """Whether to warn."""
    return depth.probability >= THRESHOLD


def describe_depth(depth: OutOfDepth, orchestrator: str) -> str:
    """What the score says of the words of a query, in a sentence; and, where it does not warn, what it does not say."""
    if is_beyond(depth):
        return _describe_beyond(depth, orchestrator)
    is_like_worker = depth.likeness is not None and depth.likeness >= MIDDLE_LIKENESS
    kin = "what a worker of this pool does" if is_like_worker else f"questions that {orchestrator} learnt"
    return f"The question's words are like {kin}; that does not say that the answer is right."


def _describe_beyond(depth: OutOfDepth, orchestrator: str) -> str:
    if depth.likeness is not None:
        return f"The question's words are unlike anything that {orchestrator} learnt, and unlike every worker here."
    if depth.missing > 1 - depth.nearest:
        return f"This pool lacks workers that {orchestrator} learnt to call."
    return f"The question's words are unlike anything that {orchestrator} learnt."
