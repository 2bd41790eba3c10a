"""The classes of transformers that load models, imported by one thread at a time.

transformers puts another module in its place while it is imported, and looks its names up when they are asked for: a
second thread that asks meanwhile gets an ImportError. Models are loaded one at a time for the same reason: while one
is, torch makes tensors without data in every thread.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import Any

LOADING = threading.RLock()


def import_auto_classes(*names: str) -> list[Any]:
    """The classes of transformers with these names, without progress bars, which would fill a log or a terminal."""
    with LOADING:
        import_module("transformers")
        import_module("transformers.utils.logging").disable_progress_bar()
        # A thread that waited for another's import is given the module from before the change of places.
        transformers = sys.modules["transformers"]
        return [getattr(transformers, name) for name in names]
