"""The table of environments: what a folder of each holds besides the pool and the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROJECT = """\
[project]
name = "{name}"
version = "0.1.0"
description = "Orchestrate the pool {pool} of Podium on the tasks {tasks}."
requires-python = ">=3.11"
dependencies = [DEPENDENCIES]

[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
packages = ["{package}"]

[tool.setuptools.package-data]
"*" = ["*.json", "*.jsonl"]
"""
ABOUT = """\
# {name}

The pool `{pool}` with {count} tasks of `{tasks}` as an environment of PACKAGE, made by Podium. The model
orchestrates, in the dialect `{dialect}`; the workers stay as they are. The reward is 1 where Podium's grader finds the
answer right.

    pip install -e .
    COMMAND

`PODIUM` is the command of Podium; without it `podium` is looked up on the PATH. Paths that the pool's workers name are
those of the machine that exported it. Workers that want a key, a program, a file or a private address stay off unless
`PODIUM_TRUST=1` says that you trust the pool.{variables}
"""
OPENENV_YAML = """\
spec_version: 1
name: {package}
type: space
runtime: fastapi
app: {package}.app:app
port: 8000
"""


@dataclass(frozen=True, slots=True)
class EnvironmentForm:
    """`seat` is the asset that becomes the file `module` of the package; `texts` are the other files, with places for
    the names."""

    seat: str
    module: str
    texts: Mapping[str, str]


def _write_texts(package: str, dependencies: str, command: str, **more: str) -> dict[str, str]:
    about = ABOUT.replace("PACKAGE", package).replace("COMMAND", command)
    return {"pyproject.toml": PROJECT.replace("DEPENDENCIES", dependencies), "README.md": about, **more}


VERIFIERS = EnvironmentForm(
    "environments/verifiers_seat.py",
    "__init__.py",
    _write_texts(
        "verifiers",
        '"verifiers>=0.4,<0.5"',
        "PODIUM=/path/to/podium vf-eval {name} -n 5 --env.agent.runtime.type subprocess -m MODEL",
    ),
)
OPENENV = EnvironmentForm(
    "environments/openenv_seat.py",
    "app.py",
    {
        **_write_texts(
            "OpenEnv",
            '"openenv-core>=0.3", "uvicorn>=0.24"',
            "PODIUM=/path/to/podium uvicorn {package}.app:app",
        ),
        "openenv.yaml": OPENENV_YAML,
        "{package}/__init__.py": "",
    },
)
