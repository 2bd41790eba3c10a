"""The orchestrators that a person can choose, and what a page suggests first."""

from __future__ import annotations

from orchestrator.checkpoints import READER, STARTERS, checkpoint_names
from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.policies.registry import POLICIES
from studio.orchestrators.notes import checkpoint_label

FIRST_QUESTION = "How many more people live in Germany than in France?"  # where a reader plans (a test looks)
FIRST_QUERY = ("itinerary", 3, 0)  # parallel steps, and one that the shipped orchestrator plans right (a test looks)


def takes_agent(policy: str) -> bool:
    """Whether the name of an agent may stand behind this one."""
    return policy in POLICIES and POLICIES[policy].takes_agent


def orchestrator_name(policy: str, agent: str | None, dialect: str | None) -> str:
    """The name that `make_orchestrator` takes: policy[:agent[:dialect]]."""
    if policy == "model":
        return str(OrchestratorName(policy, agent or "", dialect or "plan"))
    return str(OrchestratorName(policy, agent or "")) if takes_agent(policy) else policy


def split_orchestrator_name(name: str) -> tuple[str, str | None, str]:
    """(policy, agent, dialect) of a name; the dialect is `plan` where the name holds none."""
    parsed = OrchestratorName.parse(name)
    return parsed.policy, parsed.worker or None, parsed.dialect or "plan"


def orchestrator_choices(with_reference: bool = True) -> list[tuple[str, str]]:
    """(label, name): the reader that ships, the policies, then checkpoints of jobs with the newest first, then the
    others that ship. Without a reference plan those that only replay one are left out."""
    names = checkpoint_names()
    made = [name for name in names if name not in STARTERS]
    ships = [name for name in names if name in STARTERS and name != READER]
    reader = [name for name in names if name == READER]
    policies = [policy for policy in POLICIES.values() if with_reference or not policy.needs_reference]
    return [
        *((checkpoint_label(name), name) for name in reader),
        *((policy.label, policy.name) for policy in policies),
        *((checkpoint_label(name), name) for name in [*made, *ships]),
    ]
