"""The cards of what is published: README.md of the model repository and of the Space."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from orchestrator.checkpoints import Checkpoint
from orchestrator.prompt_styles import PROMPTS
from pool_registry.kinds import KINDS
from pool_registry.pool import Pool
from studio.publish.request import VISITORS, Publication
from trainer.methods.table import METHODS

SOURCES = (
    "The method follows Conductor ([arXiv 2512.04388](https://arxiv.org/abs/2512.04388)) and ParaManager "
    "([arXiv 2604.17009](https://arxiv.org/abs/2604.17009))."
)
RUN_FILE = "ask.py"  # in the model repository
Table = Sequence[Sequence[object]]


def front_matter(values: Mapping[str, Any]) -> str:
    """The YAML block at the top of a card; empty values are left out."""
    filled = {key: value for key, value in values.items() if value not in ("", None, [], {})}
    return f"---\n{yaml.safe_dump(filled, sort_keys=False, allow_unicode=True)}---\n"


def model_card(
    publication: Publication, checkpoint: Checkpoint, pool: Pool, version: int, evaluations: Iterable[str]
) -> str:
    """Write README.md of the model repository."""
    hub = hub_repo(checkpoint.base)
    header = front_matter(
        {
            "license": publication.licence,
            "base_model": hub,
            "library_name": "peft" if checkpoint.kind == "adapter" else "transformers",
            "pipeline_tag": "text-generation",
            "tags": ["podium", "orchestrator", "agents", checkpoint.stage],
        }
    )
    base = (
        f"[{hub}](https://huggingface.co/{hub})"
        if hub
        else f"`{checkpoint.base}`, whose weights are in this repository"
    )
    parts = [
        header,
        f"# {publication.heading}",
        publication.about,
        "An orchestrator model: for each query it writes a plan of calls to the workers of a pool, which of them may "
        "run in parallel, and which outputs each may see. " + SOURCES,
        "## What it is",
        markdown_table(
            ("", ""),
            [
                ("Base model", base),
                ("Files", "a LoRA adapter" if checkpoint.kind == "adapter" else "the whole model, safetensors"),
                ("Trained by", f"{_stages(checkpoint)}, {checkpoint.step} steps in all"),
                ("Dialect", f"`{checkpoint.dialect}`"),
                ("Prompt", PROMPTS[checkpoint.prompt].content),
                ("Pool", f"`{pool.name}` version {version}, content hash `{pool.hash[:16]}`"),
                ("Licence", f"`{publication.licence}`"),
            ],
        ),
        "## How well it does",
        *(list(evaluations) or ["No evaluation of this checkpoint is recorded."]),
        "## What it learnt from",
        provenance(checkpoint),
        "## Its pool",
        "`pool.json` holds the workers that can run elsewhere; keys in it are names of variables, never values.",
        worker_table(pool),
        "## How to run it",
        f"`{RUN_FILE}` holds Podium's engine and the pool; its packages are in `requirements.txt`.",
        f"```bash\nhf download {publication.repo} --local-dir orchestrator\n"
        "pip install -r orchestrator/requirements.txt\n"
        f'python orchestrator/{RUN_FILE} "your query"\n```',
        "In a studio of your own: import `pool.json` on the Pool page, and give the folder as the orchestrator.",
        "The exact recipe is in `recipe.yaml`, every file's hash in `podium.json`.",
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def space_card(
    publication: Publication,
    pool: Pool,
    version: int,
    stays: Iterable[tuple[str, str]],
    runs: int,
    model: str,
    gradio: str,
) -> str:
    """Write README.md of the Space; the Hub builds the Space from its front matter."""
    sdk = {"sdk": "static", "app_file": "index.html"}
    if not publication.static:
        sdk = {"sdk": "gradio", "sdk_version": gradio, "app_file": "app.py", "suggested_hardware": publication.hardware}
    header = front_matter(
        {
            "title": publication.heading,
            "emoji": "🧭",
            "colorFrom": "indigo",
            "colorTo": "gray",
            **sdk,
            "pinned": False,
            "license": publication.licence,
            "models": [model] if model else [],
            "tags": ["podium", "orchestrator", "agents"],
        }
    )
    missing = [(f"`{worker}`", reason) for worker, reason in stays]
    live = publication.visitors != "replay"
    name = display_name(publication.orchestrator)
    recorded = f"; {runs} recorded runs are there without any key" if runs and live else ""
    parts = [
        header,
        f"# {publication.heading}",
        publication.about,
        f"`{name}` on the pool `{pool.name}` (version {version}): each query becomes a graph "
        "of parallel steps, and every step sees only what its access list names. Visitors may "
        f"{VISITORS[publication.visitors]}{recorded}.",
        "## Workers" if live else "",
        worker_table(pool) if live else "",
        "## Left out" if live and missing else "",
        markdown_table(("worker", "why"), missing) if live and missing else "",
        "Made with Podium. " + SOURCES,
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def provenance(checkpoint: Checkpoint) -> str:
    """The sources of the training data, read from the recipe."""
    recipe = checkpoint.recipe
    rows: list[tuple[str, object]] = []
    tasks = recipe.get("tasks")
    if isinstance(tasks, Mapping):
        rows += [(f"tasks: {key}", value) for key, value in tasks.items() if value not in (None, "", [], {})]
    for method in METHODS.values():
        settings = recipe.get(method.name)
        if isinstance(settings, Mapping):
            rows += [(f"{method.name}: {key}", value) for key, value in method.list_figures(settings)]
    if not rows:
        return "The recipe of this checkpoint is not recorded."
    note = (
        "Tasks of the families `ledger`, `atlas`, `forge`, `itinerary`, `workshop` and `dossier` are generated, "
        "with exact answers, by the package podium-lessons."
    )
    return markdown_table(("", ""), [(key, f"`{value}`") for key, value in rows]) + "\n\n" + note


def worker_table(pool: Pool) -> str:
    return markdown_table(
        ("worker", "kind", "what it does"),
        [(f"`{spec.name}`", KINDS[spec.kind].label, spec.description) for spec in pool.workers],
    )


def markdown_table(head: Sequence[str], rows: Table) -> str:
    """A Markdown table whose cells cannot break out of it."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_markdown_cell, line)) + " |" for line in lines)


def _markdown_cell(value: object) -> str:
    return re.sub(r"\s+", " ", str(value)).replace("|", "\\|").replace("<", "&lt;").strip()


def hub_repo(base: str) -> str:
    """Return owner/name of a base that is on the Hub, or ""."""
    return base.removeprefix("hub:") if base.startswith("hub:") else ""


def display_name(orchestrator: str) -> str:
    """The name of an orchestrator without the folder that it lies in on this machine."""
    return orchestrator.rstrip("/").rpartition("/")[2] if "/" in orchestrator else orchestrator


def _stages(checkpoint: Checkpoint) -> str:
    if checkpoint.stage == "base":
        return "nothing yet"
    labels = []
    for name, method in METHODS.items():
        if checkpoint.recipe.get(name) or name == checkpoint.stage:
            labels.append(method.label)
        if name == checkpoint.stage:
            break
    else:
        labels.append(checkpoint.stage)  # by a method of a package that is not installed here
    return ", then ".join(labels)
