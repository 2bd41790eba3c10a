"""The Python with the packages of other projects, which `make neighbours` installs beside ours."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

NEIGHBOURS = Path(__file__).parents[1] / ".venv-neighbours" / "bin" / "python"


def find_python(module: str) -> str:
    """An interpreter that can import `module`: ours, or that of `make neighbours`. Skips the test where neither can."""
    for python in (sys.executable, str(NEIGHBOURS)):
        if _has_module(python, module):
            return python
    pytest.skip(f"there is no package {module} here; make neighbours installs it")


@cache
def _has_module(python: str, module: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return Path(python).is_file() and subprocess.run([python, "-c", code], check=False).returncode == 0
