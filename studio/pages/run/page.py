"""The Run page: a pool, an orchestrator, a query, and the graph that grows from them.

Gradio carries the commands (draw, run, stop); the live picture comes over the episode's own stream.
Which episode is shown lives in the URL (`?episode=ID`), so that a link reopens it at any time.
"""

from __future__ import annotations

from html import escape
from typing import Any
from urllib.parse import quote

import gradio as gr

from orchestrator.checkpoints import checkpoint_names
from orchestrator.dialects import DIALECTS
from orchestrator.errors import DamagedTrace, EpisodeNotFound, OrchestratorError
from orchestrator.policies.registry import draws_plans, needs_reference
from orchestrator.traces.store import TraceFilter
from pool_registry.calls.run_limits import NO_RUN_LIMITS, RunLimits
from pool_registry.errors import PoolError
from pool_registry.pool import Pool
from studio.access.permissions import check_event, needs
from studio.episodes import find_known_task
from studio.frame.navigation import draw_frame
from studio.orchestrators.choices import (
    orchestrator_choices,
    orchestrator_name,
    plan_counts,
    score_choices,
    split_orchestrator_name,
    takes_agent,
    takes_score,
)
from studio.orchestrators.default import STARTER, choose_default
from studio.orchestrators.example_queries import (
    choose_first_query,
    draw_example,
    fits_pool,
    list_example_choices,
)
from studio.orchestrators.notes import checkpoint_note, memory_note, score_note, suite_note, vote_note
from studio.pages.run.component import run_view
from studio.pages.run.finalizer_choice import read_finalizer_choice, show_finalizer_choice
from studio.pages.run.limit_form import draw_limits, read_limits, show_limits
from studio.pages.run.mode_choice import POOLS_OWN, list_mode_choices, read_mode_choice
from studio.pages.run.routes import routes
from studio.runtime import Runtime
from trainer.errors import TrainerError
from trainer.jobs.outcome import describe_outcome

__all__ = ["build", "routes"]

# What was typed while the server chose another query stays.
REPLACE_QUERY = "(change, query) => (change && change.old === (query ?? '') ? change.new : query)"
QUERY_CHANGED = "() => { setTimeout(() => document.dispatchEvent(new Event('podium:query'))); }"
ALLOW_RUN = "() => ({interactive: true, __type__: 'update'})"


