"""The pass@k check: an agent behind an endpoint plans each made task, and those that it never solves go."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from tests.trainer.support.shop import build_shop, describe_worker
from trainer.errors import UnusableTasks
from trainer.tasks.practice.make_tasks import PracticeOptions, make_practice_tasks
from trainer.tasks.practice.solve_check import list_solved
from trainer.tasks.sources.jsonl import make_tasks
from trainer.tasks.task import Task

QUERIES = {"What is 6 * 7?": 1, "What is 2 + 2?": 2, "What is 9 - 9?": 99}  # the try from which on the plan is right
asked: Counter[str] = Counter()


class Planner(BaseHTTPRequestHandler):
    """A chat endpoint that writes a plan for a query it knows, and a wrong answer for the others."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = body["messages"][-1]["content"]
        query = next((query for query in QUERIES if query in said), "")
        asked[query] += 1
        turn: dict[str, object] = {"answer": "no idea"}
        if query and asked[query] >= QUERIES[query]:
            step = {"worker": "calc", "arguments": {"expression": query[8:-1]}, "access": []}
            turn = {"steps": [step], "answer": "$1"}
        message = {"role": "assistant", "content": json.dumps(turn)}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        reply = {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def shop(tmp_path) -> Iterator[Pool]:
    """The shop with an agent behind a scripted endpoint."""
    asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Planner)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pool = build_shop(tmp_path)
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    planner = describe_worker("planner", "chat", "Plans.", base_url=url, model="m")
    yield pool.model_copy(update={"workers": (*pool.workers, planner)})
    server.shutdown()
    server.server_close()


def check(pool: Pool, tasks: list[Task], tries: int) -> list[bool]:
    async def run() -> list[bool]:
        async with live_pool(pool) as live:
            return await list_solved(tasks, "planner", tries, live)

    return asyncio.run(run())


@pytest.mark.parametrize(("tries", "solved"), [(1, [True, False, False]), (2, [True, True, False])])
def test_one_right_try_of_k_is_enough(shop, tries, solved):
    tasks = make_tasks([("What is 6 * 7?", 42), ("What is 2 + 2?", 4), ("What is 9 - 9?", 0)], "own")
    assert check(shop, tasks, tries) == solved
    assert asked["What is 6 * 7?"] == 1, "a solved task is not tried again"


def make(pool: Pool, **options) -> object:
    async def run() -> object:
        async with live_pool(pool) as live:
            return await make_practice_tasks(live, PracticeOptions(count=10, **options))

    return asyncio.run(run())


def test_made_tasks_that_no_agent_solves_are_refused_with_what_to_do(shop):
    with pytest.raises(UnusableTasks, match=r"planner solved 0 of \d+ in 2 tries.*--tries 0"):
        make(shop, tries=2)
    assert make(shop).checked == "", "without tries no agent is asked"


def test_tries_without_an_agent_are_refused(shop):
    alone = shop.model_copy(update={"workers": shop.workers[:-1]})
    with pytest.raises(UnusableTasks, match="no agent of this pool"):
        make(alone, tries=1)
