"""What can orchestrate a pool: what ships, models of the pool, and checkpoints trained on it with what they scored."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from orchestrator.checkpoints import STARTERS, find_checkpoint, plans_any_pool
from orchestrator.policies.labels import label_orchestrator
from pool_registry.pool import Pool
from studio.frame.document import PageDocument
from studio.orchestrators.default import STARTER, suggest_orchestrators
from studio.orchestrators.notes import describe_languages
from studio.runtime import Runtime
from trainer.errors import TrainerError
from trainer.jobs.outcome import Verdict, describe_outcome
from trainer.jobs.queue import JobRow
from trainer.recipe import Recipe

MOST = 5  # trained checkpoints, the newest first
LEARNT = {  # by what a starter is made for
    "": "",
    "agents": "Learnt to put questions to agents in words, too. ",
    "records": "Learnt to combine fields of what workers return, and to ask agents. ",
}


class OrchestratorLine(PageDocument):
    """An orchestrator of a pool: its name, what a person calls it, what to expect of it, and its job, "" without."""

    name: str
    label: str
    about: str
    job: str


def list_orchestrators(runtime: Runtime, pool: Pool) -> list[OrchestratorLine]:
    """List orchestrators: those trained on the pool first, then those that can plan for any pool, and last those that
    training made worse."""
    trained = list(islice(_list_trained(runtime, pool.name), MOST))
    general = [_describe_general(name, pool) for name in suggest_orchestrators(pool)]
    return [
        *(line for line, verdict in trained if verdict != "worse"),
        *general,
        *(line for line, verdict in trained if verdict == "worse"),
    ]


def _list_trained(runtime: Runtime, pool: str) -> Iterator[tuple[OrchestratorLine, Verdict]]:
    for row in runtime.jobs.all():
        recipe = _load_recipe(runtime, row) if row.state == "done" else None
        if recipe is None or recipe.pool != pool:
            continue
        outcome = describe_outcome(row.id, recipe, runtime.jobs.folder(row.id))
        if outcome is not None:
            name = outcome.orchestrator
            line = OrchestratorLine(name=name, label=label_orchestrator(name), about=outcome.sentence, job=row.id)
            yield line, outcome.verdict


def _load_recipe(runtime: Runtime, row: JobRow) -> Recipe | None:
    try:
        return runtime.jobs.recipe(row.id)
    except (OSError, UnicodeDecodeError, TrainerError):
        return None  # its file is gone or damaged


def _describe_general(name: str, pool: Pool) -> OrchestratorLine:
    if plans_any_pool(name):
        untrained = "" if pool.name == STARTER else " It has not been trained on this pool."
        languages = describe_languages(find_checkpoint(name)[1])
        about = (
            "Reads any pool: says what each step needs and binds that to a worker. "
            f"{LEARNT[STARTERS[name].made_for]}{languages} Needs no key.{untrained}"
        )
        return OrchestratorLine(name=name, label=label_orchestrator(name), about=about, job="")
    about = "A chat model of this pool; it reads the listing of the workers."
    return OrchestratorLine(name=name, label=label_orchestrator(name), about=about, job="")