def build(runtime: Runtime) -> None:
    """The page's components and events."""
    with draw_frame("run"):
        with gr.Column(elem_id="composer"):
            query = gr.Textbox(
                label="Query",
                placeholder="Ask a question: the orchestrator plans it and calls the tools of your pool.",
                lines=2,
                max_lines=8,
                elem_id="query",
            )
            with gr.Row(elem_id="composer-choices"):
                pool = gr.Dropdown(label="Pool", choices=[], elem_id="run-pool", min_width=100)
                orchestrator = gr.Dropdown(
                    label="Orchestrator",
                    choices=orchestrator_choices(),
                    elem_id="run-orchestrator",
                    min_width=170,
                )
                agent = gr.Dropdown(label="Agent", choices=[], elem_id="run-agent", min_width=90, visible=False)
                draw = gr.Button("Draw a query", elem_id="draw", min_width=110)
                # Not before the page has filled in pool and query: a click would run an empty query.
                run = gr.Button("Run", variant="primary", elem_id="run", min_width=110, interactive=False)
                stop = gr.Button("Stop", variant="stop", elem_id="stop", min_width=110)
            with gr.Accordion("Options", open=False, elem_id="run-limits") as panel:
                with gr.Row(elem_id="run-options"):
                    mode = gr.Dropdown(label="Mode", choices=[], elem_id="run-mode", min_width=100)
                    plans = gr.Dropdown(
                        label="Plans per turn",
                        choices=plan_counts(),
                        value=1,
                        elem_id="run-plans",
                        min_width=80,
                        visible=False,
                    )
                    who = gr.Dropdown(
                        label="Agents by",
                        choices=score_choices(),
                        value="",
                        elem_id="run-who",
                        min_width=80,
                        visible=False,
                    )
                    dialect = gr.Dropdown(
                        label="Dialect",
                        choices=list(DIALECTS),
                        value="plan",
                        elem_id="run-dialect",
                        min_width=90,
                        visible=False,
                    )
                    suite = gr.Dropdown(label="Tasks to draw from", choices=[], elem_id="run-suite", min_width=140)
                limit_form, finalizer = draw_limits(panel)
            note = gr.HTML("", elem_id="composer-note", apply_default_css=False)
            problem = gr.HTML("", elem_id="composer-problem", apply_default_css=False)
        view = run_view(elem_id="run-view")
        replacement = gr.JSON(visible=False)
    page = gr.context.Context.root_block
    assert page is not None, "build runs inside a page's Blocks"

    @needs("viewer")
    def open_page(request: gr.Request) -> tuple[Any, ...]:
        return _initial_values(runtime, request)

    @needs("editor")
    def start(
        pool_name: str,
        policy: str,
        agent_name: str,
        dialect_name: str,
        count: int,
        score: str,
        mode_name: str,
        final: str | None,
        text: str,
        without: list[str] | None,
        max_cost: str | None,
        seen_by: str | None,
        request: gr.Request,
    ) -> Any:
        name = orchestrator_name(policy or "", agent_name, dialect_name, count, score, read_finalizer_choice(final))
        chosen, user = read_mode_choice(mode_name), request.username or ""
        try:
            check_event(runtime.find_rights(user), start, "run queries")
            limits = read_limits(without, max_cost, seen_by)
            if policy in checkpoint_names():
                runtime.warm_up(policy)  # so that the page can say what the run waits for
            return runtime.start_episode(pool_name or "", name, text or "", user, chosen, limits), ""
        except (PoolError, OrchestratorError) as error:
            return gr.skip(), _problem(str(error))

    @needs("editor")
    def halt(episode_id: str | None, request: gr.Request) -> None:
        try:
            check_event(runtime.find_rights(request.username or ""), halt, "stop runs")
        except PoolError as error:
            gr.Info(str(error))
            return
        if not (episode_id and runtime.stop_episode(episode_id)):
            gr.Info("This episode is not running in this studio; a plan that waits is rejected below.")

    private: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}

    @needs("viewer")
    def list_limits(pool_name: str | None) -> Any:
        return show_limits(runtime.store.pools.latest(pool_name).pool if pool_name else Pool(name=STARTER))

    @needs("viewer")
    def list_agents(pool_name: str | None) -> Any:
        return _agents(runtime, pool_name)

    @needs("viewer")
    def tell(
        policy: str | None, pool_name: str | None, suite_choice: str | None, count: int | None, score: str | None
    ) -> str:
        return _note(runtime, policy, pool_name, suite_choice, count, score)

    @needs("viewer")
    def adapt(pool_name: str | None, text: str | None, policy: str | None) -> tuple[Any, ...]:
        return _adapt_to_pool(runtime, pool_name, text, policy)

    @needs("viewer")
    def draw_query(choice: str | None, pool_name: str | None) -> Any:
        return _draw_query(runtime, choice, pool_name)

    @needs("viewer")
    def list_fitting(text: str | None, policy: str | None, pool_name: str | None) -> Any:
        return _list_fitting(runtime, text, policy, pool_name)

    choices = [pool, orchestrator, agent, dialect, plans, who, mode, finalizer]
    opened = [*choices, suite, replacement, view, note, *limit_form]
    filled = page.load(open_page, None, opened, **private)
    filled = filled.success(None, [replacement, query], query, js=REPLACE_QUERY, **private)
    filled.then(None, None, run, js=ALLOW_RUN, **private)
    pool.change(list_agents, pool, agent, **private)
    pool.input(list_limits, pool, [*limit_form], **private)
    adaptable = [suite, replacement, mode, finalizer, orchestrator]
    adapted = pool.input(adapt, [pool, query, orchestrator], adaptable, **private)
    adapted.then(None, [replacement, query], query, js=REPLACE_QUERY, **private)
    orchestrator.change(_parts, orchestrator, [agent, dialect, plans, who], **private)
    changes = [pool.change, orchestrator.change, suite.change, plans.change, who.change]
    gr.on(changes, tell, [orchestrator, pool, suite, plans, who], note, **private)
    fitting_inputs = [query, orchestrator, pool]
    drawn = draw.click(draw_query, [suite, pool], query, **private)
    drawn.then(list_fitting, fitting_inputs, orchestrator, **private)
    query.change(None, None, None, js=QUERY_CHANGED, **private)
    query.blur(list_fitting, fitting_inputs, orchestrator, **private)
    start_inputs = [*choices, query, *limit_form[:-1]]
    # Not by Gradio's queue, whose stream may end as an event joins it: the run would go on, and the page wait for ever.
    run.click(start, start_inputs, [view, problem], trigger_mode="once", queue=False, **private)
    stop.click(halt, view, None, concurrency_limit=None, **private)


