"""Has an agent of the pool write a follow-up as a question that stands alone, where no rule does."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.engine.events import EarlierRun
from orchestrator.follow_up.readings import Reading, Understanding
from pool_registry.actions import Observation, Status, clean_text
from pool_registry.calls.live_worker import LiveWorker
from pool_registry.errors import WorkerFault
from pool_registry.language_models.completion import agent_messages, strip_special
from pool_registry.text import one_line
from pool_registry.worker import Visible

QUESTION_TOKENS = 200
MAX_QUESTION_CHARS = 1000
MAX_SHOWN_RUNS = 5
CANNOT = "UNCLEAR"
ROLE = (
    "You read the last questions and answers of a person, and a follow-up. Write the follow-up as one question that "
    "somebody can answer who has read nothing of it: put in what it refers to, in the person's words and language. Do "
    f"not answer it. Write that question and nothing else, or {CANNOT} where it could mean several things."
)


async def ask_agent(worker: LiveWorker, text: str, before: Sequence[EarlierRun]) -> Understanding:
    """The one question that an agent reads in a follow-up; a problem where it writes none, with what it used."""
    shown = tuple(
        Visible(place, "question and answer", Observation(Status.OK, f"{run.question}\n{run.answer}"))
        for place, run in enumerate(before[-MAX_SHOWN_RUNS:], start=1)
    )
    name = worker.spec.name
    try:
        completion = await worker.complete(agent_messages(ROLE, f"Follow-up: {text}", shown), room=QUESTION_TOKENS)
    except WorkerFault as fault:
        return Understanding(problem=f"{name} could not read it either ({fault.code})", agent=name)
    question = one_line(clean_text(strip_special(completion.text))).strip('"“” ')
    if not question or CANNOT in question or len(question) > MAX_QUESTION_CHARS:
        return Understanding(problem=f"{name} could not read it either", agent=name, usage=completion.usage)
    return Understanding((Reading(question, quotes=True),), agent=name, usage=completion.usage)
