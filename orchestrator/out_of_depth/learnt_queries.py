"""The queries that a checkpoint learnt from, as sentence vectors in a file beside its weights.

The vectors are of type float16 and of length 1; `calibration` holds the intercept and the slope of a logistic function
from the cosine of the most similar of them to the probability that a query is out of the checkpoint's depth.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

FILE = "learnt_queries.npz"
MAX_QUERIES = 800  # 384 numbers of two bytes each: 614 kB


@dataclass(frozen=True, slots=True)
class LearntQueries:
    """`vectors`: a numpy array of shape (queries, 384)."""

    vectors: Any
    intercept: float
    slope: float

    def compare(self, vectors: Any) -> Any:
        """Compute for each vector the cosine of the most similar learnt query."""
        return (vectors @ self.vectors.astype(vectors.dtype).T).max(axis=1)

    def judge(self, nearest: float) -> float:
        """The probability that a query whose most similar learnt one has this cosine is out of depth."""
        import numpy as np

        return float(1 / (1 + np.exp(-(self.intercept + self.slope * nearest))))

    def save(self, folder: Path) -> None:
        """Write the file into a checkpoint's folder."""
        import numpy as np

        calibration = np.array([self.intercept, self.slope])
        np.savez_compressed(folder / FILE, queries=self.vectors.astype(np.float16), calibration=calibration)


@lru_cache(maxsize=16)
def load_learnt_queries(folder: Path) -> LearntQueries | None:
    """The queries that the checkpoint in a folder learnt from; None where it has none, or a file that is damaged."""
    import numpy as np

    try:
        with np.load(folder / FILE, allow_pickle=False) as file:
            vectors, (intercept, slope) = file["queries"], file["calibration"]
    except (OSError, EOFError, ValueError, TypeError, KeyError, zipfile.BadZipFile):
        return None
    return LearntQueries(vectors, float(intercept), float(slope)) if vectors.ndim == 2 and len(vectors) else None
