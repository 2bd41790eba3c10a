"""The Pool page's commands on skills: those of the pool, those that its runs and tasks make, and adding one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pool_registry.errors import InvalidPool
from pool_registry.worker import WorkerSpec
from pool_registry.workers.skill import SkillConfig
from studio.frame.commands import Fields, PageCommands, PageReply, command, text
from studio.pages.pool.edits import Edit
from studio.pages.pool.schema import SkillLine, SkillsDocument
from studio.runtime import Runtime
from trainer.errors import UnusableTasks
from trainer.skills.find import SkillCandidate, check_skill, choose_skill, find_skills, list_skills

SHOWN_QUESTIONS = 4
NONE_MADE = (
    "No plan skill more: it takes two right runs, or tasks with plans, whose plans differ in stated values alone."
)


class SkillCommands(PageCommands):
    """Commands by name; `edit` changes a pool, saves it and answers with the page's new state."""

    def __init__(self, runtime: Runtime, edit: Edit) -> None:
        self._store = runtime.store
        self._edit = edit

    @command("viewer", "skills")
    def _show(self, fields: Fields) -> PageReply:
        return PageReply("", {"skills": self._build(fields)})

    @command("editor", "find_skills")
    def _find(self, fields: Fields) -> PageReply:
        """Find and test skills. Calls workers whose calls have no effects, and those that are `allowed`."""
        candidates = self._search(fields)
        return PageReply("" if candidates else NONE_MADE, {"skills": self._build(fields, candidates)})

    @command("editor", "add_skill", edits_pool=True)
    def _add(self, fields: Fields) -> PageReply:
        """Find and test skills again, and put one into the pool."""
        skill = choose_skill(self._search(fields), text(fields, "pool"), text(fields, "name"))
        reply = self._edit(fields, lambda pool: pool.with_worker(skill.spec), "")
        return reply.extend(skills=self._build(fields))

    @command("editor", "remove_skill", edits_pool=True)
    def _remove(self, fields: Fields) -> PageReply:
        """Take a skill out of the pool; earlier versions keep it."""
        pool, name = text(fields, "pool"), text(fields, "name")
        check_skill(self._store.pools.latest(pool).pool, name)
        reply = self._edit(fields, lambda current: current.without_worker(name), "")
        return reply.extend(skills=self._build(fields))

    def _search(self, fields: Fields) -> Sequence[SkillCandidate]:
        allowed = fields.get("allowed") or []
        if not isinstance(allowed, list) or not all(isinstance(name, str) for name in allowed):
            raise InvalidPool([("allowed", "give a list of names of workers")])
        try:
            return find_skills(self._store, text(fields, "pool"), allowed)
        except UnusableTasks as error:
            raise InvalidPool([("", str(error))]) from error

    def _build(self, fields: Fields, candidates: Sequence[SkillCandidate] = ()) -> Mapping[str, object]:
        pool = self._store.pools.latest(text(fields, "pool")).pool
        document = SkillsDocument(
            skills=[build_line(spec) for spec in list_skills(pool)],
            candidates=[build_line(row.spec, row.questions, row.problem) for row in candidates],
        )
        return document.to_json()


def build_line(spec: WorkerSpec, questions: Sequence[str] = (), problem: str = "") -> SkillLine:
    """What the drawer shows of a skill."""
    config = SkillConfig.model_validate(spec.config)
    properties = config.parameters.get("properties")
    return SkillLine(
        name=spec.name,
        description=spec.description,
        parameters=list(properties) if isinstance(properties, Mapping) else [],
        steps=[step.worker for step in config.steps],
        record=config.record.describe() if config.record else "",
        questions=list(questions[:SHOWN_QUESTIONS]),
        problem=problem,
    )
