"""Demonstrations: episodes as conversations for SFT to imitate; from runs, from stars, from files, and to files.

A turn that made a mistake of its own is context and never a target.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.dialects import find_dialect
from orchestrator.dialects.base import Dialect
from orchestrator.engine.episode import Episode, Round, StepRun
from orchestrator.plan import Step, Turn, renumber_step
from orchestrator.prompt import opening_messages, reply_messages
from orchestrator.prompt_styles import PROMPTS, PromptStyle
from orchestrator.quotes import REFERENCE, escape, references, renumber_quotes
from orchestrator.reader.bind_needs import rank_workers
from orchestrator.reader.cards import PLAIN_LISTING, ListingFormat, format_listed
from orchestrator.reader.conversation import continue_conversation, open_conversation, reopen_conversation
from orchestrator.reader.fill import format_fill
from orchestrator.reader.needs import MAX_NEED_CHARS, Need, format_needs, quote_question
from orchestrator.reader.refusal import is_refusal, read_refused_need, refuse
from orchestrator.reader.states import TriedPlan
from orchestrator.retrieval.choose_workers import narrow_pool, select_workers
from orchestrator.traces.store import TraceStore
from pool_registry.actions import as_text
from pool_registry.atomic_write import write_atomically
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.language_models.completion import Message
from pool_registry.text import one_line, shorten
from pool_registry.validation_words import describe_problems
from trainer.errors import TrainingFailed
from trainer.learner.token_transcript import ChatTokens, Transcript
from trainer.recipe_sections import ModelSettings
from trainer.tasks.practice.traffic_record import NO_CONSENT, read_traffic
from trainer.tasks.suite import make_random

log = logging.getLogger(__name__)
# Failures that are not the orchestrator's doing: a turn that met one is still worth imitating.
NOT_ITS_FAULT = {"timeout", "unavailable", "dependency_failed", "connection", "rate_limited", "deadline"}
MAX_FILE_BYTES = 500_000_000
TRIED_MESSAGES = 6  # listing, query, needs, cards, arguments, what came of them
UNFIT_CARD = 0.2  # share of a reader's demonstrations with the card of a worker that does not fit


class DemonstrationMessage(BaseModel):
    """One message of a demonstration; `learn` marks the turns that are targets."""

    model_config = ConfigDict(extra="forbid")

    role: str
    content: str
    learn: bool = False
    tool_call_id: str = ""


class Demonstration(BaseModel):
    """A trajectory as a conversation: one line of a JSONL file, one row of a data set."""

    model_config = ConfigDict(extra="ignore")

    messages: list[DemonstrationMessage]
    query: str = ""
    episode: str = ""
    source: str = ""
    tools: str = ""  # the functions of the chat template as JSON, where the dialect calls them

    def first_turn(self) -> Demonstration:
        """This conversation up to the end of the assistant's first turn: of a reader's, its needs."""
        end = next(place for place, message in enumerate(self.messages) if message.role == "assistant")
        return self.model_copy(update={"messages": self.messages[: end + 1]})

    def transcript(self, chat: ChatTokens) -> Transcript:
        """The tokens of this conversation. Raises TrainingFailed when the template cannot hold it."""
        turns = [index for index, message in enumerate(self.messages) if message.role == "assistant"]
        if not turns:
            raise TrainingFailed("demonstrations", "a demonstration without a turn of the assistant teaches nothing")
        before = [Message(message.role, message.content) for message in self.messages[: turns[0]]]
        between = [self.messages[a + 1 : b] for a, b in itertools.pairwise(turns)]
        if not all(len(part) == 1 or (part and all(m.role == "tool" for m in part)) for part in between):
            raise TrainingFailed(
                "demonstrations",
                "a demonstration is a turn of the assistant, one message for it (or the outputs of its calls, in "
                "messages of the role tool), the next turn, and so on; "
                f"join what stands between two turns in the one that begins {self.messages[0].content[:60]!r}",
            )
        grown = Transcript(chat.encode_prompt(before, json.loads(self.tools) if self.tools else None))
        for part, turn in zip(([], *between), turns, strict=True):
            if part:
                grown.add(chat.encode_between([Message(m.role, m.content, (), m.tool_call_id) for m in part]), False)
            grown.add(chat.encode_turn(self.messages[turn].content), self.messages[turn].learn)
        return grown


@dataclass(frozen=True, slots=True)
class ReaderLesson:
    """How a reader is taught: how the pool is shown, and which share of the needs are lines of the listing, where the
    plan brings other words. `unfit_cards`: share with the card of a worker that does not fit."""

    listing: ListingFormat = PLAIN_LISTING
    listed_needs: float = 0.9
    unfit_cards: float = UNFIT_CARD


BY_THE_LISTING = ReaderLesson()


def make_demonstration(
    episode: Episode,
    pool: LivePool,
    dialect: str,
    style: PromptStyle,
    max_rounds: int,
    source: str,
    lesson: ReaderLesson = BY_THE_LISTING,
    tried: TriedPlan | None = None,
) -> Demonstration:
    """An episode as the conversation that a model in this dialect would have had; `lesson` and a plan that was `tried`
    before are for readers."""
    if PROMPTS[style].binds_needs:
        return make_reader_demonstration(episode, pool, source, lesson, tried)
    written_as = find_dialect(dialect)
    called = {run.step.worker for run in episode.steps.values()}
    lists_workers = PROMPTS[style].lists_workers
    seen = narrow_pool(pool, select_workers(episode.query, pool, called)) if lists_workers else pool
    names = list(seen.workers)
    messages = [
        DemonstrationMessage(role=m.role, content=m.content)
        for m in opening_messages(episode.query, seen, written_as, style)
    ]
    for done in episode.rounds:
        if done.turn is None:
            continue
        ill = done.turn.error is not None
        text = done.turn.text if ill else written_as.format(Turn(done.turn.steps, done.turn.answer), names)
        messages.append(
            DemonstrationMessage(role="assistant", content=text, learn=not ill and not _has_own_error(done))
        )
        replies = reply_messages(done, max_rounds - done.number, written_as, written_as.name_workers(seen))
        messages += [DemonstrationMessage(role=m.role, content=m.content, tool_call_id=m.tool_call_id) for m in replies]
        ended = done is episode.rounds[-1] and episode.answer is not None
        if written_as.calls_tools and done.turn.steps and done.turn.has_answer and ended:
            text = _write_answer(done.turn, episode, written_as, names)
            messages.append(DemonstrationMessage(role="assistant", content=text, learn=True))
    while messages and messages[-1].role != "assistant":
        messages.pop()
    offered = written_as.tools(seen) if lists_workers else None
    tools = json.dumps(offered, ensure_ascii=False) if offered else ""
    return Demonstration(messages=messages, query=episode.query, episode=episode.id, source=source, tools=tools)


def _write_answer(turn: Turn, episode: Episode, dialect: Dialect, names: Sequence[str]) -> str:
    """The answer of a plan in a turn of its own: a quote of one step as it is, else the text that it led to."""
    quoted = isinstance(turn.answer, str) and REFERENCE.fullmatch(turn.answer)
    return dialect.format(Turn(answer=turn.answer if quoted else escape(as_text(episode.answer))), names)


def make_reader_demonstration(
    episode: Episode, pool: LivePool, source: str, lesson: ReaderLesson, tried: TriedPlan | None = None
) -> Demonstration:
    """The plan of an episode as the conversation in which a reader would have made it, perhaps after one that went
    wrong. Raises TrainingFailed when the episode has none (find_plan)."""
    plan = find_plan(episode, pool)
    if plan is None:
        raise TrainingFailed("demonstrations", f"the episode {episode.id} has no plan that a reader could learn")
    messages = _mark_learnt(write_reader_conversation(episode.query, plan, pool, lesson, tried), tried)
    return Demonstration(messages=messages, query=episode.query, episode=episode.id, source=source)


def write_reader_lesson(
    query: str,
    turn: Turn,
    pool: LivePool,
    lesson: ReaderLesson,
    needs_alone: float,
    seed: int,
    tried: TriedPlan | None = None,
) -> Demonstration:
    """A plan as the conversation in which a reader would have made it, without an episode, perhaps after one that went
    wrong; of the others a share of `needs_alone` ends with the needs."""
    messages = _mark_learnt(write_reader_conversation(query, turn, pool, lesson, tried), tried)
    row = Demonstration(messages=messages, query=query, source="plan")
    return row.first_turn() if tried is None and ends_with_needs(query, needs_alone, seed) else row


def _mark_learnt(messages: Sequence[Message], tried: TriedPlan | None) -> list[DemonstrationMessage]:
    """The messages of a reader's conversation: what it writes is learnt, save a plan that went wrong."""
    first = TRIED_MESSAGES if tried is not None else 0
    return [
        DemonstrationMessage(
            role=message.role, content=message.content, learn=message.role == "assistant" and place >= first
        )
        for place, message in enumerate(messages)
    ]


