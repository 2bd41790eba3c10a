"""Orchestrators by name. Each policy is one short file that emits ordinary turns; those that nothing trains are
baselines.

A name is `policy`, `policy:worker` or `policy:worker:dialect`: `fan_out`, `direct:solver`,
`model:solver:plan`; `random_plan:7` names a seed. Any other name is a checkpoint's: `starter-grpo`, `JOB@STEP`, a
folder. Behind a language model's name may stand options: `starter-grpo+samples=4`.
POLICIES is the one place to register a policy; help texts, pickers and what may be published follow from its
rows. Another package adds one by an entry point in the group `podium.policies`, whose value is an object of class
Policy (pool_registry/extensions/extension_table.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.binding.bind_workers import BY_DESCRIPTION, Binding, BindingSettings
from orchestrator.checkpoints import find_checkpoint
from orchestrator.choice.predictor import check_installed
from orchestrator.choice.scores import SCORES
from orchestrator.dialects import find_dialect
from orchestrator.engine.episode_loop import AGENT_WITH_TOOLS, Orchestrator
from orchestrator.engine.release import complete_orchestrator
from orchestrator.errors import MisplacedModel, UnknownOrchestrator
from orchestrator.orchestrator_name import OrchestratorName, TurnOptions, split_options
from orchestrator.plan import Turn
from orchestrator.policies.baselines.cascade import CascadePolicy
from orchestrator.policies.baselines.direct import DirectPolicy
from orchestrator.policies.baselines.fan_out import FanOutPolicy
from orchestrator.policies.baselines.group_chat import GroupChatPolicy, choose_chair
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.policies.baselines.pipeline import PipelinePolicy
from orchestrator.policies.baselines.random_plan import RandomPlanPolicy
from orchestrator.policies.baselines.router import RouterPolicy
from orchestrator.policies.baselines.self_consistency import SAMPLES, SelfConsistencyPolicy
from orchestrator.policies.model import ModelPolicy, agent_policy, agent_with_tools, checkpoint_policy, plan_binding
from orchestrator.policies.options.recursive import RecursivePolicy
from orchestrator.policies.options.voting import VotingPolicy
from orchestrator.policies.options.whole_query import WholeQueryPolicy
from orchestrator.policies.react import react_policy
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.repairs.table import leave_out
from pool_registry.calls.live_pool import LivePool
from pool_registry.extensions.extension_table import ExtensionTable
from pool_registry.language_models.completion import Draw
from pool_registry.load_once import LoadOnce
from pool_registry.pool import NO_FINALIZER

if TYPE_CHECKING:
    from orchestrator.traces.agent_track_record import TrackRecord

# (the reference plan, how to sample) -> an orchestrator for one episode
OrchestratorFactory = Callable[[Turn | None, Draw | None], Orchestrator]


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """A parsed name with what its policy may need. `worker` is an agent or, for a policy of chance, a seed; "" where
    none is named. `reference` is the task's own plan, where it has one. `draw`: how models sample; policies of chance
    go by its seed. `samples`: of `+samples=`, 1 where it says none. `record`: reads what the traces say about the
    agents of this pool."""

    worker: str
    dialect: str
    pool: LivePool
    reference: Turn | None
    draw: Draw | None
    samples: int
    record: Callable[[], TrackRecord]


@dataclass(frozen=True, slots=True)
class Policy:
    """One row of the table. `make` raises UnknownOrchestrator when the pool lacks what it needs.

    `parameters` is what may stand behind the name, as help texts show it: `[:AGENT[:DIALECT]]`; with `takes_agent`
    pickers offer the pool's agents for it; `needs_agent`: works on a pool with agents only, which are not chosen one by
    one. `needs_reference`: runs only tasks that bring a plan of their own.
    `takes_score`: its agents may be chosen by a score of outcomes (`+who=`). `samples`: what `+samples=`
    counts, where the policy itself draws them; elsewhere it is the plans of a turn.
    `reads_memory`: its model is shown lessons of the pool's failures. `reads_traces`: it goes by recorded episodes.
    `stays_because` completes "NAME ... and cannot run elsewhere" for a policy that cannot travel in a Space.
    """

    name: str
    label: str
    summary: str
    make: Callable[[PolicyRequest], Orchestrator]
    parameters: str = ""
    takes_agent: bool = False
    needs_agent: bool = False
    needs_reference: bool = False
    takes_score: bool = False
    samples: str = ""
    reads_memory: bool = False
    reads_traces: bool = False
    stays_because: str = ""


def _oracle(request: PolicyRequest) -> Orchestrator:
    if request.reference is None:
        raise UnknownOrchestrator(
            "the oracle replays the reference plan of a generated task, and this query has none; "
            "draw a query from a suite, or choose another orchestrator"
        )
    return OraclePolicy(request.reference)


def _random_plan(request: PolicyRequest) -> Orchestrator:
    seed = request.draw.seed if request.draw is not None and request.draw.seed is not None else 0
    if request.worker and not (request.worker.isascii() and request.worker.isdigit()):
        raise UnknownOrchestrator(f"random_plan takes a seed, as in random_plan:7, not {request.worker!r}")
    if not request.pool.workers:
        raise UnknownOrchestrator(f"pool {request.pool.pool.name!r} has no enabled worker to plan with; add one to it")
    return RandomPlanPolicy(request.pool, int(request.worker[:18] or seed))


def _group_chat(request: PolicyRequest) -> Orchestrator:
    agents = list_agents(request.pool)
    return GroupChatPolicy(agents, choose_agent(request) if request.worker else choose_chair(agents))


POLICIES = ExtensionTable(
    "podium.policies",
    Policy,
    (
        Policy(
            "oracle",
            "Oracle",
            "Replays the reference plan of a generated task.",
            _oracle,
            needs_reference=True,
            stays_because="knows the suites' own plans only",
        ),
        Policy(
            "model",
            "Model",
            "A chat or local model writes the turns, in any dialect.",
            lambda r: agent_policy(r.pool, choose_agent(r), find_dialect(r.dialect or "plan"), r.draw),
            "[:AGENT[:DIALECT]]",
            takes_agent=True,
            reads_memory=True,
        ),
        Policy(
            "direct",
            "Direct",
            "One agent answers alone.",
            lambda r: DirectPolicy(choose_agent(r)),
            "[:AGENT]",
            takes_agent=True,
        ),
        Policy(
            "react",
            "ReAct",
            "One agent calls the workers one after another and sees each output before the next call.",
            lambda r: react_policy(r.pool, choose_agent(r), r.dialect, r.draw),
            "[:AGENT[:DIALECT]]",
            takes_agent=True,
            reads_memory=True,
        ),
        Policy(
            AGENT_WITH_TOOLS,
            "Agent with tools",
            "One agent under its own role calls the workers by its endpoint's tool calling.",
            lambda r: agent_with_tools(r.pool, choose_agent(r), r.draw),
            "[:AGENT]",
            takes_agent=True,
            reads_memory=True,
        ),
        Policy(
            "self_consistency",
            "Self-consistency",
            f"One agent answers {SAMPLES} times (+samples= another number); what it says most often is the answer.",
            lambda r: SelfConsistencyPolicy(choose_agent(r), r.samples if r.samples > 1 else SAMPLES),
            "[:AGENT]",
            takes_agent=True,
            samples="answers",
        ),
        Policy(
            "fan_out",
            "Fan-out",
            "All agents answer in parallel, one of them aggregates.",
            lambda r: FanOutPolicy(list_agents(r.pool), choose_agent(r)),
            "[:AGENT]",
            takes_agent=True,
        ),
        Policy(
            "pipeline",
            "Pipeline",
            "A planner, a solver and a verifier, one after another.",
            lambda r: PipelinePolicy(list_agents(r.pool)),
            needs_agent=True,
        ),
        Policy(
            "cascade",
            "Cascade",
            "The cheapest agent first; a reply that is not sure enough goes to the next.",
            lambda r: CascadePolicy(r.pool, list_agents(r.pool)),
            needs_agent=True,
            takes_score=True,
        ),
        Policy(
            "router",
            "Router",
            "The one agent that did best on such queries, by the traces of this data folder.",
            lambda r: RouterPolicy(list_agents(r.pool), r.pool, r.record, r.draw),
            needs_agent=True,
            takes_score=True,
            reads_traces=True,
            stays_because="chooses by the traces of this machine",
        ),
        Policy(
            "group_chat",
            "Group chat",
            "Agents speak in turns, each sees what was said; one of them chairs and ends it.",
            _group_chat,
            "[:CHAIR]",
            takes_agent=True,
        ),
        Policy("random_plan", "Random plan", "A random valid plan over the pool: the floor.", _random_plan, "[:SEED]"),
    ),
)


REFERENCE_ONLY = " (a suite's query only)"


def policy_names() -> str:
    """Every policy with its parameters in one line, as help texts and errors list them."""
    return ", ".join(
        f"{policy.name}{policy.parameters}{REFERENCE_ONLY if policy.needs_reference else ''}"
        for policy in POLICIES.values()
    )


def find_policy(name: str) -> Policy | None:
    """The policy of an orchestrator's name; None for a checkpoint's."""
    return POLICIES.get(OrchestratorName.parse(name).policy)


def draws_plans(name: str) -> bool:
    """Whether an orchestrator is a language model that plans, and takes the options of one: a checkpoint, an agent."""
    policy = find_policy(name)
    return policy is None or policy.name == "model"


def is_reader(name: str) -> bool:
    """Whether an orchestrator is a checkpoint that reads the pool at hand. Raises UnknownOrchestrator."""
    return find_policy(name) is None and find_checkpoint(name)[1].is_reader


def goes_by_traces(name: str) -> bool:
    """Whether an orchestrator decides by recorded episodes."""
    policy = find_policy(name)
    return (policy is not None and policy.reads_traces) or bool(OrchestratorName.parse(name).options.who)


def is_untrained(name: str) -> bool:
    """Whether an orchestrator is one that a trained one must beat: a fixed policy, or an untrained model as planner."""
    policy = find_policy(name)
    return policy is not None and not policy.needs_reference and not POLICIES.package_of(policy.name)


def needs_reference(name: str) -> bool:
    """Whether an orchestrator runs only tasks that bring a plan of their own."""
    policy = find_policy(name)
    return policy is not None and policy.needs_reference


def explain_stay(name: str) -> str:
    """Why an orchestrator cannot travel in a Space, as the end of a sentence that its policy's name begins; "" when
    it can."""
    if OrchestratorName.parse(name).options.who:
        return "chooses workers by the traces of this machine"
    policy = find_policy(name)
    if policy is None:
        return ""
    package = POLICIES.package_of(policy.name)
    return policy.stays_because or (f"comes with the package {package}" if package else "")


def make_orchestrator(
    name: str,
    pool: LivePool,
    reference: Turn | None = None,
    draw: Draw | None = None,
    binding: BindingSettings = BY_DESCRIPTION,
) -> Orchestrator:
    """The orchestrator called `name` on an open pool; `reference` is the oracle's plan, `draw` how it samples.
    `binding` says how a checkpoint that learnt another pool is bound to this one.

    Raises UnknownOrchestrator saying which names there are or what the pool lacks.
    """
    return orchestrator_factory(name, pool, binding=binding)(reference, draw)


def orchestrator_factory(
    name: str,
    pool: LivePool,
    record: Callable[[], TrackRecord] | None = None,
    binding: BindingSettings = BY_DESCRIPTION,
) -> OrchestratorFactory:
    """`make_orchestrator` for many episodes: the traces that a policy goes by, and the binding of a checkpoint, are
    read once, when the first of them needs them, so that the episodes themselves do not change its choices. `record`
    gives another track record than this data folder's of now."""
    parsed = OrchestratorName.parse(name)
    policy = POLICIES.get(parsed.policy)
    read_once = LoadOnce(record or (lambda: _read_track_record(pool)))
    if policy is None:
        plain = split_options(name)[0]
        bind_once = LoadOnce(lambda: plan_binding(pool, plain, binding))
        return lambda _, draw: set_options(
            _open_checkpoint(plain, pool, draw, bind_once), pool, parsed.options, read_once
        )
    options = replace(parsed.options, samples=1) if policy.samples else parsed.options

    def make(reference: Turn | None, draw: Draw | None) -> Orchestrator:
        samples = parsed.options.samples
        request = PolicyRequest(parsed.worker, parsed.dialect, pool, reference, draw, samples, read_once)
        return set_options(complete_orchestrator(policy.make(request)), pool, options, read_once)

    return make


