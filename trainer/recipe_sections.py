"""The sections of a recipe: what the Train page's form shows, with a description for every field.

A field's key in the YAML is its name here. Figures marked "Conductor" are from arXiv 2512.04388, those marked
"ParaManager" from arXiv 2604.17009.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
)

from orchestrator.checkpoints import find_checkpoint
from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import MAX_SAMPLES
from orchestrator.prompt_styles import PromptStyle
from orchestrator.reader.cards import ListingFormat, make_listing_format
from orchestrator.repairs.table import ALL, EVERY_REPAIR, in_table_order, leave_out
from pool_registry.worker import NAME_PATTERN
from trainer.job_place import HERE, UnpaidPlaceText
from trainer.tasks.task_conditions import CONDITIONS, CONDITIONS_TEXT

Share = Annotated[float, Field(ge=0, le=1)]


class RecipeSection(BaseModel):
    """The base of a recipe's sections: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class LoraSettings(RecipeSection):
    """Low-rank adapters, through PEFT."""

    rank: int = Field(default=16, ge=1, le=512, description="Rank of the update matrices.")
    alpha: int = Field(default=32, ge=1, description="Scale: the update counts alpha / rank.")
    dropout: Share = Field(default=0.0, description="Dropout on the adapter's input.")
    targets: str | list[str] = Field(default="all-linear", description="Layers that get an adapter.")


class ModelSettings(RecipeSection):
    """The model that learns, and the format of its prompts and turns."""

    base: str = Field(
        default="starter:tiny",
        min_length=1,
        description="starter:tiny, starter:smollm2, a folder, or hub:owner/name.",
        examples=["starter:tiny", "starter:smollm2", "hub:Qwen/Qwen3-4B", "hub:Qwen/Qwen2.5-7B-Instruct"],
    )
    start: str = Field(default="", description="A checkpoint to continue from, such as JOB@STEP; empty for the base.")
    lora: LoraSettings | None = Field(default=None, description="Adapter; empty trains every weight.")
    precision: Literal["float32", "bfloat16", "auto"] = Field(
        default="float32",
        description="Of the computation, and of the frozen weights below an adapter. auto: bfloat16 where the device "
        "multiplies it faster. Weights that learn are float32 in any case: bfloat16 would round most of their small "
        "steps away.",
    )
    dialect: Literal["plan", "conductor", "conductor_paper", "tool_calls"] = Field(
        default="plan",
        description="How a turn is written. conductor_paper: three lists, with the prompt of the paper. tool_calls: "
        "the chat template's own calls, whose outputs come back as messages of the role tool.",
    )
    prompt: PromptStyle = Field(
        default="full",
        description="full: rules, pool and query. query: the query alone, for small models that learn one pool. "
        "reader: needs first, then the cards of the workers that fit them; for any pool. reader-agents: the same, and "
        "the listing says which workers are agents. reader-outputs: that, and cards name the fields of outputs. "
        "reader-fields: that, and the listing names them, too.",
    )
    hints: int | None = Field(
        default=None,
        ge=0,
        le=16,
        description="Of a reader: so many of the workers that are most like the query are listed once more after it. A "
        "small model copies what it has read last more surely than one line of many. Empty: as the checkpoint that it "
        "starts from.",
    )
    turn_tokens: int = Field(default=512, ge=16, le=32_768, description="Most tokens that one turn may have.")
    checkpointing: bool = Field(default=False, description="Recompute activations: less memory, a third slower.")

    def count_hints(self) -> int:
        """The workers that are listed after a query. Raises UnknownOrchestrator for a start that is not there."""
        if self.hints is not None or not self.start:
            return self.hints or 0
        return find_checkpoint(self.start)[1].hints

    def choose_listing(self) -> ListingFormat:
        """How a reader is shown a pool. Raises UnknownOrchestrator for a start that is not there."""
        return make_listing_format(self.prompt, self.count_hints())

    def list_languages(self) -> tuple[str, ...]:
        """The languages of the checkpoint that training starts from; none where it starts from a bare model."""
        return find_checkpoint(self.start)[1].languages if self.start else ()


class TaskSettings(RecipeSection):
    """The tasks that it learns on."""

    source: str = Field(
        default="ledger,atlas,forge",
        min_length=1,
        description="Families with commas between them, or another source.",
    )
    levels: tuple[int, ...] = Field(default=(1, 2, 3), description="Levels of the families.")
    count: int = Field(default=1000, ge=1, le=1_000_000, description="How many tasks of the train split.")
    seed: int = Field(
        default=0, ge=0, description="Of which tasks are drawn: another seed, other tasks, to train on with new ones."
    )


