"""How likely a worker serves a need: the table of scores. Another score is a row here and nothing else.

cosine     how like the need the worker's card is, as without any outcomes
log        the share of right outcomes on needs like this one, leaning on all of the worker's outcomes, and for a tool
           on its cosine, where there are few like it
predictor  the success predictor (predictor.py), which has learnt to read card and outcomes
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from orchestrator.choice.outcomes import Outcome
from orchestrator.choice.own_predictors import FIGURES_FILE, find_kept_choice, find_own_predictor
from orchestrator.choice.predictor import LoggedWorker, check_installed, load_predictor, predict_success
from orchestrator.retrieval.likeness import compare_texts

WIDTH = 0.1  # a past need that is less like this one than the most similar by this weighs e times less
SURE = 0.5  # from this likeness on the most similar past need counts as one outcome, below it for less
LEANING = 1.0  # outcomes that the wider record, or a tool's likeness, weighs
PRIOR = 2.0  # outcomes that a chance of one half weighs beside a worker's record
PREDICTOR = "predictor"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A worker that a pool allows for a need. `likeness` is the cosine of its card and the need."""

    worker: str
    card: str
    is_tool: bool
    likeness: float
    outcomes: tuple[Outcome, ...]

    @property
    def right(self) -> int:
        """How many of its outcomes were right."""
        return sum(outcome.right for outcome in self.outcomes)


# (a need, candidates) -> the chance that each serves it
Score: TypeAlias = Callable[[str, Sequence[Candidate]], list[float]]


def score_by_cosine(_need: str, candidates: Sequence[Candidate]) -> list[float]:
    """The likeness of card and need, as a chance."""
    return [min(1.0, max(0.0, candidate.likeness)) for candidate in candidates]


def score_by_log(need: str, candidates: Sequence[Candidate]) -> list[float]:
    """The outcomes of each candidate, weighted by how like the need they are. Blocks: call it from a thread."""
    texts = list(dict.fromkeys(outcome.need for candidate in candidates for outcome in candidate.outcomes))
    likeness = compare_texts([need], texts).scores[0] if texts else []
    nearest = max(likeness, default=0.0)
    weights = [min(1.0, nearest / SURE) * exp((score - nearest) / WIDTH) for score in likeness]
    by_need = dict(zip(texts, weights, strict=True))
    return [_weigh(candidate, by_need) for candidate in candidates]


def _weigh(candidate: Candidate, by_need: Mapping[str, float]) -> float:
    whole = (candidate.right + PRIOR / 2) / (len(candidate.outcomes) + PRIOR)
    leaning = min(1.0, max(0.0, candidate.likeness)) if candidate.is_tool else whole
    weights = [by_need[outcome.need] for outcome in candidate.outcomes]
    right = sum(weight for weight, outcome in zip(weights, candidate.outcomes, strict=True) if outcome.right)
    return (right + LEANING * leaning) / (sum(weights) + LEANING)


def score_by_predictor(need: str, candidates: Sequence[Candidate], folder: Path | None = None) -> list[float]:
    """What the success predictor says: that of a folder, or the one that ships. Blocks: call it from a thread. Raises
    UnknownOrchestrator without weights."""
    workers = [LoggedWorker(item.card, item.is_tool, item.likeness, item.outcomes) for item in candidates]
    return predict_success(need, workers, folder)


SCORES: Mapping[str, Score] = MappingProxyType(
    {"cosine": score_by_cosine, "log": score_by_log, PREDICTOR: score_by_predictor}
)


def find_score(name: str, pool: str) -> tuple[str, Score]:
    """The score of this name on a pool, and what a trace calls it: the predictor that was trained on the pool's own log
    counts where there is one (own_predictors.py), with `@KEY` the one that was kept. Blocks: call it from a thread."""
    name, _, key = name.partition("@")
    own = _find_predictor(pool, key) if name == PREDICTOR else None
    if own is None:
        return name, SCORES[name]
    check_installed()
    try:
        load_predictor(own)
    except Exception as error:  # noqa: BLE001  whatever is wrong with its files, the one that ships can choose
        log.warning("%s cannot be read, so the predictor that ships chooses on %s: %s", own, pool, error)
        return name, SCORES[name]
    return f"{PREDICTOR} of {pool}", lambda need, candidates: score_by_predictor(need, candidates, own)


def _find_predictor(pool: str, key: str) -> Path | None:
    """The newest predictor of a pool, or the one that was kept; None for the one that ships."""
    if not key:
        return find_own_predictor(pool)
    kept = find_kept_choice(pool, key)
    return kept if (kept / FIGURES_FILE).is_file() else None
