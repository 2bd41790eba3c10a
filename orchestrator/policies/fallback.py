"""The pool's fallback: an answer within seconds to a query that the orchestrator cannot take.

The fallback takes over when a checkpoint is greeted or asked something unlike all that it learnt, when the orchestrator
fails, refuses, writes no turn in time, or when its turns could not be used. It is an agent of the pool, and where that
fails, too, a sentence that says what the pool can do.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import MAX_USELESS_TURNS, Orchestrator, is_useless
from orchestrator.errors import OrchestratorError
from orchestrator.out_of_depth.gauge import DepthGauge
from orchestrator.plan import Turn
from orchestrator.policies.base import agent_step, write_turn
from orchestrator.policies.options.voting import PlanSampler
from orchestrator.policies.options.wrapper import unwrap
from orchestrator.quotes import escape, references
from orchestrator.reader.refusal import is_refusal
from pool_registry.calls.live_pool import LivePool
from pool_registry.errors import WorkerFault
from pool_registry.text import one_line, shorten

AUTO, SENTENCE, OFF = "auto", "sentence", "off"
ROUNDS = 2  # that the fallback needs beyond those of the orchestrator: its agent, and the sentence where that fails
MAX_TURN_S = 60.0  # that the fallback waits for a turn, and at most this share of the deadline:
TURN_SHARE = 0.25
LOAD_S = 4.0  # that the fallback waits for the model of its agent to be loaded
BEYOND = 0.8  # probability of being out of its depth from which a checkpoint is not asked at all
MAX_GREETING = 80
LISTED_WORKERS = 8
MAX_DESCRIPTION = 80
NOTE = "The pool's fallback answers: "
ASK = (
    "Answer the user directly and briefly. You have no tools here: where the request needs one, say that it cannot be "
    "done and what is missing.\n\n"
)
_GREETING = re.compile(
    r"(?:(?:hello|hallo|hi|hey|hiya|yo|ciao|hola|bonjour|salut|servus|moin|good (?:morning|afternoon|evening|day)|"
    r"guten (?:tag|morgen|abend)|thanks?|thank you|danke|merci|gracias|bye|goodbye|tsch(?:ü|u)ss|ok|okay|cool|great|"
    r"test|ping|how are you|how do you do|who are you|what are you|what can you do|help)\b[\W_]*"
    r"(?:(?:there|all|everyone|again|doing|today|so much|very much|a lot|you|for me|me|podium)\b[\W_]*)?)+",
    re.IGNORECASE,
)


class FallbackPolicy(Orchestrator):
    """An orchestrator with the pool's fallback behind it.

    `question` is what a person wrote last, without the conversation before. `trained`: the orchestrator is a
    checkpoint, which greetings are not for. `rounds` is how many turns the orchestrator itself may take.
    """

    def __init__(
        self, inner: Orchestrator, pool: LivePool, choice: str, question: str, *, trained: bool, rounds: int
    ) -> None:
        self.inner = inner
        self.name = inner.name
        self._pool, self._agent = pool, choose_fallback_agent(pool, choice)
        self._question, self._trained, self._rounds = question, trained, rounds
        self._reason = ""

    async def turn(self, episode: Episode) -> Turn:
        """The orchestrator's turn, or the fallback's. Raises nothing that the orchestrator raises."""
        if self._reason:  # its agent failed
            return self._write_sentence()
        reason = await self._find_obstacle(episode)
        if reason:
            return await self._fall_back(episode, reason, Turn())
        try:
            turn = await asyncio.wait_for(self.inner.turn(episode), _turn_seconds(episode))
        except TimeoutError:
            return await self._fall_back(episode, "no plan was written in time", Turn())
        except (OrchestratorError, WorkerFault) as error:
            return await self._fall_back(episode, f"the orchestrator failed: {error}", Turn())
        if turn.failed:
            return await self._fall_back(episode, turn.error or "the orchestrator failed", turn)
        return await self._fall_back(episode, str(turn.answer), turn) if is_refusal(turn.answer) else turn

    async def _find_obstacle(self, episode: Episode) -> str:
        """Why the orchestrator is not asked for this turn; "" where it is."""
        turns = [done.turn for done in episode.rounds if done.turn is not None]
        useless = [turn for turn in turns if is_useless(turn) and not _was_held_back(turn, episode)]
        if len(useless) >= MAX_USELESS_TURNS:
            return f"{len(useless)} of the orchestrator's turns could not be used"
        if len(turns) >= self._rounds:
            return f"no answer after {len(turns)} rounds"
        if turns:
            return ""
        if is_greeting(self._question) and (self._trained or not self._is_agent_ready()):
            return "this is no task for the workers of the pool"
        if not self._trained:
            return ""
        gauge = find_gauge_of(self.inner)
        depth = await gauge.measure(episode) if gauge is not None else None
        beyond = depth is not None and depth.probability >= BEYOND
        return "the query is unlike all that the orchestrator learnt" if beyond else ""

    def _is_agent_ready(self) -> bool:
        return not self._agent or self._pool.workers[self._agent].worker.is_ready()

    async def _await_agent(self) -> bool:
        """Wait a moment for the agent's model, which goes on being loaded; whether the agent can be asked."""
        if self._is_agent_ready():
            return True
        loading = asyncio.create_task(self._pool.workers[self._agent].worker.prepare())
        done, _ = await asyncio.wait({loading}, timeout=LOAD_S)
        if done and loading.exception() is not None:
            return True  # its call says what is wrong
        loading.cancel()  # the wait alone
        return bool(done)

    async def _fall_back(self, episode: Episode, reason: str, turn: Turn) -> Turn:
        """The fallback's first turn; of the orchestrator's own turn its text and cost stay."""
        self._reason = one_line(reason)
        if self._agent and not await self._await_agent():
            self._reason += f"; the model of {self._agent} is still being loaded, so ask again in a minute"
            written = self._write_sentence()
        elif not self._agent:
            written = self._write_sentence()
        else:
            step = episode.next_step_id
            written = write_turn([agent_step(step, self._agent, ASK + escape(episode.query))], f"${step}")
        return replace(
            turn, steps=written.steps, answer=written.answer, error=None, failed=False, bindings=(), draft=None,
            text=turn.text or written.text, note=f"{NOTE}{self._reason}",
        )  # fmt: skip

    def _write_sentence(self) -> Turn:
        turn = write_turn([], escape(describe_pool(self._pool, self._reason)))
        return replace(turn, note=f"{NOTE}{self._reason}")


