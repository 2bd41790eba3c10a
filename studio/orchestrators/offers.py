"""What can be tried next when a run has no answer, or none that can be trusted: in words, each with one click or one
command."""

from __future__ import annotations

import shlex
from urllib.parse import urlencode

from orchestrator.checkpoints import find_checkpoint, plans_any_pool
from orchestrator.engine.episode import Episode
from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import split_options
from orchestrator.out_of_depth.gauge import is_beyond
from orchestrator.policies.labels import label_orchestrator
from orchestrator.reader.refusal import is_refusal, read_refused_need
from pool_registry.pool import Pool
from studio.episode_documents.schema import Offer
from studio.orchestrators.choices import PLAIN_QUESTIONS
from studio.orchestrators.default import STARTER, list_chat_models, suggest_orchestrators
from studio.orchestrators.example_queries import list_runnable_tasks
from studio.orchestrators.notes import list_learnt_families
from trainer.tasks import find_task

EXAMPLES = 2
EXAMPLE_LEVEL = 1
STUDIO = "podium"


def list_offers(episode: Episode, pool: Pool | None) -> list[Offer]:
    """What to try next; nothing while a run goes on, where a person stopped it, or where its answer is good."""
    started = episode.started
    if started is None or pool is None or not needs_offers(episode):
        return []
    offers = _offer_worker(read_refused_need(episode.answer), pool.name) if is_refusal(episode.answer) else []
    own, _ = split_options(started.orchestrator)
    names = [name for name in suggest_orchestrators(pool) if name != own]
    offers += [_offer_orchestrator(name, pool.name, started.query) for name in names]
    if not list_chat_models(pool):
        offers.append(_offer_key(pool.name))
    return offers + [
        _offer_example(started.orchestrator, pool.name, query)
        for query in find_examples(started.orchestrator, pool)
        if query != started.query
    ]


def needs_offers(episode: Episode) -> bool:
    """Whether a run has no answer, a refusal, a wrong answer, or an unverified one that is in doubt: from out of its
    depth, or one on which its plans do not agree."""
    ended = episode.ended
    if ended is None or ended.outcome == "stopped":
        return False
    if ended.outcome != "answered" or is_refusal(ended.answer):
        return True
    if episode.graded is not None:
        return not episode.graded.correct
    if episode.agreement is not None and episode.agreement.unsure:
        return True
    return episode.out_of_depth is not None and is_beyond(episode.out_of_depth)


def find_examples(orchestrator: str, pool: Pool) -> list[str]:
    """Find queries that the pool can answer: its own tasks, plain questions for a reader, and else queries like those
    that a checkpoint was trained for; none on a pool that these are not made for."""
    if tasks := list_runnable_tasks(pool):
        return [task.query for task in tasks[:EXAMPLES]]
    try:
        _, checkpoint = find_checkpoint(split_options(orchestrator)[0])
    except UnknownOrchestrator:
        return []
    if pool.name != STARTER:
        return []
    if checkpoint.is_reader:
        return list(PLAIN_QUESTIONS)
    families = list_learnt_families(checkpoint)
    return [find_task(family, EXAMPLE_LEVEL, "test", 0).query for family in families[:EXAMPLES]]


def format_offers(offers: list[Offer]) -> str:
    """The offers as lines for a terminal or an error message; "" for none."""
    return "\n".join(["Try next:", *(f"- {offer.text}: {offer.command}" for offer in offers)]) if offers else ""


def _offer_orchestrator(name: str, pool: str, query: str) -> Offer:
    label = label_orchestrator(name)
    about = ", which reads any pool" if plans_any_pool(name) else ", a model of this pool"
    return Offer(
        text=f"Ask {label}{about}", orchestrator=name, query=query, href="", command=_write_command(pool, name, query)
    )


def _offer_example(orchestrator: str, pool: str, query: str) -> Offer:
    return Offer(
        text=f"Ask {label_orchestrator(orchestrator)} something that this pool can answer: {query}",
        orchestrator=orchestrator,
        query=query,
        href="",
        command=_write_command(pool, orchestrator, query),
    )


def _offer_worker(need: str, pool: str) -> list[Offer]:
    goal = f"a worker for {need!r}" if need else "a worker that can do this"
    return [_offer_page(f"Add {goal} on the Pool page", pool)]


def _offer_key(pool: str) -> Offer:
    return _offer_page("Add a chat model with a key on the Pool page", pool)


def _offer_page(text: str, pool: str) -> Offer:
    href = f"/pool?{urlencode({'pool': pool})}"
    return Offer(text=text, orchestrator="", query="", href=href, command=f"{STUDIO}   (then {href})")


def _write_command(pool: str, orchestrator: str, query: str) -> str:
    words = [STUDIO, "run", query, "--orchestrator", orchestrator]
    return shlex.join(words if pool == STARTER else [*words, "--pool", pool])
