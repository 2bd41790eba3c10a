"""The bench of a large pool: operations become workers that send nothing, and who is asked is scored by its calls."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bench import large_pool
from bench.large_pool import ask_reader, make_recorded_pool, read_operations
from pool_registry.pool import check_pool

CITY = {"name": "city", "in": "query", "required": True, "schema": {"type": "string"}}
OPERATION = {"get": {"operationId": "getWeather", "description": "The weather of a city.", "parameters": [CITY]}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one document, and two questions about it."""
    head = {"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "servers": [{"url": "https://a.example.com"}]}
    (tmp_path / "twilio_weather.json").write_text(json.dumps({**head, "paths": {"/w": OPERATION}}))
    questions = tmp_path / "questions.tsv"
    questions.write_text("question\tanswers\nIs it raining?\tweather:get_weather\nIs it cold?\tweather:getWeather\n")
    monkeypatch.setattr(large_pool, "QUESTIONS", questions)
    return tmp_path


def test_operations_of_one_name_are_workers_that_return_their_call(folder: Path):
    specs, places, _ = read_operations(folder)
    assert places == {"weather:get_weather": 0}
    pool = make_recorded_pool([*specs, specs[0].model_copy(update={"config": {}})])
    check_pool(pool)
    assert [spec.name for spec in pool.workers] == ["get_weather", "get_weather_2"]
    assert {spec.kind for spec in pool.workers} == {"recorded"}


def test_a_question_is_right_where_a_right_operation_was_called(folder: Path):
    result = asyncio.run(ask_reader(folder, "random_plan", 2))
    assert [row["question"] for row in result["rows"]] == ["Is it raining?", "Is it cold?"]
    assert all(row["right"] == ("get_weather" in row["called"]) for row in result["rows"])
    assert result["right"]["queries"] == 2
