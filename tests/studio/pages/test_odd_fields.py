"""No command of any page raises, whatever fields a page sends: it replies, in JSON, with problems at their fields.

The fields are drawn as a command reads them, and the commands are those that the pages have: no list can go stale. The
same are drawn in every run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest
from fastapi.responses import JSONResponse

from pool_registry.errors import StorageError
from studio.frame.commands import PageCommands
from studio.housekeeping.routes import HousekeepingCommands
from studio.pages.compare.commands import CompareCommands
from studio.pages.pool.commands import PoolCommands
from studio.pages.publish.commands import PublishCommands
from studio.pages.serve.commands import ServeCommands
from studio.pages.tasks.commands import CandidateCommands
from studio.pages.traces.commands import TraceCommands
from studio.pages.train.commands import TrainCommands
from studio.runtime import Runtime
from studio.search.commands import SearchCommands
from tests.trust.trials import choose_trials
from trainer.jobs.queue import JobStore

pytestmark = pytest.mark.medium

PAGES: dict[str, type[PageCommands]] = {
    "compare": CompareCommands,
    "housekeeping": HousekeepingCommands,
    "pool": PoolCommands,
    "publish": PublishCommands,
    "search": SearchCommands,
    "serve": ServeCommands,
    "tasks": CandidateCommands,
    "traces": TraceCommands,
    "train": TrainCommands,
}
TRIALS = choose_trials(20)
POOL = "mine"
CALCULATOR = {"name": "abacus", "kind": "calculator", "description": "Counts.", "config": {}}
PLAN = {"steps": [{"worker": "abacus", "arguments": {"expression": "6 * 7"}, "access": []}], "answer": "$1"}
ODD = [
    None, True, False, 0, 1, -1, 10**30, 0.5, "", " ", "x", "1", "-1", "1e9", "ü" * 300, "a/../b", "~nobody-4711",
    [], [None], [1], ["x"], [[]], [{}], {}, {"": None}, {"x": 1}, {"x": {"x": []}},
]  # fmt: skip
# What lets a command go on to its other fields.
RIGHT: Mapping[str, list[Any]] = {
    "pool": [POOL],
    "name": ["abacus", POOL, "cpu-first-steps"],
    "new": ["other"],
    "replacing": ["abacus"],
    "worker": [CALCULATOR, "abacus"],
    "workers": [[CALCULATOR], {"abacus": []}],
    "arguments": [{"expression": "6 * 7"}],
    "limits": [{"max_rounds": 2}],
    "mode": [{"name": "auto"}],
    "version": [1],
    "before": [1],
    "after": [1],
    "kind": ["pool", "job", "orchestrator", "traces"],
    "kinds": [["pool"]],
    "source": ["mcp", "openapi", "function", f"pool:{POOL}", "ledger"],
    "server": [{"transport": "http", "url": "http://127.0.0.1:9"}],
    "template": ["calculator"],
    "values": [{"name": "abacus"}],
    "memory": ["rule", "off"],
    "learnt": ["sql"],
    "count": [3],
    "text": ["What is 6 * 7?\t42"],
    "task": [{"query": "What is 6 * 7?", "answer": "42", "plan": json.dumps(PLAN), "verifier": "number"}],
    "query": ["What is 6 * 7?"],
    "answer": ["42"],
    "allowed": [["abacus"]],
    "agent": ["abacus"],
    "family": ["ledger"],
    "level": [1],
    "levels": [[1]],
    "checkpoint": ["smollm2-reader"],
    "orchestrator": ["oracle", "direct:abacus"],
    "orchestrators": [["oracle", "random_plan"]],
    "publication": [{"pool": POOL, "orchestrator": "oracle", "repo": "someone/thing"}],
    "evaluation": [{"orchestrators": ["oracle"], "source": "ledger", "levels": [1], "count": 1}],
    "recipe": [{"pool": POOL, "evaluate": {"orchestrators": ["oracle"], "count": 1}}],
    "yaml": ["pool: mine\nevaluate: {}\n"],
    "preset": ["cpu-first-steps"],
    "port": [8123],
    "based_on": [""],
}
MISSING = object()


class DrawnFields(Mapping[str, Any]):
    """Fields that are drawn as they are read: half of them right, or right but for one part; the others odd."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.values_read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.values_read:
            self.values_read[name] = self._draw(name)
        if self.values_read[name] is MISSING:
            raise KeyError(name)
        return self.values_read[name]

    def _draw(self, name: str) -> Any:
        if name in RIGHT and self._random.random() < 0.6:
            return self._spoil(self._random.choice(RIGHT[name]))
        return self._random.choice([MISSING, MISSING, *ODD])

    def _spoil(self, value: Any) -> Any:
        """The value, or in half of all cases one with an odd part."""
        if not value or isinstance(value, str | int) or self._random.random() < 0.5:
            return value
        spoilt, parts = value.copy(), range(len(value)) if isinstance(value, list) else [*value]
        spoilt[self._random.choice(parts)] = self._random.choice(ODD)
        return spoilt

    def __iter__(self) -> Iterator[str]:
        return (name for name, value in self.values_read.items() if value is not MISSING)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@pytest.fixture
def prepared(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """A runtime whose commands start no job, no server and no publication, and rent nothing, whatever they are sent."""

    def refuse(*_: object, **__: object) -> None:
        raise StorageError("nothing is started here")

    for name in ("start", "start_next", "start_rented"):
        monkeypatch.setattr(JobStore, name, lambda *_: None)
    monkeypatch.setattr(ServeCommands, "_spawn", refuse)
    monkeypatch.setattr("studio.pages.publish.commands.start_publisher", refuse)
    monkeypatch.setattr("trainer.rented.hub_jobs.open_hub_jobs", refuse)
    return runtime


@pytest.mark.parametrize("page", PAGES)
def test_no_command_raises_whatever_the_page_sends(prepared, page):
    commands, pools = PAGES[page](prepared), PoolCommands(prepared)
    for name in [*commands.commands, "nope"]:
        pools.run("create", {"name": POOL})  # where a command has taken it away
        pools.run("save_worker", {"pool": POOL, "worker": CALCULATOR})
        for trial in range(TRIALS):
            fields = DrawnFields(Random(f"{page} {name} {trial}"))
            try:
                reply = commands.run(name, fields)
                assert JSONResponse(reply).body and isinstance(reply["ok"], bool)
            except Exception as error:
                error.add_note(f"{name} was sent {dict(fields)}")
                raise