def set_options(
    orchestrator: Orchestrator, pool: LivePool, options: TurnOptions, record: Callable[[], TrackRecord] | None = None
) -> Orchestrator:
    """The orchestrator with its turns written as the options say. Raises UnknownOrchestrator where it is no language
    model that plans, or chooses no workers by a score, or where its pool has no finalizer to switch on. `record`: as in
    `orchestrator_factory`."""
    if options.finalizer is not None:
        chosen = set_options(orchestrator, pool, replace(options, finalizer=None), record)
        return _switch_finalizer(chosen, pool, options.finalizer)
    if options.who:
        _choose_by(orchestrator, options.who, _choose_record(options.who, pool, record))
        options = replace(options, who="")
    if options == TurnOptions():
        return orchestrator
    if not isinstance(orchestrator, ModelPolicy | ReaderPolicy):
        raise UnknownOrchestrator(
            f"{orchestrator.name} takes no option {options}: only checkpoints and model:AGENT draw plans"
        )
    if options.recursive and isinstance(orchestrator, ReaderPolicy):
        raise UnknownOrchestrator(f"{orchestrator.name} is a reader, whose second turn is code: it takes no +recursive")
    if options.recursive and isinstance(orchestrator, ModelPolicy):
        orchestrator.rounds_added = 1
    if options.constrained is not None:
        orchestrator.constrained = options.constrained
        orchestrator.name += str(TurnOptions(constrained=options.constrained))
    if options.without:
        _switch_off(orchestrator, options.without)
    chosen = orchestrator
    if options.samples > 1:
        chosen = VotingPolicy(orchestrator, pool, options.samples)
    if options.whole_query:
        chosen = WholeQueryPolicy(chosen, pool)
    return RecursivePolicy(chosen) if options.recursive else chosen