def _problem(text: str) -> str:
    return f'<p role="alert"><b>The run did not start.</b> {escape(text[:1].upper() + text[1:])}</p>'


def _note(
    runtime: Runtime, policy: str | None, pool: str | None, suite: str | None, plans: int | None, who: str | None
) -> str:
    """What to expect of a checkpoint on this pool and this suite, whether the pool's failure memory reaches the
    orchestrator, what several plans per turn cost, and what a score of outcomes can go by."""
    if not (policy and pool):
        return ""
    stored = runtime.store.pools.latest(pool).pool
    family = (suite or "").rpartition(" ")[0]
    notes = [
        checkpoint_note(policy, stored),
        _describe_score(runtime, policy),
        suite_note(policy, family) if family else "",
        memory_note(policy, stored),
        vote_note(policy, plans or 1),
        score_note(runtime.store.engine, stored, who or "") if takes_score(policy) else "",
    ]
    text = escape(" ".join(filter(None, notes)))
    if not list_example_choices(stored):
        link = f'<a class="podium-link" href="/train?tasks={quote(pool)}">make or write some</a>'
        text = f"{text} This pool has no tasks of its own yet: {link}.".strip()
    return f"<p>{text}</p>" if text else ""


def _describe_score(runtime: Runtime, name: str) -> str:
    """What a job measured of its own checkpoint; "" for other orchestrators, and where nothing was measured."""
    job, _, step = name.partition("@")
    try:
        recipe = runtime.jobs.recipe(job) if step else None
        outcome = describe_outcome(job, recipe, runtime.jobs.folder(job)) if recipe else None
    except (OSError, UnicodeDecodeError, TrainerError):
        return ""  # the job or its file is gone
    return outcome.sentence if outcome is not None and outcome.orchestrator == name else ""


def _list_fitting(runtime: Runtime, query: str | None, policy: str | None, pool: str | None) -> Any:
    """The orchestrators that can run this query: those that replay a reference plan only where it has one. The choice
    itself is the person's, and stays: Run says what it lacks."""
    with_reference = _has_reference(query or "", pool or "") or needs_reference(policy or "")
    return gr.update(choices=_list_choices(runtime, pool, with_reference))


def _list_choices(runtime: Runtime, pool: str | None, with_reference: bool) -> list[tuple[str, str]]:
    return orchestrator_choices(with_reference, runtime.store.pools.latest(pool).pool if pool else None)


def _choose_default(runtime: Runtime, pool: str | None) -> str:
    """The orchestrator for a pool where none is named."""
    return choose_default(runtime.store.pools.latest(pool).pool if pool else Pool(name=STARTER))


