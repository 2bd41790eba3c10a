"""The two versions of A2A: they differ in names alone. The name of a method says which one a client speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Document = dict[str, Any]
Operation = Literal["send", "stream", "get", "cancel", "follow"]
ObjectKind = Literal["task", "message", "status-update", "artifact-update"]


@dataclass(frozen=True, slots=True)
class Version:
    """How one version names things. `is_kind_inside`: an object says what it is; else a result is wrapped in it."""

    name: str
    methods: Mapping[str, Operation]
    is_kind_inside: bool
    write_role: Callable[[str], str]
    write_state: Callable[[str], str]

    def write_parts(self, text: str) -> list[Document]:
        """A text as the parts of a message or an artifact."""
        return [{"kind": "text", "text": text} if self.is_kind_inside else {"text": text}]

    def write_object(self, kind: ObjectKind, document: Document) -> Document:
        """An object that stands for itself, such as the task that `get` returns."""
        return {"kind": kind, **document} if self.is_kind_inside else document

    def write_result(self, kind: ObjectKind, document: Document) -> Document:
        """An object as one of several that a result may be."""
        if self.is_kind_inside:
            return self.write_object(kind, document)
        first, *others = kind.split("-")
        return {first + "".join(map(str.capitalize, others)): document}


VERSIONS = (
    Version(
        "0.3",
        {
            "message/send": "send",
            "message/stream": "stream",
            "tasks/get": "get",
            "tasks/cancel": "cancel",
            "tasks/resubscribe": "follow",
        },
        is_kind_inside=True,
        write_role=str,
        write_state=str,
    ),
    Version(
        "1.0",
        {
            "SendMessage": "send",
            "SendStreamingMessage": "stream",
            "GetTask": "get",
            "CancelTask": "cancel",
            "SubscribeToTask": "follow",
        },
        is_kind_inside=False,
        write_role=lambda role: f"ROLE_{role.upper()}",
        write_state=lambda state: f"TASK_STATE_{state.upper().replace('-', '_')}",
    ),
)
METHODS = {method: (version, operation) for version in VERSIONS for method, operation in version.methods.items()}
