"""Kind `memos`: one room of memos. The text is generated, a function of room, memo, section and subject alone.

A memo states figures that exist nowhere else, so that no model has memorized them. Earlier drafts'
figures stand in the same passage; the one that counts follows "total:".
"""

from __future__ import annotations

import hashlib
import re
from random import Random
from typing import Literal

from pydantic import Field

from pool_registry.errors import BadCall
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker, one_string

FORM = "memo 17: penalty total, section 4"
SUBJECTS = ("penalty", "freight", "repair", "insurance", "storage", "training")
SECTIONS = range(1, 10)
MAX_MEMO = 9999
MAX_CHARS = 200
_VERSION = 1  # of the texts: another number makes other memos
_REQUEST = re.compile(
    rf"memo (?:no\.? ?|number )?(?P<memo>[0-9]{{1,4}})[ :,]+(?:the )?(?P<subject>{'|'.join(SUBJECTS)}) totals?"
    r"[ :,]+(?:(?:of|in|after|by|as of) )?section (?P<section>[1-9])",
    re.IGNORECASE | re.ASCII,
)
_OPENINGS = (
    "The parties met {n} times before this section was agreed.",
    "This section replaces pages {n} to {m} of the draft that circulated in spring.",
    "Both sides have read the ledger of the last {n} weeks and accept it as complete.",
    "The {n} annexes named below remain in force unless this section says otherwise.",
)
_DRAFTS = (
    "The first draft put the {subject} costs at {n:,} dollars, which the supplier contested.",
    "An earlier estimate of the {subject} costs, {n:,} dollars, is withdrawn.",
    "The {subject} costs of the year before came to {n:,} dollars and are settled.",
    "The buyer's own count of the {subject} costs gave {n:,} dollars; it left out {m} deliveries.",
)
_REASONS = (
    "After {n} corrections by the auditors, nothing is open between the parties.",
    "Currency effects are left out, as agreed in letter {n}.",
    "Items below {n} dollars are not counted.",
    "Late deliveries count from day {n} on.",
)
_ENDINGS = (
    "Objections may be raised within {n} days.",
    "The amount is due in {n} instalments.",
    "The next review takes place after {n} months.",
    "A copy goes to {n} departments.",
)


class MemosConfig(StrictModel):
    room: Literal["a", "b", "c"] = Field(description="Which room this is; each holds memos of its own.")


class Memos(Worker[MemosConfig]):
    label = "Memo room"
    summary = "Generated memos, whose figures stand nowhere else."
    icon = "M5 4h14v16H5z M9 8h6 M9 12h6 M9 16h3"
    template = None  # its task family needs it; a person would not add it
    Config = MemosConfig
    cacheable = True
    sample = {"request": FORM}
    parameters = one_string(
        "request", f"As in: {FORM}. Memos 1 to {MAX_MEMO}, sections 1 to 9, subjects {', '.join(SUBJECTS)}."
    )

    async def call(self, call: Call) -> Reply:
        match = _REQUEST.fullmatch(" ".join(call.text("request")[:MAX_CHARS].split()).rstrip("?. "))
        if match is None or not int(match["memo"]):
            raise BadCall(f"write the request as: {FORM}; subjects are {', '.join(SUBJECTS)}")
        return Reply(passage(self.config.room, int(match["memo"]), match["subject"].lower(), int(match["section"])))


def total_of(room: str, memo: int, subject: str, section: int) -> int:
    """Return the figure that a passage states, in dollars."""
    return _random("total", room, memo, subject, section).randint(10_000, 999_999)


def passage(room: str, memo: int, subject: str, section: int) -> str:
    """Write what a memo says about a subject in one of its sections."""
    random = _random("text", room, memo, subject, section)
    sentences = (
        _fill(random, _OPENINGS, 2, 60),
        _fill(random, _DRAFTS, 10_000, 999_999, subject),
        _fill(random, _DRAFTS, 10_000, 999_999, subject),
        _fill(random, _REASONS, 2, 60),
        f"After all corrections in this section, {subject} total: {total_of(room, memo, subject, section):,} dollars.",
        _fill(random, _REASONS, 2, 60),
        _fill(random, _ENDINGS, 2, 60),
    )
    return f"Room {room.upper()} — Memo {memo} — Section {section} — {subject.capitalize()}: {' '.join(sentences)}"


def _fill(random: Random, sentences: tuple[str, ...], low: int, high: int, subject: str = "") -> str:
    n, m = random.randint(low, high), random.randint(61, 99)
    return random.choice(sentences).format(n=n, m=m, subject=subject)


def _random(*parts: object) -> Random:
    """Seed a random source with these words alone, equal on every machine."""
    key = "/".join(map(str, (_VERSION, *parts)))
    return Random(hashlib.blake2b(key.encode(), digest_size=16).digest())  # noqa: S311
