"""What an improvement can train: the table of stages, the cheapest first. The first that applies is the default.

who         which worker to choose for a query, from what each gets right: minutes, no weights of a planner change
plans       a reader imitates the reference plans of new tasks
right_runs  a reader imitates those of its own runs that came out right (expert iteration), for tasks without a plan

Another stage is a row here and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from orchestrator.checkpoints import complete_steps
from orchestrator.orchestrator_name import split_options
from orchestrator.policies.registry import find_policy, is_reader
from pool_registry.pool import Pool
from trainer.errors import TrainingFailed
from trainer.improve.choice import learn_choice
from trainer.improve.record import Improvement
from trainer.improve.site import Site
from trainer.pool_recipe import build_pool_recipe
from trainer.recipe import Recipe
from trainer.recipe_sections import EVERY_AGENT, EvaluateSettings
from trainer.tasks.registry import PROVIDERS

LESSONS = ("worlds", "projects")  # general lessons, from pools of their own, where they are installed
OWN_SHARE, LESSON_SHARE = 4, 1  # of the draws of a training
TRIES = 4  # of a reader that learns from its own right runs


@dataclass(frozen=True, slots=True)
class Facts:
    """What decides which stages apply: the pool, the serving orchestrator, and how many new tasks to learn from there
    are, all of them and those with a reference plan."""

    pool: Pool
    serving: str
    learnt: int
    plan_count: int


@dataclass(frozen=True, slots=True)
class LearningStage:
    """A row of the table. `explain_unfit` says why it does not apply, "" where it does. `write_recipe` is the job that
    it runs, `name_candidate` what that came to. `changes_plans`: the candidate plans otherwise on other pools, too, so
    that it is measured there. `replays`: it forgets what it does not see again, so that old tasks are learnt from."""

    name: str
    summary: str
    explain_unfit: Callable[[Facts], str]
    write_recipe: Callable[[Improvement], Recipe]
    name_candidate: Callable[[Improvement, Site], str]
    changes_plans: bool = True
    replays: bool = True


def _needs_choice(facts: Facts) -> str:
    if len(facts.pool.agents()) < 2:
        return "the pool has fewer than two agents to choose from"
    policy = find_policy(facts.serving)
    if (policy is not None and policy.takes_score) or (policy is None and is_reader(facts.serving)):
        return ""
    return f"{facts.serving} chooses no workers by a score; serve router, cascade or a reader"


def _needs_reader(facts: Facts) -> str:
    if find_policy(facts.serving) is not None or not is_reader(facts.serving):
        return f"{facts.serving} is no reader that could learn"
    return ""


def _needs_plans(facts: Facts) -> str:
    if problem := _needs_reader(facts):
        return problem
    short = 2 * facts.plan_count < facts.learnt
    return f"only {facts.plan_count} of {facts.learnt} new tasks have a reference plan" if short else ""


def _ask_every_agent(improvement: Improvement) -> Recipe:
    plan = improvement.plan
    ask = EvaluateSettings(
        orchestrators=(EVERY_AGENT,),
        source=improvement.learnt_source,
        split="train",
        count=plan.learnt + plan.replayed,
        seed=plan.seed,
        concurrency=8,
        max_cost=plan.max_cost,
    )
    return Recipe(name=f"{plan.pool[:24]}-outcomes", pool=plan.pool, evaluate=ask)


def _imitate(improvement: Improvement, **demonstrations: object) -> Recipe:
    """The recipe of *Train on this pool*, from the serving checkpoint, with lessons of other pools where there are."""
    plan = improvement.plan
    serving = split_options(plan.serving)[0]
    recipe = build_pool_recipe(plan.pool, plan.learnt + plan.replayed, start=serving)
    lessons = " + ".join(name for name in LESSONS if name in PROVIDERS)
    source = f"{improvement.learnt_source}*{OWN_SHARE} + {lessons}" if lessons else improvement.learnt_source
    count = recipe.tasks.count * (OWN_SHARE + len(LESSONS) * LESSON_SHARE) // OWN_SHARE if lessons else None
    changes = {"source": source, "count": count or recipe.tasks.count, "seed": plan.seed}
    recipe = recipe.model_copy(
        update={
            "name": f"{plan.pool[:24]}-improved",
            "tasks": recipe.tasks.model_copy(update=changes),
            "evaluate": None,
            "max_cost": plan.max_cost,
        }
    )
    (stage,) = recipe.training_stages
    shown = stage.method.require(recipe).demonstrations.model_copy(update=demonstrations)
    steps = {} if plan.steps is None else {"steps": plan.steps}
    return stage.method.edit(recipe, demonstrations=shown, **steps)


def _imitate_plans(improvement: Improvement) -> Recipe:
    return _imitate(improvement)


def _imitate_right_runs(improvement: Improvement) -> Recipe:
    teacher = split_options(improvement.plan.serving)[0]
    return _imitate(improvement, teacher=teacher, samples=TRIES, max_rounds=1)


def _name_last_checkpoint(improvement: Improvement, site: Site) -> str:
    """The job's last checkpoint, with the options of the name that it is measured against."""
    job = improvement.plan.jobs["learn"]
    steps = complete_steps(site.jobs.folder(job).checkpoints)
    if not steps:
        raise TrainingFailed("checkpoint", f"the job {job} left no complete checkpoint; resume it, then improve again")
    return f"{job}@{steps[-1][0]}{split_options(improvement.plan.measured)[1]}"


STAGES = MappingProxyType(
    {
        stage.name: stage
        for stage in (
            LearningStage(
                "who",
                "which agent to choose, from what each gets right",
                _needs_choice,
                _ask_every_agent,
                learn_choice,
                changes_plans=False,
                replays=False,
            ),
            LearningStage(
                "plans",
                "how to plan, from the reference plans of new tasks",
                _needs_plans,
                _imitate_plans,
                _name_last_checkpoint,
            ),
            LearningStage(
                "right_runs",
                "how to plan, from its own runs that came out right",
                _needs_reader,
                _imitate_right_runs,
                _name_last_checkpoint,
            ),
        )
    }
)


def choose_stage(facts: Facts, name: str = "") -> LearningStage:
    """The stage of this name, or the cheapest that applies. Raises TrainingFailed with why none, or this one, does."""
    if name and name not in STAGES:
        raise TrainingFailed("stage", f"there is no stage {name!r} to train; use one of: {', '.join(STAGES)}")
    candidates = [STAGES[name]] if name else list(STAGES.values())
    unfit = {stage.name: stage.explain_unfit(facts) for stage in candidates}
    fit = [stage for stage in candidates if not unfit[stage.name]]
    if not fit:
        reasons = "; ".join(f"{stage}: {reason}" for stage, reason in unfit.items())
        raise TrainingFailed("stage", f"nothing of {facts.serving} can be trained on {facts.pool.name}: {reasons}")
    return fit[0]
