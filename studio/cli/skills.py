"""`podium skills ...`: plans that solved several similar tasks, as workers with parameters (trainer/skills)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pool_registry.text import count_of
from studio.cli.options import HomeOption, JsonOption, open_prepared_store

if TYPE_CHECKING:
    from orchestrator.traces.store import Store
    from pool_registry.worker import WorkerSpec
    from trainer.skills.find import SkillCandidate

commands = typer.Typer(
    help="Plan skills of a pool: plans that solved several similar tasks, made workers with parameters.",
    no_args_is_help=True,
)
PoolOption = Annotated[str, typer.Option(help="Name of the pool.")]
SkillName = Annotated[str, typer.Argument(help="The skill's name.")]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(help="A worker that may be called to test a skill though its calls may have effects. Repeatable."),
]


@commands.command("find")
def find(pool: PoolOption, allow: AllowOption = None, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Show the skills that right runs and tasks of a pool make, each tested on questions it was not made of. Adds
    nothing. Workers are called for the test."""
    from trainer.skills.find import find_skills

    with open_prepared_store(home) as store:
        candidates = find_skills(store, pool, allow or ())
    if as_json:
        typer.echo(json.dumps([_write_candidate(row) for row in candidates], indent=1, ensure_ascii=False))
        return
    for row in candidates:
        _print_spec(row.spec)
        typer.echo(
            f"  not kept: {row.problem}"
            if row.problem
            else f"  add it: podium skills add {row.spec.name} --pool {pool}"
        )
    if not candidates:
        typer.echo(
            f"No skill: {pool} has no two right runs, or tasks with plans, of two steps or more that differ in values "
            "which their questions state. Judge answers with the thumbs of the Run page, or make tasks."
        )


@commands.command("add")
def add(
    name: SkillName, pool: PoolOption, allow: AllowOption = None, as_json: JsonOption = False, home: HomeOption = None
) -> None:
    """Test a skill again, and put it into the pool where it is right on all."""
    from trainer.skills.find import add_skill

    with open_prepared_store(home) as store:
        skill = add_skill(store, pool, name, allow or ())
    typer.echo(json.dumps(_write_candidate(skill), ensure_ascii=False) if as_json else f"{name} is in {pool} now.")


@commands.command("list")
def list_of_pool(pool: PoolOption, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Show the skills of a pool with their record, and how their calls went."""
    from trainer.skills.find import list_skills

    with open_prepared_store(home) as store:
        specs = list_skills(store.pools.latest(pool).pool)
        uses = {spec.name: count_uses(store, pool, spec.name) for spec in specs}
    if as_json:
        rows = [{**spec.model_dump(mode="json"), "uses": uses[spec.name]} for spec in specs]
        typer.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    for spec in specs:
        _print_spec(spec)
        calls, failed = uses[spec.name]
        typer.echo(
            f"  called {count_of(calls, 'time')} of late, {failed} failed{'' if spec.enabled else '; switched off'}"
        )
    if not specs:
        typer.echo(f"{pool} has no skill; look for some with: podium skills find --pool {pool}")


@commands.command("remove")
def remove(name: SkillName, pool: PoolOption, home: HomeOption = None) -> None:
    """Take a skill out of the pool. Its runs stay, and it can be found again."""
    from trainer.skills.find import remove_skill

    with open_prepared_store(home) as store:
        remove_skill(store, pool, name)
    typer.echo(f"{name} is no longer in {pool}.")


def count_uses(store: Store, pool: str, name: str) -> Sequence[int]:
    """The recorded calls of a skill that are looked at, the newest, and how many of these failed."""
    calls = store.traces.recent_calls(name, pool)
    return [len(calls), sum(call.status != "OK" for call in calls)]


def _print_spec(spec: WorkerSpec) -> None:
    from pool_registry.workers.skill import SkillConfig

    config = SkillConfig.model_validate(spec.config)
    properties = config.parameters.get("properties")
    names = ", ".join(properties) if isinstance(properties, Mapping) else ""
    steps = ", then ".join(step.worker for step in config.steps)
    typer.echo(f"{spec.name}({names})\n  {spec.description}\n  calls {steps}")
    if config.record is not None:
        typer.echo(f"  {config.record.describe()}")


def _write_candidate(row: SkillCandidate) -> dict[str, object]:
    return {"worker": row.spec.model_dump(mode="json"), "questions": list(row.questions), "problem": row.problem}
