"""An Agent Skill, or a subagent as coding agents keep them: a text with a name and a description on top. It becomes an
agent whose role is the text; which model it runs on is the person's choice."""

from __future__ import annotations

import re
from typing import Any

from pool_registry.gallery.templates import SHIPPED_MODEL
from pool_registry.gallery.worker_from_template import put_on_model
from pool_registry.imports import Offer, worker_name
from pool_registry.language_models.completion import strip_special
from pool_registry.language_models.skills import FRONTMATTER
from pool_registry.pasted.base import ImportSettings, PastedText, Recognition, UnfitText, refuse
from pool_registry.worker import WorkerSpec

MAX_ROLE_CHARS = 20_000  # as in workers/chat.py
MAX_HEAD_CHARS = 8_000
MAX_REPLY_TOKENS = 512  # of the model that ships; every other keeps its own
_FILES = re.compile(r"\b(?:scripts|references|assets|resources)/[\w./-]+")
_HEAD_FIELD = re.compile(r"^(name|description)[ \t]*:", re.MULTILINE)


def is_skill(pasted: PastedText) -> bool:
    parts = FRONTMATTER.match(pasted.text)
    return parts is not None and bool(_HEAD_FIELD.search(parts["head"]))


def read_skill(pasted: PastedText, settings: ImportSettings) -> Recognition:
    """Raises InvalidPool where the model cannot be used."""
    try:
        spec, notes = _make_agent(pasted.text, settings)
    except UnfitText as reason:
        return Recognition((refuse(settings.name or "skill", "chat", str(reason)),))
    return Recognition((Offer(spec),), notes=notes)


def _make_agent(text: str, settings: ImportSettings) -> tuple[WorkerSpec, tuple[str, ...]]:
    """Raises UnfitText."""
    parts = FRONTMATTER.match(text)
    if parts is None:
        raise UnfitText("it has no front matter: a line ---, name: and description:, a line ---")
    head, body = _read_head(parts["head"]), strip_special(parts["body"] or "").strip()
    name, description = head.get("name"), head.get("description")
    if not isinstance(name, str) or not isinstance(description, str) or not description.strip():
        raise UnfitText("its front matter needs name: and description:, each a text")
    if not body:
        raise UnfitText("it has no text below its front matter; paste the whole file")
    if len(body) > MAX_ROLE_CHARS:
        raise UnfitText(
            f"its text has {len(body):,} characters, and a role takes {MAX_ROLE_CHARS:,}. Keep it as "
            f"{name[:60]}/SKILL.md and name that folder under Skills in an agent's form"
        )
    config = {"role": body, "max_tokens": MAX_REPLY_TOKENS}
    described = strip_special(" ".join(description.split()))[:2000]
    role = WorkerSpec(name=worker_name(settings.name or name), kind="chat", description=described, config=config)
    return put_on_model(role, settings.model or SHIPPED_MODEL), tuple(_list_notes(head, body))


def _read_head(text: str) -> dict[str, Any]:
    """Raises UnfitText."""
    import yaml

    if len(text) > MAX_HEAD_CHARS:
        raise UnfitText(f"its front matter has more than {MAX_HEAD_CHARS:,} characters")
    try:
        head = yaml.safe_load(text)
    # PyYAML lets through what its own functions raise: ValueError for `2020-13-45`, AttributeError for `!!timestamp x`.
    except (yaml.YAMLError, RecursionError, ValueError, AttributeError, TypeError, LookupError, ArithmeticError):
        head = None
    if isinstance(head, dict):
        return head
    # Descriptions with a colon in them are no YAML, and are common: the lines are read as they stand.
    lines = (line.partition(":") for line in text.splitlines() if re.match(r"[a-z-]+:", line))
    return {name: value.strip().strip("\"'") for name, _, value in lines}


def _list_notes(head: dict[str, Any], body: str) -> list[str]:
    notes = []
    if files := list(dict.fromkeys(_FILES.findall(body))):
        named = ", ".join(files[:3])[:200]
        notes.append(f"It names files of its folder ({named}), which an agent neither reads nor runs.")
    if tools := head.get("tools", head.get("allowed-tools")):
        notes.append(f"It asks for tools ({str(tools)[:120]}): add them to the pool, and a plan calls them before it.")
    return notes
