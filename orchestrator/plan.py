"""Steps, turns and their rules: which steps a step may see and quote.

An orchestrator emits turns: steps (a DAG whose edges are the access lists) and/or an answer. A step that breaks a rule
is marked as malformed (PARSE_ERR); the other steps of its turn run all the same. Only text that holds no turn at all,
or an answer that quotes a step that does not exist, is an error of the whole turn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from orchestrator.quotes import escape as escape
from orchestrator.quotes import references, renumber_quotes
from pool_registry.actions import NO_USAGE, JsonValue, Usage, as_text, storable
from pool_registry.calls.live_pool import LivePool, LiveWorker

_NUMBER = re.compile(r"[+-]?(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class WorkerChoice:
    """How the worker of a step was chosen `among` so many candidates (choice/): the estimated chance that it serves the
    need, the probability with which it was drawn (1: the best was taken), the score, and how many of the worker's
    outcomes that the score read were right."""

    success: float
    probability: float
    by: str
    among: int
    right: int
    of: int


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a plan and its access list: ids of earlier steps whose observation it may see.

    `problem` says why the step is malformed; such a step is recorded as PARSE_ERR and never run. `need` says in words
    what the step is for: a reader writes it before a worker is chosen (orchestrator/reader); "" elsewhere. `choice`
    says how the worker was chosen, where a score of outcomes did.
    """

    id: int
    worker: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    access: tuple[int, ...] = ()
    problem: str | None = None
    need: str = ""
    choice: WorkerChoice | None = None

    @property
    def references(self) -> frozenset[int]:
        """Return the ids of the steps that the arguments quote as `$k`."""
        return frozenset(references(self.arguments))

    def with_problem(self, problem: str) -> Step:
        """Return this step marked as PARSE_ERR; a problem that it has already stays."""
        return self if self.problem else replace(self, problem=problem)


@dataclass(frozen=True, slots=True)
class ShownWorkers:
    """The workers of a large pool that an orchestrator was shown (retrieval/choose_workers.py), in pool order with
    their scores for the query. `of` is how many workers the pool has, `by` the ranking method."""

    workers: Mapping[str, float]
    of: int
    by: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """One sentence about an earlier episode that failed on a similar query (failure_memory/), the similarity of that
    query (1 is the same) and its author: "rule", or an agent of the pool."""

    query: str
    sentence: str
    written_by: str
    episode: str
    similarity: float


@dataclass(frozen=True, slots=True)
class RecalledLessons:
    """The lessons that a pool's failure memory gave an orchestrator for its query, most similar first; may be empty.
    `of` is how many lessons the memory holds, `by` the measure of similarity."""

    lessons: tuple[Lesson, ...]
    of: int
    by: str


