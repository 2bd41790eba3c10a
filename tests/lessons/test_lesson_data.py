"""The data files of the families: read when they are needed, and a malformed one says where."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import yaml

from podium_lessons.casual.families import CASUAL_SUITES
from podium_lessons.lesson_data import FOLDER, FamilyData, QueryTexts
from podium_lessons.template_suite import build_templates
from trainer.errors import UnusableTasks
from trainer.tasks import SUITES
from trainer.tasks.task_data import read_task_data

TEXTS = "  texts: [One., Two., Three.]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queries:\n- level: one\n" + TEXTS, "queries.0.level: .*whole number"),
        ("queries:\n- level: 1\n  texts: [One.]\n", "queries.0.texts: .*fewer than 3"),
        ("queries:\n- level: 1\n" + TEXTS + "- levle: 2\n" + TEXTS, "queries.1.levle"),
        ("queries:\n- level: 1\n" + TEXTS + "  asks: [days\n", "line 5"),
        ("queries: 2024-01-01\n", "cannot be read: .*date"),
        ("", "malformed: .*object"),
    ],
)
def test_a_malformed_file_names_its_place(tmp_path, text, message):
    path = tmp_path / "toys.yaml"
    path.write_text(text)
    with pytest.raises(UnusableTasks, match=rf"(?s)toys\.yaml .*({message})"):
        read_task_data(path, FamilyData)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UnusableTasks, match=r"none\.yaml cannot be read"):
        read_task_data(tmp_path / "none.yaml", FamilyData)


def test_a_text_with_an_unknown_gap_names_its_place():
    data = FamilyData(queries=(QueryTexts(level=1, texts=("One {a}.", "Two {b}.", "Three {a}.")),))
    with pytest.raises(UnusableTasks, match=re.escape("queries.0.texts.1 has the gap {b}; there are: a")):
        build_templates("toys", data, {"a": "x"})


def test_every_family_has_a_file_and_every_file_is_used():
    files = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (FOLDER / "tasks").glob("*.yaml")}
    parts = (
        "style",
        "sums",
        "money",
        "problems",
        "units",
        "dates",
        "places",
        "ledger",
        "combined",
        "refusals",
        "tools",
        "held_out",
    )
    everyday = {f"everyday_{part}" for part in parts}
    assert set(files) == {
        *SUITES,
        *(suite.name for suite in CASUAL_SUITES),
        "agent_topics",
        "catalog_texts",
        "composed_texts",
        "composed_tools",
        "joined",
        "project_tools",
        "worlds",
        *everyday,
    }


@pytest.mark.medium
def test_importing_the_families_reads_no_file():
    code = "import trainer.tasks.pool_conditions as made; print(made.load_condition_data.cache_info().currsize)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "0\n"
