"""The model repository: weights, tokenizer, recipe, pool, card. Everything is named here; the rest stays.

An adapter for a base of the hub stays an adapter. One for a base that nobody else can fetch is merged first, so
that the repository works by itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from orchestrator.checkpoints import MANIFEST, TEXTS, WEIGHTS, Checkpoint, FileMark, find_checkpoint
from orchestrator.errors import UnknownOrchestrator
from orchestrator.policies.registry import find_policy
from pool_registry.pool import Pool, export_pool
from studio.publish.bundle import Bundle, Entry, as_json, bundle
from studio.publish.cards import hub_id, model_card, shown_name
from studio.publish.request import Publication

LOCAL = re.compile(r"^(/|~|[A-Za-z]:\\|\\\\)")  # how an absolute path begins


@dataclass(frozen=True, slots=True)
class Weights:
    """A checkpoint that is to be published: its folder and manifest."""

    folder: Path
    checkpoint: Checkpoint


def checkpoint_of(orchestrator: str, place: Path | None = None) -> Weights | None:
    """The checkpoint behind an orchestrator's name; None for policies. `place` takes a merged model, if one is needed.

    Raises UnknownOrchestrator when the name is neither.
    """
    if find_policy(orchestrator) is not None:
        return None
    folder, checkpoint = find_checkpoint(orchestrator)
    if checkpoint.kind == "adapter" and not hub_id(checkpoint.base):
        if place is None:
            raise UnknownOrchestrator(
                f"{orchestrator} is an adapter for {checkpoint.base}, which only this machine has"
            )
        from studio.export.checkpoint import merge_adapter  # imports torch

        return Weights(merge_adapter(orchestrator, place), checkpoint.model_copy(update={"kind": "full"}))
    return Weights(folder, checkpoint)


def model_bundle(asked: Publication, weights: Weights, pool: Pool, version: int, evaluations: list[str]) -> Bundle:
    """The repository of a checkpoint. `pool` is the part of the pool that travels."""
    files = list(checkpoint_entries(weights, asked))
    card = model_card(asked, weights.checkpoint, pool, version, evaluations)
    recipe = yaml.safe_dump(without_paths(weights.checkpoint.recipe), sort_keys=False, allow_unicode=True)
    files += [
        Entry("README.md", card.encode(), "Model card"),
        Entry("recipe.yaml", recipe.encode(), "The recipe that trained it"),
        Entry("pool.json", export_pool(pool).encode(), f"The pool {pool.name}, version {version}"),
    ]
    return bundle("model", files, left_behind(weights))


def checkpoint_entries(weights: Weights, asked: Publication, below: str = "") -> Iterator[Entry]:
    """The files that make the checkpoint usable, and a manifest that names exactly these."""
    kept: list[Entry] = []
    for name in _allowed(weights):
        path = weights.folder / name
        if WEIGHTS.fullmatch(name):
            kept.append(Entry(name, path, "Weights"))
        else:
            kept.append(
                Entry(name, _cleaned(path, weights.checkpoint), "Tokenizer" if "token" in name else "Configuration")
            )
    marks = {entry.path: FileMark(size=entry.size, sha256=_sha256(entry, weights)) for entry in kept}
    manifest = weights.checkpoint.model_copy(
        update={
            "name": shown_name(asked.orchestrator),
            "base": weights.checkpoint.base if hub_id(weights.checkpoint.base) else shown_name(weights.checkpoint.base),
            "recipe": without_paths(weights.checkpoint.recipe),
            "files": marks,
        }
    )
    kept.append(
        Entry(MANIFEST, as_json(manifest.model_dump(mode="json")), "What this checkpoint is, with every file's hash")
    )
    return (Entry(f"{below}{entry.path}", entry.content, entry.about) for entry in kept)


def left_behind(weights: Weights) -> list[tuple[str, str]]:
    """Files of the checkpoint's folder that are not published."""
    allowed = {*_allowed(weights), MANIFEST}
    names = sorted(str(path.relative_to(weights.folder)) for path in weights.folder.rglob("*") if path.is_file())
    return [(name, "not needed to use the model") for name in names if name not in allowed]


def without_paths(value: Any) -> Any:
    """A document whose strings name no file of this machine."""
    if isinstance(value, dict):
        return {key: without_paths(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(item) for item in value]
    return "[a file of the author's machine]" if isinstance(value, str) and LOCAL.match(value) else value


def _allowed(weights: Weights) -> list[str]:
    names = [path.name for path in weights.folder.iterdir() if path.is_file() and not path.is_symlink()]
    names += [path.name for path in weights.folder.iterdir() if path.is_symlink() and WEIGHTS.fullmatch(path.name)]
    return sorted(name for name in names if name in TEXTS or WEIGHTS.fullmatch(name))


def _cleaned(path: Path, checkpoint: Checkpoint) -> bytes:
    """A configuration without the folders of the machine that trained it."""
    if path.suffix != ".json" or path.name in ("tokenizer.json", "vocab.json"):
        return path.read_bytes()
    document = json.loads(path.read_bytes())
    if path.name == "adapter_config.json":
        document["base_model_name_or_path"] = hub_id(checkpoint.base)
    for key in ("_name_or_path", "name_or_path"):
        document.pop(key, None)
    return as_json(without_paths(document))


def _sha256(entry: Entry, weights: Weights) -> str:
    """Weights were hashed when they were saved; what was cleaned is hashed anew."""
    mark = weights.checkpoint.files.get(entry.path)
    if isinstance(entry.content, Path) and mark is not None and mark.size == entry.size:
        return mark.sha256
    return entry.sha256 if isinstance(entry.content, Path) else hashlib.sha256(entry.content).hexdigest()
