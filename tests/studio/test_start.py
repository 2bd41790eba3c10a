"""How the studio starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORT = """
import ast, inspect
from studio.start import import_gradio

find_file = inspect.getfile
parsed = []
ast.get_source_segment = lambda *_: parsed.append(_) or "class C: pass"
import_gradio()
import gradio

assert gradio.Textbox(label="a").label == "a" and inspect.getfile is find_file
print(len(parsed))
"""


@pytest.mark.medium
def test_the_studio_starts_without_writing_stubs_for_editors():
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
