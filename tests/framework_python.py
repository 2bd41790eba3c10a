"""The Python with the packages of other projects, which `make frameworks` installs beside ours."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

FRAMEWORKS = Path(__file__).parents[1] / ".venv-frameworks" / "bin" / "python"


def find_python(module: str) -> str:
    """An interpreter that can import `module`: ours, or that of `make frameworks`. Skips the test where neither can."""
    for python in (sys.executable, str(FRAMEWORKS)):
        if _has_module(python, module):
            return python
    pytest.skip(f"there is no package {module} here; make frameworks installs it")


@cache
def _has_module(python: str, module: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return Path(python).is_file() and subprocess.run([python, "-c", code], check=False).returncode == 0