def _choose_by(orchestrator: Orchestrator, who: str, record: Callable[[], TrackRecord]) -> None:
    """Have workers chosen by a score. Raises UnknownOrchestrator where there is no such score, or nothing to choose."""
    score = who.partition("@")[0]
    if score not in SCORES:
        raise UnknownOrchestrator(f"there is no score {who!r} to choose workers by; use +who= with {', '.join(SCORES)}")
    if score == "predictor":
        check_installed()
    if not isinstance(orchestrator, RouterPolicy | CascadePolicy | ReaderPolicy):
        raise UnknownOrchestrator(
            f"{orchestrator.name} chooses no workers by a score: only `router`, `cascade` and readers take +who={who}"
        )
    orchestrator.choose_by(who, record)
    orchestrator.name += str(TurnOptions(who=who))


def _choose_record(who: str, pool: LivePool, record: Callable[[], TrackRecord] | None) -> Callable[[], TrackRecord]:
    """What a score reads: the outcomes that were kept with it, else those of `record`, or of the traces of now. Raises
    UnknownOrchestrator where nothing was kept under this key."""
    _, kept, key = who.partition("@")
    if not kept:
        return record or (lambda: _read_track_record(pool))
    from orchestrator.traces.kept_choice import read_kept_record  # imports the database

    outcomes = read_kept_record(pool.pool.name, key)
    return lambda: outcomes


