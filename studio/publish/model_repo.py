"""The model repository: weights, tokenizer, recipe, pool, card. Only files that are named here are published.

An adapter for a base of the Hub stays an adapter. An adapter for a base that others cannot fetch is merged first, so
that the repository works by itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from orchestrator.checkpoints import MANIFEST, TEXTS, WEIGHTS, Checkpoint, FileMark, open_checkpoint
from orchestrator.errors import UnknownOrchestrator
from orchestrator.policies.registry import find_policy
from pool_registry.pool import export_pool
from pool_registry.portable_pool import Travellers
from studio.export.python_file import list_requirements, write_python_file
from studio.publish.bundle import Bundle, Entry, json_bytes, make_bundle
from studio.publish.cards import RUN_FILE, display_name, hub_repo, model_card
from studio.publish.request import Publication

LOCAL = re.compile(r"^(/|~|[A-Za-z]:\\|\\\\)")  # how an absolute path begins


@dataclass(frozen=True, slots=True)
class Weights:
    """The folder and the manifest of a checkpoint to publish."""

    folder: Path
    checkpoint: Checkpoint


def find_checkpoint_weights(orchestrator: str, merge_to: Path | None = None) -> Weights | None:
    """Find the checkpoint that an orchestrator's name means; None for policies. `merge_to` takes a merged model.

    Raises UnknownOrchestrator when the name is neither.
    """
    if find_policy(orchestrator) is not None:
        return None
    folder, checkpoint = open_checkpoint(orchestrator)
    if checkpoint.kind == "adapter" and not hub_repo(checkpoint.base):
        if merge_to is None:
            raise UnknownOrchestrator(
                f"{orchestrator} is an adapter for {checkpoint.base}, which only this machine has"
            )
        from studio.export.checkpoint import merge_adapter  # imports torch

        return Weights(merge_adapter(orchestrator, merge_to), checkpoint.model_copy(update={"kind": "full"}))
    return Weights(folder, checkpoint)


def make_model_bundle(
    publication: Publication,
    weights: Weights,
    portable: Travellers,
    version: int,
    evaluations: list[str],
    scores: Sequence[Entry] = (),
) -> Bundle:
    """Make the bundle of a checkpoint and of the part of the pool that can run elsewhere. `evaluations` are the tables
    of its card, `scores` files for the model's page."""
    pool = portable.pool
    files = list(checkpoint_entries(weights, publication))
    card = model_card(publication, weights.checkpoint, pool, version, evaluations)
    recipe = yaml.safe_dump(without_paths(weights.checkpoint.recipe), sort_keys=False, allow_unicode=True)
    files += [
        Entry("README.md", card.encode(), "Model card"),
        Entry("recipe.yaml", recipe.encode(), "The recipe that trained it"),
        *_run_entries(portable, weights),
        Entry("pool.json", export_pool(pool).encode(), f"The pool {pool.name}, version {version}"),
        *scores,
    ]
    return make_bundle("model", files, files_left_out(weights))


def luggage_entries(portable: Travellers) -> Iterator[Entry]:
    """The files that a person let go along with their workers."""
    for luggage in portable.luggage:
        for path, file in luggage.files:
            yield Entry(path, file, f"A file of the worker {luggage.worker}")


def _run_entries(portable: Travellers, weights: Weights) -> Iterator[Entry]:
    """The file that asks this checkpoint, and what it needs; none for a pool that nothing of travels."""
    if not portable.pool.workers:
        return
    program = write_python_file(portable, str(weights.folder), RUN_FILE, checkpoint_folder=".")
    yield from luggage_entries(portable)
    yield Entry(RUN_FILE, program.encode(), "Asks this orchestrator; holds Podium's engine")
    yield Entry("requirements.txt", f"{chr(10).join(list_requirements(program))}\n".encode(), "Its packages, pinned")


def checkpoint_entries(weights: Weights, publication: Publication, below: str = "") -> Iterator[Entry]:
    """The files that are needed to use the checkpoint, and a manifest that lists exactly these."""
    entries: list[Entry] = []
    for name in _publishable_names(weights):
        path = weights.folder / name
        if WEIGHTS.fullmatch(name):
            entries.append(Entry(name, path, "Weights"))
        else:
            entries.append(
                Entry(
                    name, _clean_config(path, weights.checkpoint), "Tokenizer" if "token" in name else "Configuration"
                )
            )
    marks = {entry.path: FileMark(size=entry.size, sha256=_sha256(entry, weights)) for entry in entries}
    manifest = weights.checkpoint.model_copy(
        update={
            "name": display_name(publication.orchestrator),
            "base": weights.checkpoint.base
            if hub_repo(weights.checkpoint.base)
            else display_name(weights.checkpoint.base),
            "recipe": without_paths(weights.checkpoint.recipe),
            "files": marks,
        }
    )
    entries.append(
        Entry(MANIFEST, json_bytes(manifest.model_dump(mode="json")), "What this checkpoint is, with every file's hash")
    )
    return (Entry(f"{below}{entry.path}", entry.content, entry.about) for entry in entries)


def files_left_out(weights: Weights) -> list[tuple[str, str]]:
    """List the files of the checkpoint's folder that are not published."""
    names_of_files = {*_publishable_names(weights), MANIFEST}
    names = sorted(str(path.relative_to(weights.folder)) for path in weights.folder.rglob("*") if path.is_file())
    return [(name, "not needed to use the model") for name in names if name not in names_of_files]


def without_paths(value: Any) -> Any:
    """The document with the absolute paths in it replaced."""
    if isinstance(value, dict):
        return {key: without_paths(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(item) for item in value]
    return "[a file of the author's machine]" if isinstance(value, str) and LOCAL.match(value) else value


def _publishable_names(weights: Weights) -> list[str]:
    names = [path.name for path in weights.folder.iterdir() if path.is_file() and not path.is_symlink()]
    names += [path.name for path in weights.folder.iterdir() if path.is_symlink() and WEIGHTS.fullmatch(path.name)]
    return sorted(name for name in names if name in TEXTS or WEIGHTS.fullmatch(name))


def _clean_config(path: Path, checkpoint: Checkpoint) -> bytes:
    """A configuration file without folders of the machine that trained the model."""
    if path.suffix != ".json" or path.name in ("tokenizer.json", "vocab.json"):
        return path.read_bytes()
    document = json.loads(path.read_bytes())
    if path.name == "adapter_config.json":
        document["base_model_name_or_path"] = hub_repo(checkpoint.base)
    for key in ("_name_or_path", "name_or_path"):
        document.pop(key, None)
    return json_bytes(without_paths(document))


def _sha256(entry: Entry, weights: Weights) -> str:
    """The hash from the manifest where the file is unchanged, else a new one."""
    mark = weights.checkpoint.files.get(entry.path)
    if isinstance(entry.content, Path) and mark is not None and mark.size == entry.size:
        return mark.sha256
    return entry.sha256 if isinstance(entry.content, Path) else hashlib.sha256(entry.content).hexdigest()
