"""What follows from a style of prompt stands in its row; nothing else compares names."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

import orchestrator
from orchestrator.checkpoints import STARTERS, Checkpoint
from orchestrator.prompt_styles import PROMPTS, PromptStyle

ROOT = Path(orchestrator.__file__).parent.parent
CODE = sorted(file for room in ("orchestrator", "trainer", "studio") for file in (ROOT / room).rglob("*.py"))


def test_every_style_has_a_row():
    assert set(PROMPTS) == set(get_args(PromptStyle))


@pytest.mark.parametrize("style", PROMPTS)
def test_a_checkpoint_has_the_facts_of_its_prompt(style: PromptStyle):
    checkpoint = Checkpoint(name="c", kind="full", base="b", stage="sft", prompt=style)
    assert checkpoint.knows_one_pool == PROMPTS[style].knows_one_pool
    assert checkpoint.is_reader == PROMPTS[style].binds_needs


def test_no_line_compares_a_style_or_a_checkpoint_by_its_name():
    names = {*PROMPTS, *STARTERS} - {"base", "full"}  # these two are the names of other things, too
    texts = {file: file.read_text(encoding="utf-8") for file in CODE}
    lines = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file, text in texts.items()
        if any(f'"{name}"' in text for name in names)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if isinstance(side, ast.Constant) and side.value in names
    ]
    assert not lines, "ask orchestrator.prompt_styles.PROMPTS or the checkpoint's row, not its name"
