"""What renting a machine for a job comes to, before anything is sent: price, time, and what cannot work there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from orchestrator.traces.store import Store
from pool_registry.errors import SecretNotFound
from pool_registry.language_models.model_files import HUB, STARTER, TINY
from pool_registry.pool import Pool
from pool_registry.portable_pool import Travellers, travellers
from pool_registry.secrets import resolve
from trainer.errors import InvalidRecipe, TrainerError
from trainer.jobs.queue import JobRow, JobStore, count_steps
from trainer.recipe import Recipe
from trainer.recipe_packages import list_recipe_packages
from trainer.rented.hub_jobs import HubJobs, RentedMachine
from trainer.run_recipe import load_pool, load_training_tasks
from trainer.tasks.practice.stored import SOURCE, find_practice_file

TOKEN = "HF_TOKEN"  # noqa: S105  the name of a variable


@dataclass(frozen=True, slots=True)
class RentalPlan:
    """A job as it would run on a rented machine. `seconds` is what earlier jobs like it took, None where there were
    none; `problems` are (key of the recipe, sentence) and keep it from starting; `stays` are workers that it will not
    reach, each with the reason; `secrets` are (name there, reference here)."""

    machine: RentedMachine
    max_hours: float
    seconds: float | None
    problems: tuple[tuple[str, str], ...]
    stays: tuple[tuple[str, str], ...]
    secrets: tuple[tuple[str, str], ...]
    pools: tuple[Pool, ...]
    packages: tuple[str, ...]
    sends_login: bool

    @property
    def max_cost(self) -> float:
        """US dollars, when the machine is kept until its last minute."""
        return self.machine.hourly * self.max_hours

    @property
    def cost(self) -> float | None:
        """US dollars, when the job takes as long as earlier ones."""
        return None if self.seconds is None else self.machine.hourly * self.seconds / 3600

    @property
    def secret_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.secrets) + ((TOKEN,) if self.sends_login else ())

    def describe(self) -> list[str]:
        """The plan in sentences, for a person to agree to."""
        machine = self.machine
        lines = [
            f"{machine.title} ({machine.memory}): ${machine.hourly:.2f} an hour. It is given back after "
            f"{self.max_hours:g} hours at the latest: ${self.max_cost:.2f} at most"
        ]
        if self.cost is not None and self.seconds is not None:
            lines.append(f"Earlier jobs like it took {self.seconds / 3600:.1f} hours: about ${self.cost:.2f}")
        else:
            lines.append("How long it takes is not known: no job like it has run on such a machine")
        reasons = dict.fromkeys(reason for _, reason in self.stays)
        for reason in reasons:
            names = ", ".join(name for name, why in self.stays if why == reason)
            lines.append(f"It will not have {names}: {reason}")
        if self.secret_names:
            lines.append(f"Sent as secrets of the job: {', '.join(self.secret_names)}")
        return lines

    def resolve_secrets(self, login: str) -> dict[str, str]:
        """The values of the secrets. Raises SecretNotFound."""
        values = {name: resolve(reference).get_secret_value() for name, reference in self.secrets}
        return {**values, TOKEN: login} if self.sends_login else values


def plan_rental(recipe: Recipe, store: Store, jobs: JobStore, hub: HubJobs) -> RentalPlan:
    """Plan a job on the machine that its recipe names. Raises InvalidRecipe for a flavor that cannot be rented, and
    TrainingFailed when the Hub refuses or cannot be reached."""
    machine = find_machine(recipe, hub.list_machines())
    parts = [travellers(pool, with_packages=True, with_judges=True) for pool in load_pools(recipe, store)]
    seconds = estimate_seconds(recipe, jobs.all())
    secrets = {secret.name: secret.reference for part in parts for secret in part.secrets}
    restricted = _is_restricted(recipe, hub)
    problems = (
        *_find_problems(recipe, parts[0]),
        *_find_missing_secrets(secrets),
        *_find_short_time(recipe, seconds),
        *_find_too_few_gpus(recipe, machine),
    )
    return RentalPlan(
        machine=machine,
        max_hours=recipe.max_hours,
        seconds=seconds,
        problems=problems,
        stays=tuple((name, why) for part in parts for name, why in part.stays if why != "it is switched off"),
        secrets=tuple(secrets.items()),
        pools=tuple(part.pool for part in parts),
        packages=list_recipe_packages(recipe, [part.pool for part in parts]),
        sends_login=restricted,
    )


def find_machine(recipe: Recipe, machines: Sequence[RentedMachine]) -> RentedMachine:
    """The machine that a recipe names. Raises InvalidRecipe with those that can be rented."""
    flavor = recipe.place.flavor
    machine = next((machine for machine in machines if machine.flavor == flavor), None)
    if machine is None:
        listed = ", ".join(f"hf:{machine.flavor} (${machine.hourly:.2f} an hour)" for machine in machines)
        raise InvalidRecipe([("where", f"there is no machine {recipe.where}; there are: {listed}")])
    return machine


def load_pools(recipe: Recipe, store: Store) -> list[Pool]:
    """The recipe's pool, then those that it takes distractors from. Raises PoolNotFound."""
    sources = [name for pools in recipe.pool_draws for name in pools.sources]
    return [load_pool(store, name) for name in dict.fromkeys([recipe.pool, *sources])]


