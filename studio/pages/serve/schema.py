"""The document of the Serve page."""

from __future__ import annotations

from typing import Literal

from studio.access.roles import UserRole
from studio.frame.document import PageDocument
from studio.pages.serve.deployment_schema import DeploymentCard


class ServedModel(PageDocument):
    """A running server and the model that it serves; `running` requests are being answered. `origins` are those of the
    pages that may use it from a browser; `recorded`: whether requests become traces."""

    url: str
    host: str
    port: int
    pool: str
    version: int
    orchestrator: str
    orchestrator_label: str
    model: str
    deployment: str
    started_at: str
    state: Literal["starting", "ready"]
    origins: list[str]
    recorded: bool
    running: int
    answered: int
    failed: int


class TokenLine(PageDocument):
    """A token by its name; the token itself is shown once, when it is made."""

    name: str
    created_at: str


class ServeState(PageDocument):
    """Everything that the page draws; `orchestrators` are (label, name), `defaults` by pool, `port` is a free one.

    `tokens` are the viewer's own, `guarded` says whether anybody has one: then every request needs one.
    """

    servers: list[ServedModel]
    deployments: list[DeploymentCard]
    tokens: list[TokenLine]
    guarded: bool
    role: UserRole
    pools: list[str]
    orchestrators: list[tuple[str, str]]
    defaults: dict[str, str]
    port: int
    python: str
    home: str


class NewToken(PageDocument):
    """A token, in this reply and nowhere else."""

    name: str
    token: str
