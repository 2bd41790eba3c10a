"""Writes the tables of the README and the documentation that follow from the code, so that nobody keeps a list by hand.

    python -m scripts.write_docs [--check]

A page marks the place by `<!-- table: NAME -->` and `<!-- end of table -->`; what stands between is replaced. `--check`
changes nothing and exits with 1 when a page is stale.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from orchestrator.policies.registry import POLICIES
from pool_registry.kinds import KINDS
from trainer.methods.grpo.rewards import REWARDS
from trainer.recipe import Recipe, list_presets, load_recipe
from trainer.recipe_packages import list_recipe_packages
from trainer.tasks import SUITES
from trainer.tasks.registry import PROVIDERS, TaskProvider

ROOT = Path(__file__).resolve().parent.parent
CLIENT_REQUESTS = ROOT / "tests" / "studio" / "model_server" / "client_requests"
LESSONS = "podium-lessons"
PLACE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def policies() -> str:
    """Every built-in policy: its name with parameters, and what it does."""
    rows = [(f"`{row.name}{row.parameters}`", row.summary) for row in POLICIES.built_in.values()]
    return markdown(("name", "what it does"), rows)


def worker_kinds() -> str:
    """Every built-in kind of worker."""
    rows = [(f"`{kind.name}`", kind.role, kind.summary) for kind in KINDS.built_in.values()]
    return markdown(("kind", "role", "what it is"), rows)


def lesson_kinds() -> str:
    """Every kind of worker that podium-lessons adds."""
    kinds = [kind for kind in KINDS.values() if kind.distribution == LESSONS]
    return markdown(("kind", "role", "what it is"), [(f"`{kind.name}`", kind.role, kind.summary) for kind in kinds])


def composed_domains() -> str:
    """How much there is to compose questions from."""
    from podium_lessons.composed.domain import is_held_out, list_domains, load_domain

    fields = [
        field
        for name in list_domains()
        for thing in load_domain(name).things.values()
        for field in thing.fields.values()
    ]
    kept = sum(map(is_held_out, list_domains()))
    row = [len(list_domains()), kept, len(fields), sum(len(field.asks) for field in fields)]
    return markdown(
        ("domains", "kept from training", "fields", "questions for a field"), [[f"{count:,}" for count in row]]
    )


def families() -> str:
    """The generated families of tasks."""
    use = {False: "to learn on", True: "kept for judging"}
    rows = [
        (f"`{suite.name}`", suite.description, ", ".join(map(str, suite.levels)), use[suite.held_out])
        for suite in SUITES.values()
        if PROVIDERS.distribution_of(suite.name) == LESSONS
    ]
    return markdown(("family", "what it asks", "levels", "use"), rows)


def presets() -> str:
    """The recipes that ship."""
    recipes = [(name, load_recipe(name)) for name in list_presets()]
    rows = [(f"`{name}`", " + ".join(recipe.stages), recipe.title, _list_packages(recipe)) for name, recipe in recipes]
    return markdown(("preset", "stages", "what it is", "needs"), rows)


def _list_packages(recipe: Recipe) -> str:
    return ", ".join(f"`{name}`" for name in list_recipe_packages(recipe))


def task_sources() -> str:
    """The built-in sources of tasks that are no generated family."""
    return _write_sources(PROVIDERS.built_in.values())


def lesson_sources() -> str:
    """The sources of podium-lessons that are no generated family."""
    return _write_sources(row for name, row in PROVIDERS.items() if PROVIDERS.distribution_of(name) == LESSONS)


def _write_sources(providers: Iterable[TaskProvider]) -> str:
    rows = [(f"`{row.name}{row.argument}`", row.summary) for row in providers if row.suite is None]
    return markdown(("source", "what it is"), rows)


def rewards() -> str:
    """The built-in reward terms."""
    rows = [(f"`{row.name}`", row.summary, "yes" if row.gated else "") for row in REWARDS.built_in.values()]
    return markdown(("term", "what it pays for", "gated"), rows)


def clients() -> str:
    """What clients send, as recorded; tests/studio/model_server/test_clients.py replays every cell."""
    recorded = [json.loads(path.read_text()) for path in sorted(CLIENT_REQUESTS.glob("*.json"))]
    names = sorted({one["client"] for one in recorded})
    sent = {(one["client"], one["feature"]) for one in recorded}
    features = sorted({feature for _, feature in sent})
    rows = [(f, *("passes" if (name, f) in sent else "" for name in names)) for f in features]
    return markdown(("feature", *names), rows)


# What the cells of bench/generalization.py ask, in the words of the docs.
CELLS = {
    "seen": "the four families on the starter pool",
    "renamed": "the same, every worker renamed and re-described",
    "redescribed": "the same, every worker re-described in words kept from training",
    "shuffled": "the same on the workers that they need and up to eight others, in another order",
    "distractors": "the same among two to five more workers that look useful",
    "missing": "the same, one tool gone, a substitute under another name",
    "flaky": "the same where tools fail on some calls; each has a twin that does not",
    "added": "the same with a worker that was added after training, which they need",
    "held_out": "the two families that nothing is trained on",
    "worlds": "worlds whose domains are kept from training",
    "projects": "questions on functions of people's own, in projects kept from training",
    "catalog": "calls of real-looking tools, in fields of work kept from training",
    "tools": "the same, in words written by hand for each tool",
    "composed": "composed questions on functions that return objects, in domains kept from training",
    "everyday": "questions written by hand, at odd places: nobody reads them",
    "problems": "word problems that people wrote (GSM8K, SVAMP), kept from training",
    "plain": "plain questions on the starter pool",
    "own": "questions by hand on four pools of people; their failures were read",
    "fresh": "questions by hand on three more such pools",
    "blind": "questions by hand on six more, by somebody who had seen none of the lessons",
    "object": "questions by hand on five pools of functions that take several things and return objects",
    "words": "the four families in a person's words",
    "refusals": "questions that no worker of their pool can answer",
}
ALONE = "smollm2-reader+without=all"  # the model without the repairs of its plans
CHECKPOINTS = {
    "smollm2-reader": "`smollm2-reader`, any pool",
    ALONE: "the model alone",
    "smollm2-reader+samples=4": "`smollm2-reader`, four plans",
    "smollm2-records": "`smollm2-records`, any pool",
    "smollm2-sft": "`smollm2-sft`, one pool, bound",
    "smollm2-sft, unbound": "the same, not bound",
    "starter-grpo": "`starter-grpo` (tiny), one pool, bound",
    "starter-grpo, unbound": "the same, not bound",
}
BFCL_ROWS = {
    "oracle": "the package's own answers",
    "smollm2-reader": "`smollm2-reader`, as shipped",
    ALONE: "the model alone",
    "react:assistant": "ReAct with SmolLM2-135M",
    "random_plan": "random plans",
}
BFCL_CATEGORIES = ("multiple", "parallel", "parallel_multiple", "irrelevance")
REACH = {  # a cell, the reader that is the default there, and what is asked
    "plain": ("smollm2-reader", "plain questions, on the pool that ships"),
    "blind": ("smollm2-reader", "questions by hand on six pools, by somebody who had seen no lesson"),
    "object": ("smollm2-records", "the same on five pools whose functions return objects"),
}


def generalization() -> str:
    """How far checkpoints come on what they have not learnt."""
    return write_generalization(tuple(CHECKPOINTS))


def reach() -> str:
    """What to expect of the readers that ship, in the README."""
    rows = [
        (text, write_cell(cell, f"{reader}+without=all"), write_cell(cell, reader))
        for cell, (reader, text) in REACH.items()
    ]
    own = (
        "practice tasks on three pools that are not ours, after *Train on this pool*",
        "not measured",
        count_trained(),
    )
    return markdown(("held-out tasks that are right", "the model alone", "as shipped"), [*rows, own])


def count_trained() -> str:
    """The held-out tasks that are right after a training on each foreign pool (bench/foreign_pools.py), of all."""
    rows = json.loads((ROOT / "bench" / "results" / "foreign_pools.json").read_text(encoding="utf-8"))
    trained = [row["scores"]["trained"] for row in rows]
    return f"{sum(round(row['right'] * row['tasks']) for row in trained)} of {sum(row['tasks'] for row in trained)}"


def write_generalization(checkpoints: Sequence[str]) -> str:
    """The share of right tasks in each cell, its interval, and the number of tasks; a dash where none was run."""
    lines = [(text, *(write_cell(cell, name) for name in checkpoints)) for cell, text in CELLS.items()]
    return markdown(("tasks", *(CHECKPOINTS[name] for name in checkpoints)), lines)


def write_cell(cell: str, checkpoint: str) -> str:
    row = read_generalization().get((cell, checkpoint))
    return "-" if row is None else write_share(row["correct"], row)


def write_share(right: float, row: Mapping[str, Any]) -> str:
    low, high = row["interval"]
    return f"{right:.2f} [{low:.2f}, {high:.2f}] of {row['tasks']}"


def bfcl() -> str:
    """What is right in four categories of a public benchmark (bench/bfcl.py)."""
    results = json.loads((ROOT / "bench" / "results" / "bfcl.json").read_text(encoding="utf-8"))["rows"]
    cells = {(row["orchestrator"], row["category"]): write_share(row["right"], row) for row in results}
    lines = [
        (text, *(cells.get((name, category), "-") for category in BFCL_CATEGORIES)) for name, text in BFCL_ROWS.items()
    ]
    return markdown(("who plans", *(f"`{category}`" for category in BFCL_CATEGORIES)), lines)


@cache
def read_generalization() -> dict[tuple[str, str], dict[str, Any]]:
    """The results of bench/generalization.py by cell and checkpoint."""
    rows = json.loads((ROOT / "bench" / "results" / "generalization.json").read_text(encoding="utf-8"))["rows"]
    return {(row["cell"], row["checkpoint"]): row for row in rows}


TABLES: dict[str, Callable[[], str]] = {
    table.__name__: table
    for table in (
        policies,
        worker_kinds,
        composed_domains,
        lesson_kinds,
        families,
        presets,
        task_sources,
        lesson_sources,
        rewards,
        clients,
        generalization,
        bfcl,
        reach,
    )
}


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, with a line end behind every row."""
    lines = [head, ["---"] * len(head), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def fill_tables(text: str) -> str:
    """A page with every marked table written again."""
    return PLACE.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], text)


def main() -> int:
    stale = []
    for page in (ROOT / "README.md", ROOT / "lessons/README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        filled = fill_tables(text)
        if filled != text:
            stale.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(filled, encoding="utf-8")
    if "--check" in sys.argv and stale:
        print(f"stale: {', '.join(stale)}; run python -m scripts.write_docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
