"""Make podium_lessons/data/tasks/everyday_problems.yaml: word problems that people wrote, each with one expression.

    python -m podium_lessons.scripts.build_word_problems --gsm8k train.jsonl --svamp SVAMP.json

GSM8K (Cobbe et al., arXiv 2110.14168; github.com/openai/grade-school-math, MIT, its training half) writes its solutions
step by step, `<<48/2=24>>`; the steps are put into one expression here. SVAMP (Patel et al., NAACL 2021;
github.com/arkilpatel/SVAMP, MIT) has one to three operations a problem. Kept are short problems whose expression gives
the answer and holds every figure of the text.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import yaml

from podium_lessons.lesson_data import FOLDER
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.workers.calculator import evaluate

MAX_WORDS = 45
MAX_FIGURES = 5
STEP = re.compile(r"<<([^=<>]+)=([^<>]+)>>")
FIGURE = re.compile(r"\d+(?:\.\d+)?|\.\d+")
READ_FIGURE = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
READ_ALONE = re.compile(rf"(?<!\w){READ_FIGURE.pattern}")  # not that of Q3 or H2O
UNITS = (
    1,
    7,
    12,
    24,
    60,
    1000,
)  # an expression may have a figure in smaller ones: days for weeks, metres for kilometres
# Figures that a text says in other words: "half", "a dozen", "weekly", "an hour".
UNWRITTEN = frozenset({"1", "2", "3", "4", "5", "7", "10", "12", "24", "30", "52", "60", "100", "365", "1000"})
HEADER = """\
# Word problems of GSM8K (its training half) and SVAMP, and the expression that answers each.
# Made by scripts/build_word_problems.py.
#
# GSM8K: Copyright (c) 2021 OpenAI. SVAMP: Copyright (c) 2021 Arkil Patel. Both under this licence (MIT):
#
# Permission is hereby granted, free of charge, to any person obtaining a copy
# of this software and associated documentation files (the "Software"), to deal
# in the Software without restriction, including without limitation the rights
# to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
# copies of the Software, and to permit persons to whom the Software is
# furnished to do so, subject to the following conditions:
#
# The above copyright notice and this permission notice shall be included in all
# copies or substantial portions of the Software.
#
# THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
# IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
# FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
# AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
# LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
# OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
# SOFTWARE.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gsm8k", type=Path, required=True, help="train.jsonl of GSM8K")
    parser.add_argument("--svamp", type=Path, required=True, help="SVAMP.json")
    options = parser.parse_args()
    problems = {
        text: expression
        for text, expression, answer in (*read_svamp(options.svamp), *read_gsm8k(options.gsm8k))
        if is_usable(text, expression, answer)
    }
    path = FOLDER / "tasks" / "everyday_problems.yaml"
    rows = [{"text": text, "expression": expression} for text, expression in problems.items()]
    body = yaml.safe_dump({"problems": rows}, allow_unicode=True, width=1000, sort_keys=False)
    path.write_text(HEADER + body, encoding="utf-8")
    print(f"{len(rows)} problems")


def read_svamp(path: Path) -> Iterator[tuple[str, str, float]]:
    """Each problem with its expression and its answer."""
    for row in json.loads(path.read_text(encoding="utf-8")):
        body, question = row["Body"].strip(), row["Question"].strip()
        if body[-1] not in ".?!":  # the body ends in the middle of a sentence
            body, question = f"{body.rstrip(',')},", question[0].lower() + question[1:]
        text = tidy_text(f"{body} {question}")
        yield text, tidy_expression(row["Equation"], text), float(row["Answer"])


