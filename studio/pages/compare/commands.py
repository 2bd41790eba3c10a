"""What the Compare page can ask and do, without any page: who can be compared, runs side by side, evaluations.

`handle` takes one command as a dict and returns a document with `ok` and `problems` ([key, sentence]).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator.checkpoints import STARTERS, checkpoint_names
from orchestrator.errors import OrchestratorError
from orchestrator.policies.registry import POLICIES
from pool_registry.errors import PoolError, StorageError, WorkerFault
from studio.frame.commands import answered, refused
from studio.orchestrators.choices import FIRST_QUERY, STARTER
from studio.orchestrators.notes import checkpoint_label
from studio.pages.train.commands import asked_recipe
from studio.pages.train.preflight import missing
from studio.runtime import Runtime
from trainer.errors import InvalidRecipe
from trainer.jobs.queue import JobStore
from trainer.recipe import CONDITIONS, Recipe, dump_recipe
from trainer.tasks import SUITES, find_task, list_held_out_families

MOST = 4
FEWEST = 2
DEFAULTS = ("starter-grpo", "oracle")  # what the page opens with, where they are
Request = Mapping[str, Any]
Reply = dict[str, Any]


class CompareDesk:
    """The commands of the Compare page."""

    def __init__(self, runtime: Runtime, jobs: JobStore) -> None:
        self._runtime = runtime
        self._jobs = jobs
        self._commands: dict[str, Callable[[Request], Reply]] = {
            "open": self._open,
            "draw": self._draw,
            "run": self._run,
            "stop": self._stop,
            "check": self._check,
            "evaluate": self._evaluate,
        }

    def handle(self, request: Request) -> dict[str, Any]:
        """Do what `request["action"]` names. Never raises for what a person can mend."""
        return answered(self._commands, request)

    def _open(self, request: Request) -> Reply:
        """Who can be compared on the chosen pool, and what the page begins with."""
        pools = self._runtime.store.pools.names()
        asked = str(request.get("pool") or "")
        pool = next((name for name in (asked, STARTER, *pools) if name in pools), "")
        offered = self._offered(pool)
        names = [each["name"] for each in offered]
        family, level, index = FIRST_QUERY
        begins = [name for name in DEFAULTS if name in names]
        return {
            "pools": pools,
            "pool": pool,
            "orchestrators": offered,
            "begins": begins if pool == STARTER and len(begins) >= FEWEST else names[:FEWEST],
            "workers": self._workers(pool),
            "query": find_task(family, level, "test", index).query,
            "suites": [{"family": name, "level": level} for name, suite in SUITES.items() for level in suite.levels],
            "families": list(SUITES),
            "held_out": list_held_out_families(),
            "conditions": list(CONDITIONS),
            "most": MOST,
            "fewest": FEWEST,
        }

    def _offered(self, pool: str) -> list[Reply]:
        """Every orchestrator as {name, label, group}; those that take an agent once for each of the pool."""
        agents = [spec.name for spec in self._runtime.store.pools.latest(pool).pool.agents()] if pool else []
        found: list[Reply] = []
        for name, policy in POLICIES.items():
            if name == "model":
                labels = [(f"model:{agent}:plan", f"{agent} writes the plan") for agent in agents]
                found += [{"name": each, "label": label, "group": "Models of the pool"} for each, label in labels]
            elif policy.takes_agent:
                labels = [(f"{name}:{agent}", f"{policy.label}, {agent}") for agent in agents]
                found += [{"name": each, "label": label, "group": "Baselines"} for each, label in labels]
            else:
                found.append({"name": name, "label": policy.label, "group": "Baselines"})
        names = checkpoint_names()
        made = [name for name in names if name not in STARTERS]
        ships = [name for name in names if name in STARTERS]
        checkpoints = [
            {"name": name, "label": checkpoint_label(name), "group": "Checkpoints"} for name in [*ships, *made]
        ]
        return checkpoints + found

    def _workers(self, pool: str) -> list[str]:
        if not pool:
            return []
        return [spec.name for spec in self._runtime.store.pools.latest(pool).pool.enabled]

    def _draw(self, request: Request) -> Reply:
        """A query with a known answer, from the test split of a suite."""
        family, level = str(request.get("family")), int(request.get("level") or 0)
        return {"query": find_task(family, level, "test", random.randrange(10_000)).query}  # noqa: S311

    def _run(self, request: Request) -> Reply:
        """Start one episode for each orchestrator on the same query. Those that cannot start are told; the others
        run all the same."""
        names = _names(request)
        if not FEWEST <= len(names) <= MOST:
            return refused([("orchestrators", f"choose {FEWEST} to {MOST} different orchestrators")])
        started: list[Reply] = []
        for name in names:
            try:
                episode = self._runtime.start_episode(
                    str(request.get("pool") or ""), name, str(request.get("query") or "")
                )
            except StorageError:
                self._halt(started)
                raise
            except (PoolError, OrchestratorError, WorkerFault) as error:
                started.append({"orchestrator": name, "episode": None, "problem": str(error)})
            else:
                started.append({"orchestrator": name, "episode": episode, "problem": ""})
        if not any(each["episode"] for each in started):
            problems = dict.fromkeys(each["problem"] for each in started)
            return refused([("", problem) for problem in problems])
        return {"started": started}

    def _stop(self, request: Request) -> Reply:
        stopped = [self._runtime.stop_episode(str(episode)) for episode in request.get("episodes") or []]
        return {"said": "" if any(stopped) else "None of these episodes is running in this studio."}

    def _halt(self, started: Sequence[Reply]) -> None:
        for each in started:
            if each["episode"]:
                self._runtime.stop_episode(each["episode"])

    # Evaluations

    def _check(self, request: Request) -> Reply:
        """An evaluation as asked for: its recipe and what prevents a start."""
        recipe = evaluation_recipe(request)
        return {
            "yaml": dump_recipe(recipe),
            "missing": [each.document() for each in missing(recipe, self._runtime.store)],
        }

    def _evaluate(self, request: Request) -> Reply:
        """Put an evaluation into the queue."""
        recipe = evaluation_recipe(request)
        blocking = [(each.key, each.sentence) for each in missing(recipe, self._runtime.store) if each.blocks]
        if blocking:
            raise InvalidRecipe(blocking)
        row = self._jobs.submit(recipe)
        started = self._jobs.start_next()
        return {"job": row.id, "said": f"{row.id} {'starts' if started == row.id else 'waits in the queue'}"}


def evaluation_recipe(request: Request) -> Recipe:
    """The recipe of an evaluation that was put together on the page. Raises InvalidRecipe with every problem."""
    asked = request.get("evaluation")
    if not isinstance(asked, Mapping):
        raise InvalidRecipe([("evaluate", "say what is to be measured")])
    if not asked.get("orchestrators"):
        raise InvalidRecipe([("evaluate.orchestrators", "choose at least one orchestrator")])
    families = asked.get("families") or []
    if not families:
        raise InvalidRecipe([("evaluate.source", "choose at least one family")])
    if not asked.get("levels"):
        raise InvalidRecipe([("evaluate.levels", "choose at least one level")])
    section = {key: asked[key] for key in ("orchestrators", "levels", "count", "samples", "conditions") if key in asked}
    if asked.get("max_cost") is not None:
        section["max_cost"] = asked["max_cost"]
    source = ",".join(map(str, families))
    document = {
        "name": "compare",
        "title": str(asked.get("title") or "Started on the Compare page"),
        "pool": asked.get("pool"),
        "tasks": {"source": source, "levels": asked.get("levels")},
        "evaluate": {**section, "source": source},
    }
    return asked_recipe({"recipe": document})


def _names(request: Request) -> list[str]:
    """The chosen orchestrators, each once."""
    names = request.get("orchestrators")
    return list(dict.fromkeys(str(name) for name in names)) if isinstance(names, list) else []
