"""Runs in the process of a function: loads a person's file or module, lists its functions, calls them.

Started as a script by function_process.py. Requests come as JSON lines on standard input, answers go as JSON lines to
what was standard output; whatever the person's code prints goes to standard error, so that it cannot be taken for an
answer. With permissions it enters the sandbox before it loads anything (function_jail.py). Agents of other frameworks
count as functions (framework_agents.py). Imports little else than pydantic: it may run in another interpreter.
"""

from __future__ import annotations

import sys

import framework_agents  # type: ignore[import-not-found]  # a script's neighbour

sys.path.pop(0)  # this file's folder: the person's imports must not find our files

import asyncio
import functools
import importlib
import importlib.util
import inspect
import json
import os
import traceback
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO, Union, get_args, get_origin, get_type_hints, is_typeddict

import typing_extensions
from pydantic import PydanticUserError, TypeAdapter, ValidationError, validate_call
from pydantic_core import PydanticSerializationError, to_jsonable_python

MAX_REPLY_CHARS = 8_000_000
HINT = "use str, int, float, bool, list, dict, Literal, an Enum, a dataclass or a pydantic model"


class NoSandbox(Exception):
    """The process could not be locked in; nothing was loaded."""


def main() -> None:
    """Answer requests until standard input ends."""
    requests, replies = _take_streams()
    functions: dict[str, Callable[..., Any]] = {}
    with asyncio.Runner() as runner:  # one loop for all calls: what an async module keeps open stays usable
        for line in requests:
            request = json.loads(line)
            try:
                if "load" in request:
                    if request["permissions"] is not None:
                        runner.get_loop()  # it needs sockets of its own
                        _lock_in(request["load"], request["permissions"])
                    reply = _load(request["load"], functions)
                else:
                    reply = _call(functions[request["call"]], request["arguments"], runner)
            except NoSandbox as error:
                reply = {"error": "sandbox_failed", "message": str(error)}
            except framework_agents.NoAnswer as error:
                reply = {"error": "invalid_response", "message": str(error)}
            except BaseException as error:  # noqa: BLE001  a person's code may raise anything, SystemExit too
                reply = {"error": "function_raised", "message": _describe_error(error)}
            text = json.dumps(reply)
            if len(text) > MAX_REPLY_CHARS:
                text = json.dumps({"error": "output_too_large", "message": f"the result has {len(text):,} characters"})
            replies.write(text + "\n")
            replies.flush()


def _take_streams() -> tuple[TextIO, TextIO]:
    """Take the streams to the studio out of the reach of print() and input()."""
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return requests, replies


def _lock_in(target: dict[str, str], permissions: Mapping[str, Any]) -> None:
    """Enter the sandbox, and end when there is none: no line of the person's code is read outside."""
    here = str(Path(__file__).parent)
    sys.path.insert(0, here)
    try:
        import function_jail  # type: ignore[import-not-found]  # a script's neighbour

        function_jail.lock_in(target, permissions)
    except (OSError, KeyError, ImportError) as error:
        raise NoSandbox(
            f"this machine has no sandbox for functions ({type(error).__name__}: {error}); "
            "an owner can let it run as you"
        ) from error
    finally:
        sys.path.remove(here)


