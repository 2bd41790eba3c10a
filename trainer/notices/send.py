"""Sends a notice: one POST of a JSON document, a few times at most, TIMEOUT_S seconds each.

{"kind": "job_ended", "title": "Job clinic-3f2a is done", "text": "", "job": "clinic-3f2a", "pool": "",
 "at": "2026-11-29T02:14:09+00:00", "queries": []}
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import Field

from pool_registry.errors import PoolError, WorkerFault
from pool_registry.network.http_client import Answer, ask, demand
from pool_registry.secrets import redact, resolve
from pool_registry.storage.data_folder import Home
from pool_registry.strict_model import FrozenModel
from trainer.notices.settings import NoticeKind, NoticeSettings, read_settings

TIMEOUT_S = 5.0
WAITS_S = (0.0, 0.5, 2.0)  # before each try
MAX_TEXT = 2000  # characters
BUSY = 429

log = logging.getLogger(__name__)


class Notice(FrozenModel):
    """What is sent. `queries` are texts of people, and left out unless the setting allows them."""

    kind: NoticeKind
    title: str
    text: str = ""
    job: str = ""
    pool: str = ""
    at: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    queries: Sequence[str] = ()


def notify(home: Home, notice: Notice) -> None:
    """Send a notice where somebody wants it. Blocks for a few tries, and never raises: the work that it tells of is
    done."""
    try:
        settings = read_settings(home)
        if settings.webhook and notice.kind in settings.kinds:
            asyncio.run(post_notice(settings, notice))
    except (PoolError, WorkerFault, ValueError, OSError) as error:
        log.warning("the notice %r was not sent: %s", notice.title, redact(str(error)))


async def post_notice(settings: NoticeSettings, notice: Notice) -> Answer:
    """POST a notice and return what the peer answered. Raises WorkerFault where the last try fails or the peer refuses
    it, and SecretNotFound."""
    url, headers = settings.webhook, {"content-type": "application/json"}
    if not url.startswith("http"):
        url = resolve(url).get_secret_value()
    if settings.authorization:
        headers["authorization"] = resolve(settings.authorization).get_secret_value()
    queries = notice.queries if settings.queries else ()
    fields = notice.model_copy(update={"queries": list(queries), "text": redact(notice.text)[:MAX_TEXT]})
    body = json.dumps(fields.model_dump(mode="json"), ensure_ascii=False).encode()
    for wait_s in WAITS_S:
        await asyncio.sleep(wait_s)
        try:
            answer = await ask("POST", url, headers=headers, body=body, timeout_s=TIMEOUT_S)
        except WorkerFault as fault:
            if wait_s == WAITS_S[-1] or fault.code in ("bad_url", "address_refused"):
                raise
            continue
        if answer.status < 500 and answer.status != BUSY:
            break
    return demand(answer)
