"""Agent Skills: what a folder must hold, what an agent is sent of it, and what is checked before that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from pool_registry.actions import Action, Observation, Status, Usage
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.errors import InvalidPool
from pool_registry.kinds import KINDS, add_kind
from pool_registry.language_models.agent import Agent, AgentConfig
from pool_registry.language_models.completion import (
    DEFAULT_OPTIONS,
    Completion,
    CompletionOptions,
    Message,
    prompt_text,
)
from pool_registry.language_models.skills import (
    MAX_BODY_CHARS,
    InvalidSkill,
    Skill,
    find_named,
    load_skill,
    load_skills,
)
from pool_registry.pool import Pool
from pool_registry.portable_pool import travellers
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.pool_store import PoolStore
from pool_registry.storage.upgrade import open_engine
from pool_registry.wants import disarm_pool
from pool_registry.worker import Visible, WorkerSpec

HEAD = "---\nname: {name}\ndescription: {description}\nlicense: MIT\n---\n{body}"
SENT: list[str] = []
SkillMaker = Callable[..., str]


class ReaderConfig(AgentConfig):
    role: str = "You answer."
    max_visible_chars: int = 20_000
    max_tokens: int = 50
    asks: str = ""
    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()


class Reader(Agent[ReaderConfig]):
    """Asks what it is configured to ask, and answers "done" once a skill is in its prompt."""

    Config = ReaderConfig

    async def complete(self, messages: Sequence[Message], options: CompletionOptions = DEFAULT_OPTIONS) -> Completion:
        SENT.append(prompt_text(messages))
        text = self.config.asks if self.config.asks and "<skill" not in SENT[-1] else "done"
        return Completion(text, Usage(10, 5), SENT[-1])


@pytest.fixture(autouse=True)
def reader() -> Iterator[None]:
    before = dict(KINDS.built_in)
    SENT.clear()
    add_kind("reads_skills", Reader)
    yield
    KINDS.built_in.clear()
    KINDS.built_in.update(before)


@pytest.fixture
def make_skill(tmp_path: Path) -> SkillMaker:
    def make(name: str = "invoices", text: str | None = None, body: str = "Add the tax last.") -> str:
        folder = tmp_path / name
        folder.mkdir()
        whole = HEAD.format(name=name, description="Totals of invoices.", body=body) if text is None else text
        (folder / "SKILL.md").write_text(whole, encoding="utf-8")
        return str(folder)

    return make


def agent(folders: Sequence[str], asks: str = "", **more) -> WorkerSpec:
    config = {"asks": asks, "skills": list(folders)}
    return WorkerSpec(name="writer", kind="reads_skills", description="for tests", config=config, **more)


def call(spec: WorkerSpec, instruction: str = "What is due?") -> Observation:
    async def once() -> Observation:
        return await open_live_pool(Pool(name="p", workers=(spec,))).call(
            Action("writer", {"instruction": instruction})
        )

    return asyncio.run(once())


def parts(seen: Observation) -> list[tuple[str, str]]:
    assert seen.context is not None
    return [(part.origin, part.name) for part in seen.context.parts]


def test_an_agent_is_sent_the_descriptions_and_no_body_that_it_does_not_need(make_skill):
    seen = call(agent([make_skill()]))
    assert seen.value == "done" and len(SENT) == 1
    assert "- invoices: Totals of invoices." in SENT[0] and "Add the tax last" not in SENT[0]
    assert parts(seen) == [("role", ""), ("skills", ""), ("instruction", "")]


@pytest.mark.parametrize("asks", ["READ SKILL invoices", "**Read skill:** `invoices`\n", "read skill invoices."])
def test_a_body_is_read_when_the_agent_asks_and_both_requests_count(make_skill, asks):
    seen = call(agent([make_skill()], asks))
    assert seen.value == "done" and len(SENT) == 2 and seen.usage == Usage(20, 10)
    assert "Add the tax last." in SENT[1] and asks.strip() in SENT[1], "the trace shows what it asked and was given"
    assert seen.prompt == SENT[1]
    assert parts(seen) == [("role", ""), ("skills", ""), ("skills", "invoices"), ("instruction", "")]


@pytest.mark.parametrize("asks", ["READ SKILL payroll", "I would READ SKILL invoices first, but 42."])
def test_what_is_no_request_for_a_skill_of_its_own_is_the_answer(make_skill, asks):
    assert call(agent([make_skill()], asks)).value == asks and len(SENT) == 1


def test_a_skill_that_the_instruction_names_goes_along_at_once(make_skill):
    seen = call(agent([make_skill("tax-rules"), make_skill()]), "Use tax-rules: what is due?")
    assert len(SENT) == 1 and '<skill name="tax-rules">' in SENT[0] and '<skill name="invoices">' not in SENT[0]
    assert ("skills", "tax-rules") in parts(seen)


@pytest.mark.parametrize(
    ("instruction", "name"),
    [
        ("Do the Tax-Rules.", "tax-rules"),
        ("What is the tax-", "tax"),
        ("Syntax only; then tax", "tax"),
        ("Read my-tax-rules and taxes", None),
        ("The tax-rules-2 apply", None),
        ("", None),
    ],
)
def test_a_skill_is_named_by_a_word_of_its_own(instruction, name):
    skills = [Skill(name, "Rules.", "Add it.") for name in ("tax", "tax-rules")]
    skill = find_named(skills, instruction)
    assert (skill.name if skill else None) == name


def test_a_call_whose_longest_skill_cannot_fit_is_refused_and_the_model_is_not_asked(make_skill):
    seen = call(agent([make_skill(body="word " * 200)], context_tokens=300))
    assert seen.error.code == "context_too_long" and "longest skill" in seen.error.message and SENT == []
    assert call(agent([make_skill("short")], context_tokens=300)).ok


def test_outputs_leave_room_for_the_skill_that_may_be_read(make_skill):
    spec = agent([make_skill(body="word " * 200)], "READ SKILL invoices", context_tokens=900)

    async def once() -> Observation:
        pool = open_live_pool(Pool(name="p", workers=(spec,)))
        visible = (Visible(1, "sql", Observation(Status.OK, "x" * 9000)),)
        return await pool.call(Action("writer", {"instruction": "What is due?"}), visible)

    seen = asyncio.run(once())
    assert seen.ok and len(SENT) == 2 and len(SENT[1]) < 900 * 3
    assert sum(part.tokens for part in seen.context.parts) + 50 <= 900


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Add the tax last.", "has no frontmatter"),
        ("---\nname: invoices\n---\nbody", "description: this is missing"),
        ("---\nname: [\n---\nbody", "it is no YAML"),
        pytest.param(f"---\nname: {'[' * 20_000}\n---\nbody", "it is no YAML", id="deep"),
        ("---\nname: 2020-13-45\n---\nbody", "it is no YAML"),
        ("---\nname: !!timestamp soon\n---\nbody", "it is no YAML"),
        ("---\njust words\n---\nbody", "this must be an object"),
        ("---\nname: In Voices\ndescription: d\n---\nbody", "name: this has not the form"),
        ("---\nname: other\ndescription: d\n---\nbody", "calls itself 'other'"),
        (
            f"---\nname: invoices\ndescription: {'d' * 1025}\n---\nbody",
            "description: this has more than 1,024",
        ),
        ("---\nname: invoices\ndescription: d\n---\n  \n", "no text below"),
        (f"---\nname: invoices\ndescription: d\n---\n{'x' * (MAX_BODY_CHARS + 1)}", "split the skill"),
    ],
)
def test_a_folder_that_is_no_skill_says_why(make_skill, text, reason):
    with pytest.raises(InvalidSkill, match=reason):
        load_skill(make_skill(text=text))


def test_a_missing_folder_a_folder_without_the_file_and_a_name_twice_say_so(make_skill, tmp_path):
    with pytest.raises(InvalidSkill, match="cannot be read"):
        load_skill(str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidSkill, match=r"has no SKILL\.md"):
        load_skill(str(tmp_path / "empty"))
    folder = make_skill()
    with pytest.raises(InvalidSkill, match="two folders hold a skill 'invoices'"):
        load_skills([folder, folder])


def test_a_pool_is_not_saved_with_a_skill_that_cannot_be_used(make_skill, tmp_path):
    store = PoolStore(open_engine(find_home(tmp_path / "home")))
    broken = agent([str(tmp_path / "nowhere")])
    with pytest.raises(InvalidPool) as refusal:
        store.save(Pool(name="p", workers=(broken,)))
    assert refusal.value.problems[0][0] == "workers.0.config.skills"
    store.save(Pool(name="p", workers=(broken.model_copy(update={"enabled": False}),)))
    kept = Path(make_skill())
    pool = store.save(Pool(name="q", workers=(agent([str(kept)]),))).pool
    (kept / "SKILL.md").unlink()
    store.save(pool.model_copy(update={"description": "another change"}))  # what has gone since stops no other change
    seen = call(agent([str(kept)]))
    assert seen.error.code == "skill_missing" and "SKILL.md" in seen.error.message and SENT == []


def test_skills_of_an_imported_pool_wait_for_a_persons_consent_and_stay_here(make_skill):
    folder = make_skill()
    pool = Pool(name="p", workers=(agent([folder]),))
    safe, wants, _ = disarm_pool(pool)
    assert wants == {"writer": [f"reads the skill folder {folder} on this machine"]}
    assert not safe.workers[0].enabled
    assert travellers(pool).stays == (("writer", "its kind is no part of an installed package"),)
    chat = agent([folder]).model_copy(update={"kind": "chat", "config": {"model": "m", "skills": [folder]}})
    assert "skills lie in folders" in travellers(Pool(name="p", workers=(chat,))).stays[0][1]


def test_an_agent_with_tools_of_its_own_takes_no_skills(make_skill, tmp_path):
    spec = agent([make_skill()])
    both = spec.model_copy(update={"config": {**spec.config, "tools": ["other"]}})
    other = WorkerSpec(name="other", kind="calculator", description="for tests")
    with pytest.raises(InvalidPool, match="leave tools or skills empty"):
        PoolStore(open_engine(find_home(tmp_path / "home"))).save(Pool(name="p", workers=(both, other)))
