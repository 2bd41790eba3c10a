"""The first estimates after a start, which import transformers in several threads at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
SCRIPT = """
import json, sys, threading, time
from trainer.memory_fit.model_sizes import _build_model
shape = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_hidden_layers": 1}
def build():
    while "transformers" not in sys.modules:
        time.sleep(0.001)
    print(_build_model(json.dumps({"model_type": "llama"} | shape), "", "float32", None)[1])
thread = threading.Thread(target=build)
thread.start()
import transformers
thread.join()
"""


def test_a_model_is_built_while_another_thread_imports_transformers():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr
