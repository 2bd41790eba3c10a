"""Where notices go, PODIUM_HOME/notices.json. Addresses that are secrets, and keys, stand there as references."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, ValidationError, field_validator

from pool_registry.atomic_write import write_atomically
from pool_registry.errors import StorageError
from pool_registry.network.http_client import check_url
from pool_registry.secrets import REFERENCE, check_reference
from pool_registry.storage.data_folder import Home
from pool_registry.strict_model import FrozenModel
from pool_registry.validation_words import describe_problems

NoticeKind = Literal["job_ended", "cap_reached", "gate_refused", "candidate_ready"]
KINDS: tuple[NoticeKind, ...] = get_args(NoticeKind)


class NoticeSettings(FrozenModel):
    """Where notices go, and which."""

    webhook: str = Field(default="", description="http(s) address, or env:NAME or keyring:NAME where it is a secret.")
    authorization: str = Field(
        default="", description="env:NAME or keyring:NAME of what the header Authorization says; empty for none."
    )
    kinds: tuple[NoticeKind, ...] = Field(default=KINDS, description="Which notices are sent.")
    queries: bool = Field(default=False, description="Whether a notice may hold texts of queries.")

    @field_validator("webhook")
    @classmethod
    def _check_webhook(cls, webhook: str) -> str:
        return webhook if not webhook or REFERENCE.match(webhook) else check_url(webhook)

    @field_validator("authorization")
    @classmethod
    def _check_authorization(cls, reference: str) -> str:
        return reference and check_reference(reference)


def read_settings(home: Home) -> NoticeSettings:
    """Read the setting; nothing is sent where there is none. Raises StorageError where its file is
    damaged, or cannot be read."""
    try:
        return NoticeSettings.model_validate_json(_file(home).read_bytes())
    except FileNotFoundError:
        return NoticeSettings()
    except ValidationError as error:
        problem = describe_problems(error)
        raise StorageError(f"{_file(home)} cannot be read; correct or delete it: {problem}") from error
    except OSError as error:
        raise StorageError(f"{_file(home)} cannot be read: {error}") from error


def write_settings(home: Home, settings: NoticeSettings) -> None:
    """Write the setting."""
    write_atomically(_file(home), settings.model_dump_json(indent=1))


def _file(home: Home) -> Path:
    return home.root / "notices.json"
