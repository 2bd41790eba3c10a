"""What a reader does after steps have failed: other workers, new arguments, or a plain end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.reader import bind_needs
from orchestrator.reader.fill import BoundNeed
from orchestrator.reader.refusal import refuse
from orchestrator.repairs import repeat_steps
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.language_models.completion import Completion, Message
from pool_registry.starter import starter_pool

DISTANCE = "distance between two airports"
CONVERT = "convert units of measure"
ASKED_KM = '{"value": 5, "from_unit": "parsnip", "to_unit": "km"}'
LHR_JFK = '{"route": "LHR to JFK"}'


class Script:
    """A model that writes these texts, one after the other, and keeps what it was shown."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.shown: list[list[Message]] = []
        self._texts = texts

    async def write(self, messages: list[Message], _grammar: object, _draw: object) -> Completion:
        self.shown.append(messages)
        return Completion(self._texts[len(self.shown) - 1])


@pytest.fixture(autouse=True)
def no_other_words(monkeypatch):
    """Here a rejected call goes to other workers at once; test_mend_calls.py has what is tried before."""
    monkeypatch.setattr(repeat_steps, "plan_trials", lambda *_: [])


@pytest.fixture
def rank(monkeypatch):
    """Set which workers a need is like, and how much."""

    def set_likeness(likeness: Mapping[str, Mapping[str, float]]) -> None:
        monkeypatch.setattr(
            bind_needs,
            "rank_workers",
            lambda need, workers: [
                BoundNeed(need, name, value)
                for name, value in likeness[need.text].items()
                if name in {worker.spec.name for worker in workers}
            ],
        )

    return set_likeness


def run(query: str, *texts: str) -> tuple[Episode, Script]:
    script, pool = Script(texts), open_live_pool(starter_pool())
    return asyncio.run(
        run_episode(EpisodeSpec(query), ReaderPolicy("r", pool, script.write, other_plans=0), pool)
    ), script


def list_calls(episode: Episode) -> list[tuple[int, str, bool]]:
    return [(k, run.step.worker, run.observation.ok) for k, run in episode.steps.items()]


def test_a_rejected_call_gives_the_next_worker_with_arguments_for_its_own_card(rank):
    rank({DISTANCE: {"units": 0.7, "great_circle": 0.6, "clock": 0.4}})
    episode, script = run("How far is JFK from LHR?", f"1. {DISTANCE}", f"1. {ASKED_KM}\n= $1", f"1. {LHR_JFK}\n= $1")
    assert list_calls(episode) == [(1, "units", False), (2, "great_circle", True)]
    assert episode.ended.outcome == "answered" and episode.answer == episode.steps[2].observation.value
    assert "great_circle(" in script.shown[2][-1].content and "units(" not in script.shown[2][-1].content
    assert episode.steps[2].step.need == DISTANCE


def test_only_what_failed_and_what_depends_on_it_is_called_again(rank):
    rank({DISTANCE: {"great_circle": 0.9}, CONVERT: {"calendar": 0.6, "units": 0.5}})
    needs = f"1. {DISTANCE}\n2. {CONVERT} (1)\n3. {CONVERT} (2)"
    # the third need is bound to the same wrong worker; it is never reached
    wrong = f'1. {LHR_JFK}\n2. {{"request": "in miles"}}\n3. {{"request": "$2"}}\n= $3'
    half = '2. {"value": "$1", "from_unit": "km", "to_unit": "mile"}'
    second = f'1. {LHR_JFK}\n{half}\n3. {{"request": "$2"}}\n= $2'
    third = f'1. {LHR_JFK}\n{half}\n3. {{"value": "$2", "from_unit": "mile", "to_unit": "km"}}\n= $3'
    episode, _ = run("JFK to LHR there and back in miles", needs, wrong, second, third)
    calls = list_calls(episode)
    assert [name for _, name, _ in calls] == ["great_circle", "calendar", "calendar", "units", "calendar"], calls
    assert dict(episode.steps[4].step.arguments)["value"] == "$1" and episode.steps[4].step.access == (1,)
    assert episode.steps[5].step.access == (4,)
    assert episode.answer == episode.steps[4].observation.value


def test_a_second_revision_counts_on_from_the_first(rank):
    rank({DISTANCE: {"units": 0.7, "calendar": 0.6, "great_circle": 0.5}, CONVERT: {"units": 0.9}})
    needs = f"1. {DISTANCE}\n2. {CONVERT} (1)"
    half = '2. {"value": "$1", "from_unit": "km", "to_unit": "mile"}\n= $2'
    fills = [f"1. {first}\n{half}" for first in (ASKED_KM, '{"request": "how far"}', LHR_JFK)]
    episode, _ = run("How far is JFK from LHR in miles?", needs, *fills)
    assert [name for _, name, _ in list_calls(episode)] == [
        "units",
        "units",
        "calendar",
        "units",
        "great_circle",
        "units",
    ]
    assert episode.steps[6].step.access == (5,) and episode.answer == episode.steps[6].observation.value


def test_a_need_that_is_not_much_like_any_worker_is_refused_when_all_rejected_it(rank):
    rank({"portrait of a guest": {"great_circle": 0.38, "calendar": 0.35}})
    fills = ('1. {"route": "the guest"}\n= $1', '1. {"request": "the guest"}\n= $1')
    episode, _ = run("Whose portrait hangs here? A guest's?", "1. portrait of a guest", *fills)
    assert episode.answer == refuse("portrait of a guest") and len(episode.steps) == 2


def test_a_need_that_is_much_like_a_worker_fails_with_what_the_worker_said(rank):
    rank({DISTANCE: {"great_circle": 0.9, "units": 0.38}})  # units is too unlike to be tried
    episode, script = run("How far is Zzyzx?", f"1. {DISTANCE}", '1. {"route": "Zzyzx to Nowhere"}\n= $1')
    assert episode.answer is None and len(script.shown) == 2
    assert "Zzyzx" in episode.ended.reason or "route" in episode.ended.reason


def test_a_need_that_another_step_was_served_with_is_not_refused(rank):
    rank({"way there": {"great_circle": 0.38}})
    needs, fill = "1. way there\n2. way there", f'1. {LHR_JFK}\n2. {{"route": "Zzyzx to Nowhere"}}\n= $2'
    episode, _ = run("How far is JFK from LHR, and Zzyzx from Nowhere?", needs, fill)
    assert episode.steps[1].observation.ok and episode.answer is None and "Zzyzx" in episode.ended.reason


def test_a_need_whose_call_was_given_the_output_of_a_wrong_step_is_not_refused(rank):
    rank({"way there": {"great_circle": 0.38}, "sum": {"calculator": 0.9}})
    fill = '1. {"expression": "1 + 1"}\n2. {"route": "$1"}\n= $2'
    episode, _ = run("How far is 1 + 1?", "1. sum\n2. way there (1)", fill)
    assert episode.answer is None and episode.ended.outcome == "orchestrator_failed"
