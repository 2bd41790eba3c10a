"""Tasks, slow workers, and a model whose tokens are forced: every contender writes the same plans.

The model really generates: a logits processor only leaves each row the one token that it has to say next.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from random import Random
from typing import Any

from bench.support.small_presets import ModelShape
from bench.support.tiny_base import ASSISTANT, PAD, build_model, build_tokenizer, invent_name
from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.engine.events import TaskRef
from orchestrator.plan import Step, Turn
from pool_registry.kinds import add_kind
from pool_registry.language_models.model_files import pick_device
from pool_registry.pool import Pool
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec, one_string
from trainer.learner.token_transcript import ChatTokens
from trainer.tasks.task import Task
from trainer.tasks.verifier import ExactText

SEED = 5
LIMIT = 512  # tokens of a turn; none is as long
NAMED = "Task #"  # one token; the number of the task is the next one
CALL = '<tool_call>{"name": "slow", "arguments": {"instruction": "'
PIECES = [NAMED, '{"worker": "slow", "instruction": "', CALL, "}</tool_call>", '", "access": [', "]}], ", "done"]
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<|assistant|>{{ m.content }}"
    '{% for c in m.tool_calls or [] %}<tool_call>{"name": "{{ c.function.name }}", "arguments": '
    "{{ c.function.arguments | tojson }}}</tool_call>{% endfor %}<|end|>"
    "{% else %}<|user|>{{ m.content }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
RESPONSE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|assistant|>",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close": "<|end|>", "content": "text"},
    },
}


# The work: plans and workers


class Slow(Worker[NoConfig]):
    """Takes the time that `draw_latency` draws for its instruction, and counts its calls."""

    scale = 1.0
    calls = 0

    @property
    def parameters(self) -> Mapping[str, Any]:
        return one_string("instruction", "what to look up")

    async def call(self, call: Call) -> Reply:
        return Reply(await look_up(call.text("instruction")))


add_kind("slow", Slow)
POOL = Pool(name="bench", workers=(WorkerSpec(name="slow", kind="slow", description="looks up", max_concurrency=1024),))


async def look_up(instruction: str) -> str:
    """What a step of every contender does."""
    Slow.calls += 1
    await asyncio.sleep(Slow.scale * draw_latency(instruction))
    return f"found {len(instruction)}"


def draw_latency(instruction: str) -> float:
    return Random(f"{SEED} {instruction}").uniform(0.05, 0.8)


@cache
def draw_turns(task: int, variant: int) -> tuple[Turn, Turn]:
    """The two turns of an episode on a task; a group's episodes are its variants."""
    random = Random(f"{SEED} {task} {variant}")
    first = _draw_steps(random, task, variant, 1)
    second = _draw_steps(random, task, variant, 1 + len(first))
    return Turn(first), Turn(second, answer=f"${second[-1].id}")


def _draw_steps(random: Random, task: int, variant: int, first: int) -> tuple[Step, ...]:
    """2 or 3 steps, in a chain, side by side, or two side by side and one that sees both."""
    count = random.choice((2, 3))
    ids = range(first, first + count)
    shapes: list[list[tuple[int, ...]]] = [[(), *((k,) for k in ids[:-1])], [()] * count]
    if count == 3:
        shapes.append([(), (), (ids[0], ids[1])])
    access = random.choice(shapes)
    return tuple(
        Step(k, "slow", {"instruction": _invent_instruction(random, f"{task}-{variant}-{k}")}, seen)
        for k, seen in zip(ids, access, strict=True)
    )


def _invent_instruction(random: Random, name: str) -> str:
    return " ".join([name, *(invent_name(random) for _ in range(random.randint(1, 5)))])


def compute_critical_path(turn: Turn) -> float:
    ends: dict[int, float] = {}
    for step in turn.steps:
        taken = Slow.scale * draw_latency(str(step.arguments["instruction"]))
        ends[step.id] = taken + max((ends[k] for k in step.access), default=0.0)
    return max(ends.values())


def make_tasks(count: int) -> list[Task]:
    def query(number: int) -> str:
        random = Random(f"{SEED} {number}")
        return f"{NAMED}{number}: look up {', '.join(invent_name(random) for _ in range(6))}"

    return [Task(TaskRef("bench", 1, number, "train"), query(number), ExactText("found 1")) for number in range(count)]


# The model: real generation, forced tokens