class DemonstrationSettings(RecipeSection):
    """The source of the trajectories that SFT imitates."""

    teacher: str = Field(
        default="oracle",
        description="oracle: the reference plans of the tasks that have one, made, written or kept from a what-if; "
        "needs no key. Else a checkpoint that reads any pool, with the answers as judge (smollm2-reader), an agent of "
        "the pool as model:AGENT, or a policy.",
        examples=["oracle", "smollm2-reader"],
    )
    samples: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Trajectories per task, of which one is kept. Several of a model are drawn at temperature 1.",
    )
    rounds: int = Field(
        default=1,
        ge=1,
        le=16,
        description="Expert iteration: the steps are shared out among so many rounds. From the second on the teacher "
        "is the checkpoint of the round before, with the tasks' answers as judge. Give it several samples.",
    )
    faults: Share = Field(default=0.1, description="Share with an injected failure, to show recovery.")
    variants: int = Field(
        default=0,
        ge=0,
        le=8,
        description="Copies of each with invented names and numbers, from which a small model learns to quote them "
        "from the query instead of memorizing them.",
    )
    needs_alone: Share = Field(
        default=0.0,
        description="Share of a reader's demonstrations that end with the needs. Which workers to choose is the "
        "harder lesson, and such a row is half as long; worth 0.5 where there are thousands of tasks.",
    )
    listed_needs: Share = Field(
        default=0.9,
        description="Share of a reader's demonstrations whose needs are lines of the listing, where the tasks bring "
        "other words: lines suit any pool. 0 to go on from smollm2-reader, which learnt the tasks' own words.",
    )
    second_turns: Share = Field(
        default=0.0,
        description="Share of a reader's demonstrations, of tasks with reference plans, that begin with a plan that "
        "went wrong and what came of it, and teach the next one. For prompts that show that: reader-turns.",
    )
    slips: str = Field(
        default="",
        description="Whose plans went wrong before second turns: a reader, best the one that training starts from, "
        "whose own first plans are tried on the pool. Empty: plans made of the reference plans, with a slip.",
        examples=["smollm2-records"],
    )
    starred: bool = Field(default=True, description="Also the starred traces on this pool.")
    file: str = Field(
        default="",
        description="Also a file of demonstrations, or of conversations (OpenAI messages, ShareGPT, Gemini, Hermes, "
        "xLAM). Calls of tools are learnt in the dialect tool_calls, and by readers as plans.",
    )
    lessons: str = Field(
        default="",
        description="A folder that `python -m trainer lessons make` wrote: it is learnt from, row by row from disk, in "
        "place of a teacher and of starred traces.",
    )
    concurrency: int = Field(
        default=16,
        ge=1,
        le=512,
        description="Episodes at a time, on each node of a cluster (on each GPU where models are loaded).",
    )
    max_rounds: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Most turns of a trajectory. 1: one plan, which can become a reader's whatever its calls answer. "
        "Empty: as many as the pool allows.",
    )
    required: bool = Field(
        default=True,
        description="Off: where the teacher shows nothing to imitate, the job goes on without, from the model that it "
        "starts with.",
    )
    max_cost: float | None = Field(
        default=None, gt=0, description="US dollars for the teacher's trajectories: none starts beyond. Empty: no cap."
    )
    where: UnpaidPlaceText = Field(
        default=str(HERE),
        description="Where trajectories are sampled. here: where the job runs. ray://HOST:PORT: on a Ray cluster.",
        examples=["here", "ray://10.0.0.5:10001"],
    )

    @model_serializer(mode="wrap")
    def _leave_out_newer_keys(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Recipes that do not use what came later are written as they were before."""
        document: dict[str, Any] = serialize(self)
        for name, default in (("max_rounds", None), ("required", True), ("max_cost", None)):
            if document.get(name) == default:
                document.pop(name, None)
        if self.where == str(HERE):
            document.pop("where", None)
        for name in ("lessons", "second_turns", "slips"):
            if not document.get(name):
                document.pop(name, None)
        return document


class OptimizerSettings(RecipeSection):
    """AdamW and its schedule, as TRL and transformers know them."""

    learning_rate: float = Field(default=1e-4, gt=0, le=1, description="Peak learning rate.")
    schedule: Literal["cosine", "linear", "constant", "constant_with_warmup"] = Field(
        default="cosine", description="How the learning rate falls."
    )
    warmup: Share = Field(default=0.03, description="Share of the steps with a rising learning rate.")
    weight_decay: float = Field(default=0.0, ge=0, le=1, description="AdamW's weight decay.")
    max_grad_norm: float = Field(default=1.0, gt=0, description="Gradients are clipped to this norm.")
    seed: int = Field(default=0, ge=0, description="Of data order, sampling and adapters.")


class SavingSettings(RecipeSection):
    """When checkpoints are written and measured, in optimizer steps."""

    every: int = Field(default=50, ge=1, description="Steps between checkpoints.")
    keep: int = Field(default=5, ge=2, description="How many of the newest are kept; the best one always is.")
    check_tasks: int = Field(
        default=24, ge=0, le=10_000, description="Validation tasks at every checkpoint; 0 for none."
    )


class MethodSettings(RecipeSection):
    """The base of the section of a method of training. Each has these three fields, with defaults of its own."""

    if TYPE_CHECKING:  # declared by each, so that their order in a form is its own
        steps: int
        optimizer: OptimizerSettings
        saving: SavingSettings

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        missing = {"steps", "optimizer", "saving"}.difference(cls.model_fields)
        if missing:
            raise TypeError(f"{cls.__name__}, the section of a method, lacks the field {', '.join(sorted(missing))}")


_NAME = NAME_PATTERN.strip("^$")
PoolCondition = Annotated[str, Field(pattern=rf"^({'|'.join(CONDITIONS)}|without:{_NAME}(,{_NAME})*)$")]


class WhoSettings(RecipeSection):
    """Who knows what: every agent of the pool answers questions to learn from alone, and the success predictor is
    trained on what was right. It comes before the other stages, which choose workers by it (`+who=predictor`)."""

    questions: int = Field(default=100, ge=1, le=100_000, description="How many tasks to learn from are asked at most.")
    tries: int = Field(default=1, ge=1, le=16, description="How often each agent is asked a question.")
    minutes: float = Field(default=3.0, gt=0, le=240, description="Of training the predictor, at most.")
    concurrency: int = Field(default=8, ge=1, le=256, description="Questions at a time.")
    max_cost: float | None = Field(
        default=None, gt=0, description="US dollars for this stage: no new question is asked beyond. Empty: no cap."
    )
    seed: int = Field(default=0, ge=0, description="Of which questions are asked, and held out to judge it by.")


# The names of an evaluation that stand for others: what the recipe trains, and every agent of the pool alone.
START, TRAINED, EVERY_AGENT = "start", "trained", "direct:each"


class EvaluateSettings(RecipeSection):
    """Measures orchestrators on tasks that training does not use."""

    orchestrators: tuple[str, ...] = Field(
        default=(),
        description="Names; direct:each is every agent alone, start what the recipe starts from, trained the last "
        "checkpoint of every stage, each also with options: trained+who=predictor. Empty: start and trained.",
    )
    reference: str = Field(
        default="",
        max_length=500,
        description="The orchestrator that others are compared with: one of them, or JOB/ORCHESTRATOR of an earlier "
        "evaluation. Empty: the first.",
    )
    source: str = Field(default="", description="Families or another source; empty for the recipe's.")
    levels: tuple[int, ...] = Field(default=(), description="Levels of the families; empty for the recipe's.")
    split: Literal["train", "validation", "test"] = Field(
        default="test", description="Which part of the tasks. train: what was trained on them is not judged by it."
    )
    count: int = Field(default=60, ge=1, le=100_000, description="How many tasks.")
    samples: int = Field(default=1, ge=1, le=64, description="Episodes per task; pass^k is meaningful from 8 on.")
    turn_samples: tuple[Annotated[int, Field(ge=1, le=MAX_SAMPLES)], ...] = Field(
        default=(1,),
        min_length=1,
        max_length=8,
        description="Plans that a language model draws for a turn, tried and voted on; several measure it with each.",
    )
    constrained: bool = Field(
        default=True, description="Off: the turns of checkpoints are not held to a grammar of the pool."
    )
    repairs: tuple[str, ...] = Field(
        default=(ALL,),
        max_length=64,
        description="The repairs of a reader's turns that are on: all, or their names (docs/readers.md). None of them: "
        "the model alone.",
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="Of a model's turns. Empty: 0 (greedy) for one sample, 1 for several."
    )
    conditions: tuple[PoolCondition, ...] = Field(
        default=("seen",),
        min_length=1,
        max_length=64,
        description=f"Of the pool: {CONDITIONS_TEXT}.",
    )
    seed: int = Field(default=0, ge=0, description="Of which tasks are drawn, of the conditions and of the samples.")
    max_cost: float | None = Field(
        default=None, gt=0, description="US dollars for this stage: no new episode starts beyond. Empty: no cap."
    )
    max_rounds: int | None = Field(
        default=None, ge=1, le=64, description="Turns per episode; empty for those of GRPO, or the pool's limit."
    )
    concurrency: int = Field(default=32, ge=1, le=256, description="Episodes at a time, on each node of a cluster.")
    binding: bool = Field(
        default=True,
        description="Whether a checkpoint that learnt one pool calls another's workers by their descriptions. Without, "
        "it calls them by the names that it learnt.",
    )

    @field_validator("repairs")
    @classmethod
    def _check_repairs(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        try:
            leave_out(names)
        except UnknownOrchestrator as error:
            raise ValueError(str(error)) from error
        return names

    @property
    def without(self) -> tuple[str, ...]:
        """The repairs that are off, as an orchestrator's name has them."""
        if not self.repairs:
            return (ALL,)
        return () if ALL in self.repairs else in_table_order(EVERY_REPAIR.difference(self.repairs))

    @property
    def episodes(self) -> int:
        """The most episodes that this section asks for; a source may hold fewer tasks."""
        return len(self.orchestrators) * len(self.turn_samples) * self.count * self.samples * len(self.conditions)
