"""Loading models from several threads at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from pool_registry.language_models.auto_classes import import_auto_classes
names = ["AutoModel", "AutoTokenizer", "AutoModelForCausalLM", "AutoConfig"]
with ThreadPoolExecutor(5) as threads:
    if sys.argv[1] == "elsewhere":
        other = threads.submit(__import__, "transformers")  # as a library does that knows nothing of our lock
        while "transformers" not in sys.modules:
            time.sleep(0.001)
    print([classes[0].__name__ for classes in threads.map(import_auto_classes, names)] == names)
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", ["here", "elsewhere"])
def test_threads_that_import_at_once_all_get_their_class(first):
    run = subprocess.run([sys.executable, "-c", PROGRAM, first], capture_output=True, text=True, timeout=300)
    assert run.stdout == "True\n", run.stderr
