"""Agent Skills (https://agentskills.io): folders with a SKILL.md, whose frontmatter says what a skill is for and whose
body an agent reads when it needs it.

Only SKILL.md reaches the model: scripts and other files of the folder are neither read nor run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from pool_registry.language_models.completion import Message, estimate_tokens, strip_special
from pool_registry.validation_words import describe_problems

SKILL_FILE = "SKILL.md"
MAX_SKILLS = 16  # of one agent: their descriptions are in every prompt
MAX_BODY_CHARS = 40_000  # about 10,000 tokens; the convention advises half of that
NAME = r"^[a-z0-9]+(-[a-z0-9]+)*$"
FOLDERS = (
    "Folders of Agent Skills, each with a SKILL.md. Their descriptions are in every prompt, and the agent reads the "
    "body of one when it needs it."
)
OFFER = (
    "You have these skills. To read the instructions of one before you do the task, reply with nothing but "
    "READ SKILL and its name."
)
FRONTMATTER = re.compile(r"\A---[ \t]*\n(?P<head>.*?)\n---[ \t]*(?:\n(?P<body>.*))?\Z", re.DOTALL)
_REQUEST = re.compile(r"\W*read skill\W+(?P<name>[a-z0-9-]+)\W*", re.IGNORECASE)


class InvalidSkill(Exception):
    """A folder is no skill that an agent can use; the message says why and what to do."""


class Frontmatter(BaseModel):
    """What stands at the top of SKILL.md; other fields are for other programs."""

    name: str = Field(max_length=64, pattern=NAME)
    description: str = Field(min_length=1, max_length=1024)


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill: when it is of use, and how it is done."""

    name: str
    description: str
    body: str


def load_skills(folders: Sequence[str]) -> tuple[Skill, ...]:
    """Read the skills of an agent. Raises InvalidSkill naming the folder."""
    skills = tuple(load_skill(folder) for folder in folders)
    names = [skill.name for skill in skills]
    for name in names:
        if names.count(name) > 1:
            raise InvalidSkill(f"two folders hold a skill {name!r}; leave one of them out")
    return skills


def load_skill(folder: str) -> Skill:
    """Read one skill. Raises InvalidSkill naming the folder."""
    path = Path(folder).expanduser() / SKILL_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "has no SKILL.md" if path.parent.is_dir() and not path.exists() else f"cannot be read: {error}"
        raise InvalidSkill(f"the skill folder {folder} {reason}; name a folder that holds a SKILL.md") from error
    parts = FRONTMATTER.match(text.replace("\r\n", "\n").removeprefix("\ufeff"))
    if parts is None:
        raise InvalidSkill(
            f"{path} has no frontmatter: begin it with a line ---, then name: and description:, then a line ---"
        )
    head = _read_frontmatter(path, parts["head"])
    body = strip_special(parts["body"] or "").strip()
    if head.name != path.parent.resolve().name:
        raise InvalidSkill(f"{path} calls itself {head.name!r}; its folder must have the same name")
    if not body:
        raise InvalidSkill(f"{path} has no text below its frontmatter; write there how it is done")
    if len(body) > MAX_BODY_CHARS:
        raise InvalidSkill(f"{path} has {len(body):,} characters; at most {MAX_BODY_CHARS:,} are read: split the skill")
    return Skill(head.name, strip_special(" ".join(head.description.split())), body)


def write_offer(skills: Sequence[Skill]) -> str:
    """What the role prompt says of the skills; "" where there are none."""
    lines = (f"- {skill.name}: {skill.description}" for skill in skills)
    return "\n".join([OFFER, *lines]) if skills else ""


def write_body(skill: Skill) -> str:
    """A skill as a model reads it."""
    return f'<skill name="{skill.name}">\n{skill.body}\n</skill>'


def find_named(skills: Sequence[Skill], instruction: str) -> Skill | None:
    """The first skill that an instruction calls by its name, as a word of its own."""
    text = instruction.lower() if skills else ""
    return next((skill for skill in skills if skill.name in text and _find_word(skill.name, text)), None)


def _find_word(name: str, text: str) -> re.Match[str] | None:
    return re.search(rf"(?<![a-z0-9])(?<![a-z0-9]-){re.escape(name)}(?!-?[a-z0-9])", text)


def find_requested(skills: Sequence[Skill], reply: str) -> Skill | None:
    """The skill that a reply asks to read; None where it is no such request."""
    match = _REQUEST.fullmatch(reply.strip())
    return next((skill for skill in skills if match and skill.name == match["name"].lower()), None)


def find_longest(skills: Sequence[Skill]) -> str:
    """The text of the longest skill: the most that one call can read; "" without skills."""
    return max((write_body(skill) for skill in skills), key=estimate_tokens, default="")


def give_with_task(messages: Sequence[Message], skill: Skill) -> list[Message]:
    """The messages with a skill before the task that names it."""
    *others, task = messages
    return [*others, Message(task.role, f"{write_body(skill)}\n\n{task.content}")]


def give_on_request(messages: Sequence[Message], request: str, skill: Skill) -> list[Message]:
    """The messages, the request of the model, and the skill that it asks for."""
    answer = f"{write_body(skill)}\n\nDo the task now, as the skill says."
    return [*messages, Message("assistant", request), Message("user", answer)]


def _read_frontmatter(path: Path, text: str) -> Frontmatter:
    import yaml  # a published Space has no PyYAML, and agents with skills stay at home

    try:
        return Frontmatter.model_validate(yaml.safe_load(text))
    # PyYAML lets through what its own functions raise: ValueError for `2020-13-45`, AttributeError for `!!timestamp x`.
    except (yaml.YAMLError, RecursionError, ValueError, AttributeError) as error:
        reason = describe_problems(error) if isinstance(error, ValidationError) else "it is no YAML"
        raise InvalidSkill(
            f"the frontmatter of {path} cannot be used: {reason}. It needs name (a-z, 0-9, single hyphens, at most 64 "
            "characters) and description (1 to 1,024 characters)"
        ) from error
