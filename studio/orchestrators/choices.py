"""The orchestrators that a person can choose, and what a page suggests first."""

from __future__ import annotations

import re
from typing import NamedTuple

from orchestrator.checkpoints import STARTERS, checkpoint_names, plans_any_pool
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


SCORE_CHOICES = (("rules", ""), ("record", "log"), ("learned", "predictor"))  # of choice/scores.py


class OrchestratorParts(NamedTuple):
    """The parts of an orchestrator's name that a person chooses one by one. `plans` a turn; `who`: a score of outcomes
    that chooses the workers, "" for none. `finalizer`: whether the pool's finalizer may write the final answer."""

    policy: str
    agent: str | None = None
    dialect: str = "plan"
    plans: int = 1
    who: str = ""
    finalizer: bool = True


def takes_score(policy: str) -> bool:
    """Whether a person is offered scores of outcomes that choose its agents."""
    return policy in POLICIES and POLICIES[policy].takes_score


def takes_agent(policy: str) -> bool:
    """Whether the name of an agent may stand behind this one."""
    return policy in POLICIES and POLICIES[policy].takes_agent


def orchestrator_name(
    policy: str,
    agent: str | None,
    dialect: str | None,
    plans: int | None = 1,
    who: str | None = "",
    finalizer: bool = True,
) -> str:
    """The name that `make_orchestrator` takes: policy[:agent[:dialect]], with `+samples=PLANS` where the orchestrator
    can draw several plans for a turn, `+who=SCORE` where a score can choose its agents, and `+finalizer=off` where the
    plan's own answer is wanted."""
    if policy == "model":
        name = str(OrchestratorName(policy, agent or "", dialect or "plan"))
    else:
        name = str(OrchestratorName(policy, agent or "")) if takes_agent(policy) else policy
    samples = (plans or 1) if draws_plans(policy) else 1
    score, switch = (who or "") if takes_score(policy) else "", None if finalizer else False
    return add_options(name, TurnOptions(samples, who=score, finalizer=switch))


def split_orchestrator_name(name: str) -> OrchestratorParts:
    """The parts of a name; the dialect is `plan` where the name holds none. In an address that a person types `+`
    stands for a space."""
    parsed = OrchestratorName.parse(re.sub(" (samples|who|finalizer)=", r"+\1=", name))
    options = parsed.options
    return OrchestratorParts(
        parsed.policy,
        parsed.worker or None,
        parsed.dialect or "plan",
        options.samples,
        options.who,
        options.finalizer is not False,
    )


def score_choices(who: str = "") -> list[tuple[str, str]]:
    """(label, score) that can choose agents, `who` among them."""
    return [*SCORE_CHOICES, *([(who, who)] if who not in dict(SCORE_CHOICES).values() else [])]


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
        *((label_orchestrator(name), name) for name in names if plans_any_pool(name)),
        *((_hint(policy, pool), policy.name) for policy in policies if not _is_baseline(policy)),
        *((f"{label_orchestrator(name)} · {TRAINED}", name) for name in names if name not in STARTERS),
        *((_hint(policy, pool), policy.name) for policy in policies if _is_baseline(policy)),
        *((f"{label_orchestrator(name)} · {DEMONSTRATION}", name) for name in names if _is_demonstration(name)),
    ]


def _is_demonstration(name: str) -> bool:
    return name in STARTERS and not plans_any_pool(name)


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