def _load(target: dict[str, str], functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    """Import the file or module and describe what it offers."""
    module = _import_target(target)
    name = target.get("function")
    if name:
        value = getattr(module, name, None)
        function = framework_agents.make_function(name, value) or value
        if not callable(function):
            has = ", ".join(_public(module)) or "none"
            return {"error": "not_found", "message": f"there is no function {name!r}; public functions: {has}"}
        functions[name] = function
    else:
        functions.update(_public(module))
    described = [{"name": name, **_describe(function)} for name, function in functions.items()]
    return {"functions": described, "file": getattr(module, "__file__", None)}


def _import_target(target: dict[str, str]) -> ModuleType:
    if "file" not in target:
        sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(target["module"])
    path = Path(target["file"])
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None, "process.py sends .py files only"
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pydantic look their types up here
    spec.loader.exec_module(module)
    return module


def _public(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """Return the module's agents and what its `__all__` names; without either, the functions that it defines: those
    beside an agent are its own."""
    named = getattr(module, "__all__", None)
    agents = {name: framework_agents.make_function(name, agent) for name, agent in framework_agents.find_agents(module)}
    if agents and named is None:
        return agents
    functions = {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and (name in named if named is not None else not name.startswith("_") and value.__module__ == module.__name__)
    }
    return functions | agents


def _describe(function: Callable[..., Any]) -> dict[str, Any]:
    """Describe a function: docstring and argument schema, or the problem; and whether it asks an agent."""
    described: dict[str, Any] = {
        "doc": inspect.getdoc(function) or "",
        "agent": framework_agents.is_agent(function),
    }
    problem = framework_agents.find_problem(function) or _signature_problem(function)
    if problem:
        return described | {"problem": problem}
    try:
        arguments: Any = _arguments_of(function)
        schema = TypeAdapter(arguments).json_schema()
    except (PydanticUserError, TypeError, NameError) as error:
        reason = str(error).splitlines()[0]
        return described | {"problem": f"its arguments cannot be written as JSON Schema ({reason}): {HINT}"}
    return described | {"schema": schema, "returns": _describe_result(function)}


def _describe_result(function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON Schema of what a function says that it returns; {} where it says nothing that can be written so."""
    try:
        annotation = get_type_hints(function).get("return")
        if annotation is None:
            return {}
        return TypeAdapter(_rebuild_typed_dicts(annotation)).json_schema(mode="serialization")
    except Exception:  # noqa: BLE001  an annotation is a person's code, or words that are none
        return {}


def _rebuild_typed_dicts(annotation: Any, depth: int = 4) -> Any:
    """The type with its TypedDicts as those of typing_extensions: before Python 3.12 pydantic reads no others. What is
    nested deeper, or refers to itself, may be anything."""
    if is_typeddict(annotation):
        hints = get_type_hints(annotation) if depth else {}
        fields = {name: _rebuild_typed_dicts(hint, depth - 1) for name, hint in hints.items()}
        make_typed_dict: Any = typing_extensions.TypedDict
        return make_typed_dict(annotation.__name__, fields) if depth else Any
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return Union[tuple(_rebuild_typed_dicts(part, depth) for part in parts)]  # noqa: UP007  made at run time
    if origin in (list, dict):
        return origin[tuple(_rebuild_typed_dicts(part, depth) for part in parts)]
    return annotation


def _signature_problem(function: Callable[..., Any]) -> str:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "its signature cannot be read; wrap it in a function with typed arguments"
    for parameter in parameters:
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            return f"{stars}{name} stands for any arguments; name each of them, with its type"
        if parameter.kind is parameter.POSITIONAL_ONLY:
            return f"{name} cannot be given by name; remove the / from the signature"
        if parameter.annotation is parameter.empty:
            return f"{name} has no type; write {name}: str, for example"
    return ""


def _arguments_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Build a function with the same signature that returns its arguments, to check them without running it."""

    @functools.wraps(function)
    def arguments(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    arguments.__annotations__ = {k: v for k, v in arguments.__annotations__.items() if k != "return"}
    return arguments


def _write_problem(item: Mapping[str, Any]) -> dict[str, Any]:
    """One of pydantic's errors, for the studio to put into words."""
    details = {
        name: value if isinstance(value, int | float | str) else str(value)
        for name, value in item.get("ctx", {}).items()
    }
    return {"loc": list(item["loc"]), "type": item["type"], "ctx": details}


def _call(function: Callable[..., Any], arguments: dict[str, Any], runner: asyncio.Runner) -> dict[str, Any]:
    try:
        args, kwargs = validate_call(_arguments_of(function))(**arguments)
    except ValidationError as error:
        return {"error": "bad_arguments", "message": "", "problems": [_write_problem(item) for item in error.errors()]}
    value = function(*args, **kwargs)
    if inspect.isawaitable(value):
        value = runner.run(_await_value(value))
    try:
        return {"value": to_jsonable_python(value)}
    except PydanticSerializationError as error:
        sentence = f"it returned a {type(value).__name__} ({error}); return text, numbers, lists, dicts or a dataclass"
        return {"error": "invalid_response", "message": sentence}


async def _await_value(value: Any) -> Any:
    return await value


def _describe_error(error: BaseException) -> str:
    """Describe an error with the line of the person's file: "ValueError: no (tools.py, line 3)"."""
    summary = traceback.TracebackException.from_exception(error)
    summary.__notes__ = None  # a library's, which would stand in the last line
    sentence = "".join(summary.format_exception_only()).strip().splitlines()[-1]
    if hint := framework_agents.find_hint(error):
        sentence = f"{sentence}: {hint}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({Path(error.filename).name}, line {error.lineno})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_theirs(frame.filename)]
    return f"{sentence} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else sentence


def _is_theirs(filename: str) -> bool:
    """Whether a frame is the person's own code: neither ours nor a library."""
    installed = ("site-packages", "dist-packages", str(Path(asyncio.__file__).parents[1]), "<frozen")
    return filename not in (__file__, framework_agents.__file__) and not any(part in filename for part in installed)


if __name__ == "__main__":
    main()
