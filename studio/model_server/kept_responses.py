"""Kept responses, each in a file of the data folder: for `previous_response_id` and for those
that run in the background. `store: false` keeps none."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.engine.process_identity import is_alive, this_process
from pool_registry.atomic_write import write_atomically
from pool_registry.storage.data_folder import Home
from studio.model_server.conversation import ConversationMessage
from studio.model_server.errors import ApiError

_ID = re.compile(r"resp_[0-9A-Za-z-]{1,64}")
KEPT_DAYS = 30
UNDER_WAY = ("queued", "in_progress")


class KeptResponse(BaseModel):
    """A response, the conversation that led to it, whose it is, and the process that works on it."""

    model_config = ConfigDict(frozen=True)

    user: str
    owner: str
    created: float
    document: dict[str, Any]
    messages: tuple[ConversationMessage, ...] = ()

    @property
    def conversation(self) -> list[ConversationMessage]:
        """The conversation with what the response answered."""
        return [*self.messages, *_read_output(self.document)]


class KeptResponses:
    """The kept responses of a data folder."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._folder = home.root / "serve" / "responses"

    def keep(self, user: str, messages: Sequence[ConversationMessage], document: dict[str, Any]) -> None:
        """Write a response, replacing the one of this id."""
        self._folder.mkdir(parents=True, exist_ok=True)
        kept = KeptResponse(
            user=user, owner=this_process(), created=time.time(), document=document, messages=tuple(messages)
        )
        write_atomically(self._path(str(document["id"])), kept.model_dump_json())

    def find(self, name: str, user: str) -> KeptResponse:
        """The response of this id and this user. One whose process has ended meanwhile has failed. Raises ApiError."""
        try:
            kept = KeptResponse.model_validate_json(self._path(name).read_text())
        except (OSError, ValidationError) as error:
            raise _not_found(name) from error
        if kept.user != user:
            raise _not_found(name)
        if kept.document["status"] in UNDER_WAY and not is_alive(kept.owner, self._home.root):
            problem = {"code": "server_error", "message": "the server stopped before the answer was there; ask again"}
            kept = kept.model_copy(update={"document": {**kept.document, "status": "failed", "error": problem}})
        return kept

    def delete(self, name: str, user: str) -> None:
        """Forget a response. Raises ApiError."""
        self.find(name, user)
        self._path(name).unlink(missing_ok=True)

    def forget(self, is_meant: Callable[[str, float], bool]) -> int:
        """Delete those whose user and time (seconds since 1970) are meant; return how many. A damaged one goes, too."""
        meant = [path for path in self._folder.glob("resp_*.json") if _is_meant(path, is_meant)]
        for path in meant:
            path.unlink(missing_ok=True)
        return len(meant)

    def delete_old(self, days: float = KEPT_DAYS) -> int:
        """Delete those that are older; return how many."""
        oldest = time.time() - days * 86_400
        old = [path for path in self._folder.glob("resp_*.json") if path.stat().st_mtime < oldest]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)

    def _path(self, name: str) -> Path:
        if not _ID.fullmatch(name):
            raise _not_found(name)
        return self._folder / f"{name}.json"


def read_trace(name: str) -> str:
    """The id of the trace behind a response's id."""
    return name.removeprefix("resp_").partition("-")[0]


def write_input_items(name: str, messages: Sequence[ConversationMessage]) -> dict[str, Any]:
    """The conversation that led to a response, as the API lists it."""
    items = [
        {
            "type": "message",
            "id": f"msg_{name}_{index}",
            "role": message.role if message.role != "tool" else "user",
            "status": "completed",
            "content": [{"type": "input_text", "text": message.text}],
        }
        for index, message in enumerate(messages)
    ]
    first, last = (items[0]["id"], items[-1]["id"]) if items else ("", "")
    return {"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": False}


def _is_meant(path: Path, is_meant: Callable[[str, float], bool]) -> bool:
    try:
        kept = KeptResponse.model_validate_json(path.read_text())
    except (OSError, ValidationError):
        return True
    return is_meant(kept.user, kept.created)


def _not_found(name: str) -> ApiError:
    message = f"there is no response {name[:80]!r} here; send the whole conversation instead"
    return ApiError(404, message, "not_found", "response_id")


def _read_output(document: dict[str, Any]) -> list[ConversationMessage]:
    messages = []
    for item in document["output"]:
        if item["type"] == "message":
            messages.append(ConversationMessage("assistant", "".join(part["text"] for part in item["content"])))
        elif item["type"] == "function_call":
            messages.append(ConversationMessage("assistant", f"called {item['name']}({item['arguments']})"))
    return messages
