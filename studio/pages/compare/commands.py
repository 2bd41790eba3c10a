"""The commands of the Compare page: what can be compared, runs side by side, evaluations."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.checkpoints import STARTERS, checkpoint_names
from orchestrator.errors import OrchestratorError
from orchestrator.policies.registry import POLICIES
from pool_registry.errors import InvalidPool, PoolError, StorageError, WorkerFault
from studio.frame.commands import Fields, PageCommands, PageReply
from studio.orchestrators.choices import FIRST_QUERY
from studio.orchestrators.default import STARTER, choose_default, suggest_orchestrators
from studio.orchestrators.notes import checkpoint_label
from studio.pages.train.commands import parse_draft, submit
from studio.pages.train.preflight import find_gaps
from studio.runtime import Runtime
from trainer.errors import InvalidRecipe
from trainer.recipe import Recipe, dump_recipe
from trainer.tasks import SUITES, find_task, list_held_out_families
from trainer.tasks.task_conditions import CONDITIONS

MOST = 4
FEWEST = 2


class CompareCommands(PageCommands):
    """The commands of the Compare page."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.commands = {
            "open": self._open,
            "draw": self._draw,
            "run": self._run,
            "stop": self._stop,
            "check": self._check,
            "evaluate": self._evaluate,
        }

    def _open(self, fields: Fields) -> PageReply:
        """The orchestrators that can be compared on the chosen pool, and what the page shows first."""
        pools = self._runtime.store.pools.names()
        choice = str(fields.get("pool") or "")
        pool = next((name for name in (choice, STARTER, *pools) if name in pools), "")
        orchestrators = self._orchestrators(pool)
        names = [orchestrator["name"] for orchestrator in orchestrators]
        family, level, index = FIRST_QUERY
        document = {
            "pools": pools,
            "pool": pool,
            "orchestrators": orchestrators,
            "begins": self._choose_first(pool, names),
            "workers": self._workers(pool),
            "query": find_task(family, level, "test", index).query,
            "suites": [{"family": name, "level": level} for name, suite in SUITES.items() for level in suite.levels],
            "families": list(SUITES),
            "held_out": list_held_out_families(),
            "conditions": list(CONDITIONS),
            "most": MOST,
            "fewest": FEWEST,
        }
        return PageReply(fields=document)

    def _choose_first(self, pool: str, names: Sequence[str]) -> list[str]:
        """Whom the page opens with: the default of the pool and, on the starter pool, the reference of the query that
        it opens with."""
        if not pool:
            return list(names[:FEWEST])
        stored = self._runtime.store.pools.latest(pool).pool
        reference = ["oracle"] if pool == STARTER else []
        wishes = [choose_default(stored), *reference, *suggest_orchestrators(stored), *names]
        return [name for name in dict.fromkeys(wishes) if name in names][:FEWEST]

    def _orchestrators(self, pool: str) -> list[dict[str, str]]:
        """Every orchestrator as {name, label, group}; those that take an agent once for each of the pool."""
        agents = [spec.name for spec in self._runtime.store.pools.latest(pool).pool.agents()] if pool else []
        baselines: list[dict[str, str]] = []
        for name, policy in POLICIES.items():
            if name == "model":
                labels = [(f"model:{agent}:plan", f"{agent} writes the plan") for agent in agents]
                baselines += [{"name": key, "label": label, "group": "Models of the pool"} for key, label in labels]
            elif policy.takes_agent:
                labels = [(f"{name}:{agent}", f"{policy.label}, {agent}") for agent in agents]
                baselines += [{"name": key, "label": label, "group": "Baselines"} for key, label in labels]
            else:
                label = f"{policy.label}, for queries of a suite" if policy.needs_reference else policy.label
                baselines.append({"name": name, "label": label, "group": "Baselines"})
        names = checkpoint_names()
        made = [name for name in names if name not in STARTERS]
        ships = [name for name in names if name in STARTERS]
        checkpoints = [
            {"name": name, "label": checkpoint_label(name), "group": "Checkpoints"} for name in [*ships, *made]
        ]
        return checkpoints + baselines

    def _workers(self, pool: str) -> list[str]:
        if not pool:
            return []
        return [spec.name for spec in self._runtime.store.pools.latest(pool).pool.enabled]

    def _draw(self, fields: Fields) -> PageReply:
        """A query with a known answer, from the test split of a suite."""
        family, level = str(fields.get("family")), int(fields.get("level") or 0)
        index = random.randrange(10_000)  # noqa: S311
        return PageReply(fields={"query": find_task(family, level, "test", index).query})

    def _run(self, fields: Fields) -> PageReply:
        """Start one episode for each orchestrator on the same query. Those that cannot start say why; the others run
        all the same."""
        names = _names(fields)
        if not FEWEST <= len(names) <= MOST:
            raise InvalidPool([("orchestrators", f"choose {FEWEST} to {MOST} different orchestrators")])
        started: list[dict[str, Any]] = []
        for name in names:
            try:
                episode = self._runtime.start_episode(
                    str(fields.get("pool") or ""), name, str(fields.get("query") or "")
                )
            except StorageError:
                self._halt(started)
                raise
            except (PoolError, OrchestratorError, WorkerFault) as error:
                started.append({"orchestrator": name, "episode": None, "problem": str(error)})
            else:
                started.append({"orchestrator": name, "episode": episode, "problem": ""})
        if not any(run["episode"] for run in started):
            raise InvalidPool([("", problem) for problem in dict.fromkeys(run["problem"] for run in started)])
        return PageReply(fields={"started": started})

    def _stop(self, fields: Fields) -> PageReply:
        stopped = [self._runtime.stop_episode(str(episode)) for episode in fields.get("episodes") or []]
        return PageReply("" if any(stopped) else "None of these episodes is running in this studio.")

    def _halt(self, started: Sequence[Mapping[str, Any]]) -> None:
        for run in started:
            if run["episode"]:
                self._runtime.stop_episode(run["episode"])

    # Evaluations

    def _check(self, fields: Fields) -> PageReply:
        """The recipe of an evaluation, and what prevents its start."""
        recipe = evaluation_recipe(fields)
        gaps = [gap.document() for gap in find_gaps(recipe, self._runtime.store)]
        return PageReply(fields={"yaml": dump_recipe(recipe), "missing": gaps})

    def _evaluate(self, fields: Fields) -> PageReply:
        """Put an evaluation into the queue."""
        return submit(evaluation_recipe(fields), self._runtime)


