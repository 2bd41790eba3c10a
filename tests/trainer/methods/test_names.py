"""Nothing outside trainer/methods asks which method it has before it: no Python there has a method's name.

Names of checkpoints that ship (starter-grpo) and what is written for people (SFT, GRPO) may stand anywhere.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from trainer.methods.table import METHODS

ROOT = Path(__file__).parents[3]
ROOMS = ("assets", "lessons", "orchestrator", "pool_registry", "studio", "trainer")
OWN = ROOT / "trainer" / "methods"
OLD_ADDRESS = ROOT / "trainer" / "grpo"  # what people's reward files import, from before there was a table
# A name on its own or as a part of one (run_grpo, CpuGrpoTrainer, grpo.rollouts), but not within starter-grpo.
NAMED = re.compile(rf"(?<![a-z-])({'|'.join(METHODS.built_in)})(?![a-z])")


def list_files() -> list[Path]:
    files = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]
    return [file for file in files if not {OWN, OLD_ADDRESS} & set(file.parents) and "migrations" not in file.parts]


def find_names(tree: ast.AST) -> list[str]:
    """The names and strings of a module that hold a method's name; docstrings are for people."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        f"line {getattr(node, 'lineno', '?')}: {text[:80]}"
        for node in ast.walk(tree)
        if id(node) not in prose
        for field in ("id", "attr", "arg", "name", "module", "value")
        if isinstance(text := getattr(node, field, None), str) and NAMED.search(split_words(text))
    ]


def split_words(text: str) -> str:
    """run_grpo and CpuGrpoTrainer in lower-case words."""
    if not text.isidentifier() or text.isupper():
        return text
    return re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", text).replace("_", " ").lower()


def test_a_name_is_found_where_it_stands():
    for text in ("run_grpo", "sft", "grpo.rollouts.backend", "sft_steps", "CpuGrpoTrainer"):
        assert NAMED.search(split_words(text)), text
    for text in ("starter-grpo", "Tiny after SFT and GRPO", "drafted", "swift"):
        assert not NAMED.search(split_words(text)), text


@pytest.mark.parametrize("room", ROOMS)
def test_no_method_is_named_outside_its_folder(room):
    files = [file for file in list_files() if file.relative_to(ROOT).parts[0] == room]
    names = {file.relative_to(ROOT): find_names(ast.parse(file.read_text(encoding="utf-8"))) for file in files}
    named = {str(file): lines for file, lines in names.items() if lines}
    assert not named, f"say it in the row of the method (trainer/methods/base.py), and read it from there: {named}"
