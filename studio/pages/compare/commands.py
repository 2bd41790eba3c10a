"""The commands of the Compare page: what can be compared, runs side by side, evaluations."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from orchestrator.checkpoints import STARTERS, checkpoint_names
from orchestrator.errors import OrchestratorError
from orchestrator.orchestrator_name import TurnOptions
from orchestrator.policies.labels import label_orchestrator
from orchestrator.policies.registry import POLICIES, find_policy, is_untrained
from pool_registry.errors import InvalidPool, PoolError, StorageError, WorkerFault
from studio.frame.commands import Fields, PageCommands, PageReply, command, text
from studio.orchestrators.choices import FIRST_QUERY, SCORE_CHOICES
from studio.orchestrators.default import STARTER, choose_default, suggest_orchestrators, write_model_name
from studio.pages.compare.regrade_commands import RegradeCommands
from studio.pages.compare.schema import CompareChoices, EvaluationCheck, OrchestratorChoice, StartedRun, SuiteLevel
from studio.pages.train.commands import parse_draft, submit
from studio.pages.train.preflight import find_gaps
from studio.runtime import Runtime
from trainer.errors import InvalidRecipe
from trainer.recipe import Recipe, dump_recipe
from trainer.tasks import SUITES, find_task, list_held_out_families
from trainer.tasks.practice.stored import SOURCE, find_practice_file
from trainer.tasks.starter_examples import NAME as EXAMPLES
from trainer.tasks.task_conditions import CONDITIONS

MOST = 4
FEWEST = 2


class CompareCommands(PageCommands):
    """The commands of the Compare page."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.parts = (RegradeCommands(runtime),)

    @command("viewer")
    def _open(self, fields: Fields) -> PageReply:
        """The orchestrators that can be compared on the chosen pool, and what the page shows first."""
        pools = self._runtime.store.pools.names()
        choice = str(fields.get("pool") or "")
        pool = next((name for name in (choice, STARTER, *pools) if name in pools), "")
        orchestrators = self._orchestrators(pool)
        names = [orchestrator.name for orchestrator in orchestrators]
        family, level, index = FIRST_QUERY
        choices = CompareChoices(
            pools=pools,
            pool=pool,
            orchestrators=orchestrators,
            begins=self._choose_first(pool, names),
            baselines=self._choose_baselines(pool, names),
            workers=self._workers(pool),
            query=find_task(family, level, "test", index).query,
            suites=[SuiteLevel(family=name, level=level) for name, suite in SUITES.items() for level in suite.levels],
            families=[*_list_own_sources(pool), *(SUITES or (EXAMPLES,))],
            held_out=list(list_held_out_families()),
            conditions=list(CONDITIONS),
            most=MOST,
            fewest=FEWEST,
        )
        return PageReply(fields=choices.to_json())

    def _choose_first(self, pool: str, names: Sequence[str]) -> list[str]:
        """Whom the page opens with: the default of the pool and, on the starter pool, the reference of the query that
        it opens with."""
        if not pool:
            return list(names[:FEWEST])
        stored = self._runtime.store.pools.latest(pool).pool
        reference = ["oracle"] if pool == STARTER else []
        wishes = [choose_default(stored), *reference, *suggest_orchestrators(stored), *names]
        return [name for name in dict.fromkeys(wishes) if name in names][:FEWEST]

    def _choose_baselines(self, pool: str, names: Sequence[str]) -> list[str]:
        """What reviewers ask a trained orchestrator to beat: every agent alone and with as many samples, the policies
        over all agents, and the first agent as planner, as ReAct and with all tools."""
        agents = self._agents(pool)
        alone = [f"{policy}:{agent}" for policy in ("direct", "self_consistency") for agent in agents]
        first = [write_model_name(agents[0]), *(f"{name}:{agents[0]}" for name in POLICIES)] if agents else []
        others = [name for name in names if find_policy(name) is not None and ":" not in name]
        return [name for name in dict.fromkeys((*alone, *first, *others)) if name in names and is_untrained(name)]

    def _agents(self, pool: str) -> list[str]:
        return [spec.name for spec in self._runtime.store.pools.latest(pool).pool.agents()] if pool else []

    def _orchestrators(self, pool: str) -> list[OrchestratorChoice]:
        """Every orchestrator; those that take an agent once for each of the pool."""
        agents = self._agents(pool)
        baselines: list[OrchestratorChoice] = []
        for name, policy in POLICIES.items():
            if name == "model":
                baselines += _list_choices([write_model_name(agent) for agent in agents], "Models of the pool")
            elif policy.takes_agent:
                baselines += _list_choices([f"{name}:{agent}" for agent in agents], "Baselines")
            else:
                group = "For queries of a suite" if policy.needs_reference else "Baselines"
                scores = [score for _, score in SCORE_CHOICES] if policy.takes_score else [""]
                baselines += _list_choices([f"{name}{TurnOptions(who=score)}" for score in scores], group)
        names = checkpoint_names()
        made = [name for name in names if name not in STARTERS]
        ships = [name for name in names if name in STARTERS]
        return _list_choices([*ships, *made], "Checkpoints") + baselines

    def _workers(self, pool: str) -> list[str]:
        if not pool:
            return []
        return [spec.name for spec in self._runtime.store.pools.latest(pool).pool.enabled]

    @command("viewer")
    def _draw(self, fields: Fields) -> PageReply:
        """A query with a known answer, from the test split of a suite."""
        family, level = text(fields, "family"), fields.get("level")
        if not isinstance(level, int):
            raise InvalidPool([("level", "choose a level")])
        index = random.randrange(10_000)  # noqa: S311
        return PageReply(fields={"query": find_task(family, level, "test", index).query})

    @command("editor")
    def _run(self, fields: Fields) -> PageReply:
        """Start one episode for each orchestrator on the same query. Those that cannot start say why; the others run
        all the same."""
        names = _names(fields)
        if not FEWEST <= len(names) <= MOST:
            raise InvalidPool([("orchestrators", f"choose {FEWEST} to {MOST} different orchestrators")])
        started: list[StartedRun] = []
        for name in names:
            try:
                episode = self._runtime.start_episode(
                    str(fields.get("pool") or ""), name, str(fields.get("query") or "")
                )
            except StorageError:
                self._halt(started)
                raise
            except (PoolError, OrchestratorError, WorkerFault) as error:
                started.append(StartedRun(orchestrator=name, episode=None, problem=str(error)))
            else:
                started.append(StartedRun(orchestrator=name, episode=episode, problem=""))
        if not any(run.episode for run in started):
            raise InvalidPool([("", problem) for problem in dict.fromkeys(run.problem for run in started)])
        return PageReply(fields={"started": [run.to_json() for run in started]})

    @command("editor")
    def _stop(self, fields: Fields) -> PageReply:
        episodes = fields.get("episodes")
        if not isinstance(episodes, list):
            raise InvalidPool([("episodes", "choose at least one run")])
        stopped = [self._runtime.stop_episode(str(episode)) for episode in episodes]
        return PageReply("" if any(stopped) else "None of these episodes is running in this studio.")

    def _halt(self, started: Sequence[StartedRun]) -> None:
        for run in started:
            if run.episode:
                self._runtime.stop_episode(run.episode)

    # Evaluations

    @command("editor")
    def _check(self, fields: Fields) -> PageReply:
        """The recipe of an evaluation, and what prevents its start."""
        recipe = evaluation_recipe(fields)
        check = EvaluationCheck(yaml=dump_recipe(recipe), missing=find_gaps(recipe, self._runtime.store))
        return PageReply(fields=check.to_json())

    @command("editor")
    def _evaluate(self, fields: Fields) -> PageReply:
        """Put an evaluation into the queue."""
        return submit(evaluation_recipe(fields), self._runtime)


def _list_own_sources(pool: str) -> list[str]:
    """The own tasks of a pool as a source of tasks, where it has some."""
    return [f"{SOURCE}{pool}"] if pool and find_practice_file(pool).is_file() else []


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


def _list_choices(names: Sequence[str], group: str) -> list[OrchestratorChoice]:
    """The choices under one heading."""
    return [OrchestratorChoice(name=name, label=label_orchestrator(name), group=group) for name in names]


def _names(fields: Fields) -> list[str]:
    """The chosen orchestrators, each once."""
    names = fields.get("orchestrators")
    return list(dict.fromkeys(str(name) for name in names)) if isinstance(names, list) else []
