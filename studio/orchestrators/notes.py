"""The notes below the choice of an orchestrator: what to expect of it on a pool."""

from __future__ import annotations

import re

from sqlalchemy import Engine

from orchestrator.checkpoints import Checkpoint, find_checkpoint
from orchestrator.errors import UnknownOrchestrator
from orchestrator.failure_memory.lessons import OFF
from orchestrator.policies.registry import draws_plans, find_policy
from orchestrator.traces.agent_track_record import SHOWN_EPISODES, build_track_record
from pool_registry.pool import Pool
from trainer.tasks import SUITES
from trainer.tasks.starter_examples import list_examples

MAX_NAMES = 4  # of workers in a note; the others are counted


def checkpoint_note(name: str, pool: Pool) -> str:
    """What to expect of a checkpoint on this pool; empty for an orchestrator that is not a checkpoint."""
    try:
        _, checkpoint = find_checkpoint(name)
    except UnknownOrchestrator:
        return ""
    notes = (
        _describe_checkpoint(checkpoint, pool),
        describe_languages(checkpoint),
        _describe_hashes(checkpoint),
    )
    return " ".join(filter(None, notes))


def describe_languages(checkpoint: Checkpoint) -> str:
    """Which languages a checkpoint reads, where its manifest says so: of questions in others most are planned wrong."""
    if not checkpoint.languages:
        return ""
    return f"It reads questions in {' and '.join(checkpoint.languages)} only."


def _describe_hashes(checkpoint: Checkpoint) -> str:
    return "" if checkpoint.files else "It was saved without hashes, so whether its files were changed cannot be seen."


def _describe_checkpoint(checkpoint: Checkpoint, pool: Pool) -> str:
    if checkpoint.stage == "base":
        return "This model has not been trained: it repeats texts and writes no plans, so expect PARSE_ERR turns."
    if checkpoint.is_reader:
        return "It reads any pool: it plans your question and calls your tools."
    return f"{_describe_pool_difference(checkpoint, pool)} {_describe_prompt(checkpoint)}".strip()


def suite_note(name: str, family: str) -> str:
    """Whether a checkpoint was trained for a suite's queries; empty where it was, or where it is no checkpoint."""
    try:
        _, checkpoint = find_checkpoint(name)
    except UnknownOrchestrator:
        return ""
    families = list_learnt_families(checkpoint)
    if not families or family in families:
        return ""
    return f"It was not trained on queries of the suite {family}, only on {_join_names(families)}."


def list_learnt_families(checkpoint: Checkpoint) -> list[str]:
    """The suites that a checkpoint's recipe draws its tasks from; empty where that is not recorded."""
    tasks = checkpoint.recipe.get("tasks")
    source = str(tasks.get("source")) if isinstance(tasks, dict) else ""
    words = re.findall(r"[\w-]+", source)
    families = dict.fromkeys([*SUITES, *(task.ref.family for task in list_examples())])
    return [family for family in families if family in words] if checkpoint.stage != "base" else []


def vote_note(name: str, plans: int) -> str:
    """What several plans per turn cost, and what of them is run; empty for one plan, or where none can be drawn."""
    if plans < 2 or not draws_plans(name):
        return ""
    return (
        f"{plans} plans per turn cost about {plans} times the tokens. They are tried on workers without effects only, "
        "and the answer that most agree on is taken."
    )


def memory_note(name: str, pool: Pool) -> str:
    """Whether the pool's failure memory reaches this orchestrator; empty where the pool has none."""
    if pool.limits.memory == OFF:
        return ""
    policy = find_policy(name)
    if policy is not None and policy.reads_memory:
        return "Lessons of this pool's similar failures are put before the query (Pool page, Memory)."
    try:
        _, checkpoint = find_checkpoint(name)
    except UnknownOrchestrator:
        return "This pool's failure memory does not reach it: only a language model that orchestrates reads lessons."
    if checkpoint.knows_one_pool:
        return "This pool's failure memory does not reach it: it was trained on the bare query."
    if checkpoint.is_reader:
        return "This pool's failure memory does not reach it: it reads a listing of the pool and the query."
    return "Lessons of this pool's similar failures are put before the query (Pool page, Memory)."


def score_note(engine: Engine, pool: Pool, who: str) -> str:
    """What a score of outcomes can go by on this pool; empty where none is chosen."""
    if not who:
        return ""
    agents = [spec.name for spec in pool.agents()]
    graded = build_track_record(engine, pool.name, SHOWN_EPISODES).tasks(agents)
    if not graded:
        return (
            "No answer of these agents has been graded yet, so that nothing tells them apart. Draw queries with a "
            "known answer, or say with the thumbs beside it whether an answer is right."
        )
    questions = f"{graded} graded {'questions' if graded > 1 else 'question'}"
    return f"It goes by {questions} that agents of this pool answered, and gets better with each."


def _describe_pool_difference(checkpoint: Checkpoint, pool: Pool) -> str:
    """How the pool differs from the one of training."""
    trained = checkpoint.pool
    if trained is None:
        return "The pool that it was trained on is not recorded."
    if trained.hash == pool.hash:
        return f"Trained on this version of {pool.name}."
    here = [spec.name for spec in pool.enabled]
    missing = [worker for worker in trained.workers if worker not in here]
    new = [worker for worker in here if worker not in trained.workers]
    if not (missing or new):
        return f"Trained on a pool {trained.name} with the same workers, some configured differently."
    differences = [f"lacks {_join_names(missing)}"] if missing else []
    differences += [f"adds {_join_names(new)}"] if new else []
    return f"Trained on another pool ({trained.name}): this one {' and '.join(differences)}."


def _describe_prompt(checkpoint: Checkpoint) -> str:
    if checkpoint.knows_one_pool:
        bound = checkpoint.pool is not None and bool(checkpoint.pool.learnt)
        return (
            "It was trained on the bare query and does not read the pool's description: "
            f"{'workers here stand for those that it learnt (Pool page, Binding); ' if bound else ''}"
            "it does not call new workers, and fails on queries unlike its training tasks."
        )
    return "It reads the pool's description with every query."


def _join_names(workers: list[str]) -> str:
    more = f" and {len(workers) - MAX_NAMES} more" if len(workers) > MAX_NAMES else ""
    return ", ".join(workers[:MAX_NAMES]) + more
