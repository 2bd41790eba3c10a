"""The words and figures behind tasks and pools: YAML files in assets/tasks, and those of other packages.

A file is read when it is first needed, and checked against a model: what is missing, unknown or of another type is an
error that names the file and the place in it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from assets import asset
from pool_registry.kinds import field_problems
from trainer.errors import UnusableTasks

FOLDER = "tasks"

Data = TypeVar("Data", bound=BaseModel)


class TaskData(BaseModel):
    """A file of words and figures, or a part of one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


def load_task_data(name: str, model: type[Data]) -> Data:
    """The content of assets/tasks/NAME.yaml. Raises UnusableTasks."""
    return read_task_data(asset(FOLDER) / f"{name}.yaml", model)


def read_task_data(path: Path, model: type[Data]) -> Data:
    """The content of a YAML file. Raises UnusableTasks with the file and every place in it that is wrong."""
    import yaml  # here: importing reads no file and needs no parser

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times as fast
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), loader)  # noqa: S506  both loaders are safe ones
        return model.model_validate_json(json.dumps(document))  # JSON: strict, and its lists may become tuples
    except ValidationError as error:
        places = "; ".join(f"{place}: {what}" if place else what for place, what in field_problems(error))
        raise UnusableTasks(f"{path} is malformed: {places}") from error
    except (OSError, ValueError, TypeError, yaml.YAMLError) as error:  # TypeError: a date or a set is not JSON
        raise UnusableTasks(f"{path} cannot be read: {error}") from error
