"""The classes of transformers that load models, imported by one thread at a time.

transformers puts another module in its place while it is imported, and looks its names up when they are asked for: a
second thread that asks meanwhile gets an ImportError.
"""

from __future__ import annotations

import threading
from typing import Any

_lock = threading.RLock()


def import_auto_classes(*names: str) -> list[Any]:
    """The classes of transformers with these names."""
    with _lock:
        import transformers

        return [getattr(transformers, name) for name in names]