def estimate_seconds(recipe: Recipe, rows: Sequence[JobRow]) -> float | None:
    """How long a recipe takes, by the newest job with its stages that was done in its place; None where none was."""
    kind, steps = "+".join(recipe.stages), count_steps(recipe)
    for row in rows:
        if row.where == recipe.where and row.kind == kind and row.state == "done" and row.steps and row.ended_at:
            return _seconds_between(row.started_at or row.created_at, row.ended_at) * steps / row.steps
    return None


def _seconds_between(start: datetime, end: datetime) -> float:
    return max(0.0, (end.replace(tzinfo=None) - start.replace(tzinfo=None)).total_seconds())


def _is_restricted(recipe: Recipe, hub: HubJobs) -> bool:
    base = recipe.model.base
    return base.startswith(HUB) and hub.is_restricted(base.removeprefix(HUB))


def _find_problems(recipe: Recipe, portable: Travellers) -> Iterator[tuple[str, str]]:
    """Yield what the recipe names and a rented machine does not have."""
    model = recipe.model
    if not model.base.startswith(HUB) and model.base not in (TINY, STARTER):
        yield "model.base", f"{model.base} is a folder of this machine: choose a model of the hub, as hub:OWNER/NAME"
    if "@" in model.start or "/" in model.start:
        yield (
            "model.start",
            f"{model.start} is a checkpoint of this machine and does not travel: leave model.start empty",
        )
    if any(part.startswith("file:") for source in recipe.list_sources() for part in source.split(",")):
        yield "tasks.source", "a file of tasks does not travel: add its tasks to the pool's own (practice:POOL)"
    measured = (*recipe.evaluate.orchestrators, recipe.evaluate.reference) if recipe.evaluate else ()
    for name in measured:
        if "@" in name or "/" in name:
            yield "evaluate.orchestrators", f"{name} is of this machine and does not travel: compare the jobs here"
    if recipe.who is not None:
        yield "who", "the success predictor is of this machine's outcomes and stays on it: leave who out, or train here"
    for stage in recipe.training_stages:
        yield from stage.method.find_travel_problems(stage.settings)
    yield from _find_missing_workers(recipe, portable.pool)


def _find_missing_workers(recipe: Recipe, pool: Pool) -> Iterator[tuple[str, str]]:
    """Yield why the tasks cannot be learnt with the workers that travel."""
    if not pool.workers:
        yield "pool", f"no worker of {recipe.pool} can be reached from there"
        return
    if not recipe.trains or not _are_tasks_here(recipe):
        return
    try:
        load_training_tasks(recipe, pool)
    except TrainerError as error:
        yield "tasks.source", f"on the rented machine: {error}"


def _are_tasks_here(recipe: Recipe) -> bool:
    """Whether the tasks can be read now: those of the Hub are fetched, and missing practice tasks made, there."""
    source = recipe.tasks.source
    made = source.startswith(SOURCE) and not find_practice_file(source.removeprefix(SOURCE)).is_file()
    return not made and not source.startswith("hub:")


def _find_missing_secrets(secrets: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for reference in secrets.values():
        try:
            resolve(reference)
        except SecretNotFound as error:
            yield "pool", str(error)


def _find_short_time(recipe: Recipe, seconds: float | None) -> Iterator[tuple[str, str]]:
    """Yield that the machine would be given back before the job is done."""
    if seconds is not None and seconds >= recipe.max_hours * 3600:
        yield "max_hours", f"earlier jobs like it took {seconds / 3600:.1f} hours: allow more than that"


def _find_too_few_gpus(recipe: Recipe, machine: RentedMachine) -> Iterator[tuple[str, str]]:
    """Yield that the machine has fewer GPUs than the recipe has processes."""
    if recipe.processes > max(1, machine.gpus):
        count = f"{machine.gpus} GPU for {recipe.processes} processes"
        yield "processes", f"{machine.title} has {count}: rent a larger one, or lower processes"


def refuse_problems(plan: RentalPlan) -> None:
    """Raise InvalidRecipe with what keeps a job from a rented machine."""
    if plan.problems:
        raise InvalidRecipe(list(plan.problems))
