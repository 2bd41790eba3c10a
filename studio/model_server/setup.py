"""Prepares the episode of one request: the pool with the client's tools and settings, the orchestrator with the pool's
fallback and the form of the answer around it, and the query."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

from orchestrator.checkpoints import find_checkpoint
from orchestrator.engine.episode_loop import AGENT_WITH_TOOLS, Orchestrator
from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import OrchestratorName, TurnOptions, add_options, split_options
from orchestrator.policies import fallback
from orchestrator.policies.registry import find_policy
from orchestrator.prompt_styles import PROMPTS, PromptFacts
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.calls.run_limits import RunLimits, check_run_limits
from pool_registry.errors import InvalidPool, InvalidRunLimits
from pool_registry.kinds import open_worker
from pool_registry.pool import NO_FINALIZER, Limits
from studio.model_server import answer_form
from studio.model_server.answer_form import AnswerForm, AnswerFormPolicy
from studio.model_server.client_tools import ClientCalls, RequestPool, open_client_tools
from studio.model_server.errors import invalid_value
from studio.model_server.http.unread_content import UnreadContentPolicy
from studio.model_server.request import EpisodeRequest
from studio.model_server.which_question import WhichQuestionPolicy

READ_THE_POOL = ("model", "react", AGENT_WITH_TOOLS)
_NO_AGENT = "no agent of this pool can be set; the orchestrator's turns are drawn as it is configured"


class EpisodeSetup:
    """One request on a served pool. `ignored` grows when an endpoint refuses a setting.

    Raises ApiError for a tool of the client that cannot be used, and for limits that cannot be kept.
    """

    def __init__(self, pool: LivePool, orchestrator: str, request: EpisodeRequest) -> None:
        self.request = request
        self.ignored = dict(request.ignored)
        self.on_idle: Callable[[], None] = lambda: None
        self.calls = ClientCalls(lambda: self.on_idle())
        tools = _open_tools(pool, request, self.calls)
        self._demanded = dict(zip(tools, request.tools.tools, strict=True)) if request.tools.demanded else {}
        pool, tools = _limit(pool, tools, request.run_limits)
        adjusted = adjust_agents(pool, request.settings)
        if request.settings and not adjusted:
            self.ignored |= dict.fromkeys(request.settings, _NO_AGENT)
        self._rounds = pool.pool.limits.max_rounds
        keeps_answer = not request.finalizer or request.form is not None  # prose would not have the form
        self.for_person = request.for_person and not keeps_answer
        if keeps_answer and pool.pool.limits.finalizer != NO_FINALIZER:
            orchestrator = add_options(orchestrator, TurnOptions(finalizer=False))
        self.orchestrator = orchestrator
        whole = RequestPool(pool, tools, self.calls, adjusted, self._note_refusal)
        self.pool: RequestPool = whole
        policy = OrchestratorName.parse(orchestrator)
        if tools and policy.policy == "direct":  # the agent alone, with the client's tools as its own
            agent = policy.worker or next(name for name, worker in pool.workers.items() if worker.role == "agent")
            chosen = TurnOptions(finalizer=split_options(orchestrator)[1].finalizer)
            self.orchestrator = f"{AGENT_WITH_TOOLS}:{agent}{chosen}"
            self.pool = whole.narrow({agent, *tools})
        elif tools and not request.tools.demanded and not reads_pool(orchestrator):
            self.ignored["tools"] = f"{orchestrator} plans without reading which workers there are"

    @property
    def query(self) -> str:
        """The query, with the form of the answer for orchestrators that can read it."""
        form = self.request.form
        if form is None or find_policy(self.orchestrator) is None:
            return self.request.query
        return f"{self.request.query}\n\n{form.write_instruction()}"

    def take_limits(self, limits: Limits) -> Limits:
        """The limits of the run: these, with rounds for what stands around the orchestrator."""
        self._rounds = limits.max_rounds
        more = fallback.ROUNDS if limits.fallback != fallback.OFF else 0
        more += answer_form.ROUNDS if self._has_form else 0
        return limits.model_copy(update={"max_rounds": limits.max_rounds + more})

    def wrap(self, orchestrator: Orchestrator) -> Orchestrator:
        """The orchestrator with what stands around it."""
        if self.request.readings:
            return WhichQuestionPolicy(orchestrator.name, self.request.readings)
        if self.request.unread:
            return UnreadContentPolicy(orchestrator.name, self.request.unread)
        choice = self.pool.pool.limits.fallback
        if choice != fallback.OFF:
            trained = find_policy(self.orchestrator) is None
            orchestrator = fallback.FallbackPolicy(
                orchestrator, self.pool, choice, self.request.question, trained=trained, rounds=self._rounds
            )
        if not self._has_form:
            return orchestrator
        demanded = {name: AnswerForm(tool.parameters) for name, tool in self._demanded.items()}
        return AnswerFormPolicy(orchestrator, self.pool, self.request.form, self.calls, demanded)

    @property
    def _has_form(self) -> bool:
        return self.request.form is not None or bool(self._demanded)

    def _note_refusal(self, agent: str, why: str) -> None:
        names = ", ".join(self.request.settings)
        self.ignored[names] = f"the endpoint of {agent} refused them: {why[:200]}"


def _open_tools(pool: LivePool, request: EpisodeRequest, calls: ClientCalls) -> dict[str, LiveWorker]:
    try:
        return open_client_tools(request.tools.tools, pool.workers, calls)
    except InvalidPool as error:
        raise invalid_value("tools", f"tools: {error}") from error


def _limit(
    pool: LivePool, tools: Mapping[str, LiveWorker], limits: RunLimits
) -> tuple[LivePool, dict[str, LiveWorker]]:
    """The pool and the client's tools as the request may use them. Raises ApiError where it names others."""
    try:
        names = {*(spec.name for spec in pool.pool.workers), *tools}
        check_run_limits(limits, pool.pool.name, names, {*pool.workers, *tools})
    except InvalidRunLimits as error:
        raise invalid_value(f"podium.{error.field}", str(error)) from error
    return pool.limit(limits), {name: tool for name, tool in tools.items() if name not in limits.without_workers}


