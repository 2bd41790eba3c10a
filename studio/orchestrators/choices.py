"""The orchestrators that a person can choose, and what a page suggests first."""

from __future__ import annotations

from orchestrator.checkpoints import READER, STARTERS, checkpoint_names
from orchestrator.orchestrator_name import OrchestratorName, TurnOptions, add_options
from orchestrator.policies.labels import label_orchestrator
from orchestrator.policies.registry import POLICIES, Policy, draws_plans
from pool_registry.pool import Pool

FIRST_QUESTION = "How many more people live in Germany than in France?"  # where a reader plans (a test looks)
PLAIN_QUESTIONS = ("How far is LHR from JFK?", "What is 15% of 80?")  # a reader answers them on the starter pool, too
PLAN_COUNTS = (1, 4, 8)  # plans that a model draws for a turn
# The groups of the list; assets/web/lib/app.css draws a heading above each.
TRAINED, BASELINE, DEMONSTRATION = "trained here", "baseline", "demonstration"
FIRST_QUERY = ("itinerary", 3, 0)  # parallel steps, and one that the shipped orchestrator plans right (a test looks)


def takes_agent(policy: str) -> bool:
    """Whether the name of an agent may stand behind this one."""
    return policy in POLICIES and POLICIES[policy].takes_agent


def orchestrator_name(policy: str, agent: str | None, dialect: str | None, plans: int | None = 1) -> str:
    """The name that `make_orchestrator` takes: policy[:agent[:dialect]], and `+samples=PLANS` where the orchestrator
    can draw several plans for a turn."""
    if policy == "model":
        name = str(OrchestratorName(policy, agent or "", dialect or "plan"))
    else:
        name = str(OrchestratorName(policy, agent or "")) if takes_agent(policy) else policy
    return add_options(name, TurnOptions(plans or 1)) if draws_plans(policy) else name


def split_orchestrator_name(name: str) -> tuple[str, str | None, str, int]:
    """(policy, agent, dialect, plans per turn) of a name; the dialect is `plan` where the name holds none. In an
    address that a person types `+` stands for a space."""
    parsed = OrchestratorName.parse(name.replace(" samples=", "+samples="))
    return parsed.policy, parsed.worker or None, parsed.dialect or "plan", parsed.options.samples


def plan_counts(plans: int = 1) -> list[int]:
    """How many plans per turn a person can choose, `plans` among them."""
    return sorted({*PLAN_COUNTS, plans})


def orchestrator_choices(with_reference: bool = True, pool: Pool | None = None) -> list[tuple[str, str]]:
    """(label, name): what can plan for any pool (the reader that ships, models), checkpoints of jobs with the newest
    first, baselines, then the demonstrations that ship. Without a reference plan those that only replay one are left
    out. The labels of all but the first name their group, and for a pool without agents what needs one."""
    names = checkpoint_names()
    policies = [policy for policy in POLICIES.values() if with_reference or not policy.needs_reference]
    return [
        *((label_orchestrator(name), name) for name in names if name == READER),
        *((_hint(policy, pool), policy.name) for policy in policies if not _is_baseline(policy)),
        *((f"{label_orchestrator(name)} · {TRAINED}", name) for name in names if name not in STARTERS),
        *((_hint(policy, pool), policy.name) for policy in policies if _is_baseline(policy)),
        *((f"{label_orchestrator(name)} · {DEMONSTRATION}", name) for name in names if _is_demonstration(name)),
    ]


def _is_demonstration(name: str) -> bool:
    return name in STARTERS and name != READER


def _hint(policy: Policy, pool: Pool | None) -> str:
    """The label of a policy with what a person has to know before it is chosen."""
    hints = [BASELINE] if _is_baseline(policy) else []
    if policy.needs_reference:
        hints.append("for queries of a suite")
    if pool is not None and (policy.takes_agent or policy.needs_agent) and not pool.agents():
        hints.append("needs a model")
    return " · ".join(filter(None, (policy.label, ", ".join(hints))))


def _is_baseline(policy: Policy) -> bool:
    """Whether a policy is one that others are compared with. Those of other packages are somebody's own."""
    return not policy.reads_memory and not POLICIES.package_of(policy.name)