def ends_with_needs(query: str, share: float, seed: int) -> bool:
    """Whether a demonstration is one of the share that ends with the needs."""
    return make_random(f"needs alone/{seed}/{query}").random() < share


def find_plan(episode: Episode, pool: LivePool) -> Turn | None:
    """The plan that led to an episode's answer, as one turn with steps that count from 1.

    Of several rounds it is the steps that the answer goes back to: a call that failed is left out with what repeated
    it in, so that a reader learns the worker that could do it. None where there is no such plan: a step of it was a
    mistake or calls a worker that the pool lacks, or the answer was written after the outputs had been read.
    """
    turns = [done.turn for done in episode.rounds if done.turn is not None and done.turn.error is None]
    if not turns:
        return None
    plan = turns[0] if len(turns) == 1 else _join_turns(turns)
    if plan is None:
        return None
    runs = [episode.steps[step.id] for step in plan.steps if step.id in episode.steps]
    if any(run.step.worker not in pool.workers or _is_mistake(run) for run in runs):
        return None
    ids = {step.id: place for place, step in enumerate(plan.steps, start=1)}
    return replace(
        plan, steps=tuple(renumber_step(step, ids) for step in plan.steps), answer=renumber_quotes(plan.answer, ids)
    )


def _join_turns(turns: Sequence[Turn]) -> Turn | None:
    """The last turn with all the steps that its answer goes back to; None where it quotes none."""
    steps = {step.id: step for turn in turns for step in turn.steps}
    needed: set[int] = set()
    todo = list(references(turns[-1].answer))
    while todo:
        if (k := todo.pop()) not in needed:
            needed.add(k)
            todo += {*steps[k].access, *steps[k].references}
    return replace(turns[-1], steps=tuple(steps[k] for k in sorted(needed))) if needed else None