def evaluation_recipe(fields: Fields) -> Recipe:
    """The recipe of an evaluation that was put together on the page. Raises InvalidRecipe with every problem."""
    settings = fields.get("evaluation")
    if not isinstance(settings, Mapping):
        raise InvalidRecipe([("evaluate", "say what is to be measured")])
    if not settings.get("orchestrators"):
        raise InvalidRecipe([("evaluate.orchestrators", "choose at least one orchestrator")])
    families = settings.get("families") or []
    if not families:
        raise InvalidRecipe([("evaluate.source", "choose at least one family")])
    if not settings.get("levels"):
        raise InvalidRecipe([("evaluate.levels", "choose at least one level")])
    section = {
        key: settings[key] for key in ("orchestrators", "levels", "count", "samples", "conditions") if key in settings
    }
    if settings.get("max_cost") is not None:
        section["max_cost"] = settings["max_cost"]
    source = ",".join(map(str, families))
    document = {
        "name": "compare",
        "title": str(settings.get("title") or "Started on the Compare page"),
        "pool": settings.get("pool"),
        "tasks": {"source": source, "levels": settings.get("levels")},
        "evaluate": {**section, "source": source},
    }
    return parse_draft({"recipe": document})


def _names(fields: Fields) -> list[str]:
    """The chosen orchestrators, each once."""
    names = fields.get("orchestrators")
    return list(dict.fromkeys(str(name) for name in names)) if isinstance(names, list) else []