def _switch_finalizer(orchestrator: Orchestrator, pool: LivePool, on: bool) -> Orchestrator:
    """Note in its name whether the pool's finalizer writes. Raises UnknownOrchestrator where there is none to write."""
    if on and pool.pool.limits.finalizer == NO_FINALIZER:
        raise UnknownOrchestrator(
            f"the pool {pool.pool.name!r} names no finalizer; choose one in its limits, or leave out +finalizer=on"
        )
    orchestrator.name += str(TurnOptions(finalizer=on))
    return orchestrator


def _switch_off(orchestrator: ModelPolicy | ReaderPolicy, without: tuple[str, ...]) -> None:
    """Leave these repairs of a reader out. Raises UnknownOrchestrator where there is nothing to leave out."""
    if not isinstance(orchestrator, ReaderPolicy):
        raise UnknownOrchestrator(f"{orchestrator.name} is no reader: nothing repairs its turns; leave out +without")
    orchestrator.repairs = leave_out(without)
    orchestrator.name += str(TurnOptions(without=without))


def _open_checkpoint(
    name: str, pool: LivePool, draw: Draw | None, plan: Callable[[], LoadOnce[Binding] | None]
) -> Orchestrator:
    try:
        return checkpoint_policy(pool, name.strip(), draw, plan())
    except MisplacedModel:
        raise
    except UnknownOrchestrator as error:
        problem = POLICIES.problems.get(OrchestratorName.parse(name).policy)
        if problem:
            raise UnknownOrchestrator(f"the orchestrator {name!r} cannot be used: {problem}") from error
        raise UnknownOrchestrator(
            f"there is no orchestrator {name!r}; use one of: {', '.join(POLICIES)} "
            f"(direct:WORKER, model:WORKER:DIALECT), or a checkpoint: {error}"
        ) from error


def _read_track_record(pool: LivePool) -> TrackRecord:
    from orchestrator.traces.agent_track_record import read_track_record  # imports the database

    return read_track_record(pool.pool.name)


def list_agents(pool: LivePool) -> list[str]:
    """The names of the language models in a pool; UnknownOrchestrator when there are none."""
    agents = [name for name, worker in pool.workers.items() if worker.role == "agent"]
    if not agents:
        raise UnknownOrchestrator(f"pool {pool.pool.name!r} has no enabled agent; add a chat or local model to it")
    return agents


def choose_agent(request: PolicyRequest) -> str:
    """The agent that the name asks for, or the pool's first one. Raises UnknownOrchestrator when it has none."""
    agents = list_agents(request.pool)
    if not request.worker:
        return agents[0]
    if request.worker not in agents:
        raise UnknownOrchestrator(
            f"pool {request.pool.pool.name!r} has no agent {request.worker!r}; it has: {', '.join(agents)}"
        )
    return request.worker