def write_reader_conversation(
    query: str, turn: Turn, pool: LivePool, lesson: ReaderLesson = BY_THE_LISTING, tried: TriedPlan | None = None
) -> list[Message]:
    """The messages in which a reader plans `turn`: needs, then arguments for the workers' cards; with a plan that it
    has `tried` behind that and what came of it.

    In some conversations one card is that of the likeliest worker that does not fit: the reader learns to say so, and
    is then shown another card (orchestrator/policies/reader.py). A refusal is learnt in the same way where it names a
    need, and at once where it names none.

    By default most needs are the lines that list their workers. A reader that had learnt needs in the words of its
    training tasks alone named those words for any pool, and took a question that a worker of a foreign pool serves for
    one to refuse.
    """
    random = make_random(f"reader/{query}")
    called = [step.worker for step in turn.steps]
    before = [step.worker for step in tried.steps] if tried is not None else []
    shown = narrow_pool(pool, select_workers(query, pool, {*called, *before}))
    opening = open_conversation(query, shown.workers.values(), lesson.listing)
    if tried is not None:
        opening = reopen_conversation(opening, tried, pool.workers, lesson.listing)
    refused = read_refused_need(turn.answer)
    needs = [Need(refused)] if refused else _list_needs(turn.steps, pool, lesson, random.random() < lesson.listed_needs)
    workers = [pool.workers[name] for name in called] if called else [_pick_unfit(need, pool, ()) for need in needs]
    cards = [worker for worker in workers if worker is not None]
    if not cards or (refused and tried is not None):  # nothing is needed that could be named, or it has been tried
        return [*opening, Message("assistant", refuse())]
    fill = refuse(refused) if refused else format_fill(turn.steps, turn.answer)
    if not refused and random.random() < lesson.unfit_cards:
        place = random.randrange(len(needs))
        unfit = _pick_unfit(needs[place], pool, called)
        if unfit is not None:
            cards[place], fill = unfit, refuse(needs[place].text)
    return [*continue_conversation(opening, format_needs(needs), cards, lesson.listing), Message("assistant", fill)]


def _list_needs(steps: Sequence[Step], pool: LivePool, lesson: ReaderLesson, listed: bool) -> list[Need]:
    """The needs of a plan: what each step states, or, of `listed` ones and where it states nothing, the line that lists
    its worker. A question stays one: the lines of agents tell nothing of it."""

    def write_need(step: Step) -> Need:
        worker = pool.workers[step.worker]
        asks = lesson.listing.marks_agents and worker.role == "agent"
        need = step.need or (_read_question(step, worker) if asks else "")
        stated, line = Need(need, step.access), Need(format_listed(worker), step.access)
        return stated if stated.is_question or (stated.text and not listed) else line

    return list(map(write_need, steps))


