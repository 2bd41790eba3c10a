"""The orchestrator that the Run page, Compare, the command line and the server use where a person names none."""

from __future__ import annotations

from orchestrator.checkpoints import STARTERS, checkpoint_names, find_last_resort, plans_any_pool
from orchestrator.made_for import returns_records
from orchestrator.orchestrator_name import OrchestratorName
from pool_registry.pool import Pool

STARTER = "starter"
CHAT_KIND = "chat"


def choose_default(pool: Pool) -> str:
    """The orchestrator for a pool: the reader that ships and suits it, else a chat model of the pool. Without either
    the smallest checkpoint on the starter pool, which it was trained on, and a local model of any other pool."""
    suggestions = suggest_orchestrators(pool)
    if suggestions:
        return suggestions[0]
    agents = pool.agents()
    return write_model_name(agents[0].name) if agents and pool.name != STARTER else find_last_resort()


def suggest_orchestrators(pool: Pool) -> list[str]:
    """The orchestrators that can plan for this pool whatever the query, the best first. One that learnt to ask agents
    is for pools that have some, and the best where there is nothing else; one that learnt to read records is the best
    where a worker returns some."""
    agents = pool.agents()
    suits = {"": True, "agents": bool(agents), "records": returns_records(pool)}
    is_best = {"": False, "agents": bool(agents) and len(agents) == len(pool.enabled), "records": suits["records"]}
    starters = [name for name in checkpoint_names() if plans_any_pool(name) and suits[STARTERS[name].made_for]]
    starters.sort(key=lambda name: not is_best[STARTERS[name].made_for])
    return starters + [write_model_name(agent) for agent in list_chat_models(pool)]


def list_chat_models(pool: Pool) -> list[str]:
    """The names of a pool's enabled models behind an API."""
    return [spec.name for spec in pool.agents() if spec.kind == CHAT_KIND]


def write_model_name(agent: str) -> str:
    """The name of the orchestrator that lets an agent of the pool write the plans."""
    return str(OrchestratorName("model", agent, "plan"))
