"""The studio's side of a function's process: start it, call it, notice that its file has changed."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, field_serializer, field_validator

from pool_registry.actions import JsonValue, clean_text
from pool_registry.errors import BadCall, InvalidPool, WorkerFault
from pool_registry.processes.child_process import Child, start
from pool_registry.secrets import check_reference, redact, resolve_references
from pool_registry.strict_model import StrictModel
from pool_registry.validation_words import join_problems, list_problems

HOST = Path(__file__).with_name("function_host.py")
MAX_REPLY_BYTES = 32 * 2**20  # more than function_host.py's limit in characters ever takes
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "OMP_NUM_THREADS", "SYSTEMROOT")  # into the sandbox
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_FUNCTION = re.compile(r"[A-Za-z_]\w*")


class FunctionPermissions(StrictModel):
    """What a function in the sandbox may reach beside Python, its packages and its own code."""

    network: bool = Field(default=False, description="Any address, also this machine's own.")
    read: tuple[Path, ...] = Field(default=(), max_length=20, description="Files and folders that it may read.")
    write: tuple[Path, ...] = Field(
        default=(), max_length=20, description="Folders that it may change; the first is its home (HOME, TMPDIR)."
    )
    keys: tuple[str, ...] = Field(
        default=(), max_length=20, description="env:NAME or keyring:NAME; each is its variable NAME."
    )

    @field_validator("read", "write")
    @classmethod
    def _are_absolute(cls, paths: tuple[Path, ...]) -> tuple[Path, ...]:
        return tuple(path.expanduser().absolute() for path in paths)

    @field_validator("keys")
    @classmethod
    def _are_references(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_reference(key) for key in keys)

    @field_serializer("read", "write", "keys")
    def _as_text(self, paths: tuple[Path | str, ...]) -> list[str]:
        return [str(path) for path in paths]

    def describe(self) -> str:
        """What it may reach, in a few words."""
        parts = ["the network" if self.network else "no network"]
        parts += [f"reads {path}" for path in self.read] + [f"changes {path}" for path in self.write]
        parts += [] if self.read or self.write else ["no files of yours"]
        return ", ".join([*parts, *(f"uses {key}" for key in self.keys)])

    def build_environment(self) -> dict[str, str]:
        """What Python needs, its home and its keys. Raises WorkerFault where a key is not set."""
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        passed |= dict.fromkeys(("HOME", "TMPDIR"), str(self.write[0])) if self.write else {}
        return passed | resolve_references({key.partition(":")[2]: key for key in self.keys})


@dataclass(frozen=True, slots=True)
class Target:
    """What to load: a file or a module, and one function of it or all public ones."""

    file: str = ""
    module: str = ""
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file or self.module}{f':{self.function}' if self.function else ''}"


def parse(target: str) -> Target:
    """Parse `module:function`, `path/to/file.py` or `path/to/file.py:function`. Raises InvalidPool."""
    text = target.strip()
    place, _, function = (text, "", "") if text.endswith(".py") else text.partition(".py:")
    if text.endswith(".py") or function:
        path = Path(place if text.endswith(".py") else f"{place}.py").expanduser().absolute()
        if function and not _FUNCTION.fullmatch(function):
            raise InvalidPool([("target", f"{function!r} is no function's name")])
        return Target(file=str(path), function=function)
    module, _, function = text.partition(":")
    if not _MODULE.fullmatch(module) or (function and not _FUNCTION.fullmatch(function)):
        raise InvalidPool([("target", "write module:function, path/to/file.py or path/to/file.py:function")])
    return Target(module=module, function=function)


class FunctionProcess:
    """One process with the functions of one target. One call at a time."""

    def __init__(self, child: Child, target: Target, permissions: FunctionPermissions | None = None) -> None:
        self._child = child
        self._permissions = permissions
        self._target = target
        self._stamp: tuple[str, int, int] | None = None
        self.functions: list[Mapping[str, Any]] = []

    @property
    def fresh(self) -> bool:
        """Whether it runs and its file is the one that was loaded."""
        return self._child.alive and (self._stamp is None or self._stamp == _stamp(self._stamp[0]))

    async def call(self, arguments: Mapping[str, JsonValue]) -> JsonValue:
        """Call the function. Raises BadCall or WorkerFault; the process may have ended then."""
        reply = await self._ask({"call": self._target.function, "arguments": dict(arguments)})
        return reply["value"]

    async def load(self) -> None:
        """Import the target. Raises WorkerFault when its code fails."""
        target = {"file": self._target.file} if self._target.file else {"module": self._target.module}
        if self._target.file:
            self._stamp = _stamp(self._target.file)  # before it is read: a later edit is noticed
        permissions = self._permissions.model_dump() if self._permissions is not None else None
        request = {"load": {**target, "function": self._target.function}, "permissions": permissions}
        reply = await self._ask(request)
        self.functions = reply["functions"]
        if self._stamp is None and reply["file"]:
            self._stamp = _stamp(reply["file"])

    async def end(self) -> None:
        """Kill it and all that it started."""
        await self._child.kill()

    async def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            await self._child.stdin.drain()
            line = await self._child.stdout.readline()
            if not line.endswith(b"\n"):
                raise WorkerFault("crashed", f"the function's process {await self._child.ending()}")
            reply: dict[str, Any] = json.loads(line)
        except ConnectionError:
            raise WorkerFault("crashed", f"the function's process {await self._child.ending()}") from None
        except ValueError as error:
            raise WorkerFault(
                "invalid_response", f"the function's process does not answer as agreed: {error}"
            ) from error
        if "error" not in reply:
            return reply
        message = join_problems(list_problems(reply["problems"])) if reply.get("problems") else str(reply["message"])
        message = redact(clean_text(message))
        raise BadCall(message) if reply["error"] == "bad_arguments" else WorkerFault(str(reply["error"]), message)


async def start_process(
    target: Target, python: str = "", permissions: FunctionPermissions | None = None
) -> FunctionProcess:
    """Start a process and load `target`, with this interpreter or another. Raises WorkerFault.

    With permissions it runs in the sandbox and sees nothing of the studio's environment but their keys. Without, it
    runs as the person who started the studio, with their environment: it is theirs, and may need their keys.
    """
    environment = os.environ if permissions is None else permissions.build_environment()
    child = await start([python or sys.executable, str(HOST)], environment, limit=MAX_REPLY_BYTES)
    process = FunctionProcess(child, target, permissions)
    try:
        await process.load()
    except BaseException:
        await process.end()
        raise
    return process


def _stamp(path: str) -> tuple[str, int, int] | None:
    """Return what changes when a file is edited; None when it is gone."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return path, status.st_mtime_ns, status.st_size
