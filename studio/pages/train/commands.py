"""What the Train page can ask and do, without any page: recipes, jobs, start, stop, resume.

`handle` takes one command as a dict and returns a document with `ok` and `problems` ([key, sentence]); nothing
that a person typed is lost by a problem. Jobs are read from the database and their folders, never from memory.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from platformdirs import user_data_dir
from pydantic import ValidationError

from pool_registry.kinds import field_problems
from studio.frame.commands import answered
from studio.pages.train.job_document import job_line, recipe_of
from studio.pages.train.preflight import missing
from studio.runtime import Runtime
from trainer.errors import InvalidRecipe
from trainer.recipe import Recipe, dump_recipe, list_presets, load_recipe, parse_recipe
from trainer.recipe_schema import build_recipe_schema

FIRST = "cpu-first-steps"
Request = Mapping[str, Any]
Reply = dict[str, Any]


class TrainDesk:
    """The commands of the Train page."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.jobs = runtime.jobs
        self._commands: dict[str, Callable[[Request], Reply]] = {
            "open": self._open,
            "preset": self._preset,
            "of_job": self._of_job,
            "check": self._check,
            "fit": self._fit,
            "submit": self._submit,
            "stop": self._stop,
            "resume": self._resume,
            "start_queue": self._start_queue,
        }

    def handle(self, request: Request) -> dict[str, Any]:
        """Do what `request["action"]` names. Never raises for what a person can mend."""
        return answered(self._commands, request)

    # Recipes

    def _open(self, _request: Request) -> Reply:
        """What the page is built from, and the recipe it begins with."""
        names = list_presets()
        first = FIRST if FIRST in names else (names[0] if names else "")
        recipe = load_recipe(first) if first else Recipe.model_validate({"sft": {}, "grpo": {}})
        return {
            "schema": build_recipe_schema(),
            "presets": preset_documents(),
            "pools": self._runtime.store.pools.names(),
            "preset": first,
            **self._shown(recipe, first, checked=False),
        }

    def _preset(self, request: Request) -> Reply:
        name = str(request.get("name"))
        if name not in list_presets():
            raise InvalidRecipe([("", f"there is no preset {name!r}; there are: {', '.join(list_presets())}")])
        return self._shown(load_recipe(name), name)

    def _of_job(self, request: Request) -> Reply:
        """The recipe of a job, to be edited for another one."""
        return self._shown(self.jobs.recipe(self.jobs.get(str(request.get("job"))).id), "")

    def _check(self, request: Request) -> Reply:
        """A recipe as edited: its problems by key, or its other form and what prevents a start."""
        return self._shown(asked_recipe(request), str(request.get("preset") or ""))

    def _fit(self, request: Request) -> Reply:
        from trainer.memory_fit.estimate import estimate_fit  # imports torch

        return {"fit": estimate_fit(asked_recipe(request)).model_dump(mode="json")}

    def _shown(self, recipe: Recipe, preset: str, checked: bool = True) -> Reply:
        """A recipe as the page holds it. What is missing takes a moment to find: the page asks for it later."""
        unchanged = preset in list_presets() and load_recipe(preset) == recipe
        return {
            "recipe": recipe.model_dump(mode="json"),
            "yaml": dump_recipe(recipe),
            "command": self._command(recipe, preset if unchanged else ""),
            "file": None if unchanged else f"{recipe.name}.yaml",
            "missing": [each.document() for each in missing(recipe, self._runtime.store)] if checked else None,
            "busy": [job_line(row) for row in self.jobs.all() if row.active or row.state == "queued"],
        }

    def _command(self, recipe: Recipe, preset: str) -> str:
        """What starts the same in a terminal; the data folder is named when it is not the usual one."""
        home = self._runtime.store.home.root
        words = ["python -m trainer train", preset or f"{recipe.name}.yaml"]
        if str(home) != user_data_dir("podium", appauthor=False):
            words.append(f"--home {shlex.quote(str(home))}")
        return " ".join(words)

    # Jobs

    def _submit(self, request: Request) -> Reply:
        recipe = asked_recipe(request)
        blocking = [(each.key, each.sentence) for each in missing(recipe, self._runtime.store) if each.blocks]
        if blocking:
            raise InvalidRecipe(blocking)
        row = self.jobs.submit(recipe)
        started = self.jobs.start_next()
        return {"job": row.id, "said": f"{row.id} {'starts' if started == row.id else 'waits in the queue'}"}

    def _stop(self, request: Request) -> Reply:
        row = self.jobs.stop(str(request.get("job")))
        said = "stops after this step, with a checkpoint" if row.state == "stopping" else "has left the queue"
        return {"said": f"{row.id} {said}"}

    def _resume(self, request: Request) -> Reply:
        row = self.jobs.resume(str(request.get("job")))
        started = self.jobs.start_next()
        return {"said": f"{row.id} {'goes on' if started == row.id else 'waits in the queue'}"}

    def _start_queue(self, _request: Request) -> Reply:
        started = self.jobs.start_next()
        return {"said": f"{started} starts" if started else "Nothing to start: a job runs, or none is queued"}

    def list(self) -> list[Reply]:
        """Every job, newest first."""
        return [job_line(row) for row in self.jobs.all()]

    def recipe_text(self, job: str) -> str:
        """The YAML of a job as it was submitted; empty when its file is gone."""
        recipe = recipe_of(self.jobs, job)
        return dump_recipe(recipe) if recipe else ""


def asked_recipe(request: Request) -> Recipe:
    """The recipe of a command: `yaml` as text, or `recipe` as the form's document. Raises InvalidRecipe."""
    if isinstance(request.get("yaml"), str):
        return parse_recipe(request["yaml"])
    document = request.get("recipe")
    if not isinstance(document, Mapping):
        raise InvalidRecipe([("", "a recipe is a mapping such as 'pool: starter'")])
    try:
        return Recipe.model_validate(document)
    except ValidationError as error:
        raise InvalidRecipe(field_problems(error)) from error


def preset_documents() -> list[Reply]:
    """The recipes that ship; one that a newer version cannot read is left out."""
    found = []
    for name in list_presets():
        try:
            recipe = load_recipe(name)
        except InvalidRecipe:
            continue
        steps = {stage: getattr(recipe, stage).steps for stage in recipe.stages if stage != "evaluate"}
        found.append(
            {
                "name": name,
                "title": recipe.title or name,
                "stages": [{"name": stage, "steps": steps.get(stage)} for stage in recipe.stages],
                "base": recipe.model.base,
                "adapter": recipe.model.lora is not None,
                "backend": recipe.grpo.rollouts.backend if recipe.grpo else "",
            }
        )
    return found