def adjust_agents(pool: LivePool, settings: Mapping[str, JsonValue]) -> dict[str, LiveWorker]:
    """The agents of a pool with the client's sampling settings, by name. They share queue, rate and breaker with the
    pool's own; what the pool's owner sets in `extra` stands."""
    return {
        name: adjusted
        for name, live in pool.workers.items()
        if settings and live.role == "agent" and (adjusted := _adjust_agent(live, settings)) is not None
    }


def _adjust_agent(live: LiveWorker, settings: Mapping[str, JsonValue]) -> LiveWorker | None:
    fields = type(live.worker.config).model_fields
    config = dict(live.spec.config)
    own = {name: value for name, value in settings.items() if name == "temperature" and name in fields}
    if "extra" in fields:
        extra = config.get("extra")
        others = {name: value for name, value in settings.items() if name not in own}
        config["extra"] = {**others, **(extra if isinstance(extra, Mapping) else {})}
    elif not own:
        return None
    adjusted = copy.copy(live)
    adjusted.spec = live.spec.model_copy(update={"config": {**config, **own}})
    adjusted.worker = open_worker(adjusted.spec)
    adjusted.__dict__.pop("identity", None)  # computed from the settings before
    return adjusted


def reads_pool(orchestrator: str) -> bool:
    """Whether an orchestrator sees workers that it has not learnt, such as the tools of a client."""
    policy, prompt = find_policy(orchestrator), find_prompt(orchestrator)
    if policy is not None:
        return policy.name in READ_THE_POOL
    return prompt is not None and not prompt.knows_one_pool


def reads_conversation(orchestrator: str) -> bool:
    """Whether what was said before a question may stand around it."""
    prompt = find_prompt(orchestrator)
    return prompt is None or prompt.reads_conversation


def find_prompt(orchestrator: str) -> PromptFacts | None:
    """What a checkpoint's model is shown; None where it is a policy, or not there."""
    if find_policy(orchestrator) is not None:
        return None
    try:
        return PROMPTS[find_checkpoint(split_options(orchestrator)[0])[1].prompt]
    except UnknownOrchestrator:
        return None
