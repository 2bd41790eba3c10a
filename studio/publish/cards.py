"""The cards of what is published: README.md of the model and of the Space, with the figures behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from orchestrator.checkpoints import Checkpoint
from pool_registry.kinds import KINDS
from pool_registry.pool import Pool
from studio.publish.request import VISITORS, Publication

SOURCES = (
    "The method follows Conductor ([arXiv 2512.04388](https://arxiv.org/abs/2512.04388)) and ParaManager "
    "([arXiv 2604.17009](https://arxiv.org/abs/2604.17009))."
)
Table = Sequence[Sequence[object]]


def front_matter(values: Mapping[str, Any]) -> str:
    """The YAML block at the top of a card; empty values are left out."""
    kept = {key: value for key, value in values.items() if value not in ("", None, [], {})}
    return f"---\n{yaml.safe_dump(kept, sort_keys=False, allow_unicode=True)}---\n"


def model_card(asked: Publication, checkpoint: Checkpoint, pool: Pool, version: int, evaluations: Iterable[str]) -> str:
    """README.md of the model repository."""
    hub = hub_id(checkpoint.base)
    header = front_matter(
        {
            "license": asked.licence,
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
        f"# {asked.heading}",
        asked.about,
        "An orchestrator model: for each query it writes a plan of calls to the workers of a pool, which of them may "
        "run in parallel, and which outputs each may see. " + SOURCES,
        "## What it is",
        table(
            ("", ""),
            [
                ("Base model", base),
                ("Files", "a LoRA adapter" if checkpoint.kind == "adapter" else "the whole model, safetensors"),
                ("Trained by", f"{_stages(checkpoint)}, {checkpoint.step} steps in all"),
                ("Dialect", f"`{checkpoint.dialect}`"),
                (
                    "Prompt",
                    "the pool's description and the query" if checkpoint.prompt == "full" else "the query alone",
                ),
                ("Pool", f"`{pool.name}` version {version}, content hash `{pool.hash[:16]}`"),
                ("Licence", f"`{asked.licence}`"),
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
        "```bash\npip install podium-studio\n"
        "hf download OWNER/NAME --local-dir orchestrator\n"
        "podium   # import pool.json on the Pool page\n"
        'podium run --pool NAME-OF-THE-POOL --orchestrator ./orchestrator "your query"\n```'.replace(
            "OWNER/NAME", asked.repo
        ).replace("NAME-OF-THE-POOL", pool.name),
        "The exact recipe is in `recipe.yaml`, every file's hash in `podium.json`.",
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def space_card(asked: Publication, pool: Pool, version: int, stays: Iterable[tuple[str, str]], runs: int, model: str,
               gradio: str) -> str:  # fmt: skip
    """README.md of the Space; its front matter is what the Hub builds it from."""
    sdk = {"sdk": "static", "app_file": "index.html"}
    if not asked.static:
        sdk = {"sdk": "gradio", "sdk_version": gradio, "app_file": "app.py", "suggested_hardware": asked.hardware}
    header = front_matter(
        {
            "title": asked.heading,
            "emoji": "🧭",
            "colorFrom": "indigo",
            "colorTo": "gray",
            **sdk,
            "pinned": False,
            "license": asked.licence,
            "models": [model] if model else [],
            "tags": ["podium", "orchestrator", "agents"],
        }
    )
    stayed = [(f"`{name}`", reason) for name, reason in stays]
    live = asked.visitors != "replay"
    parts = [
        header,
        f"# {asked.heading}",
        asked.about,
        f"`{shown_name(asked.orchestrator)}` on the pool `{pool.name}` (version {version}): each query becomes a graph "
        "of parallel steps, and every step sees only what its access list names. Visitors may "
        f"{VISITORS[asked.visitors]}{f'; {runs} recorded runs are there without any key' if runs and live else ''}.",
        "## Workers" if live else "",
        worker_table(pool) if live else "",
        "## Left out" if live and stayed else "",
        table(("worker", "why"), stayed) if live and stayed else "",
        "Made with Podium. " + SOURCES,
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def provenance(checkpoint: Checkpoint) -> str:
    """Where the training data came from, read from the recipe."""
    recipe = checkpoint.recipe
    rows: list[tuple[str, object]] = []
    tasks = recipe.get("tasks")
    if isinstance(tasks, Mapping):
        rows += [(f"tasks: {key}", value) for key, value in tasks.items() if value not in (None, "", [], {})]
    for stage in ("sft", "grpo"):
        settings = recipe.get(stage)
        if isinstance(settings, Mapping):
            kept = ("steps", "demonstrations", "starred", "teacher", "source", "group", "tasks_per_step")
            rows += [(f"{stage}: {key}", settings[key]) for key in kept if settings.get(key) not in (None, "", [], {})]
    if not rows:
        return "The recipe of this checkpoint is not recorded."
    note = (
        "Tasks of the families `ledger`, `atlas`, `forge`, `itinerary`, `workshop` and `dossier` are generated, "
        "with exact answers."
    )
    return table(("", ""), [(key, f"`{value}`") for key, value in rows]) + "\n\n" + note


def worker_table(pool: Pool) -> str:
    return table(
        ("worker", "kind", "what it does"),
        [(f"`{spec.name}`", KINDS[spec.kind].label, spec.description) for spec in pool.workers],
    )


def table(head: Sequence[str], rows: Table) -> str:
    """A Markdown table whose cells cannot break out of it."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)


def cell(value: object) -> str:
    return re.sub(r"\s+", " ", str(value)).replace("|", "\\|").replace("<", "&lt;").strip()


def hub_id(base: str) -> str:
    """owner/name of a base that everybody can fetch, or ""."""
    return base.removeprefix("hub:") if base.startswith("hub:") else ""


def shown_name(orchestrator: str) -> str:
    """An orchestrator's name without a folder of this machine."""
    return orchestrator.rstrip("/").rpartition("/")[2] if "/" in orchestrator else orchestrator


def _stages(checkpoint: Checkpoint) -> str:
    return {"base": "nothing yet", "sft": "SFT", "grpo": "SFT, then GRPO" if checkpoint.recipe.get("sft") else "GRPO"}[
        checkpoint.stage
    ]
