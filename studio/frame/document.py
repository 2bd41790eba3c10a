"""The base of every JSON document that a page or a client gets.

The JSON Schemas of these models become assets/web/types.d.ts (scripts/write_types.py), so that `tsc` checks what the
pages read of them.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class PageDocument(BaseModel):
    """A JSON document. A field that Python cannot name has an alias."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> dict[str, Any]:
        """The document as JSON values, ready for json.dumps."""
        return self.model_dump(by_alias=True)
