"""The commands of the form *Notices*: where notices by webhook go, which ones, and one that is sent to try it."""

from __future__ import annotations

from pydantic import Field, ValidationError

from pool_registry.errors import InvalidPool
from pool_registry.kinds import field_problems
from pool_registry.secrets import redact
from pool_registry.text import one_line, shorten
from studio.frame.commands import Fields, PageCommands, PageReply, command, table
from studio.frame.document import PageDocument
from studio.runtime import Runtime
from trainer.notices.send import Notice, post_notice
from trainer.notices.settings import KINDS, NoticeKind, NoticeSettings, read_settings, write_settings

REPLY_CHARS = 200
LABELS: dict[NoticeKind, str] = {
    "job_ended": "A job has ended",
    "cap_reached": "A job has reached its cap on cost",
    "gate_refused": "A candidate is refused",
    "candidate_ready": "A candidate may be promoted",
}


class NoticesDocument(PageDocument):
    """Where notices go. Of secrets there are references only."""

    webhook: str
    authorization: str
    kinds: list[str]
    queries: bool
    labels: dict[str, str] = Field(description="What each kind of notice says, all kinds that there are.")


class NoticeCommands(PageCommands):
    """Commands by name. All are for owners: a notice takes a key of this machine to an address."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @command("owner", "notices")
    def _show(self, fields: Fields) -> PageReply:  # noqa: ARG002  every command takes the fields
        return PageReply(fields={"notices": self._build().to_json()})

    @command("owner", "set_notices")
    def _set(self, fields: Fields) -> PageReply:
        settings = _read_posted(fields)
        write_settings(self._runtime.store.home, settings)
        many = f"{len(settings.kinds)} of {len(KINDS)} kinds of notice are" if settings.webhook else "no notice is"
        return PageReply(f"Saved: {many} sent.", {"notices": self._build().to_json()})

    @command("owner", "test_notice")
    def _test(self, fields: Fields) -> PageReply:
        """Send one by the form as it is, saved or not, and say what came back."""
        settings = _read_posted(fields)
        if not settings.webhook:
            raise InvalidPool([("webhook", "write the address that a notice is to be sent to")])
        notice = Notice(kind="job_ended", title="A notice of Podium", text="Somebody pressed “Send a test”.")
        answer = self._runtime.run(post_notice(settings, notice))
        written = shorten(one_line(redact(answer.body.decode("utf-8", "replace"))), REPLY_CHARS)
        return PageReply(fields={"status": answer.status, "reply": written})

    def _build(self) -> NoticesDocument:
        settings = read_settings(self._runtime.store.home)
        return NoticesDocument(
            **{**settings.model_dump(), "kinds": list(settings.kinds)},
            labels={str(kind): label for kind, label in LABELS.items()},
        )


def _read_posted(fields: Fields) -> NoticeSettings:
    """The settings that the form holds. Raises InvalidPool with the problems at their fields."""
    try:
        return NoticeSettings.model_validate(dict(table(fields, "notices")))
    except ValidationError as error:
        raise InvalidPool([(where.partition(".")[0], what) for where, what in field_problems(error)]) from error
