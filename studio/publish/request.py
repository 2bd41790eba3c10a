"""A publication as it is requested: which orchestrator on which pool, where to, and what visitors may do."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from orchestrator.errors import OrchestratorError
from pool_registry.kinds import field_problems
from pool_registry.secrets import check_reference

Visitors = Literal["replay", "own_key", "secrets"]
VISITORS: dict[Visitors, str] = {
    "replay": "replay recorded runs",
    "own_key": "run it live with their own keys",
    "secrets": "run it live with the Space's secrets",
}
# CPUs and the GPUs that a small orchestrator needs; ZeroGPU wants its own decorators in the app and is not among them.
HARDWARE = ("cpu-basic", "cpu-upgrade", "t4-small", "t4-medium", "l4x1", "a10g-small", "a10g-large", "a100-large")
LICENCES = ("apache-2.0", "mit", "bsd-3-clause", "cc-by-4.0", "cc-by-sa-4.0", "cc0-1.0", "openrail", "other")
_REPO = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,40}[A-Za-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
)


class PublishError(OrchestratorError):
    """Raised when nothing was published, or not everything; the message says what to do."""


class InvalidPublication(PublishError):
    """Raised for a publication that is not valid; `problems` lists (field, message)."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{where}: {what}" if where else what for where, what in problems))


class Publication(BaseModel):
    """What to publish. `repo`, NAME or OWNER/NAME, names both the model repository and the Space.

    `traces` are ids of recorded runs; without any the best recent ones are chosen. `token` is a secret's reference, or
    empty for the Hub's own login. `static` makes the Space plain HTML.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool: str = Field(min_length=1, description="The pool whose workers are called.")
    orchestrator: str = Field(min_length=1, description="A checkpoint, or another orchestrator.")
    repo: str = Field(description="NAME, or OWNER/NAME for an organisation.")
    title: str = Field(default="", max_length=120, description="Heading of the page; empty: the repository's name.")
    about: str = Field(default="", max_length=2000, description="One paragraph for the page and the cards.")
    visitors: Visitors = "replay"
    take: tuple[str, ...] = Field(
        default=(), description="Workers whose files go along: a function's file, documents. Visitors can read them."
    )
    static: bool = Field(default=False, description="Plain HTML without a server; replays only.")
    with_model: bool = Field(default=True, description="Publish the checkpoint as a model repository, too.")
    hardware: str = Field(default="cpu-basic", description="What the Space runs on.")
    visibility: Literal["private", "public"] = "private"
    licence: str = Field(default="apache-2.0", description="Of the model and the Space, as the Hub names it.")
    traces: tuple[str, ...] = Field(default=(), max_length=50, description="Recorded runs to show.")
    token: str = Field(default="", description="env:NAME or keyring:NAME; empty: the Hub's own login.")

    @field_validator("repo")
    @classmethod
    def _is_a_repository(cls, value: str) -> str:
        if not _REPO.fullmatch(value) or "--" in value or ".." in value or value.endswith(".git"):
            raise ValueError("write NAME or OWNER/NAME with letters, digits, -, _ and . (no -- or ..), at most 96")
        return value

    @field_validator("hardware")
    @classmethod
    def _is_hardware(cls, value: str) -> str:
        if value not in HARDWARE:
            raise ValueError(f"choose one of: {', '.join(HARDWARE)}")
        return value

    @field_validator("licence")
    @classmethod
    def _is_a_licence(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,40}", value):
            raise ValueError(f"use the Hub's word for it, such as {', '.join(LICENCES[:4])}")
        return value

    @field_validator("token")
    @classmethod
    def _is_reference(cls, value: str) -> str:
        return check_reference(value) if value else value

    @model_validator(mode="after")
    def _static_only_replays(self) -> Publication:
        if self.static and self.visitors != "replay":
            raise ValueError("a page of plain HTML can only replay; choose a Gradio Space for live runs")
        return self

    @property
    def heading(self) -> str:
        return self.title or self.repo.rpartition("/")[2]


def parse_publication(values: object) -> Publication:
    """Parse a publication. Raises InvalidPublication with every problem by field."""
    try:
        return Publication.model_validate(values)
    except ValidationError as error:
        raise InvalidPublication(field_problems(error)) from error
