"""What making questions will take, before anything is called: calls, tokens, US dollars and seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pool_registry.calls.live_pool import LivePool
from pool_registry.language_models.completion import estimate_tokens
from pool_registry.text import count_of
from trainer.tasks.practice.agents.ask import AT_A_TIME
from trainer.tasks.practice.agents.panel import Panel, find_member
from trainer.tasks.practice.agents.propose import PROMPT

PER_REQUEST = 5  # questions that are written at a time
PER_TASK = 2  # questions that are written for each one that is kept
QUESTION_TOKENS = 60  # of a question with its answer as an author writes it
ANSWER_TOKENS = 30
CARD_TOKENS = 500  # of a card or passage and of earlier questions in an author's prompt
MAX_NAMES = 4  # in the sentence
ASSUMED_JUDGED = 2  # replies a judge compares for each question


@dataclass(frozen=True, slots=True)
class Work:
    """What one member of the panel does: its calls and the tokens of all of them."""

    calls: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """About what the whole work takes. `cost` is in US dollars, without what the `unpriced` members cost. `seconds` are
    None where no call of the `untimed` members has ever been recorded."""

    calls: int
    tokens: int
    cost: float
    unpriced: tuple[str, ...]
    seconds: float | None
    untimed: tuple[str, ...]

    def describe(self) -> str:
        """The estimate in one sentence."""
        if not self.calls:
            return "No call is needed: what was answered before is enough."
        cost = f"${self.cost:.2g}" if self.cost else "no cost"
        if self.unpriced:
            priced = f"{cost} and " if self.cost else ""
            cost = f"{priced}a cost that is not known (no price: {list_names(self.unpriced)})"
        time = "" if self.seconds is None else describe_seconds(self.seconds)
        if not time:
            time = f"a time that is not known (no recorded call: {list_names(self.untimed)})"
        return f"About {count_of(self.calls, 'call')}, {self.tokens:,} tokens, {cost}, {time}."


def list_names(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - MAX_NAMES
    return ", ".join(names) if rest <= 0 else f"{', '.join(names[:MAX_NAMES])} and {count_of(rest, 'other')}"


def describe_seconds(seconds: float) -> str:
    """A time in the unit that a person would use."""
    return f"{max(1, round(seconds))} s" if seconds < 120 else f"{round(seconds / 60)} minutes"


def estimate_work(pool: LivePool, panel: Panel, count: int, latencies: Mapping[str, float]) -> Estimate:
    """The work for `count` more tasks. `latencies`: seconds of a call by worker."""
    questions = PER_TASK * count
    work = _divide_work(pool, panel, questions)
    cost = 0.0
    for name, share in work.items():
        spec = find_member(pool, name).spec
        tokens_cost = (share.tokens_in * spec.price_in + share.tokens_out * spec.price_out) / 1e6
        cost += tokens_cost + share.calls * spec.price_call
    specs = [find_member(pool, name).spec for name in panel.members]
    return Estimate(
        calls=sum(share.calls for share in work.values()),
        tokens=sum(share.tokens_in + share.tokens_out for share in work.values()),
        cost=cost,
        unpriced=tuple(spec.name for spec in specs if not spec.has_price and not spec.free),
        seconds=_estimate_seconds(panel, questions, latencies),
        untimed=tuple(name for name in panel.members if name not in latencies),
    )


def _divide_work(pool: LivePool, panel: Panel, questions: int) -> dict[str, Work]:
    """The work of each member, by name."""
    requests = math.ceil(questions / PER_REQUEST)
    prompt = estimate_tokens(PROMPT) + CARD_TOKENS
    work = {panel.author: Work(requests, requests * prompt, questions * QUESTION_TOKENS)}
    roles = {name: estimate_tokens(str(find_member(pool, name).spec.config.get("role", ""))) for name in panel.members}
    for name in panel.answerers:
        more = Work(questions, questions * (roles[name] + QUESTION_TOKENS), questions * ANSWER_TOKENS)
        done = work.get(name, Work(0, 0, 0))
        work[name] = Work(done.calls + more.calls, done.tokens_in + more.tokens_in, done.tokens_out + more.tokens_out)
    if panel.judge:
        verdicts = ASSUMED_JUDGED * questions
        work[panel.judge] = Work(verdicts, verdicts * 3 * QUESTION_TOKENS, verdicts * 2)
    return work


def _estimate_seconds(panel: Panel, questions: int, latencies: Mapping[str, float]) -> float | None:
    """Requests one after the other; questions side by side, each as long as its slowest answerer and the judge."""
    if any(name not in latencies for name in panel.members):
        return None
    written = math.ceil(questions / PER_REQUEST) * latencies[panel.author]
    judged = ASSUMED_JUDGED * latencies[panel.judge] if panel.judge else 0.0
    answered = math.ceil(questions / AT_A_TIME) * (max(latencies[name] for name in panel.answerers) + judged)
    return written + answered
