"""What people read for an orchestrator: one label for each name, on every page, in messages and in tables."""

from __future__ import annotations

from pathlib import Path

from orchestrator.checkpoints import STARTERS, read_job_name
from orchestrator.orchestrator_name import OrchestratorName, TurnOptions, split_options
from orchestrator.policies.registry import find_policy
from orchestrator.repairs.table import ALL

PLANS = "plans a turn"


def label_orchestrator(name: str) -> str:
    """The label of an orchestrator: of a policy with its agent, of a checkpoint that ships, or job and step."""
    plain, options = split_options(name)
    policy = find_policy(plain)
    label = _label_checkpoint(plain) if policy is None else _label_policy(OrchestratorName.parse(plain), policy.label)
    return ", ".join([label, *_describe_options(options, (policy and policy.samples) or PLANS)])


def _label_policy(parts: OrchestratorName, label: str) -> str:
    if parts.policy == "model" and parts.worker:
        label = f"{parts.worker} as planner"
        return label if parts.dialect in ("", "plan") else f"{label}, in {parts.dialect}"
    return ", ".join(filter(None, (label, parts.worker, parts.dialect)))


def _label_checkpoint(name: str) -> str:
    if name in STARTERS:
        return STARTERS[name].label
    if "/" in name:
        return Path(name).name
    job, _, step = name.partition("@")
    return f"{read_job_name(job) or job} at step {step}" if step else read_job_name(job) or job


def _describe_options(options: TurnOptions, sampled: str) -> list[str]:
    samples = [f"{options.samples} {sampled}"] if options.samples > 1 else []
    grammar = {None: [], True: ["constrained"], False: ["unconstrained"]}[options.constrained]
    recursive = ["recursive"] if options.recursive else []
    repairs = ["the model alone" if name == ALL else f"without {name.replace('_', ' ')}" for name in options.without]
    who = [f"workers by {options.who}"] if options.who else []
    whole_query = ["no written subtasks"] if options.whole_query else []
    finalizer = {None: [], True: ["with the finalizer"], False: ["with the plan's own answer"]}[options.finalizer]
    return [*samples, *grammar, *repairs, *who, *whole_query, *recursive, *finalizer]