def read_gsm8k(path: Path) -> Iterator[tuple[str, str, float]]:
    """Each problem whose steps go into one expression, with that and its answer."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        solution, _, answer = row["answer"].rpartition("####")
        text = tidy_text(row["question"])
        expression = join_steps(text, [(left, result.strip()) for left, result in STEP.findall(solution)])
        if expression is not None:
            yield text, expression, float(answer.replace(",", ""))


def join_steps(text: str, steps: list[tuple[str, str]]) -> str | None:
    """The steps of a solution as one expression; None where a figure could come from two places."""
    written = set(FIGURE.findall(text.replace(",", "")))
    results: dict[str, str] = {}
    for left, result in steps:
        left = write_percentages(left.replace(",", ""), written)
        if any(figure in results and figure in written for figure in FIGURE.findall(left)):
            return None
        joined = FIGURE.sub(lambda match: results.get(match.group(), match.group()), left)
        if result in results:
            return None
        results[result] = f"({joined})"
    return tidy_expression(list(results.values())[-1], text) if results else None


def write_percentages(expression: str, written: set[str]) -> str:
    """`.2` of a text with "20%" as `20 / 100`."""

    def write(match: re.Match[str]) -> str:
        share = f"{Fraction(match.group()) * 100}"
        return f"({share} / 100)" if match.group() not in written and share in written else match.group()

    return re.sub(r"(?<![\d.])0?\.\d+", write, expression)


def tidy_text(text: str) -> str:
    """A text in single spaces, "$ 3" as "$3"."""
    return re.sub(r"\$ (?=\d)", "$", " ".join(text.split()))


def tidy_expression(expression: str, text: str) -> str:
    """An expression with single spaces around its operators, whole numbers, no brackets that it can do without, and
    percentages first: "20 / 100 * 40"."""
    expression = re.sub(r"(\d)\.0+(?!\d)", r"\1", expression.replace(" ", ""))
    expression = re.sub(r"(?<!\d)\.(?=\d)", "0.", expression)
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        return expression
    return re.sub(r"(?<=[\d)]) ?([-+*/]) ?", r" \1 ", ast.unparse(PercentFirst(text).visit(tree)))


class PercentFirst(ast.NodeTransformer):
    """Writes "20 / 100 * 40" for "40 * (20 / 100)", and for "40 * 20 / 100" where the text has "20%"."""

    def __init__(self, text: str) -> None:
        self.text = text

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.BinOp(whole, ast.Mult(), ast.BinOp(ast.Constant(), ast.Div(), ast.Constant(100)) as share):
                return ast.BinOp(share, ast.Mult(), whole)
            case ast.BinOp(ast.BinOp(whole, ast.Mult(), ast.Constant() as percent), ast.Div(), ast.Constant(100) as by):
                if re.search(rf"(?<![\d.]){ast.unparse(percent)} ?(?:%|percent)", self.text):
                    return ast.BinOp(ast.BinOp(percent, ast.Div(), by), ast.Mult(), whole)
        return node


def is_usable(text: str, expression: str, answer: float) -> bool:
    """Whether a problem is short and its expression is right and says all that the text says."""
    figures = FIGURE.findall(expression)
    written = set(FIGURE.findall(text.replace(",", "")))
    if len(text.split()) > MAX_WORDS or not 2 <= len(figures) <= MAX_FIGURES or re.search(r"[^-\d.+*/() ]", expression):
        return False
    if any(figure not in written | UNWRITTEN for figure in figures):
        return False
    try:
        value = float(evaluate(expression))
    except (BadCall, WorkerFault):
        return False
    return abs(value - answer) < 1e-6 and not list_unused_figures(text, expression)


def list_unused_figures(text: str, expression: str) -> list[float]:
    """The figures of a text that do not stand in an expression, also not in other units, as a factor of a percentage
    or as an hour of the afternoon. 0 and 1 are often only words."""
    held = set(read_figures(READ_FIGURE, expression))
    return [figure for figure in read_figures(READ_ALONE, text) if figure > 1 and not held & list_forms(figure)]


def read_figures(pattern: re.Pattern[str], text: str) -> list[float]:
    return [float(match.replace(",", "")) for match in pattern.findall(text)]


def list_forms(figure: float) -> set[float]:
    share = figure / 100
    forms = (*(figure * unit for unit in UNITS), figure + 12, share, 1 + share, 1 - share)
    return {round(form, 9) for form in forms}


if __name__ == "__main__":
    main()
