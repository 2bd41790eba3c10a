"""The commands that make a pool's practice tasks: started, stopped and gone on with; a stream says how far it is."""

from __future__ import annotations

from pool_registry.errors import InvalidPool
from studio.frame.commands import Fields, PageCommands, PageReply, command, text, words
from studio.pages.train.tasks.making_documents import build_making_document
from studio.runtime import Runtime
from trainer.errors import UnusableTasks
from trainer.tasks.practice.agents.panel import PanelOptions
from trainer.tasks.practice.make_tasks import PracticeOptions
from trainer.tasks.practice.progress import Watch
from trainer.tasks.practice.stored import estimate_questions, find_making

MAX_TASKS = 2000
MAX_TRIES = 16
NOT_STARTED_HERE = "this studio makes no tasks for the pool now; stop a command line with Ctrl-C, a job on its page"


class MakingCommands(PageCommands):
    """Commands by name."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @command("editor", "make_tasks")
    def _make(self, fields: Fields) -> PageReply:
        """Start to make tasks in place of those that were made before; what a person added, edited or struck stays."""
        return start_making(self._runtime, text(fields, "pool"), parse_options(fields))

    @command("editor", "stop_making")
    def _stop(self, fields: Fields) -> PageReply:
        """Have nothing more asked; what is kept so far becomes the tasks."""
        if not self._runtime.stop_making(text(fields, "pool")):
            raise UnusableTasks(NOT_STARTED_HERE)
        return PageReply()

    @command("editor", "go_on_making")
    def _go_on(self, fields: Fields) -> PageReply:
        """Go on with what was stopped, under what is left of its cap. What was answered is not asked again."""
        pool = text(fields, "pool")
        making = find_making(pool)
        if making is None:
            raise UnusableTasks("no tasks have been made for this pool yet: there is nothing to go on with")
        options, watch = making.plan_rest()
        return start_making(self._runtime, pool, options, watch)

    @command("viewer", "estimate_tasks")
    def _estimate(self, fields: Fields) -> PageReply:
        """What the questions for agents would take; nothing is asked."""
        return estimate_making(self._runtime, text(fields, "pool"), parse_options(fields))


def start_making(runtime: Runtime, pool: str, options: PracticeOptions, watch: Watch | None = None) -> PageReply:
    """Start to make tasks; the reply says how far that is. Raises UnusableTasks, PoolNotFound, or UnwritablePath."""
    runtime.run(estimate_questions(runtime.store, pool, options))  # raises for a panel that cannot work
    runtime.start_making(pool, options, watch or Watch())
    document = build_making_document(pool)
    return PageReply(fields={"making": document.to_json() if document else None})


def estimate_making(runtime: Runtime, pool: str, options: PracticeOptions) -> PageReply:
    """The sentence about what the questions for agents take; "" where none are written. Raises UnusableTasks."""
    estimate = runtime.run(estimate_questions(runtime.store, pool, options))
    return PageReply(fields={"estimate": estimate.describe() if estimate else ""})


def parse_options(fields: Fields) -> PracticeOptions:
    """The options of a command that makes tasks. Raises InvalidPool."""
    count, tries = fields.get("count"), fields.get("tries") or 0
    if not isinstance(count, int) or not 1 <= count <= MAX_TASKS:
        raise InvalidPool([("count", f"give a number from 1 to {MAX_TASKS:,}")])
    if not isinstance(tries, int) or not 0 <= tries <= MAX_TRIES:
        raise InvalidPool([("tries", f"give a number from 0 to {MAX_TRIES}")])
    allowed = fields.get("allowed")
    names = frozenset(map(str, allowed)) if isinstance(allowed, list) else frozenset()
    agent = str(fields.get("agent") or "")
    return PracticeOptions(count=count, allowed=names, agent=agent, tries=tries, panel=parse_panel(fields))


def parse_panel(fields: Fields) -> PanelOptions:
    """Who writes and answers questions for agents, and the cap. Raises InvalidPool."""
    cap, answerers = fields.get("max_cost"), fields.get("answerers")
    if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int | float) or cap <= 0):
        raise InvalidPool([("max_cost", "give an amount above $0, or leave it empty for no cap")])
    author = words(fields, "author")
    if author and answerers == []:
        raise InvalidPool([("answerers", "choose who answers: the answers of several must agree")])
    names = tuple(map(str, answerers)) if isinstance(answerers, list) else ()
    return PanelOptions(author, names, words(fields, "judge"), max_cost=cap)
