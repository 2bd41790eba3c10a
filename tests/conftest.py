"""One data folder for the whole test session, never the user's own."""

from __future__ import annotations

import os
import tempfile

# Set before any test module imports the product, so that nothing can touch a person's data folder.
_FOLDER = tempfile.TemporaryDirectory(prefix="podium-tests-")
os.environ["PODIUM_HOME"] = _FOLDER.name
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.pop("PODIUM_DATABASE_URL", None)
