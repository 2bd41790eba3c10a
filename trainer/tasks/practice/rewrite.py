"""Better words for practice tasks from an agent of the pool, where they still say everything and give nothing away."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Sequence

from pool_registry.actions import Action, as_text
from pool_registry.calls.live_pool import LivePool
from trainer.tasks.practice.compose import Draft

AT_A_TIME = 4
MAX_CHARS = 600
KEPT_WORDS = 0.5  # of a query's longer words, so that a rewritten one asks for the same
_WORD = re.compile(r"\w{4,}")
PROMPT = (
    "Rewrite this request as a person would type it to an assistant. Keep every name, number and date exactly as it "
    "is. Do not answer it, and do not say which tool to use. Write the request alone, in one line.\n\nRequest: {query}"
)


async def rewrite_queries(drafts: Sequence[Draft], agent: str, pool: LivePool) -> list[str]:
    """The query of each draft in an agent's words, or its own where the agent's do not hold up."""
    slots = asyncio.Semaphore(AT_A_TIME)

    async def rewrite(draft: Draft) -> str:
        async with slots:
            observation = await pool.call(Action(agent, {"instruction": PROMPT.format(query=draft.query)}))
        text = " ".join(as_text(observation.value).split()) if observation.ok else ""
        text = text.removeprefix("Request:").strip().strip('"')
        return text if is_faithful(text, draft, pool.workers) else draft.query

    return list(await asyncio.gather(*map(rewrite, drafts)))


def is_faithful(text: str, draft: Draft, workers: Collection[str]) -> bool:
    """Whether a text names all that the query names, in good part in its words, and no worker, and not the answer."""
    folded = text.casefold()
    words = set(_WORD.findall(draft.query.casefold()))
    if len(words.intersection(_WORD.findall(folded))) < KEPT_WORDS * len(words):
        return False
    literals = [as_text(value) for step in draft.steps for value in step.arguments.values()]
    stated = [value.casefold() for value in literals if value.casefold() in draft.query.casefold()]
    names = [name for name in workers if ("_" in name or "-" in name) and name in folded]
    answers = [as_text(value).casefold() for value in draft.values]
    leaks = [answer for answer in answers if answer in folded and answer not in draft.query.casefold()]
    return 0 < len(text) <= MAX_CHARS and all(value in folded for value in stated) and not names and not leaks
