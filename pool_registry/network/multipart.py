"""Forms of parts: multipart/form-data as RFC 7578 and browsers write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4


@dataclass(frozen=True, slots=True)
class Part:
    """One field of a form. A part without `media_type` is plain text; `file_name` is that of a file."""

    name: str
    content: bytes
    media_type: str = ""
    file_name: str = ""


def write_multipart(parts: Sequence[Part]) -> tuple[str, bytes]:
    """Return the content type, which holds the boundary, and the body."""
    boundary = uuid4().hex
    while any(boundary.encode() in part.content for part in parts):
        boundary = uuid4().hex
    lines = list[bytes]()
    for part in parts:
        file = f'; filename="{_quote(part.file_name)}"' if part.file_name else ""
        lines += [
            f"--{boundary}".encode(),
            f'Content-Disposition: form-data; name="{_quote(part.name)}"{file}'.encode(),
        ]
        lines += [f"Content-Type: {part.media_type}".encode()] if part.media_type else []
        lines += [b"", part.content]
    lines += [f"--{boundary}--".encode(), b""]
    return f"multipart/form-data; boundary={boundary}", b"\r\n".join(lines)


def _quote(name: str) -> str:
    """Escape a name as browsers do: a line break or quote in it would start something else."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
