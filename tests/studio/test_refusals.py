"""Bad input at every door is refused in words of our own: the served API, recipes, pools, tasks, forms and commands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pool_registry.errors import PoolError
from pool_registry.pool import import_pool
from studio.__main__ import app
from studio.model_server.apis.completions import CompletionRequest
from studio.model_server.errors import ApiError
from studio.model_server.request import ChatRequest, ResponsesRequest, check_document
from studio.pages.pool.forms import parse_worker
from studio.publish.request import InvalidPublication, parse_publication
from trainer.errors import TrainerError
from trainer.recipe import parse_recipe
from trainer.tasks.sources.jsonl import make_tasks

LIBRARY = re.compile(
    "pydantic|Input should|Field required|Extra inputs|Failed validating|validation error|Value error|https?:"
)
WRONG = ["text", 5, -1, None, True, [], {}, [1], {"a": 1}, 1e400]
FIELDS = {
    ChatRequest: "messages stream stop temperature max_tokens podium stream_options response_format tools seed",
    ResponsesRequest: "input stream instructions text reasoning background podium max_output_tokens",
    CompletionRequest: "prompt stream stop echo max_tokens stream_options",
}
DOORS: dict[str, tuple[Callable[[object], object], str]] = {
    "recipe": (lambda document: parse_recipe(json.dumps(document)), "pool tasks sft grpo evaluate model name seed"),
    "pool file": (lambda document: import_pool(json.dumps({"podium_pool": 1, **document})), "name workers limits mode"),
    "worker form": (parse_worker, "name kind description config timeout_s retries price_in"),
    "task row": (lambda document: make_tasks([document], "mine"), "query answer split verifier plan"),
    "publication": (parse_publication, "repo kind title private"),
}


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_the_served_api_refuses_in_words(kind):
    for name in FIELDS[kind].split():
        for value in WRONG:
            try:
                check_document(kind, {"model": "m", name: value})
            except ApiError as error:
                assert not LIBRARY.search(str(error)), (name, value)


@pytest.mark.parametrize("door", DOORS)
def test_files_and_forms_refuse_in_words(door):
    read, fields = DOORS[door]
    for name in fields.split():
        for value in WRONG:
            try:
                read({"kind": "chat", "name": "x", name: value} if door == "worker form" else {name: value})
            except (PoolError, TrainerError, InvalidPublication) as error:
                assert not LIBRARY.search(str(error)), (name, value)


@pytest.mark.parametrize(
    "arguments",
    [
        ["pool", "import", "{file}"],
        ["tasks", "check", "{file}"],
        ["pool", "add", "starter", "--name", "x", "--kind", "chat", "--set", "temperature=hot", "--set", "model=m"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_commands_refuse_in_words(tmp_path: Path, arguments: list[str]):
    file = tmp_path / "wrong.json"
    file.write_text('{"podium_pool": 1, "name": 5, "workers": [{"name": []}], "query": 3}')
    result = CliRunner().invoke(app, [*(part.format(file=file) for part in arguments), "--home", str(tmp_path)])
    assert result.exit_code != 0 and not LIBRARY.search(f"{result.output}{result.exception}"), result.output
