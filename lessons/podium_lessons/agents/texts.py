"""The texts that the success predictor is trained on, from what the repository holds: one file for any machine.

Topics are what agents are asked: hand-written ones (data/tasks/agent_topics.yaml), the fields of a list of tools
(tools.jsonl of Seal-Tools, Apache-2.0, if its path is given), worlds and projects. Pools are tools with the needs of
reference plans. Topics that training must not meet are chosen here, by name, before any text is drawn.

    python -m podium_lessons.agents.texts --out build/choice-texts.json.gz [--tools tools.jsonl] [--tasks 16000]
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.reader.cards import describe_whole
from podium_lessons.agents.cards import CARD_NAMES, CARD_OPENINGS, GENERAL_CARDS
from podium_lessons.agents.topics import Topic, load_topics
from podium_lessons.projects.project_data import list_projects, load_project
from podium_lessons.worlds.world_data import list_worlds, load_world
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.starter import starter_pool
from trainer.tasks.pool_settings import PoolSettings
from trainer.tasks.registry import open_source
from trainer.tasks.shared_pools import make_vary
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task

LEAST_TEXTS = 80  # of a field of tools, to be a topic
HELD_OUT_SHARE = 0.15  # of the fields
MOST_TEXTS = 600  # of a topic
POOLS = PoolSettings(
    rename=0.6, rename_parameters=0.4, redescribe=0.9, subset=12, distractors=3, substitute=0.1, tasks_per_pool=4
)
TOOL_WORDINGS = (
    "{text}", "Please {lower}", "Can you {lower}?", "I need to {lower}", "How would I {lower}?",
    "Help me {lower}: {some}",
    "{text}, {name} {some}", "{lower} for {some}", "{some}: {lower}", "We want to {lower}, {name} is {some}",
)  # fmt: skip
_EXAMPLES = re.compile(r"\(e\.g\.,? ([^()]+)\)")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])|_")


@dataclass
class TextTable:
    """Texts by number, each once."""

    places: dict[str, int] = field(default_factory=dict)

    def add(self, texts: Sequence[str]) -> list[int]:
        """The numbers of texts; new ones are added."""
        return [self.places.setdefault(text, len(self.places)) for text in texts]


def write_texts(path: Path, tools: Path | None, tasks: int, seed: int = 0) -> None:
    """Write everything that a training reads: some minutes for `tasks` = 8000."""
    table = TextTable()
    document = {
        "topics": [
            {"name": topic.name, "split": topic.split, "labels": table.add(topic.labels), "texts": table.add(texts)}
            for topic in list_topics(tools)
            if (texts := _draw_texts(topic.questions, topic.name))
        ],
        "general": table.add(GENERAL_CARDS),
        "openings": table.add(CARD_OPENINGS),
        "names": table.add(CARD_NAMES),
        "pools": {split: list_pools(table, split, tasks, seed) for split in ("train", "test")},
    }
    document["texts"] = list(table.places)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(document, ensure_ascii=False).encode(), mtime=0))


def _draw_texts(questions: Sequence[str], name: str) -> list[str]:
    unique = list(dict.fromkeys(questions))
    return make_random(f"choice/{name}").sample(unique, min(MOST_TEXTS, len(unique)))


def list_topics(tools: Path | None) -> Iterator[Topic]:
    """All topics: hand-written ones, fields of tools, worlds, projects."""
    yield from load_topics()
    if tools is not None:
        yield from list_fields(tools)
    for name in list_worlds():
        if not load_world(name).held_out:
            yield _ask_source("worlds", name, 160)
    for name in list_projects():
        if not load_project(name).held_out:
            yield _ask_source("projects", name, 100)


def _ask_source(source: str, name: str, count: int) -> Topic:
    tasks = open_source(f"{source}:{name}").tasks("train", count, 1)
    return Topic(f"{source}/{name}", (name.replace("_", " "),), tuple(task.query for task in tasks), "train")


def list_fields(tools: Path) -> Iterator[Topic]:
    """A topic for each field of a list of tools that has enough of them."""
    fields: dict[str, tuple[list[str], list[str]]] = {}
    for line in tools.read_text(encoding="utf-8").splitlines():
        tool = json.loads(line)
        whole, _, part = tool["field"].partition("/")
        labels, texts = fields.setdefault(whole, ([whole.lower()], []))
        labels.append(part.lower())
        texts.extend(word_tool(tool))
    for name, (labels, texts) in fields.items():
        if len(texts) >= LEAST_TEXTS:
            held_out = make_random(f"choice/field/{name}").random() < HELD_OUT_SHARE
            yield Topic(
                f"fields/{name}", tuple(dict.fromkeys(labels)), tuple(texts), "held_out" if held_out else "train"
            )


def word_tool(tool: dict[str, object]) -> Iterator[str]:
    """What somebody would ask who needs this tool, in several wordings."""
    text = str(tool["api_description"]).rstrip(".")
    lower = text[:1].lower() + text[1:]
    parameters = tool["parameters"] if isinstance(tool["parameters"], dict) else {}
    named = [
        (_CAPITAL.sub(" ", name).lower(), example.strip())
        for name, rule in parameters.items()
        for match in _EXAMPLES.findall(rule["description"])
        for example in match.split(",")
    ]
    random = make_random(f"choice/tool/{text}")
    for wording in TOOL_WORDINGS:
        if "{some}" not in wording:
            yield wording.format(text=text, lower=lower)
        elif named:
            name, some = random.choice(named)
            yield wording.format(text=text, lower=lower, name=name, some=some)


def list_pools(table: TextTable, split: str, tasks: int, seed: int) -> list[dict[str, object]]:
    """Pools of tools: their cards, and needs with the places of the workers that serve them. Those for "test" are of
    worlds and projects that training does not have."""
    if split == "test":
        sources = {"worlds:held_out": tasks // 16, "projects:held_out": tasks // 16}
        drawn = [task for source, count in sources.items() for task in open_source(source).tasks("test", count, seed)]
        return list(_describe_pools(table, drawn))
    drawn = open_source("worlds*4 + projects*2 + everyday*2 + ledger,atlas,forge,itinerary").tasks("train", tasks, seed)
    return list(_describe_pools(table, map(make_vary(starter_pool(), POOLS, seed, tasks=drawn), drawn)))


def _describe_pools(table: TextTable, tasks: Iterable[Task]) -> Iterator[dict[str, object]]:
    pools: dict[tuple[int, ...], dict[int, set[int]]] = {}
    for task in tasks:
        live = open_live_pool(task.pool or starter_pool())
        places = {name: place for place, name in enumerate(live.workers)}
        needs = pools.setdefault(tuple(table.add([describe_whole(worker) for worker in live.workers.values()])), {})
        for step in task.oracle_turn.steps if task.oracle_turn else ():
            if step.worker in places and step.need:
                needs.setdefault(table.add([step.need])[0], set()).add(places[step.worker])
    for cards, needs in pools.items():
        if needs:
            yield {"cards": list(cards), "needs": [[text, sorted(served)] for text, served in needs.items()]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tools", type=Path, help="tools.jsonl of Seal-Tools")
    parser.add_argument("--tasks", type=int, default=16_000, help="whose pools of tools are described")
    options = parser.parse_args()
    write_texts(options.out, options.tools, options.tasks)


if __name__ == "__main__":
    main()