def _read_question(step: Step, worker: LiveWorker) -> str:
    """What a step asks an agent, as a reader states it; "" where it asks nothing in words."""
    instruction = step.arguments.get(worker.instruction_parameter or "instruction")
    question = shorten(one_line(str(instruction or "")), MAX_NEED_CHARS - 2)
    return quote_question(question) if any(map(str.isalpha, question)) else ""


def _pick_unfit(need: Need, pool: LivePool, fitting: Sequence[str]) -> LiveWorker | None:
    """The likeliest worker for a need outside these; None where there is no other. A question may be put to any agent:
    none is unfit beside one that answers it."""
    if need.is_question and fitting:
        return None
    others = [worker for name, worker in pool.workers.items() if name not in fitting]
    others = [worker for worker in others if worker.role == "agent"] if need.is_question else others
    return pool.workers[rank_workers(need, others)[0].worker] if others else None


def _has_own_error(done: Round) -> bool:
    """Whether a turn holds an error of its own, as far as its observations tell."""
    return any(map(_is_mistake, done.steps))


def _is_mistake(run: StepRun) -> bool:
    """Whether a call failed by the orchestrator's own doing."""
    failure = run.observation.error if run.observation is not None and not run.observation.ok else None
    return failure is not None and failure.code not in NOT_ITS_FAULT


def can_demonstrate(episode: Episode, pool: LivePool, style: PromptStyle) -> bool:
    """Whether a model with prompts of this style can learn from an episode. A reader cannot from an answer that no
    worker gave: it would learn to refuse."""
    if not PROMPTS[style].binds_needs:
        return True
    plan = find_plan(episode, pool)
    return plan is not None and (bool(plan.steps) or is_refusal(plan.answer))


def load_starred_demonstrations(
    traces: TraceStore, pool: LivePool, model: ModelSettings, rounds: int, lesson: ReaderLesson = BY_THE_LISTING
) -> Iterator[Demonstration]:
    """The traces on this pool that a person starred. Those without an answer or with a wrong one are left out, those of
    clients where their requests may not become tasks, and for readers those without a plan."""
    traffic = read_traffic(pool.pool.name)
    for key in traces.list_starred(pool.pool.name):
        episode = traces.episode(key)
        if episode.started is not None and not traffic.allows(episode.started.source):
            log.warning("the starred run %s is left out: %s", key, NO_CONSENT)
            continue
        answered = episode.ended is not None and episode.ended.outcome == "answered"
        is_wrong = episode.graded is not None and not episode.graded.correct
        if answered and not is_wrong and can_demonstrate(episode, pool, model.prompt):
            yield make_demonstration(episode, pool, model.dialect, model.prompt, rounds, "starred", lesson)


def save_demonstrations(path: Path, rows: Sequence[Demonstration]) -> None:
    """Write JSONL, or, when the path has no suffix, a folder that `datasets.load_from_disk` opens."""
    if path.suffix:
        lines = (json.dumps(row.model_dump(), ensure_ascii=False) for row in rows)
        write_atomically(path, "".join(f"{line}\n" for line in lines))
        return
    from datasets import Dataset

    Dataset.from_list([row.model_dump() for row in rows]).save_to_disk(str(path))


def load_demonstrations(path: Path) -> list[Demonstration]:
    """Read what `save_demonstrations` wrote, or any JSONL of `messages`. Raises TrainingFailed naming the line.

    Where `learn` does not occur, as in data sets from elsewhere, every turn of the assistant is a target.
    """
    if path.is_dir():
        from datasets import load_from_disk

        rows = [Demonstration.model_validate(row) for row in load_from_disk(str(path))]
    else:
        rows = list(_read_lines(path))
    return [_with_targets(row) for row in rows]


def _read_lines(path: Path) -> Iterator[Demonstration]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise TrainingFailed("demonstrations", f"{path.name} is larger than {MAX_FILE_BYTES:,} bytes; split it")
        lines = path.read_text(encoding="utf-8").split("\n")  # splitlines would split at U+2028 inside a string
    except (OSError, UnicodeDecodeError) as error:
        raise TrainingFailed("demonstrations", f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield Demonstration.model_validate_json(line)
        except ValidationError as error:
            raise TrainingFailed("demonstrations", f"{path.name}, line {number}: {describe_problems(error)}") from error


def _with_targets(row: Demonstration) -> Demonstration:
    if any("learn" in message.model_fields_set for message in row.messages):
        return row
    marked = [message.model_copy(update={"learn": message.role == "assistant"}) for message in row.messages]
    return row.model_copy(update={"messages": marked})
