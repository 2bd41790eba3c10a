"""Locks the process of a function in: what it may reach is what its worker's permissions say.

Runs in the process of a function (function_host.py), perhaps in another interpreter: imports the standard library and,
by its path, pool_registry/sandbox/jail.py alone. The wall is Landlock and seccomp, as at the sandbox's second level.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

JAIL = Path(__file__).parents[1] / "sandbox" / "jail.py"
MEMORY_BYTES = 16 * 2**30  # of addresses: libraries for arrays map far more than they use
OPEN_FILES = 256
FILE_BYTES = 2**30
SYSTEM = (
    *("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/dev/null"),
    *("/dev/urandom", "/dev/zero", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"),
)
NAMES = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/ssl",
    "/etc/pki",
    "/run/systemd/resolve",
)


def lock_in(target: Mapping[str, str], permissions: Mapping[str, Any]) -> None:
    """Give up everything but what `permissions` name, what Python and its packages need, and the target's own code.

    Raises OSError, KeyError or ImportError where this machine has no such wall: then nothing may be loaded.
    """
    if not sys.platform.startswith("linux"):
        raise OSError(f"there is no sandbox for {sys.platform}")
    jail = _load_jail()
    installed = [path for path in (*sys.path, sys.prefix, sys.base_prefix) if path and Path(path).exists()]
    network = bool(permissions["network"])
    readable = (*SYSTEM, *installed, *(NAMES if network else ()), *list_code(target), *map(str, permissions["read"]))
    folder = str(Path(target["file"]).parent) if "file" in target else str(Path.cwd())
    bars = jail.Bars(
        memory_bytes=MEMORY_BYTES,
        cpu_s=0,
        threads=0,
        scratch_bytes=0,
        readable=readable,
        writable=tuple(map(str, permissions["write"])),
        listable=(folder,),
        network=network,
        waking=True,
        open_files=OPEN_FILES,
        file_bytes=FILE_BYTES,
    )
    jail.lock_in(bars)


def _load_jail() -> Any:
    spec = importlib.util.spec_from_file_location("podium_jail", JAIL)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def list_code(target: Mapping[str, str]) -> list[str]:
    """The target's file or package, and the modules beside it that it imports, directly or through one another."""
    if "file" in target:
        first, folder = Path(target["file"]), Path(target["file"]).parent
    else:
        module = PathFinder.find_spec(target["module"].partition(".")[0], [str(Path.cwd())])
        if module is None or module.origin is None:
            return []  # an installed module
        first, folder = Path(module.origin), Path.cwd()
    code, waiting = set(), [first]
    while waiting:
        file = waiting.pop()
        place = file.parent if file.name == "__init__.py" else file
        if place in code or not file.is_file():
            continue
        code.add(place)
        beside = [folder / name for name in _list_imports(file)]
        waiting += [path.with_suffix(".py") for path in beside] + [path / "__init__.py" for path in beside]
    return [str(place) for place in code]


def _list_imports(file: Path) -> set[str]:
    """The top modules that a Python file imports; none where it is no Python."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
