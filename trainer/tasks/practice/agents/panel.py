"""The panel: which agents of a pool write, answer and judge questions, and how many must agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pool_registry.calls.live_pool import LivePool, LiveWorker
from trainer.errors import UnusableTasks

AGREEMENT = 3  # votes that keep a question, where so many are asked
MIN_VOTES = 2


@dataclass(frozen=True, slots=True)
class PanelOptions:
    """What a person chooses, by names of workers. Without `author` no questions are written for a pool that has other
    workers, and without `answerers` every other agent answers. `agree`: how many votes must agree; 0 for
    `AGREEMENT`, or all where fewer are asked. `max_cost`: the most US dollars that may be spent now."""

    author: str = ""
    answerers: tuple[str, ...] = ()
    judge: str = ""
    agree: int = 0
    max_cost: float | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """`voters` counts the answerers, and the author by the answer that it wrote unless it is one of them."""

    author: str
    answerers: tuple[str, ...]
    judge: str
    agree: int

    @property
    def author_votes(self) -> bool:
        """Whether the answer that the author wrote counts as its vote."""
        return self.author not in self.answerers

    @property
    def voters(self) -> int:
        return len(self.answerers) + self.author_votes

    @property
    def members(self) -> tuple[str, ...]:
        """Everyone who is called, each once."""
        return tuple(dict.fromkeys(filter(None, (self.author, *self.answerers, self.judge))))


def choose_panel(pool: LivePool, options: PanelOptions) -> Panel:
    """The panel that the options ask for. Raises UnusableTasks saying which agents there are."""
    agents = [spec.name for spec in pool.pool.agents()]
    if options.max_cost is not None and options.max_cost <= 0:
        raise UnusableTasks("a cap of no dollars allows no call; give an amount above $0, or leave it out")
    author = options.author or _require_author(agents)
    others = [name for name in agents if name not in (author, options.judge)]
    answerers = tuple(dict.fromkeys(options.answerers)) or tuple(others)
    for name in (author, *answerers):
        _check_agent(pool, name, agents)
    if options.judge and options.judge not in pool.judges:
        _check_agent(pool, options.judge, agents)
    if options.judge in (author, *answerers):
        raise UnusableTasks(
            f"{options.judge} cannot judge: name an agent that is neither the author nor one who answers"
        )
    panel = Panel(author, answerers, options.judge, options.agree)
    if panel.voters < MIN_VOTES:
        raise UnusableTasks(
            f"nobody could check what {author} writes: answers count when {MIN_VOTES} agents agree; add another agent "
            "to the pool, or name others as answerers"
        )
    agree = options.agree or min(AGREEMENT, panel.voters)
    if not MIN_VOTES <= agree <= panel.voters:
        raise UnusableTasks(f"{agree} cannot agree: {panel.voters} vote; give a number from {MIN_VOTES} to that")
    _check_prices(pool, panel, options.max_cost)
    return Panel(author, answerers, options.judge, agree)


def _require_author(agents: Sequence[str]) -> str:
    if len(agents) == 1:
        return agents[0]
    raise UnusableTasks(f"say which agent writes the questions: --author with one of {', '.join(agents)}")


def _check_agent(pool: LivePool, name: str, agents: Sequence[str]) -> None:
    if name not in pool.workers:
        raise UnusableTasks(pool.unknown_worker(name))
    if name not in agents or pool.workers[name].instruction_parameter is None:
        raise UnusableTasks(f"{name} is no agent, so it cannot write or answer; name one of {', '.join(agents)}")


def _check_prices(pool: LivePool, panel: Panel, max_cost: float | None) -> None:
    """Raise UnusableTasks where a cap cannot hold because a price is not known."""
    unpriced = [name for name in panel.members if find_member(pool, name).lacks_price]
    if max_cost is not None and unpriced:
        raise UnusableTasks(
            f"a cap on the cost cannot hold: the price of {', '.join(unpriced)} is not known. Give it on the Pool "
            "page, say there that it is free, or leave the cap out"
        )


def find_member(pool: LivePool, name: str) -> LiveWorker:
    """One of a panel that was checked: an agent, or a worker that only judges."""
    worker = pool.find_judge(name)
    assert worker is not None, "choose_panel has looked for it"
    return worker