@dataclass(frozen=True, slots=True)
class BoundStep:
    """A step whose worker was bound by description (binding/): the name that the model wrote, the worker at hand that
    it stands for ("" where none is like it), how alike their descriptions are, and who chose: the equal name, meaning,
    words, or a person. `parameters` are those that are called otherwise at hand, as {learnt: at hand}."""

    step: int
    learnt: str
    worker: str
    likeness: float
    by: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Vote:
    """How a turn was chosen among `sampled` drawn ones (policies/options/voting.py): how many could not be read, failed
    when they were tried, and were not tried because a step may have effects; `votes` agreed with the chosen one.
    `answers` counts the votes of every answer, `chosen_answer` is the one that won: "" where the chosen plan did not
    run or failed. `chosen_usage` is what writing the chosen plan took; that of the turn is of all plans and trials. The
    oldest traces have neither. `incomplete` plans had no vote, and `unvoted` counts their answers: versions wrote them
    that doubted plans which leave out a figure or a name of the query, or have a step that does nothing."""

    sampled: int
    unreadable: int
    failed: int
    untried: int
    votes: int
    answers: Mapping[str, int]
    chosen_answer: str = ""
    chosen_usage: Usage | None = None
    incomplete: int = 0
    unvoted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerConfidence:
    """The chance of an answer to be right, by what is known of the `agents` that gave their answers to its question
    (choice/weigh_answers.py), and the score that knows. `answers`: the chance of each different one by its first
    characters; empty where one agent answers alone."""

    probability: float
    by: str
    agents: int
    answers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class OutOfDepth:
    """How unlike everything that a checkpoint learnt a query and its pool are (out_of_depth/), judged before its first
    turn by their words alone: it says nothing about a plan or an answer. `probability` is the calibrated one that a
    query with such words is none of those that the checkpoint learnt to plan; then come the cosine of the most similar
    learnt query, the share of the learnt workers for which the pool has none, and, of a checkpoint that reads the pool,
    the likeness of the query to the most similar worker."""

    probability: float
    nearest: float
    missing: float = 0.0
    likeness: float | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """The output of an orchestrator: `steps` and/or `answer`, or `error` where it could not be parsed.

    `text` is the raw output, `prompt` the orchestrating model's input. `failed`: the orchestrator itself could not
    answer (its endpoint is down ...), so there is no point in asking again. An episode's first turn holds `shown`
    where not all workers were in the prompt, `recalled` where the pool's failure memory is on, and `out_of_depth` where
    it is known what the orchestrator learnt. `bindings` has the steps whose worker's name the model learnt on another
    pool.
    `note`: what of the request the model could not do. `vote`: how it was chosen among several. `draft`: an answer
    that did not end the episode, because a recursive orchestrator looks at it once more.
    `trial`: its steps try other words in place of calls that were rejected (repairs/mend_calls.py). `repairs`: the
    names of those that changed it or had it written again (repairs/table.py). `confidence`: how likely its answer is
    right, where a score of outcomes says that.
    """

    steps: tuple[Step, ...] = ()
    answer: JsonValue = None
    error: str | None = None
    text: str = ""
    prompt: str | None = None
    usage: Usage = NO_USAGE
    failed: bool = False
    shown: ShownWorkers | None = None
    recalled: RecalledLessons | None = None
    note: str = ""
    bindings: tuple[BoundStep, ...] = ()
    vote: Vote | None = None
    out_of_depth: OutOfDepth | None = None
    draft: JsonValue = None
    trial: bool = False
    repairs: tuple[str, ...] = ()
    confidence: AnswerConfidence | None = None

    @property
    def has_answer(self) -> bool:
        return self.answer is not None


def renumber_step(step: Step, ids: Mapping[int, int]) -> Step:
    """`step` as `ids[step.id]`, with the steps that it quotes and may see renumbered, too."""
    arguments = {name: renumber_quotes(value, ids) for name, value in step.arguments.items()}
    return replace(step, id=ids[step.id], arguments=arguments, access=tuple(ids.get(k, k) for k in step.access))


def renumber_turn(turn: Turn, first_id: int) -> Turn:
    """`turn` with its steps counted from `first_id` on, and its answer quoting them so."""
    ids = {step.id: first_id + place for place, step in enumerate(turn.steps)}
    steps = tuple(renumber_step(step, ids) for step in turn.steps)
    return replace(turn, steps=steps, answer=renumber_quotes(turn.answer, ids))


def check_turn(
    turn: Turn, pool: LivePool, earlier: Collection[int], workers: Mapping[int, str] = MappingProxyType({})
) -> Turn:
    """`turn` with every malformed step marked, checked against the pool and the step ids of earlier rounds.

    An answer that quotes an unknown step makes the whole turn an error. Its steps are dropped, so that the next
    turn may write them again under the same numbers. `workers` are those of earlier steps, for limits on who may see
    what they returned.
    """
    if turn.error is not None:
        return replace(turn, steps=())
    earlier_ids = set(earlier)
    steps = []
    for step in turn.steps:
        if step.id in earlier_ids:
            return replace(turn, steps=(), draft=None, error=f"there is a step {step.id} already; ids count on")
        steps.append(check_step(step, pool, earlier_ids))
        earlier_ids.add(step.id)
    steps = check_readers(steps, pool, workers)
    try:
        answer = storable(turn.answer)
    except (ValueError, RecursionError) as error:  # a bug of a policy: dialects have checked their answers
        return replace(turn, steps=(), answer=None, error=f"the answer cannot be kept: {error}")
    unknown = (references(answer) | references(turn.draft)) - earlier_ids
    if unknown:
        message = f"the answer quotes {_join_ids(unknown, '$')}, but there is no such step"
        return replace(turn, steps=(), draft=None, error=message)
    return replace(turn, steps=tuple(steps), answer=answer)