class Script:
    """Knows what every row has to say next. `plain` is our dialect, otherwise tool calls."""

    def __init__(self, tokenizer: Any) -> None:
        self.chat = ChatTokens(tokenizer)
        self.tokenizer = tokenizer
        self._named, self._opened = tokenizer.convert_tokens_to_ids([NAMED, ASSISTANT])
        self.start(plain=True)

    def start(self, plain: bool) -> None:
        self._plain = plain
        self._begun: Counter[int] = Counter()
        self._turns: dict[tuple[int, int], list[list[int]]] = {}

    def encode_turns(self, task: int, variant: int) -> list[list[int]]:
        """The tokens of an episode's turns. The first one is the variant's number."""
        key = task, variant
        if key not in self._turns:
            first, second = draw_turns(task, variant)
            texts = (
                [self._format_turn(first), self._format_turn(second)]
                if self._plain
                else [_format_calls(first), _format_calls(second), "done"]
            )
            self._turns[key] = [self.chat.encode_turn(text) for text in [f"{variant} {texts[0]}", *texts[1:]]]
        return self._turns[key]

    def _format_turn(self, turn: Turn) -> str:
        return PlanDialect().format(turn, ())

    def find_rest(self, row: list[int]) -> list[int]:
        """What a row has still to say in its present turn."""
        task = int(self.tokenizer.decode([row[row.index(self._named) + 1]]))
        opened = [at for at, token in enumerate(row) if token == self._opened]
        written = row[opened[-1] + 1 :]
        if row[-1] == self._opened and len(opened) == 1:
            variant = self._begun[task]
            self._begun[task] += 1
        else:
            variant = int(self.tokenizer.decode([row[opened[0] + 1]]))
        return self.encode_turns(task, variant)[len(opened) - 1][len(written) :]


def _format_calls(turn: Turn) -> str:
    return "".join(f'{CALL}{step.arguments["instruction"]}"}}}}</tool_call>' for step in turn.steps)


class ForcedTokens:
    """A logits processor that leaves each row the one token that it has to say."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._rests: list[list[int]] = []

    def __call__(self, ids: Any, scores: Any) -> Any:
        import torch

        if not self._rests:
            self._rests = [self._script.find_rest(row)[::-1] for row in ids.tolist()]
        pad = self._script.tokenizer.pad_token_id
        forced_ids = torch.tensor([[rest.pop() if rest else pad] for rest in self._rests], device=scores.device)
        return torch.full_like(scores, -torch.inf).scatter_(1, forced_ids, 0.0)


@dataclass(slots=True)
class GenerationClock:
    """How long the model's generate() took, all in all, and how often it was called."""

    busy_s: float = 0.0
    batches: int = 0


def build_scripted_model(shape: ModelShape | None = None) -> tuple[Any, Script, GenerationClock]:
    """The tiny model, or a random Qwen3 of another `shape`, on the GPU if there is one."""
    from transformers import LogitsProcessorList

    tokenizer = build_tokenizer([*make_tasks(64), *_make_samples()])
    tokenizer.add_tokens(PIECES)
    tokenizer.chat_template = TEMPLATE
    tokenizer.response_template = RESPONSE
    model = build_model(tokenizer, SEED) if shape is None else build_random_model(tokenizer, shape)
    model, script, clock = model.to(pick_device("auto")), Script(tokenizer), GenerationClock()
    generate = model.generate

    def generate_forced(*args: Any, **settings: Any) -> Any:
        started = time.perf_counter()
        try:
            script_alone = {"logits_processor": LogitsProcessorList([ForcedTokens(script)])}  # in place of any draw
            return generate(*args, **(settings | script_alone))
        finally:
            clock.busy_s += time.perf_counter() - started
            clock.batches += 1

    model.generate = generate_forced
    assert tokenizer.pad_token == PAD
    return model, script, clock


def build_random_model(tokenizer: Any, shape: ModelShape) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    ends = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    return AutoModelForCausalLM.from_config(
        AutoConfig.for_model("qwen3", vocab_size=len(tokenizer), **asdict(shape), **ends)
    ).to(torch.bfloat16)


def _make_samples() -> Iterable[Task]:
    """Texts from which the tokenizer learns what made-up names are built of."""
    random = Random(SEED)
    for number in range(500):
        yield Task(
            TaskRef("bench", 1, number, "train"), " ".join(invent_name(random) for _ in range(8)), ExactText("x")
        )
