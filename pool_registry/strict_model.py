"""Base classes of validated input: an unknown field is an error and never ignored."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A model that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


class FrozenModel(StrictModel):
    """A model that refuses unknown fields and is never changed."""

    model_config = ConfigDict(frozen=True)
