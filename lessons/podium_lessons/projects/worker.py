"""Kind `project`: a function of a generated project, which takes one thing and gives one value of it. The value
follows from the project, its seed, the function and the thing."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator

from podium_lessons.projects.project_data import list_projects, load_project
from pool_registry.actions import JsonValue, as_text
from pool_registry.errors import BadCall
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker
from trainer.tasks.suite import make_random


class ProjectConfig(StrictModel):
    project: str = Field(description="Which project.")
    seed: int = Field(description="What its values are drawn from.")
    function: str = Field(description="Which function of the project.")
    parameter: str = Field(description="What its argument is called.")
    hint: str = Field(default="", description="What is said of the argument.")
    example: str = Field(default="", description="A thing that it takes.")

    @model_validator(mode="after")
    def _is_there(self) -> ProjectConfig:
        if self.project not in list_projects():  # a pool may come from anywhere: this is no path
            raise ValueError(f"there is no project {self.project!r}")
        if all(tool.name != self.function for tool in load_project(self.project).tools):
            raise ValueError(f"{self.project} has no function {self.function!r}")
        return self


class ProjectFunction(Worker[ProjectConfig]):
    label = "Project function"
    summary = "A function of a generated project: takes one thing, gives one value."
    icon = "M5 4h14v16H5z M9 9h6 M9 13h6"
    template = None  # training needs it; a person would not add it
    cacheable = True
    wording = ("seed",)
    Config = ProjectConfig

    @property
    def sample(self) -> Mapping[str, JsonValue]:  # type: ignore[override]
        return {self.config.parameter: self.config.example} if self.config.example else {}

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        about = {"description": self.config.hint} if self.config.hint else {}
        return {
            "type": "object",
            "properties": {self.config.parameter: {"type": "string", **about}},
            "required": [self.config.parameter],
            "additionalProperties": False,
        }

    async def call(self, call: Call) -> Reply:
        config = self.config
        return Reply(look_up(config.project, config.seed, config.function, as_text(call.arguments[config.parameter])))


def look_up(project: str, seed: int, function: str, written: str) -> JsonValue:
    """What a function gives for a thing. Raises BadCall where there is no such thing."""
    data = load_project(project)
    tool = data.tool(function)
    thing = next((thing for thing in data.things[tool.takes] if thing.casefold() == written.strip().casefold()), None)
    if thing is None:
        raise BadCall(f"there is no {tool.takes.replace('_', ' ')} {written[:60]!r}")
    others = [other for other in data.things.get(tool.gives.thing, ()) if other != thing]
    return tool.gives.draw(make_random(f"{data.name}/{seed}/{tool.name}/{thing}"), others)