def is_greeting(text: str) -> bool:
    """Whether a text only greets, thanks, or asks who answers."""
    return len(text) <= MAX_GREETING and _GREETING.fullmatch(text.strip()) is not None


def choose_fallback_agent(pool: LivePool, choice: str) -> str:
    """The agent that answers as the fallback; "" where a sentence does."""
    agents = [name for name, worker in pool.workers.items() if worker.role == "agent"]
    if choice != AUTO:
        return choice if choice in agents else ""
    remote = [name for name in agents if pool.workers[name].worker.remote]
    return next(iter([*remote, *agents]), "")


def describe_pool(pool: LivePool, reason: str) -> str:
    """What the pool can do, for a person whose request it cannot take."""
    workers = list(pool.workers.values())
    lines = [
        f"- {worker.spec.name}: {shorten(one_line(worker.spec.description), MAX_DESCRIPTION)}"
        for worker in workers[:LISTED_WORKERS]
    ]
    more = [f"- and {len(workers) - LISTED_WORKERS} more"] if len(workers) > LISTED_WORKERS else []
    head = f"I could not plan an answer to this ({shorten(reason, 200)}). I answer questions with these workers:"
    return "\n".join([head, *lines, *more])


def read_fallback(episode: Episode) -> str:
    """Why the pool's fallback answered an episode; "" where it did not."""
    notes = (done.turn.note for done in episode.rounds if done.turn is not None)
    return next((note.removeprefix(NOTE) for note in notes if note.startswith(NOTE)), "")


def find_gauge_of(orchestrator: Orchestrator) -> DepthGauge | None:
    """The gauge that says whether a query is like those that an orchestrator learnt, where it has one."""
    innermost = unwrap(orchestrator)
    return innermost.gauge if isinstance(innermost, PlanSampler) else None


def _was_held_back(turn: Turn, episode: Episode) -> bool:
    """Whether a turn has a good answer, which another policy around this one brings into a form."""
    observations = episode.observations()
    return turn.has_answer and turn.error is None and all(observations[k].ok for k in references(turn.answer))


def _turn_seconds(episode: Episode) -> float:
    assert episode.started is not None, "turns are taken in a running episode"
    return min(MAX_TURN_S, TURN_SHARE * float(str(episode.started.limits["deadline_s"])))
