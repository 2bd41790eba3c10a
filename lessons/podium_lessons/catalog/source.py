"""The task source `catalog`: calls of tools with the names, parameters and results of real ones, four tasks to a pool.

A reader learns here to read cards with several parameters, to make as many calls as a question asks for and none that
joins them, to name a field of an output, to give one to the next call, and to compute with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count as count_up

from orchestrator.engine.events import TaskRef
from orchestrator.plan import Step, Turn
from orchestrator.quotes import substitute
from orchestrator.reader.refusal import refuse
from podium_lessons.catalog.catalog_data import CatalogTool, draw_text, list_fields, load_asks, load_catalog, load_texts
from podium_lessons.catalog.paraphrase import word_tool, write_label
from podium_lessons.catalog.requests import ASKS_SHARE, RequestWriter, ToolCall, end_sentence, pick_arguments
from podium_lessons.catalog.worker import CatalogToolConfig, compute_result
from podium_lessons.everyday.asks import ToolUse
from podium_lessons.everyday.everyday_data import load_tools
from podium_lessons.everyday.pools import make_other_pool
from podium_lessons.everyday.solve_asks import make_verifier, run_work
from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.errors import UnknownTask
from trainer.tasks.sources.source import check_levels, check_split
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task
from trainer.tasks.verifier import AnyVerifier, RefusalVerifier, StatesAll

FAMILY = "catalog"
VERSION = 1
GROUP = 4  # tasks that share a pool
LEVELS = (1, 2, 3)  # one call; two; more
TOOLS = (2, 5)  # that the tasks of a pool are about
FIELDS = (1, 3)  # of work, that the tools of a pool are of
SUMS_SHARE = 0.5  # of the pools have a calculator, and other tools of everyday work
WHOLE_SHARE = 0.5  # of the tools return objects
CHOICES_SHARE = 0.4  # of the parameters with few values name them
MOST_CHOICES = 6
NEEDS_SHARE = 0.7  # of the calls state what they are needed for in words of their own, where such were written
LISTS_SHARE = 0.5  # of the parameters with a name in the plural take a list
EXAMPLE_SHARE = 0.3  # of the cards
REFUSED_SHARE = 0.08  # of the tasks of level 1: no tool of the pool does it
FIELD_SHARE = 0.4  # of the requests for an object ask for one field
SUMS = {
    "difference": (2, "{0} - {1}"), "sum": (2, "{0} + {1}"), "mean": (2, "({0} + {1}) / 2"), "ratio": (2, "{0} / {1}"),
    "times": (1, "{0} * {n}"), "share": (1, "{0} * {n} / 100"), "part": (1, "{0} / {n}"), "rest": (1, "{0} - {n}"),
}  # fmt: skip
# By level: (kind of task, how often).
KINDS: Mapping[int, Mapping[str, int]] = {
    1: {"single": 1},
    2: {"several": 5, "wishes": 3, "chain": 3, "computed": 2},
    3: {"several": 5, "wishes": 3, "chain": 1, "computed": 3},
}


@dataclass(frozen=True, slots=True)
class CatalogSource:
    """Calls of real-looking tools. Those of `worded` ones are all asked for in words written for their tool; of others
    most of training's are, and none of the test split's."""

    name: str = FAMILY
    levels: tuple[int, ...] = LEVELS
    worded: bool = False

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        """`count` tasks, four in a row on one pool. Raises UnknownTask."""
        chosen = check_levels(levels if self.levels == LEVELS else None, self.levels)
        check_split(split)
        tasks: list[Task] = []
        for place in count_up():
            if len(tasks) >= count:
                return tasks[:count]
            tasks += _Group(self.name, split, (seed * 1_000_003 + place) % 2**38, chosen, self.worded).write_tasks()
        raise AssertionError("count_up never ends")


SOURCES = {
    "": CatalogSource(),
    "single": CatalogSource(f"{FAMILY}:single", levels=(1,)),
    "worded": CatalogSource(f"{FAMILY}:worded", worded=True),
}


def open_catalog(argument: str = "") -> CatalogSource:
    """The source that a recipe names: `single` for tasks of one call, whatever levels a recipe draws; `worded` for
    calls that are all asked for in words written for their tool. Raises UnknownTask."""
    if argument not in SOURCES:
        raise UnknownTask(f"there is no {FAMILY}:{argument}; use {', '.join(row.name for row in SOURCES.values())}")
    return SOURCES[argument]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A task before it has its pool: the query, its calls, and the answer over their places."""

    query: str
    steps: tuple[Step, ...]
    answer: JsonValue
    verifier: AnyVerifier


