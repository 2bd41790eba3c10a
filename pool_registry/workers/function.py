"""Kind `function`: your own Python function.

With `permissions` it runs in the sandbox and reaches what they name; without, it runs as you: so do functions that
were added before there were permissions. Either way it may neither block nor end the studio: it runs in a process of
its own, which stays warm between calls, is killed with all that it started at a time-out, and is started again after a
crash and after an edit of the file. What a model wrote belongs to kind `python`, which is a sandbox.
"""

from __future__ import annotations

import ast
import asyncio
import re
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field, field_validator

from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool, WorkerFault
from pool_registry.processes.function_jail import list_code
from pool_registry.processes.function_process import FunctionPermissions, FunctionProcess, parse, start_process
from pool_registry.python_source import parse_module
from pool_registry.schemas.argument_schema import ArgumentsSchema, describe_changes
from pool_registry.schemas.result_outline import ResultSchema
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Copier, PackedFiles, Reply, SampleCall, Worker, WorkerSpec
from pool_registry.workers.support.literal_values import list_looked_up


class FunctionConfig(StrictModel):
    target: str = Field(description="module:function or path/to/file.py:function. Its code is loaded and called.")
    parameters: ArgumentsSchema
    returns: ResultSchema
    permissions: FunctionPermissions | None = Field(
        default=None,
        description="What it may reach in the sandbox, {} for nothing. Empty: it runs as you, unsandboxed.",
    )
    python: str = Field(default="", description="Another interpreter, which must have pydantic; empty for Podium's.")

    @field_validator("target")
    @classmethod
    def _names_a_function(cls, value: str) -> str:
        try:
            target = parse(value)
        except InvalidPool as error:
            raise ValueError(error.problems[0][1]) from error
        if not target.function:
            raise ValueError("name the function as well: module:function or path/to/file.py:function")
        return value.strip()


class Function(Worker[FunctionConfig]):
    """Keeps a warm process per call that runs at the same time: one, unless `max_concurrency` allows more."""

    label = "Python function"
    summary = "Your own function, in a process of its own."
    icon = "M15 4c-4 0-4 3-5 8s-1 8-5 8 M7 11h8"
    described_by = "name"
    Config = FunctionConfig

    def __init__(self, spec: WorkerSpec, config: FunctionConfig) -> None:
        super().__init__(spec, config)
        self.returns = config.returns
        self._idle: deque[FunctionProcess] = deque()

    @classmethod
    def runs(cls, config: FunctionConfig) -> str:
        if config.permissions is not None:
            return f"the interpreter {config.python}" if config.python else ""
        return f"the Python function {config.target}"

    @classmethod
    def reads(cls, config: FunctionConfig) -> tuple[str, ...]:
        """The function's code, and what its permissions name."""
        if config.permissions is None:
            return ()
        named = (*config.permissions.read, *config.permissions.write)
        return (config.target, *map(str, named))

    @classmethod
    def stays_because(cls, config: FunctionConfig) -> str:  # noqa: ARG003
        return "it runs a Python file of this machine"

    @classmethod
    def pack(cls, config: FunctionConfig, folder: str) -> PackedFiles | None:
        """The function's file. A function of an installed module, or of another interpreter, has none."""
        target = parse(config.target)
        if not target.file or config.python:
            return None
        file = Path(target.file)
        place = f"{folder}/{file.name}"
        imports = list_imports(file.read_text(encoding="utf-8"))
        return PackedFiles({place: file}, {"target": f"{place}:{target.function}"}, imports)

    @classmethod
    def move_state(cls, config: FunctionConfig, copier: Copier) -> Mapping[str, JsonValue] | None:
        """What its permissions let it change, and its code, which names that by its place or relative to itself."""
        permissions, target = config.permissions, parse(config.target)
        if permissions is None or permissions.network or not permissions.write or not target.file:
            return None
        copies = {path: copier.add(path) for path in permissions.write}
        code = {Path(place): copier.add(Path(place)) for place in list_code({"file": target.file})}
        for place in code.values():
            for file in place.rglob("*.py") if place.is_dir() else [place]:
                if not file.is_symlink():  # what it leads to is no copy
                    _point_at(file, copies)
        moved = permissions.model_copy(update={"write": tuple(copies.values())})
        copied = copier.find(Path(target.file))
        return {"target": f"{copied}:{target.function}", "permissions": moved.model_dump(mode="json")}

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self.config.parameters

    @property
    def only_reads(self) -> bool:
        """Whether the sandbox keeps it from changing anything: it may neither write nor use the network."""
        permissions = self.config.permissions
        return permissions is not None and not permissions.write and not permissions.network

    async def call(self, call: Call) -> Reply:
        process = await self._take_process()
        try:
            value = await process.call(call.arguments)
        except Exception:
            await self._put_back(process)
            raise
        except BaseException:  # cancelled: its caller has gone
            await process.end()
            raise
        await self._put_back(process)
        return Reply(value)

    async def list_sample_calls(self, count: int) -> Sequence[SampleCall]:
        """Its sample, and calls with the keys of the tables in its file that it looks its arguments up in.
        Raises WorkerFault when the file cannot be read."""
        target = parse(self.config.target)
        file, required = Path(target.file), self.parameters.get("required")
        names = [str(name) for name in required] if isinstance(required, list | tuple) else []
        try:
            source = await asyncio.to_thread(file.read_text, "utf-8", "replace") if target.file else ""
        except OSError as error:
            raise WorkerFault(
                "unavailable", f"{file} cannot be read: {error.strerror}; put it back, or remove this worker"
            ) from error
        rows = list_looked_up(source, target.function, names)
        return [*await super().list_sample_calls(count), *map(SampleCall, rows)][:count]

    async def check(self) -> str:
        process = await self._take_process()
        await self._put_back(process)
        function = process.functions[0]
        if function.get("problem"):
            return f"loads, but {function['problem']}"
        changed = describe_changes(self.config.parameters, function["schema"])
        return f"ready; its arguments have changed ({changed}): import it again" if changed else "ready"

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().end()

    async def _take_process(self) -> FunctionProcess:
        while self._idle:
            process = self._idle.pop()
            if process.fresh:
                return process
            await process.end()
        return await start_process(parse(self.config.target), self.config.python, self.config.permissions)

    async def _put_back(self, process: FunctionProcess) -> None:
        if process.fresh:
            self._idle.append(process)
        else:
            await process.end()


def list_imports(source: str) -> tuple[str, ...]:
    """The top modules that a Python source imports anywhere; none where it is no Python."""
    try:
        tree = parse_module(source)
    except SyntaxError:
        return ()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or ".").partition(".")[0] if not node.level else ".")
    return tuple(sorted(names))


def _point_at(file: Path, copies: Mapping[Path, Path]) -> None:
    """Have a copied Python file name copies where it names what was copied."""
    text = file.read_text(encoding="utf-8")
    for path, copy in copies.items():
        text = re.sub(rf"{re.escape(str(path))}(?![\w-])", str(copy), text)
    file.write_text(text, encoding="utf-8")
