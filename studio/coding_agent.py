"""Podium's workshop for a coding agent: an MCP server that reads traces, jobs, tasks and results.

Without `changes` its tools only read. With it the agent may add tasks to a pool, and propose a job: that waits in the
list of jobs until a person starts it, so nothing is ever trained because a model said so. Requests of clients are
neither shown nor taken for tasks where their pool does not allow it. Over stdio alone: whoever starts it has the rights
of the person at the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from orchestrator.checkpoints import checkpoint_names
from orchestrator.engine.episode import Episode
from orchestrator.engine.events import SERVED
from orchestrator.errors import OrchestratorError
from orchestrator.traces.store import EpisodeRow, Store, TraceFilter
from pool_registry.errors import PoolError
from pool_registry.text import shorten
from studio.episode_documents.trace import build_trace_document
from trainer.cli.jobs import build_job_document
from trainer.demonstrations.episode_task import find_first_run
from trainer.errors import InvalidRecipe, TrainerError
from trainer.evaluation.side_by_side import compare_jobs
from trainer.jobs.queue import JobStore
from trainer.recipe import dump_recipe, list_presets, load_recipe, parse_recipe
from trainer.tasks.practice.stored import change_tasks, open_task_book
from trainer.tasks.practice.traffic_record import check_consent, digest_query, read_traffic
from trainer.tasks.sources.jsonl import TaskLine, WrittenTask

MOST_ROWS = 200
MOST_SEARCHED = 5000  # runs among which those that may be shown are looked for
MAX_VALUE_CHARS = 2000  # of a step's output, where the whole trace is not asked for
MAX_WHY_CHARS = 300
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
Limit = Annotated[int, Field(ge=1, le=MOST_ROWS, description="How many at most.")]
INSTRUCTIONS = "Read the traces, jobs and tasks of a Podium studio. A job that you propose waits for a person."


def create_workshop_server(store: Store, *, changes: bool = False) -> MCPServer[None]:
    """Create the MCP server over a data folder. `changes`: also what adds tasks and proposes jobs."""
    server: MCPServer[None] = MCPServer("podium-workshop", instructions=INSTRUCTIONS, log_level="WARNING")
    jobs = JobStore(store.engine, store.home)
    _add_traces(server, store)
    _add_jobs(server, store, jobs)
    if changes:
        _add_changes(server, store, jobs)
    return server


def _add_traces(server: MCPServer[None], store: Store) -> None:
    @server.tool(annotations=READS)
    def list_pools() -> list[dict[str, Any]]:
        """The pools, and what each worker of theirs does."""
        pools = [store.pools.latest(name).pool for name in store.pools.names()]
        return [
            {
                "pool": pool.name,
                "workers": {spec.name: f"{spec.kind}: {shorten(spec.description, 200)}" for spec in pool.switched_on},
            }
            for pool in pools
        ]

    @server.tool(annotations=READS)
    def find_traces(
        pool: str = "", orchestrator: str = "", outcome: str = "", text: str = "", limit: Limit = 20
    ) -> list[dict[str, Any]]:
        """The newest runs that match: id, query, answer, outcome, whether it was right, steps, tokens, dollars.
        `outcome` is answered, gave_up, waiting and the like; `text` stands in the query or the answer. Requests of
        clients are left out where their pool does not allow it."""
        criteria = TraceFilter(pool=pool, orchestrator=orchestrator, state=outcome, text=text, limit=MOST_ROWS)
        with _refusals():
            return [_describe_run(row) for row in islice(_find_open_runs(store, criteria), limit)]

    @server.tool(annotations=READS)
    def read_trace(id: str, events: bool = False) -> dict[str, Any]:
        """One run: its plan's steps with what each worker was asked, could see and returned, why it ended, and
        warnings. With `events` everything that was recorded, prompts too, which is long."""
        with _refusals():
            row = store.traces.row(id)
            outermost = _find_outermost(store, row)
            check_consent(outermost.pool, outermost.source)
            document = build_trace_document(store, row)
            episode = store.traces.episode(id)
        if not events:
            document.pop("events", None)
            document["steps"] = _describe_steps(episode)
        return document


def _add_jobs(server: MCPServer[None], store: Store, jobs: JobStore) -> None:
    @server.tool(annotations=READS)
    def list_jobs(limit: Limit = 20) -> list[dict[str, Any]]:
        """The newest jobs: what they do, how far they are, how they ended."""
        return [build_job_document(row) for row in jobs.all(limit)]

    @server.tool(annotations=READS)
    def list_checkpoints() -> list[str]:
        """The trained orchestrators, by the names that recipes and runs take."""
        return checkpoint_names()

    @server.tool(annotations=READS)
    def compare_checkpoints(evaluations: list[str], reference: str = "", by: str = "") -> dict[str, Any]:
        """The results of evaluation jobs side by side: success with its interval, the paired difference to
        `reference`, protocol, cost and time. `by` breaks them down: family or level."""
        with _refusals():
            comparison = compare_jobs(jobs, evaluations, reference or None, by or None)
        rows = [row.document() for row in comparison.rows]
        return {"rows": rows, "reference": comparison.reference.label, "judges": comparison.judges}

    @server.tool(annotations=READS)
    def read_recipe(name: str = "") -> dict[str, Any]:
        """The recipe of a job or a preset, as YAML to write another one after; without a name the presets."""
        if not name:
            return {"presets": list_presets()}
        with _refusals():
            recipe = load_recipe(name) if name in list_presets() else jobs.recipe(jobs.get(name).id)
            return {"yaml": dump_recipe(recipe)}

    @server.tool(annotations=READS)
    def list_tasks(pool: str, split: str = "", limit: Limit = 50) -> dict[str, Any]:
        """The own tasks of a pool: queries with their answers. `split` is train, validation or test."""
        with _refusals():
            store.pools.latest(pool)
            rows = [row for row in open_task_book(pool).read() if row.task is not None and row.line is not None]
        chosen = [row.line for row in rows if row.task and row.line and split in ("", row.task.ref.split)]
        tasks = [line.model_dump(mode="json", exclude_none=True) for line in chosen[:limit]]
        return {"tasks": tasks, "total": len(chosen)}


def _add_changes(server: MCPServer[None], store: Store, jobs: JobStore) -> None:
    @server.tool(annotations=ADDS)
    def add_tasks(pool: str, tasks: list[WrittenTask]) -> dict[str, Any]:
        """Add tasks to the own tasks of a pool: a query, its answer, and perhaps a plan or a split. Those of the split
        `test` are measured and never learnt from. A client's request becomes one only where the pool allows it."""
        if not tasks:
            raise ToolError("give at least one task: {query, answer}")
        with _refusals():
            store.pools.latest(pool)
            for task in tasks:
                if _is_request_of_client(store, pool, task.query):
                    check_consent(pool, SERVED)
            with change_tasks(store.pools, pool) as book:
                book.add([TaskLine(**dict(task)) for task in tasks])
        return {"added": len(tasks), "file": str(book.file)}

    @server.tool(annotations=ADDS)
    def propose_job(recipe: str, why: Annotated[str, Field(min_length=1, max_length=MAX_WHY_CHARS)]) -> dict[str, Any]:
        """Propose a job of training or evaluation, as a recipe's YAML, and say why in a sentence that a person reads.
        It does not start: a person starts it, on the Train page or in a terminal."""
        with _refusals():
            parsed = parse_recipe(recipe)
            if not parsed.place.is_here:
                raise ToolError("where: a proposed job runs on this machine; a person rents one or names a cluster")
            if parsed.track:
                raise ToolError("track: a proposed job sends nothing elsewhere; leave it out, a person adds it")
            store.pools.latest(parsed.pool)
            row = jobs.submit(parsed, proposed_because=why)
        how = f"on the Train page, or with: python -m trainer jobs resume {row.id}"
        return {"job": row.id, "state": row.state, "next": f"It waits for a person, who starts it {how}"}


