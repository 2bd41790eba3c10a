"""What the page says of a prompt: the parts of an agent's call, and those of an orchestrator's turn."""

from __future__ import annotations

from orchestrator.engine.episode import StepRun
from orchestrator.engine.events import StepEnded, dump_event, load_event
from orchestrator.plan import Lesson, RecalledLessons, Step, Turn
from pool_registry.actions import ContextPart, ContextUse, Observation, Status
from studio.episode_documents.context import describe_use, estimate_turn_context


def test_outputs_are_named_by_step_and_worker_and_say_how_they_were_shortened():
    parts = (ContextPart("instruction", 5, 5), ContextPart("output", 40, 900, 2, "summary"))
    found = describe_use(ContextUse(parts, 400, 50), {2: StepRun(Step(2, "sql"), 1)})
    assert [(part.label, part.tokens, part.whole, part.cut) for part in found.slices] == [
        ("Instruction", 5, 5, ""),
        ("Step 2 · sql", 40, 900, "summary"),
    ]
    assert (found.limit, found.reply) == (400, 50)


def test_skills_are_an_origin_of_their_own_in_the_trace_too():
    parts = (ContextPart("skills", 30, 30), ContextPart("skills", 200, 200, name="invoices"))
    event = StepEnded(1, Observation(Status.OK, "42", context=ContextUse(parts)), 0.5)
    stored = load_event(dump_event(event))
    assert stored == event
    found = describe_use(stored.observation.context, {})
    assert [(part.origin, part.label) for part in found.slices] == [
        ("skills", "Agent skills"),
        ("skills", "Agent skill invoices, read"),
    ]


def test_a_turns_prompt_is_split_into_rules_query_memory_and_earlier_rounds():
    lesson = Lesson("old", "Convert acres first.", "rule", "e0", 0.9)
    prompt = (
        "[system]\nThe rules and the workers of the pool.\n\n"
        "[user]\nNotes: Convert acres first.\n\nHow large is it?\n\n"
        "[assistant]\n{...}\n\n[user]\nStep 1 OK: 42"
    )
    turn = Turn(prompt=prompt, recalled=RecalledLessons((lesson,), 1, "words"))
    found = estimate_turn_context(turn, "How large is it?")
    sizes = {part.origin: part.tokens for part in found.slices}
    assert set(sizes) == {"workers", "instruction", "memory", "history"}
    assert sizes["history"] > sizes["instruction"] > 0 and sizes["memory"] > 0
    assert estimate_turn_context(Turn(), "q") is None