def _initial_values(runtime: Runtime, request: gr.Request) -> tuple[Any, ...]:
    """What the page shows first: the linked episode with its own settings, or a query ready to run."""
    names = runtime.store.pools.names()
    episode = request.query_params.get("episode") or ""
    chosen = request.query_params.get("pool") or ""
    in_link = split_orchestrator_name(request.query_params.get("orchestrator") or "")
    try:
        row = runtime.store.traces.row(episode) if episode else None
    except EpisodeNotFound:
        row = None  # the view itself says that there is no such episode
    if row is not None:
        chosen = row.pool
        in_link = split_orchestrator_name(row.orchestrator)
    chosen = chosen or _last_pool(runtime)
    pool = chosen if chosen in names else (names[0] if names else None)
    stored = runtime.store.pools.latest(pool).pool if pool else Pool(name=STARTER)
    everyone = {name for _, name in orchestrator_choices()}
    # Training's own episodes and pruned checkpoints cannot be chosen again.
    default = _choose_default(runtime, pool)
    policy = in_link.policy if in_link.policy in everyone else split_orchestrator_name(default).policy
    text, example = choose_first_query(stored, policy)
    if row is not None:
        text = row.query
    choices = orchestrator_choices(_has_reference(text, pool or ""), stored)
    if in_link.policy not in {name for _, name in choices}:
        in_link = split_orchestrator_name(default)
    policy, agent, dialect, plans, who, final = in_link
    agents = _agent_names(runtime, pool)
    if policy in checkpoint_names():
        runtime.warm_up(policy)
    return (
        gr.update(choices=names, value=pool),
        gr.update(choices=choices, value=policy),
        gr.update(choices=agents, value=agent if agent in agents else None, visible=takes_agent(policy)),
        gr.update(value=dialect, visible=policy == "model"),
        gr.update(choices=plan_counts(plans), value=plans, visible=draws_plans(policy)),
        gr.update(choices=score_choices(who), value=who, visible=takes_score(policy)),
        gr.update(choices=list_mode_choices(stored), value=POOLS_OWN),
        show_finalizer_choice(stored, final),
        gr.update(choices=list_example_choices(stored), value=example or None),
        {"old": "", "new": text},
        gr.update(value=episode),
        gr.update(value=_note(runtime, policy, pool, example, plans, who)),
        *show_limits(stored, _find_limits(runtime, episode) if row is not None else NO_RUN_LIMITS, opened=not final),
    )


def _find_limits(runtime: Runtime, episode: str) -> RunLimits:
    """What a recorded run was limited to; a run of the same query is so, too, until the form is changed."""
    try:
        return runtime.store.traces.episode(episode).run_limits
    except DamagedTrace:  # the view says so
        return NO_RUN_LIMITS


def _last_pool(runtime: Runtime) -> str:
    """The pool of the latest run; the starter pool before the first."""
    latest = runtime.store.traces.search(TraceFilter(limit=1))
    return latest[0].pool if latest else STARTER


@needs("viewer")
def _parts(policy: str | None) -> tuple[Any, Any, Any, Any]:
    policy = policy or ""
    return (
        gr.update(visible=takes_agent(policy)),
        gr.update(visible=policy == "model"),
        gr.update(visible=draws_plans(policy)),
        gr.update(visible=takes_score(policy)),
    )


def _agents(runtime: Runtime, pool: str | None) -> Any:
    names = _agent_names(runtime, pool)
    return gr.update(choices=names, value=names[0] if names else None)


def _agent_names(runtime: Runtime, pool: str | None) -> list[str]:
    if not pool:
        return []
    return [spec.name for spec in runtime.store.pools.latest(pool).pool.agents()]


def _has_reference(query: str, pool: str) -> bool:
    """Whether a query is a task whose plan is known."""
    task = find_known_task(pool, query)
    return task is not None and task.oracle_turn is not None


def _adapt_to_pool(runtime: Runtime, pool: str | None, query: str | None, policy: str | None) -> tuple[Any, ...]:
    """What queries can be drawn from on a pool, a query of its own in the place of another pool's example (None where
    the query may stay), how its plans are released, who writes its final answers, and what can orchestrate it."""
    if not pool:
        return gr.skip(), None, gr.skip(), gr.skip(), gr.skip()
    stored = runtime.store.pools.latest(pool).pool
    text, example = choose_first_query(stored, policy or "")
    suites = gr.update(choices=list_example_choices(stored), value=example or None)
    modes = gr.update(choices=list_mode_choices(stored), value=POOLS_OWN)
    fits = fits_pool(query or "", stored, runtime.store.pools.names())
    orchestrators = _list_fitting(runtime, query, policy, pool)
    replacement = None if fits else {"old": query, "new": text}
    return suites, replacement, modes, show_finalizer_choice(stored), orchestrators


def _draw_query(runtime: Runtime, choice: str | None, pool: str | None) -> Any:
    """A query of what is chosen, from the tasks to be measured on."""
    text = draw_example(choice or "", runtime.store.pools.latest(pool).pool) if pool else ""
    if not text:
        gr.Info("This pool has no tasks to draw from: make or write some on the Train page.")
        return gr.skip()
    return text