@contextmanager
def _refusals() -> Iterator[None]:
    """Hand on what is wrong with a request in its own words."""
    try:
        yield
    except InvalidRecipe as error:
        raise ToolError("; ".join(f"{where}: {what}" if where else what for where, what in error.problems)) from error
    except (PoolError, OrchestratorError, TrainerError) as error:
        raise ToolError(str(error)) from error


def _find_open_runs(store: Store, criteria: TraceFilter) -> Iterator[EpisodeRow]:
    """The runs that match and may be shown, among the newest MOST_SEARCHED that match."""
    for offset in range(0, MOST_SEARCHED, criteria.limit):
        rows = store.traces.search(replace(criteria, offset=offset))
        for row in rows:
            outermost = _find_outermost(store, row)
            if read_traffic(outermost.pool).allows(outermost.source):
                yield row
        if len(rows) < criteria.limit:
            return


def _find_outermost(store: Store, row: EpisodeRow) -> EpisodeRow:
    """The run that one began with: around an inner one, before a what-if."""
    while row.parent is not None:
        row = store.traces.row(row.parent)
    return find_first_run(store.traces, row)


def _is_request_of_client(store: Store, pool: str, query: str) -> bool:
    rows = store.traces.search(TraceFilter(pool=pool, source=SERVED, text=query.strip(), limit=MOST_ROWS))
    return any(digest_query(row.query) == digest_query(query) for row in rows)


def _describe_run(row: EpisodeRow) -> dict[str, Any]:
    fields = {"id", "query", "answer", "pool", "orchestrator", "correct", "steps", "failed_steps", "tokens", "cost"}
    return {**row.model_dump(include=fields), "outcome": row.state, "started_at": row.started_at, "wall_s": row.wall_s}


def _describe_steps(episode: Episode) -> Sequence[dict[str, Any]]:
    return [
        {
            "id": run.step.id,
            "worker": run.step.worker,
            "arguments": dict(run.arguments or run.step.arguments),
            "access": list(run.step.access),
            "state": run.state,
            "value": shorten(str(run.observation.value), MAX_VALUE_CHARS) if run.observation else None,
            "error": run.observation.error.message if run.observation and run.observation.error else None,
        }
        for run in episode.steps.values()
    ]