def check_step(step: Step, pool: LivePool, earlier_ids: Collection[int]) -> Step:
    """`step`, marked when it breaks a rule that is decidable before it runs."""
    worker = pool.workers.get(step.worker)
    if worker is None:
        return step.with_problem(pool.unknown_worker(step.worker))
    step = with_shorthand(step, worker)
    for k in step.access:
        if k not in earlier_ids:
            what = "itself" if k == step.id else f"step {k}, which is not an earlier step"
            return step.with_problem(f"step {step.id} may not see {what}; access takes ids of earlier steps")
    quoted = step.references
    hidden = quoted.difference(step.access)
    if hidden:
        return step.with_problem(
            f"{_join_ids(hidden, '$')} is used but not in access; add {_join_ids(hidden)} to access"
        )
    problem = None if quoted else worker.argument_problem(step.arguments)
    return step.with_problem(problem) if problem and pool.coerce(worker, step.arguments) is None else step


def check_readers(steps: Sequence[Step], pool: LivePool, workers: Mapping[int, str]) -> list[Step]:
    """The steps, each marked whose access list has an output that its worker may not see in this run. `workers` are
    those of other steps."""
    if not pool.run_limits.seen_by:
        return list(steps)
    sources = {**workers, **{step.id: step.worker for step in steps}}
    return [_check_reader(step, pool, sources) for step in steps]


def _check_reader(step: Step, pool: LivePool, workers: Mapping[int, str]) -> Step:
    sources = [(k, workers[k]) for k in step.access if k in workers]
    problem = pool.run_limits.explain_hidden(step.worker, sources)
    return step.with_problem(f"{problem}; take it out of access") if problem else step


def with_shorthand(step: Step, worker: LiveWorker) -> Step:
    """`step` with `instruction` renamed to the worker's one required string parameter, where it has one."""
    name = worker.instruction_parameter
    if name is None or name == "instruction" or step.arguments.keys() != {"instruction"}:
        return step
    return replace(step, arguments={name: step.arguments["instruction"]})


def fit_arguments(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Arguments, after `$k` was replaced, in the types of the schema where that loses nothing: for a string
    parameter a value becomes its text, for a number parameter "42.5" becomes 42.5."""
    properties = schema.get("properties")
    rules = properties if isinstance(properties, Mapping) else {}
    return {name: _fit(value, _type_of(rules.get(name))) for name, value in arguments.items()}


def _type_of(rule: object) -> object:
    return rule.get("type") if isinstance(rule, Mapping) else None  # a rule may also be just `true`


def _fit(value: JsonValue, expected: object) -> JsonValue:
    if expected == "string" and not isinstance(value, str):
        return as_text(value)
    if expected in ("number", "integer") and isinstance(value, str) and len(value) < 100:
        return _number(value.strip())
    return value


def _number(text: str) -> JsonValue:
    """The number that a text holds ("1,234.5" too); the text itself where JSON has no such number."""
    if not _NUMBER.fullmatch(text):
        return text
    digits = text.replace(",", "")
    if digits.lstrip("+-").isdigit():
        return int(digits)
    number = float(digits)
    if not math.isfinite(number):
        return text
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _join_ids(ids: Collection[int], prefix: str = "") -> str:
    return ", ".join(f"{prefix}{k}" for k in sorted(ids))
