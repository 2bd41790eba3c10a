"""The commands of the card *Improve*: what is new in a pool, an improvement in a process of its own, and its timer."""

from __future__ import annotations

from studio.frame.commands import Fields, PageCommands, PageReply, command, text, words
from studio.improving.schedule import describe_timer, read_timers, set_timer
from studio.improving.start import find_serving, start_improvement
from studio.pages.train.improve_documents import ImproveDocument, build_improve_document
from studio.runtime import Runtime
from trainer.improve.choose_tasks import choose_tasks
from trainer.improve.record import MOST_HELD_OUT, AlreadyImproving, list_improvements
from trainer.tasks.practice.stored import open_task_book


class ImproveCommands(PageCommands):
    """Commands by name."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store

    @command("viewer", "improvement")
    def _show(self, fields: Fields) -> PageReply:
        """What is new, what serves, and what the last improvement came to."""
        return PageReply(fields={"improvement": self._build(text(fields, "pool")).to_json()})

    @command("editor", "improve")
    def _start(self, fields: Fields) -> PageReply:
        """Begin an improvement, or go on with one that was interrupted."""
        pool = text(fields, "pool")
        if self._check_idle(pool) == "interrupted":
            start_improvement(self._store.home, pool, words(fields, "serving"))
            return PageReply("It goes on: its jobs appear in the list.")
        return self._begin(fields, pool)

    @command("editor", "improve_anew")
    def _start_anew(self, fields: Fields) -> PageReply:
        """Give up an improvement that was interrupted, and begin another."""
        pool = text(fields, "pool")
        return self._begin(fields, pool, anew=self._check_idle(pool) == "interrupted")

    def _check_idle(self, pool: str) -> str:
        """The state of the pool's last improvement. Raises AlreadyImproving."""
        state = self._build(pool).state
        if state == "running":
            raise AlreadyImproving(pool)
        return state

    def _begin(self, fields: Fields, pool: str, anew: bool = False) -> PageReply:
        earlier = list_improvements(self._store.home, pool)
        choose_tasks(open_task_book(pool).read(), earlier, MOST_HELD_OUT, 0).check_enough()
        start_improvement(self._store.home, pool, words(fields, "serving"), anew)
        return PageReply("It has begun: its jobs appear in the list.")

    @command("editor", "improve_timer")
    def _set_timer(self, fields: Fields) -> PageReply:
        pool = text(fields, "pool")
        self._store.pools.latest(pool)
        timer = set_timer(self._store.home, pool, text(fields, "every"), words(fields, "serving"))
        return PageReply(describe_timer(pool, timer), {"improvement": self._build(pool).to_json()})

    def _build(self, pool: str) -> ImproveDocument:
        timer = read_timers(self._store.home).get(pool)
        serving = find_serving(self._store, pool)
        return build_improve_document(self._store.home, pool, serving, timer.every if timer else "off")
