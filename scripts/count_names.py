"""Counts names that the style guide does not want: functions named by participles, variables named by filler words.

    python scripts/count_names.py [--list] [--check]

A function is a verb phrase (`load_model`), not a participle (`_loaded`, `changed_pool`). A variable says what it holds:
not `found`, `told`, `asked`, `wanted`, `each`, `known` or `said`. `--list` shows every name with its place; `--check`
exits with 1 when more than 2 % of the functions or 0.5 % of the variables are such names.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("pool_registry", "orchestrator", "trainer", "studio", "assets")
FILLERS = frozenset({"found", "told", "asked", "wanted", "each", "known", "said"})
IRREGULAR = """
begun told drawn made known kept said shown written taken given seen done found built sent held led met paid
bound brought caught chosen dealt fallen felt forgotten gone grown heard hidden laid left lent lost meant sold
spent stood stolen taught thought thrown torn understood woken won worn wound born broken
"""
# End in -ed (or look irregular) without being participles.
NOT_PARTICIPLES = frozenset({"need", "seed", "feed", "embed", "speed", "shed", "exceed", "proceed", "succeed", "red"})
MAX_FUNCTIONS, MAX_VARIABLES = 0.02, 0.005
JS_FUNCTION = re.compile(
    r"^\s*(?:export )?(?:async )?(?:function\*? |(?:static |async )?#?)(\w+)\(.*\{\s*$", re.MULTILINE
)
JS_VARIABLE = re.compile(r"\b(?:const|let|var)\s+(\w+)|[(,]\s*(\w+)(?=\s*[,)][^;{]*=>)|\b(\w+)\s*=>")
JS_KEYWORDS = frozenset({"if", "for", "while", "switch", "catch", "function", "return", "constructor"})

Name = tuple[str, str, int]  # name, file, line


def is_participle(function: str) -> bool:
    """Whether the first word of a function's name is a participle."""
    word = re.split(r"_|(?=[A-Z])", function.strip("_#"))[0].lower()
    return word not in NOT_PARTICIPLES and (word in IRREGULAR.split() or (word.endswith("ed") and len(word) > 3))


def python_names(path: Path) -> tuple[list[Name], list[Name]]:
    """Return (functions, variables) of one Python file. A property is a value, so its name may be a participle."""
    file = str(path.relative_to(ROOT))
    functions: list[Name] = []
    variables: list[Name] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not any(_is_property(decorator) for decorator in node.decorator_list):
                functions.append((node.name, file, node.lineno))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            variables.append((node.id, file, node.lineno))
        elif isinstance(node, ast.arg):
            variables.append((node.arg, file, node.lineno))
    return functions, variables


def _is_property(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).rpartition(".")[2] in {"property", "cached_property", "computed_field"}


def script_names(path: Path) -> tuple[list[Name], list[Name]]:
    """Return (functions, variables) of one JavaScript file, by pattern."""
    file, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")

    def place(match: re.Match[str]) -> int:
        return text.count("\n", 0, match.start()) + 1

    functions = [(match[1], file, place(match)) for match in JS_FUNCTION.finditer(text) if match[1] not in JS_KEYWORDS]
    variables = [(match[1] or match[2] or match[3], file, place(match)) for match in JS_VARIABLE.finditer(text)]
    return functions, variables


def sources() -> Iterator[Path]:
    """The product's own Python and JavaScript files."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in {".py", ".js"} and "vendor" not in path.parts:
                yield path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="show every such name with its place")
    parser.add_argument("--check", action="store_true", help="exit with 1 above the limits")
    parser.add_argument("--under", default="", help="only files whose path begins so")
    options = parser.parse_args()
    functions: list[Name] = []
    variables: list[Name] = []
    for path in sources():
        if str(path.relative_to(ROOT)).startswith(options.under):
            new_functions, new_variables = (python_names if path.suffix == ".py" else script_names)(path)
            functions += new_functions
            variables += new_variables
    participles = [name for name in functions if is_participle(name[0])]
    fillers = [name for name in variables if name[0].strip("_") in FILLERS]
    if options.list:
        for name, file, line in [*participles, *fillers]:
            print(f"{file}:{line}: {name}")
    shares = len(participles) / max(1, len(functions)), len(fillers) / max(1, len(variables))
    print(f"functions named by a participle: {len(participles)} of {len(functions)} ({shares[0]:.1%}; at most 2 %)")
    print(f"variables named by a filler word: {len(fillers)} of {len(variables)} ({shares[1]:.2%}; at most 0.5 %)")
    return int(options.check and (shares[0] > MAX_FUNCTIONS or shares[1] > MAX_VARIABLES))


if __name__ == "__main__":
    sys.exit(main())