class _Group:
    """Tasks that share a pool. Everything follows from the source, the split, the number and the levels."""

    def __init__(self, family: str, split: str, number: int, levels: tuple[int, ...], worded: bool) -> None:
        self._family, self._split, self._number, self._levels = family, split, number, levels
        self._random = random = make_random(f"{FAMILY}/{VERSION}/{split}/{number}/{levels}")
        self._seed = random.randrange(2**30)
        fields = random.sample(list_fields(split), random.randint(*FIELDS))
        tools = [tool for field in fields for tool in load_catalog()[field]]
        random.shuffle(tools)
        amount = random.randint(*TOOLS)
        self._tools, self._others = tools[:amount], tools[amount : amount + random.randint(0, 5)]
        self._configs = {tool.name: self._configure(tool) for tool in (*self._tools, *self._others)}
        lists = {name: config.lists for name, config in self._configs.items()}
        self._asks = load_asks(split) if worded or split != "test" else {}
        self._writer = RequestWriter(split, random, lists, self._asks, 1 if worded else ASKS_SHARE)
        self._sums = self._draw_sums() if random.random() < SUMS_SHARE else None
        self._calculator: ToolUse | None = self._sums[1] if self._sums else None
        self._drafts: Mapping[str, Callable[[int], _Draft | None]] = {
            "single": self._draft_single,
            "several": self._draft_several,
            "wishes": self._draft_wishes,
            "chain": self._draft_chain,
            "computed": self._draft_computed,
        }

    def write_tasks(self) -> list[Task]:
        """The tasks, with their pool."""
        pool = self._make_pool()
        return [self._write_task(place, pool) for place in range(GROUP)]

    def _write_task(self, place: int, pool: Pool) -> Task:
        level = self._random.choice(self._levels)
        draft = None
        if level == 1 and self._random.random() < REFUSED_SHARE:
            draft = self._draft_refusal()
        while draft is None:
            kinds = KINDS[level]
            kind = self._random.choices(list(kinds), list(kinds.values()))[0]
            draft = self._drafts[kind](level)
        ref = TaskRef(self._family, level, self._split, self._number * GROUP + place, VERSION)
        return Task(ref, draft.query, draft.verifier, Turn(draft.steps, draft.answer), pool)

    def _draft_refusal(self) -> _Draft:
        """A request for a tool of a field that the pool has nothing of."""
        fields = [
            field
            for field in list_fields(self._split)
            if not any(tool.name in self._configs for tool in load_catalog()[field])
        ]
        tool = self._random.choice(load_catalog()[self._random.choice(fields)])
        need = self._draw_need(tool) or word_tool(tool, self._random).do
        return _Draft(self._writer.write(self._writer.draw_call(tool)), (), refuse(need), RefusalVerifier())

    def _draft_single(self, _level: int) -> _Draft:
        tool = self._random.choice(self._tools)
        call = self._writer.draw_call(tool)
        query, path = self._ask_for_field(tool, self._writer.write(call))
        return self._finish(query, [call], f"$1{path}")

    def _draft_several(self, level: int) -> _Draft | None:
        """One tool, called several times."""
        tool = self._random.choice(self._tools)
        first = self._writer.draw_call(tool)
        others, varied = self._writer.draw_others(first, 1 if level == 2 else self._random.randint(2, 4))
        if not others:
            return None
        calls = [first, *others]
        query, path = self._ask_for_field(tool, self._writer.write_several(calls, varied))
        return self._finish(query, calls, _join_quotes([path] * len(calls)))

    def _draft_wishes(self, level: int) -> _Draft | None:
        """Several tools that have nothing to do with each other; of more than two calls one tool may get two."""
        amount = min(len(self._tools), 2 if level == 2 else self._random.randint(2, 4))
        if amount < 2:
            return None
        calls, requests, paths = [], [], []
        for tool in self._random.sample(self._tools, amount):
            first = self._writer.draw_call(tool)
            twice = level > 2 and (amount == 2 or self._random.random() < 0.2)
            others, varied = self._writer.draw_others(first, 1) if twice else ([], [])
            requests.append(
                self._writer.write_several([first, *others], varied) if others else self._writer.write(first)
            )
            calls += [first, *others]
            paths += [self._only_field(tool)] * (1 + len(others))
        return self._finish(self._writer.join(requests), calls, _join_quotes(paths))

    def _draft_chain(self, level: int) -> _Draft | None:
        """The output of one tool is an argument of another; of level 3 it goes into two calls of it."""
        sources = [(tool, name) for tool in self._tools for name in self._list_outputs(tool)]
        links = [
            (source, output, target, name)
            for source, output in sources
            for target in self._tools
            for name, parameter in target.parameters.items()
            if target is not source and self._takes(target, name, source.outputs[output]) and parameter.required
        ]
        if not links:
            return None
        source, output, target, name = self._random.choice(links)
        first = self._writer.draw_call(source)
        second = self._writer.draw_call(target, without=(name,))
        path = self._path(source, output)
        calls, rest = [second], self._writer.write_conditions(second)
        if level > 2:
            if not second.arguments:
                return None
            others, varied = self._writer.draw_others(second, 1)
            if not others:
                return None
            calls += others
            rest = f"{rest}, and {self._writer.write_conditions(pick_arguments(others[0], varied))}"
        one = self._writer.write(first)
        text = draw_text(load_texts().chains, self._split, self._random)
        query = text.format(
            one=end_sentence(one), bare=one.rstrip("?. "), thing=write_label(output), label=write_label(name),
            do=word_tool(target, self._random).do, rest=end_sentence(rest) if "{rest} " in text else rest,
            first=f"{word_tool(source, self._random).do} {self._writer.write_conditions(first)}",
        )  # fmt: skip
        given = [ToolCall(target, {name: f"$1{path}", **call.arguments}, call.written) for call in calls]
        ends = self._only_field(target)
        return self._finish(
            query, [first, *given], " and ".join(f"${place}{ends}" for place in range(2, 2 + len(given)))
        )

    def _draft_computed(self, level: int) -> _Draft | None:
        """Calls of one tool, and a sum over what they return."""
        amount = level - 1
        tools = [tool for tool in self._tools if "number" in tool.outputs.values()]
        tools = [tool for tool in tools if self._list_outputs(tool, "number")]
        if self._calculator is None or not tools:
            return None
        tool = self._random.choice(tools)
        output = self._random.choice(self._list_outputs(tool, "number"))
        first = self._writer.draw_call(tool)
        others, varied = self._writer.draw_others(first, amount - 1)
        if len(others) < amount - 1:
            return None
        one = self._writer.write_several([first, *others], varied) if others else self._writer.write(first)
        name = self._random.choice([name for name, (calls, _) in SUMS.items() if calls == amount])
        number = self._random.randint(2, 12) if name != "share" else self._random.randint(2, 80)
        text = draw_text(load_texts().sums[name], self._split, self._random)
        query = text.format(one=end_sentence(one), bare=one.rstrip("?. "), thing=write_label(output), n=number)
        quotes = [f"${place}{self._path(tool, output)}" for place in range(1, amount + 1)]
        expression = SUMS[name][1].format(*quotes, n=number)
        return self._finish(query, [first, *others], f"${amount + 1}", expression)

    def _finish(self, query: str, calls: Sequence[ToolCall], answer: str, expression: str = "") -> _Draft:
        """The plan of the calls, and of a sum over them, and the grader of its answer."""
        values: dict[int, JsonValue] = {}
        steps: list[Step] = []
        needs: dict[str, str] = {}
        for place, call in enumerate(calls, start=1):
            access = tuple(sorted({int(str(v)[1]) for v in call.arguments.values() if str(v).startswith("$")}))
            need = needs.setdefault(call.tool.name, self._draw_need(call.tool))
            steps.append(Step(place, call.tool.name, call.arguments, access, need=need))
            arguments = {name: substitute(value, values) for name, value in call.arguments.items()}
            values[place] = compute_result(self._configs[call.tool.name], arguments)
        if expression:
            assert self._calculator is not None, "a sum was drawn for it"
            place = len(steps) + 1
            arguments = {
                name: expression if value == "{expression}" else value
                for name, value in self._calculator.arguments.items()
            }
            access = tuple(range(1, place))
            steps.append(Step(place, self._calculator.worker, arguments, access, need=load_tools()["evaluate"].need))
            values[place] = run_work("evaluate", {"expression": str(substitute(expression, values))})
        quoted = [substitute(quote, values) for quote in answer.replace(",", " ").split() if quote.startswith("$")]
        verifier = (
            StatesAll(tuple(quoted)) if len(quoted) > 1 or isinstance(quoted[0], dict) else make_verifier(quoted[0])
        )
        return _Draft(query, tuple(steps), answer, verifier)

    def _draw_need(self, tool: CatalogTool) -> str:
        """What a call is needed for in words of its own; "" for the line that lists its tool."""
        row = self._asks.get(tool.name)
        return self._random.choice(row.needs) if row and self._random.random() < NEEDS_SHARE else ""

    def _ask_for_field(self, tool: CatalogTool, query: str) -> tuple[str, str]:
        """The query, now and then for one field of what comes back, and the path to what is asked for."""
        if not self._configs[tool.name].whole or len(tool.outputs) == 1 or self._random.random() > FIELD_SHARE:
            return query, self._only_field(tool)
        output = self._random.choice(list(tool.outputs))
        text = draw_text(load_texts().fields, self._split, self._random)
        return text.format(one=end_sentence(query), bare=query.rstrip("?. "), thing=write_label(output)), f".{output}"

    def _only_field(self, tool: CatalogTool) -> str:
        """The path to the one field of a tool's object; "" where it has several, or none."""
        return f".{next(iter(tool.outputs))}" if self._configs[tool.name].whole and len(tool.outputs) == 1 else ""

    def _list_outputs(self, tool: CatalogTool, kind: str = "") -> list[str]:
        """The fields of what a tool returns in this pool."""
        outputs = list(tool.outputs) if self._configs[tool.name].whole else list(tool.outputs)[:1]
        return [name for name in outputs if not kind or tool.outputs[name] == kind]

    def _path(self, tool: CatalogTool, output: str) -> str:
        return f".{output}" if self._configs[tool.name].whole else ""

    def _takes(self, tool: CatalogTool, name: str, kind: str) -> bool:
        """Whether a parameter takes any value of a kind."""
        config, parameter = self._configs[tool.name], tool.parameters[name]
        fits = parameter.type == kind and (kind == "number" or parameter.rule in ("", "id"))
        return fits and name not in config.lists and name not in config.choices

    def _configure(self, tool: CatalogTool) -> CatalogToolConfig:
        random = self._random
        valued = [name for name, parameter in tool.parameters.items() if parameter.values]
        lists = [name for name in valued if name.endswith("s") and not name.endswith("ss")]
        lists = [name for name in lists if random.random() < LISTS_SHARE]
        few = [name for name in valued if len(tool.parameters[name].values) <= MOST_CHOICES]
        config = CatalogToolConfig(
            tool=tool.name,
            seed=self._seed,
            whole=random.random() < WHOLE_SHARE,
            lists=tuple(lists),
            choices=tuple(name for name in few if random.random() < CHOICES_SHARE),
        )
        if random.random() > EXAMPLE_SHARE:
            return config
        example = RequestWriter(self._split, random, {tool.name: config.lists}).draw_call(tool).arguments
        return config.model_copy(update={"example": dict(example)})

    def _draw_sums(self) -> tuple[Pool, ToolUse]:
        drawn = make_other_pool(["evaluate"], sorted(load_tools()), (), self._split, self._random, FAMILY)
        return drawn.pool, drawn.uses["evaluate"]

    def _make_pool(self) -> Pool:
        specs = [
            WorkerSpec(
                name=tool.name,
                kind="catalog_tool",
                description=f"{tool.description}.",
                config=self._configs[tool.name].model_dump(mode="json"),
            )
            for tool in (*self._tools, *self._others)
        ]
        if self._sums:
            calculator = self._sums[1].worker
            others = [spec for spec in self._sums[0].workers if spec.name not in self._configs]
            kept = [spec for spec in others if spec.name == calculator]
            kept += [spec for spec in others if spec.name != calculator][: self._random.randint(0, 3)]
            specs += kept
        self._random.shuffle(specs)
        return Pool(name=f"{FAMILY}-{self._number}", workers=tuple(specs))


def _join_quotes(paths: Sequence[str]) -> str:
    """What quotes the outputs of steps 1, 2, ... as people list things."""
    quotes = [f"${place}{path}" for place, path in enumerate(paths, start=1)]
    return f"{', '.join(quotes[:-1])} and {quotes[-1]}" if len(quotes) > 1 else quotes[0]
