"""Mend a call that its worker rejected: the same worker with other words, all tried side by side.

A small model often chooses the right worker and hands it too much ("kilos of salmon" for salmon), another noun of the
query, or the name of a thing one step away (paella, where its main ingredient is meant). A look-up says so at once.
Tried are the rejected word with its neighbours in the query, parts of the rejected value, other words of the query, and
what another worker returns for the value: one that the query names, or that is like the description of the parameter.
The first call that the worker accepts takes the place of the rejected one (repeat_steps.py). Nothing is tried that may
have effects or that costs money.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.engine.episode import StepRun
from orchestrator.plan import Step
from orchestrator.quotes import escape
from orchestrator.reader.bind_needs import rank_workers
from orchestrator.reader.cards import describe_whole, quote_example
from orchestrator.reader.needs import Need
from orchestrator.reader.thresholds import THRESHOLDS
from orchestrator.repairs.named_workers import has_content, list_named
from orchestrator.retrieval.choose_workers import content_words
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool, LiveWorker

MAX_VALUES = 3  # other values that are tried for a parameter
NAME_WORDS = 2  # an example of more words is no name
PROGRAMS = {"code", "query", "sql"}  # arguments that are no names, whatever their example is
SUBJECT_WORDS = 3  # a value of more words is no name of one thing
MAX_SEARCHED_CHARS = 20_000  # of a query, from its end: there is the question of a long conversation
MAX_BRIDGES = 2  # workers that a rejected value is handed to first, and as many more that the query names:
MAX_NAMED = 2
_WORD = re.compile(r"[^\W_](?:[\w.:/@-]*[^\W_])?")  # T-101 and 2025-03-31 are one word
_AFTER_APOSTROPHE = re.compile(r"\w['\u2019]$")  # not after one that opens a quotation
_CAPITALIZED = r"[A-Z][\w-]*"
_NAME = re.compile(rf"{_CAPITALIZED}(?: {_CAPITALIZED})*")  # also a single word, so that none is read twice


@dataclass(frozen=True, slots=True)
class _Trial:
    """A call to be tried, and the call of another worker whose output it takes, if any."""

    call: Step
    before: Step | None = None


def plan_trials(query: str, rejected: Sequence[StepRun], runs: Iterable[StepRun], pool: LivePool) -> list[Step]:
    """The calls to try in place of the rejected ones, with ids from 1 on; of all `runs` of the episode none is
    repeated. Blocks: call it from a thread."""
    query = query[-MAX_SEARCHED_CHARS:]
    calls = {_key(run.step) for run in runs}
    steps: list[Step] = []
    for run in rejected:
        for trial in _list_trials(query, run, pool) if _is_meant(run.step, pool) else ():
            if _key(trial.call) in calls:
                continue
            if trial.before is None:
                calls.add(_key(trial.call))
                steps.append(replace(trial.call, id=len(steps) + 1))
            else:
                steps += _link(trial.before, trial.call, len(steps) + 1)
    return steps


def choose_mended(rejected: StepRun, trials: Iterable[StepRun]) -> StepRun | None:
    """The first tried call that the worker of a rejected one accepted; None where it accepted none."""
    step = rejected.step
    same = (run for run in trials if run.step.worker == step.worker and run.step.need == step.need)
    return next((run for run in same if run.observation is not None and run.observation.ok), None)


def _is_meant(step: Step, pool: LivePool) -> bool:
    """Whether a step's need is so much like its worker that the words are more likely to be wrong than the worker."""
    likeness = {item.worker: item.likeness for item in rank_workers(Need(step.need), list(pool.workers.values()))}
    return likeness.get(step.worker, 0.0) >= THRESHOLDS.is_sure


def _key(step: Step) -> tuple[str, str]:
    return step.worker, repr(sorted(step.arguments.items()))


def _link(before: Step, call: Step, first_id: int) -> tuple[Step, Step]:
    """The two calls, the second of which takes the output of the first."""
    arguments = {name: f"${first_id}" if value is None else value for name, value in call.arguments.items()}
    return replace(before, id=first_id), replace(call, id=first_id + 1, arguments=arguments, access=(first_id,))


def _list_trials(query: str, rejected: StepRun, pool: LivePool) -> Iterator[_Trial]:
    """The calls with other texts. An output that was passed on has no other words."""
    step = rejected.step
    worker = pool.workers.get(step.worker)
    if worker is None or step.references or not may_be_tried(worker):
        return
    for name, value in _list_at_fault(rejected, _find_texts(step, worker)).items():
        for other in list_values(query, value):
            arguments = {**step.arguments, name: escape(other)}
            if worker.argument_problem(arguments) is None:
                yield _Trial(Step(0, step.worker, arguments, need=step.need))
        described = f"{name.replace('_', ' ')} {_rule(worker, name).get('description', '')}".strip()
        call = Step(0, step.worker, {**step.arguments, name: None}, need=step.need)
        for subject in _choose_subjects(query, value):
            for other, parameter in _list_bridges(query, described, step.worker, name, pool):
                yield _Trial(call, Step(0, other, {parameter: escape(subject)}, need=described))


def _find_texts(step: Step, worker: LiveWorker) -> dict[str, str]:
    """The arguments of a call that are free texts."""
    return {
        name: value
        for name, value in step.arguments.items()
        if isinstance(value, str)
        and not _rule(worker, name).get("enum")
        and _rule(worker, name).get("type", "string") == "string"
        and not _takes_phrase(worker, name)
    }


