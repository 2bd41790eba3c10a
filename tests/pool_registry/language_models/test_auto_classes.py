"""Loading models from several threads at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
from concurrent.futures import ThreadPoolExecutor
from pool_registry.language_models.auto_classes import import_auto_classes
names = ["AutoModel", "AutoTokenizer", "AutoModelForCausalLM", "AutoConfig"]
with ThreadPoolExecutor(4) as threads:
    print([classes[0].__name__ for classes in threads.map(import_auto_classes, names)] == names)
"""


@pytest.mark.medium
def test_threads_that_import_at_once_all_get_their_class():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert run.stdout == "True\n", run.stderr
