"""Python functions as workers: schemas from signatures, and calls that cannot hurt the studio."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.errors import InvalidPool
from pool_registry.imports.functions import list_functions
from pool_registry.pool import Pool, check_pool
from pool_registry.schemas.result_outline import format_fields
from pool_registry.worker import WorkerSpec
from tests.pool_registry.support.processes import gone

pytestmark = pytest.mark.medium

T = TypeVar("T")
TOOLS = '''
import asyncio, dataclasses, enum, os, subprocess, sys, time
from typing import Annotated, Literal, Optional, TypedDict
from pydantic import BaseModel, Field

class Unit(enum.Enum):
    KM = "km"
    MILE = "mile"

@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0

class Trip(BaseModel):
    stops: list[Point]
    title: str = Field(description="its name")

def length(
    trip: Trip,
    unit: Unit,
    mode: Literal["fast", "short"] = "fast",
    tags: Optional[dict[str, int]] = None,
    factor: Annotated[float, Field(gt=0, description="multiplies the result")] = 1.0,
) -> Point:
    """How long a trip is.

    Args:
        trip: The trip to measure.
        unit: In which unit.
        factor: not used, Field says it better

    Returns:
        A point, of all things.
    """
    assert isinstance(unit, Unit) and isinstance(trip.stops[0], Point)
    return Point(len(trip.stops) * factor)

def numpy_style(a: int) -> int:
    """Adds one.

    Parameters
    ----------
    a : int
        The number.
    """
    return a + 1

async def later(value: int) -> dict:
    await asyncio.sleep(0)
    print("noise on stdout")
    print(input) if False else None
    return {"value": value}

class Person(TypedDict):
    name: str
    friends: "list[Person]"

class Order(TypedDict):
    number: int
    buyer: Person | None

def orders(city: str) -> list[Order]:
    return []

def in_words(city: str) -> "the weather, in words":
    return city

def process() -> int:
    return os.getpid()

def boom(x: int):
    raise ValueError(f"no {x}")

def leave():
    sys.exit("bye")

def crash():
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)

def hang(path: str):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    with open(path, "w") as file:
        file.write(f"{os.getpid()} {child.pid}\\n")
    while True:
        pass

def flood(chars: int) -> str:
    return "x" * chars

def odd() -> object:
    return object()

def any_number(*numbers: int): ...
def any_name(**names: int): ...
def untyped(a, b: int): ...
def by_place(a: int, /): ...

class Own: ...
def strange(a: Own): ...
def unknown(a: "Missing"): ...

def _private(a: int): ...
'''


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "my_tools.py"
    path.write_text(TOOLS)
    return path


def in_pool(scene: Callable[[LivePool], Awaitable[T]], *workers: WorkerSpec) -> T:
    async def main() -> T:
        async with live_pool(Pool(name="p", workers=workers)) as live:
            return await scene(live)

    return asyncio.run(main())


def function(path: Path, name: str, **settings: Any) -> WorkerSpec:
    config = {"target": f"{path}:{name}"}
    settings = {"timeout_s": 300.0, **settings}
    return WorkerSpec(name=name, kind="function", description=name, config=config, **settings)


def failure(seen: Observation) -> tuple[str, str]:
    assert seen.status is Status.EXEC_ERR and seen.error is not None, seen
    return seen.error.code, seen.error.message


def test_every_public_function_of_a_file_is_offered_with_its_schema(tools):
    found = {offer.spec.name: offer for offer in asyncio.run(list_functions(str(tools)))}
    assert "_private" not in found and "point" not in found
    check_pool(Pool(name="p", workers=tuple(each.spec for each in found.values() if not each.problem)))
    length = found["length"].spec
    assert length.description == "How long a trip is.\n\nReturns: A point, of all things."
    assert length.config["target"] == f"{tools}:length"
    numbers = {"x": {"type": "number"}, "y": {"type": "number"}}
    assert length.config["returns"] == {"type": "object", "properties": numbers}
    assert format_fields(found["orders"].spec.config["returns"]) == "[{number, buyer: {name, friends}}]"
    assert found["in_words"].problem == "" and "returns" not in found["in_words"].spec.config
    assert found["odd"].spec.config.get("returns", {}) == {} and found["boom"].spec.config.get("returns", {}) == {}
    schema = length.config["parameters"]
    assert schema["required"] == ["trip", "unit"]
    rules = schema["properties"]
    assert rules["trip"] == {"$ref": "#/$defs/Trip", "description": "The trip to measure."}
    assert rules["mode"] == {"type": "string", "enum": ["fast", "short"], "default": "fast"}
    assert rules["factor"]["description"] == "multiplies the result" and rules["factor"]["exclusiveMinimum"] == 0
    assert schema["$defs"]["Unit"]["enum"] == ["km", "mile"]
    assert "title" in schema["$defs"]["Trip"]["properties"]  # an argument's name, not pydantic's decoration
    assert found["numpy_style"].spec.config["parameters"]["properties"]["a"]["description"] == "The number."


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("any_number", "*numbers stands for any arguments"),
        ("any_name", "**names stands for any arguments"),
        ("untyped", "a has no type; write a: str"),
        ("by_place", "remove the /"),
        ("strange", "cannot be written as JSON Schema"),
        ("unknown", "cannot be written as JSON Schema"),
    ],
)
def test_what_cannot_be_a_worker_is_offered_with_what_to_write(tools, name, said):
    (offer,) = asyncio.run(list_functions(f"{tools}:{name}"))
    assert said in offer.problem


def test_a_function_of_a_module_is_offered_too():
    (offer,) = asyncio.run(list_functions("tests.pool_registry.support.function_for_tests:double"))
    seen = in_pool(lambda live: live.call(Action("double", {"number": 4})), offer.spec)
    assert seen.value == 8
    assert "tests.pool_registry.support.function_for_tests" not in sys.modules  # never loaded in this process


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("nowhere.py", None, "there is no file"),
        ("not a target", None, "write module:function"),
        ("no_such_module_here:f", None, "ModuleNotFoundError"),
        ("{path}:nothing", "def f(a: int): ...", "there is no function 'nothing'; public functions: f"),
        ("{path}", "x = 1", "no public function"),
        ("{path}", "def f(:\n", "SyntaxError: .* (broken.py, line 1)"),
        ("{path}", "\n1 / 0", "ZeroDivisionError: division by zero .broken.py, line 2"),
        ("{path}", "import os\nos._exit(4)", "exit status 4"),
        ("{path}", "raise SystemExit(1)", "SystemExit"),
    ],
)
def test_what_cannot_be_loaded_says_why(tmp_path, target, code, said):
    path = tmp_path / "broken.py"
    if code is not None:
        path.write_text(code)
    with pytest.raises(InvalidPool, match=said.replace("(broken.py, line 1)", r"\(broken.py, line 1\)")):
        asyncio.run(list_functions(target.format(path=path)))


def test_calls_convert_arguments_and_results(tools):
    arguments = {"trip": {"stops": [{"x": 1}], "title": "a"}, "unit": "km", "factor": 2}

    async def scene(live: LivePool) -> list[Observation]:
        return [await live.call(Action("length", arguments)), await live.call(Action("later", {"value": 3})),
                await live.call(Action("length", {"unit": "parsec"}))]  # fmt: skip

    length, later, wrong = in_pool(scene, function(tools, "length"), function(tools, "later"))
    assert length.value == {"x": 2.0, "y": 0.0}
    assert later.value == {"value": 3}
    assert wrong.status is Status.PARSE_ERR and wrong.error is not None and "unit" in wrong.error.message


def test_the_process_stays_warm_and_follows_its_file(tools):
    async def scene(live: LivePool) -> list[Observation]:
        seen = [await live.call(Action("process")), await live.call(Action("process"))]
        tools.write_text("def process() -> int:\n    return -1\n")
        return [*seen, await live.call(Action("process"))]

    first, second, edited = in_pool(scene, function(tools, "process"))
    assert first.value == second.value != os.getpid()
    assert edited.value == -1


def test_errors_name_the_persons_file_and_line_and_nothing_of_ours(tools):
    async def scene(live: LivePool) -> list[Observation]:
        return [await live.call(Action("boom", {"x": 7})), await live.call(Action("leave")),
                await live.call(Action("odd")),
                await live.call(Action("flood", {"chars": 9_000_000}))]  # fmt: skip

    boom, leave, odd, flood = in_pool(scene, *(function(tools, name) for name in ("boom", "leave", "odd", "flood")))
    line = next(number for number, text in enumerate(TOOLS.splitlines(), 1) if "raise ValueError" in text)
    assert failure(boom) == ("function_raised", f"ValueError: no 7 (my_tools.py, line {line})")
    assert failure(leave)[0] == "function_raised" and "SystemExit: bye" in failure(leave)[1]
    assert failure(odd)[0] == "invalid_response"
    assert failure(flood)[0] == "output_too_large"


def test_after_a_crash_the_next_call_starts_a_new_process(tools):
    async def scene(live: LivePool) -> list[Observation]:
        return [await live.call(Action("crash")), await live.call(Action("crash"))]

    for seen in in_pool(scene, function(tools, "crash")):
        assert failure(seen) == ("crashed", "the function's process ended (exit status 3) and said: last words")


def test_a_call_that_is_given_up_is_killed_with_what_it_started(tools, tmp_path):
    told = tmp_path / "pids"

    async def scene(live: LivePool) -> None:
        hanging = asyncio.ensure_future(live.call(Action("hang", {"path": str(told)})))
        while not (told.exists() and told.read_text().endswith("\n")):  # noqa: ASYNC110  another process writes it
            await asyncio.sleep(0.01)
        hanging.cancel()
        await asyncio.wait({hanging})

    in_pool(scene, function(tools, "hang"))
    pids = [int(word) for word in told.read_text().split()]
    assert len(pids) == 2
    assert all(asyncio.run(gone(pid)) for pid in pids)


def test_check_tells_that_the_arguments_have_changed(tools):
    (offer,) = asyncio.run(list_functions(f"{tools}:numpy_style"))

    async def scene(live: LivePool) -> list[str]:
        check = live.workers["numpy_style"].worker.check
        before = await check()
        tools.write_text("def numpy_style(a: int, b: int = 0) -> int:\n    return a + b\n")
        return [before, await check()]

    before, after = in_pool(scene, offer.spec)
    assert before == "ready" and "its arguments have changed (new: b)" in after


@pytest.mark.parametrize("target", ["my_tools.py", "math", "a b:c", "x.py:not a name", "m:f:g"])
def test_a_target_without_one_function_is_refused(target):
    with pytest.raises(InvalidPool):
        check_pool(
            Pool(name="p", workers=(WorkerSpec(name="f", kind="function", description="d", config={"target": target}),))
        )


@pytest.mark.parametrize(
    ("permissions", "has_effects"),
    [
        (None, True),
        ({}, False),
        ({"read": ["/etc"]}, False),
        ({"network": True}, True),
        ({"write": ["/tmp"]}, True),
    ],
)
def test_a_function_that_the_sandbox_keeps_from_changing_anything_has_no_effects(tools, permissions, has_effects):
    config = {"target": f"{tools}:length", "parameters": {"type": "object"}, "permissions": permissions}
    spec = WorkerSpec(name="length", kind="function", description="d", config=config)

    async def ask(live: LivePool) -> bool:
        return live.workers["length"].has_effects

    assert in_pool(ask, spec) is has_effects
    assert in_pool(ask, spec.model_copy(update={"effects": "some"}))