def _list_at_fault(rejected: StepRun, texts: dict[str, str]) -> dict[str, str]:
    """Of several texts of a rejected call the one that the worker names in its error, if it names one; else all."""
    error = rejected.observation.error if rejected.observation is not None else None
    message = error.message.casefold() if error is not None else ""
    at_fault = {name: value for name, value in texts.items() if value.casefold() in message}
    return at_fault if len(at_fault) == 1 else texts


def list_values(query: str, value: str) -> list[str]:
    """Other values for an argument, the likeliest first: the rejected one with the word of the query before or after
    it, names and words within it, then those of the rest of the query, from its end."""
    inside = _list_names(value) if value.casefold() in query.casefold() else []
    values = dict.fromkeys([*inside, *_list_names(query)])
    others = [name for name in values if name.casefold() != value.casefold()][:MAX_VALUES]
    return list(dict.fromkeys([*_lengthen(query, value), *others]))


def _lengthen(query: str, value: str) -> list[str]:
    """A word of the query with the one before it, and with the one after it: "north" may be half of "north hive"."""
    words = _find_words(query)
    texts = [word.group().casefold() for word in words]
    if value.casefold() not in texts:
        return []
    place = texts.index(value.casefold())
    pairs = [words[k : k + 2] for k in (place - 1, place) if k >= 0]
    return [
        query[pair[0].start() : pair[1].end()]
        for pair in pairs
        if len(pair) == 2
        and query[pair[0].end() : pair[1].start()].isspace()
        and all(has_content(word.group()) for word in pair)
        and not pair[0].group().isdigit()
    ]


def _choose_subjects(query: str, value: str) -> list[str]:
    """What another worker is asked about: the rejected value where it is a few words of the query ("ave verum"), and
    the likeliest word or name within it; else that of the query."""
    is_quoted = value.casefold() in query.casefold()
    names = _list_names(value) if is_quoted else []
    whole = [value] if is_quoted and 1 < len(value.split()) <= SUBJECT_WORDS else []
    return list(dict.fromkeys([*whole, *(names or list_values(query, value))[:1]]))


def _list_names(text: str) -> list[str]:
    """What may be the name of something in a text: names of several words, then words that look like names (a capital
    within the text, a digit), then the others but for those that only join words. Each from the end."""
    words = [match for match in _find_words(text) if has_content(match.group())]
    special = [match.group() for match in words if _looks_like_name(match)]
    plain = [match.group() for match in words]
    names = [name for name in _NAME.findall(text) if " " in name]
    return list(dict.fromkeys([*reversed(names), *reversed(special), *reversed(plain)]))


def _find_words(text: str) -> list[re.Match[str]]:
    """The words of a text in their order, without the s of "hive's"."""
    return [match for match in _WORD.finditer(text) if not _follows_apostrophe(text, match.start())]


def _follows_apostrophe(text: str, place: int) -> bool:
    """Whether an apostrophe within a word, or it and a line break, stand before a place."""
    return _AFTER_APOSTROPHE.search(text, max(0, place - 3), place) is not None


def _looks_like_name(match: re.Match[str]) -> bool:
    word = match.group()
    has_digit = any(letter.isdigit() for letter in word)
    return (match.start() > 0 and word[0].isupper()) or (has_digit and any(letter.isalpha() for letter in word))


def _list_bridges(query: str, described: str, taker: str, goal: str, pool: LivePool) -> list[tuple[str, str]]:
    """The workers, with the name of their one parameter, that may return what the parameter `goal` of the worker
    `taker` is described as: those that the query names beside it, then those that are most like the description. What
    takes a parameter of that name itself does not return it."""
    parameters = {name: _name_parameter(worker) for name, worker in pool.workers.items() if name != taker}
    takers = {name: parameter for name, parameter in parameters.items() if parameter not in (None, goal)}
    named = list_named(query, pool.workers, set(content_words(describe_whole(pool.workers[taker]))))
    likely = [item.worker.spec.name for item in named if item.worker.spec.name in takers][:MAX_NAMED]
    ranked = rank_workers(Need(described), [pool.workers[name] for name in takers])
    names = dict.fromkeys([*likely, *(item.worker for item in ranked[:MAX_BRIDGES])])
    return [(name, takers[name]) for name in names]


def _name_parameter(worker: LiveWorker) -> str | None:
    """The parameter of a look-up that takes one text; None for other workers, and those that may not be tried."""
    required = worker.parameters.get("required")
    if not may_be_tried(worker) or not isinstance(required, list | tuple) or len(required) != 1:
        return None
    name = str(required[0])
    rule = _rule(worker, name)
    fits = rule.get("type") == "string" and not rule.get("enum") and not _takes_phrase(worker, name)
    return name if fits else None


def _takes_phrase(worker: LiveWorker, name: str) -> bool:
    """Whether an argument is a request, a statement or a program, by the example of the worker: no word of the query
    can stand for it."""
    quoted = re.findall(r"'([^']+)'", quote_example(worker))
    samples = [str(worker.worker.sample.get(name, "")), *quoted]
    return name in PROGRAMS or any(len(sample.split()) > NAME_WORDS for sample in samples)


def may_be_tried(worker: LiveWorker) -> bool:
    """Whether a call of a worker costs nothing and changes nothing."""
    return worker.role == "tool" and not worker.has_effects and not worker.spec.has_price


def _rule(worker: LiveWorker, name: str) -> Mapping[str, JsonValue]:
    properties = worker.parameters.get("properties")
    rule = properties.get(name) if isinstance(properties, Mapping) else None
    return rule if isinstance(rule, Mapping) else {}
