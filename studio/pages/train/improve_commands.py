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
        pool = text(fields, "pool")
        document = self._build(pool)
        if document.state == "running":
            raise AlreadyImproving(pool)
        if document.state != "interrupted":
            choose_tasks(
                open_task_book(pool).read(), list_improvements(self._store.home, pool), MOST_HELD_OUT, 0
            ).check_enough()
        start_improvement(self._store.home, pool, words(fields, "serving"))
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
