"""The command of the Tasks panel that makes a pool of a data set of tool use, and shows its first plans as graphs."""

from __future__ import annotations

from pydantic import Field

from pool_registry.imports import FreeNames
from pool_registry.pool import Pool
from pool_registry.text import count_of
from studio.access.recipe_rights import check_task_source
from studio.frame.commands import Fields, PageCommands, PageReply, command, text, words
from studio.frame.document import PageDocument
from studio.headless import run_once
from studio.pages.train.rollouts import SmallGraph, build_small_graph
from studio.pages.train.tasks.posted_tasks import name_posted, read_options, read_uploads
from studio.pages.train.tasks.task_documents import TasksPreview, build_preview
from studio.runtime import Runtime
from trainer.errors import UnusableTasks
from trainer.tasks.practice.stored import list_own_tasks
from trainer.tasks.sources.places import HUB
from trainer.tasks.tool_use.places import open_tool_data, read_tool_bytes
from trainer.tasks.tool_use.reader import ToolData
from trainer.tasks.tool_use.recorded_pool import keep_recorded_pool, make_recorded_pool

FIRST_RUNS = 6  # plans that are run at once, to be looked at


class PlanRun(PageDocument):
    """A task whose reference plan was run."""

    query: str
    episode: str
    correct: bool
    graph: SmallGraph


class RecordedPoolDocument(PageDocument):
    """The pool that was made of a data set, and some of its tasks as graphs."""

    pool: str
    sentence: str
    runs: list[PlanRun] = Field(description="The first tasks, whose plans were run.")


class RecordedCommands(PageCommands):
    """Commands by name."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @command("editor")
    def _make_recorded_pool(self, fields: Fields) -> PageReply:
        """Make the pool, add its tasks, and run the first of its plans."""
        data = read_posted_conversations(fields)
        if data is None:
            raise UnusableTasks(f"{name_posted(fields)} holds no calls of tools: add it as tasks of a pool")
        recorded = make_recorded_pool(data, text(fields, "new_pool"))
        count = keep_recorded_pool(self._runtime.store, recorded)
        name, tools = recorded.pool.name, count_of(len(recorded.pool.workers), "tool")
        runs = [self._run_plan(recorded.pool, task.query) for task in list_own_tasks(name)[:FIRST_RUNS]]
        sentence = f"Made the pool {name}: {tools}, {count_of(count, 'task')} with a reference plan."
        document = RecordedPoolDocument(pool=name, sentence=sentence, runs=runs)
        return PageReply(f"Made the pool {name}", {"recorded": document.to_json()})

    def _run_plan(self, pool: Pool, query: str) -> PlanRun:
        store = self._runtime.store
        key = self._runtime.run(run_once(store, pool.name, "oracle", query))["id"]
        episode = store.traces.episode(key)
        graph = build_small_graph(episode, store.traces.row(key), pool)
        correct = episode.graded is not None and episode.graded.correct
        return PlanRun(query=query, episode=key, correct=correct, graph=graph)


def read_posted_conversations(fields: Fields) -> ToolData | None:
    """The data set of tool use that was uploaded, pasted or named; None where it is none. Raises UnusableTasks."""
    options = read_options(fields)
    if address := words(fields, "dataset").removeprefix(HUB):
        check_task_source(f"{HUB}{address}")
        return open_tool_data(f"{HUB}{address}", options)
    data, answers = read_uploads(fields)
    return read_tool_bytes(data, name_posted(fields), options, answers)


def preview_recorded_pool(data: ToolData, fields: Fields, taken: list[str]) -> TasksPreview:
    """What a data set of tool use would become, with a free name for its pool."""
    source = words(fields, "dataset").rpartition("/")[2] or words(fields, "name").rpartition(".")[0]
    recorded = make_recorded_pool(data, FreeNames(taken).choose(source or data.format))
    preview = build_preview(recorded.read, recorded.pool)
    return preview.model_copy(update={"new_pool": recorded.pool.name, "notes": list(recorded.notes)})
