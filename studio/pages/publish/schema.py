"""The documents of the Publish page: its choices, recorded runs, the preview of every file, and publications.

Sizes are bytes.
"""

from __future__ import annotations

from typing import Literal

from orchestrator.traces.step_counts import StepCounts
from studio.frame.document import PageDocument
from studio.publish.request import Visitors


class PublishChoices(PageDocument):
    """What can be published, and under which settings; pairs are (value, label)."""

    pools: list[str]
    checkpoints: list[tuple[str, str]]
    suggestion: str
    policies: list[tuple[str, str]]
    hardware: list[str]
    licences: list[str]
    visitors: dict[Visitors, str]
    logged_in: bool


class RunChoice(PageDocument):
    """A recorded run that can be shown; `shown` are those that a page shows when nobody chooses: right or starred."""

    id: str
    query: str
    correct: bool | None
    counts: StepCounts
    shown: bool


class LuggageDocument(PageDocument):
    """The files that a worker could take along."""

    worker: str
    files: int
    size: int


class RunChoices(PageDocument):
    """What the choice of a pool and an orchestrator offers: runs to show, and workers' files that may go along."""

    runs: list[RunChoice]
    luggage: list[LuggageDocument]


class BundleFile(PageDocument):
    """One file of a repository."""

    path: str
    size: int
    about: str


class BundleDocument(PageDocument):
    """The files of one repository; `left_out` are (what, why)."""

    kind: Literal["model", "space"]
    size: int
    files: list[BundleFile]
    left_out: list[tuple[str, str]]


class SecretDocument(PageDocument):
    """A secret that the Space needs, and whether it is set on this machine."""

    name: str
    reference: str
    workers: list[str]
    is_set: bool


class SentTextDocument(PageDocument):
    """A text of the pool that would be sent, and where it stands in a worker's configuration."""

    worker: str
    field: str
    text: str


class PreviewDocument(PageDocument):
    """What would be sent; `recorded` are the queries that were run for it, `inside` that the model goes along, `texts`
    what a person reads before it leaves."""

    preview: str
    recorded: int
    bundles: list[BundleDocument]
    secrets: list[SecretDocument]
    runs: int
    inside: bool
    texts: list[SentTextDocument]


class FileDocument(PageDocument):
    """The content of one file of a preview."""

    path: str
    size: int
    content: str


class StageDocument(PageDocument):
    """A stage of a publication."""

    name: str
    label: str
    state: Literal["done", "running", "waiting"]


class PublicationDocument(PageDocument):
    """How far a publication is; `links` are (label, address), `at` when it last changed."""

    key: str
    repo: str
    state: Literal["ready", "running", "done", "failed", "interrupted"]
    message: str
    stages: list[StageDocument]
    links: list[tuple[str, str]]
    visibility: Literal["private", "public"]
    at: str
