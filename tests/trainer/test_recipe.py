"""Recipes: what YAML may say, and that every mistake in it is told at the key where it was made."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.checkpoints import Checkpoint
from orchestrator.orchestrator_name import OrchestratorName, TurnOptions
from orchestrator.repairs.table import REPAIRS
from trainer.errors import InvalidRecipe
from trainer.jobs.job_folder import JobFolder
from trainer.methods.grpo.phases import find_phase, list_phases
from trainer.methods.grpo.section import (
    CurriculumSettings,
    GrpoSettings,
    LossSettings,
    PhaseSettings,
    RecursionSettings,
    RewardSettings,
    RolloutSettings,
)
from trainer.methods.sft.section import SftSettings
from trainer.recipe import MAX_RECIPE_BYTES, Recipe, dump_recipe, list_presets, load_recipe, parse_recipe
from trainer.recipe_sections import (
    DemonstrationSettings,
    EvaluateSettings,
    LoraSettings,
    ModelSettings,
    OptimizerSettings,
    RecipeSection,
    SavingSettings,
    TaskSettings,
)
from trainer.run_recipe import choose_orchestrators
from trainer.tasks.pool_settings import PoolSettings

TEXT = st.text(max_size=30) | st.sampled_from(["\x85", "a\u2028é", "no", "1e3", "- a: b", "\ufeff", "\x00"])
SHARE = st.floats(0, 1)
SEED = st.integers(0, 2**40)
NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,47}", fullmatch=True)
SAVING = st.builds(
    SavingSettings, every=st.integers(1, 10**6), keep=st.integers(2, 99), check_tasks=st.integers(0, 10_000)
)
OPTIMIZERS = st.builds(
    OptimizerSettings,
    learning_rate=st.floats(1e-12, 1),
    schedule=st.sampled_from(["cosine", "linear", "constant"]),
    warmup=SHARE,
    max_grad_norm=st.floats(1e-9, 1e9),
    seed=SEED,
)
LORAS = st.builds(LoraSettings, rank=st.integers(1, 512), dropout=SHARE, targets=TEXT | st.lists(TEXT, max_size=3))
MODELS = st.builds(
    ModelSettings,
    base=TEXT.filter(bool),
    start=TEXT,
    lora=st.none() | LORAS,
    dialect=st.sampled_from(["plan", "conductor", "conductor_paper"]),
)
DEMONSTRATIONS = st.builds(
    DemonstrationSettings, teacher=TEXT, samples=st.integers(1, 64), faults=SHARE, starred=st.booleans()
)
SFTS = st.builds(
    SftSettings, steps=st.integers(1, 10**7), demonstrations=DEMONSTRATIONS, optimizer=OPTIMIZERS, saving=SAVING
)
ROLLOUTS = st.builds(
    RolloutSettings,
    prompts=st.just(4),
    group=st.just(8),
    max_cost=st.none() | st.floats(1e-9, 1e9),
    redraws=st.floats(0, 10),
)
POOLS = st.builds(
    PoolSettings,
    sources=st.lists(NAMES, max_size=2).map(tuple),
    subset=st.none() | st.integers(0, 64),
    shuffle=st.booleans(),
    distractors=st.integers(0, 5),
    rename=SHARE,
    unseen=TEXT,
)
PHASES = st.builds(
    PhaseSettings,
    name=st.sampled_from(["adaptive", "recursion", "more"]),
    steps=st.integers(1, 10**6),
    pools=st.none() | POOLS,
    recursion=st.none() | st.builds(RecursionSettings, share=SHARE, first_weight=st.floats(0, 10)),
)
GRPOS = st.builds(
    GrpoSettings,
    micro_batch=st.sampled_from([1, 2, 4, 8, 16, 32]),
    rollouts=ROLLOUTS,
    rewards=st.lists(
        st.builds(RewardSettings, term=TEXT.filter(bool), weight=st.floats(0, 100), anneal=st.none() | st.just(0.5)),
        min_size=1,
        max_size=3,
    ).map(tuple),
    curriculum=st.builds(CurriculumSettings, target=SHARE),
    loss=st.builds(LossSettings, beta=st.floats(0, 1e6), type=st.sampled_from(["dapo", "gspo"])),
    phases=st.lists(PHASES, max_size=2, unique_by=lambda phase: phase.name).map(tuple),
)
RECIPES = st.builds(
    Recipe,
    name=NAMES,
    title=TEXT,
    pool=NAMES,
    model=MODELS,
    tasks=st.builds(TaskSettings, source=TEXT.filter(bool), levels=st.lists(st.integers(), max_size=4).map(tuple)),
    pools=st.none() | POOLS,
    sft=SFTS,
    grpo=st.none() | GRPOS,
    evaluate=st.none() | st.builds(EvaluateSettings, orchestrators=st.lists(TEXT, max_size=2).map(tuple)),
)


def problems(text: str) -> dict[str, str]:
    with pytest.raises(InvalidRecipe) as caught:
        parse_recipe(text)
    return dict(caught.value.problems)


@settings(deadline=None, max_examples=100)
@given(RECIPES)
def test_a_recipe_survives_being_written_and_read(recipe):
    assert parse_recipe(dump_recipe(recipe)) == recipe


def test_a_recipe_without_pools_is_written_as_before_the_section_came():
    recipe = parse_recipe("sft: {}")
    assert recipe.pools is None and "pools" not in recipe.model_dump() and "pools" not in dump_recipe(recipe)
    assert " ".join(recipe.model_dump()) == "name title pool model tasks sft grpo evaluate threads"
    assert parse_recipe("{sft: {}, pools: {}}").pools == PoolSettings()
    assert parse_recipe("{sft: {}, pools: null}") == recipe


def test_a_recipe_is_written_without_what_is_not_set_too():
    written = load_recipe("cpu-first-steps").model_dump(mode="json", exclude_none=True)
    assert "pools" not in written and Recipe.model_validate(written) == load_recipe("cpu-first-steps")


def test_pools_vary_only_where_the_model_is_shown_them():
    assert "must be shown the pool" in problems("{sft: {}, pools: {}, model: {prompt: query}}")[""]
    assert parse_recipe("{evaluate: {conditions: [varied]}, pools: {}, model: {prompt: query}}").pools is not None


@pytest.mark.parametrize(
    "text", ["{rename: 2}", "{distractors: 6}", "{subset: -1}", "{sources: [No Name]}", "{color: red}"]
)
def test_a_wrong_setting_of_pools_is_told_by_its_key(text):
    (key,) = problems(f"{{sft: {{}}, pools: {text}}}")
    assert key.startswith("pools.")


PHASED = "{{grpo: {{phases: [{}]}}, model: {{prompt: {}}}}}"


@pytest.mark.parametrize(
    ("phases", "prompt", "key", "what"),
    [
        ("{pools: {}}", "query", "", "must be shown the pool"),
        ("{recursion: {}}", "reader", "", "leave recursion out"),
        ("{}, {}", "full", "grpo", "two phases are called adaptive"),
        ("{stepps: 2}", "full", "grpo.phases.0.stepps", "there is no such setting"),
        ("{recursion: {share: 2}}", "full", "grpo.phases.0.recursion.share", "at most 1"),
    ],
)
def test_a_phase_that_cannot_be_is_told_by_its_key(phases, prompt, key, what):
    assert what in problems(PHASED.format(phases, prompt)).get(key, "")


def test_phases_count_as_steps_and_change_what_they_say():
    text = "{grpo: {steps: 10, phases: [{name: a, steps: 3, pools: {least: 2}}, {name: b, steps: 2, recursion: {}}]}}"
    recipe = parse_recipe(text)
    assert recipe.grpo.all_steps == 15 and [pools.least for pools in recipe.pool_draws] == [2]
    phases = list_phases(recipe.grpo, recipe)
    assert [(phase.name, phase.before, phase.last) for phase in phases] == [("", 0, 10), ("a", 10, 13), ("b", 13, 15)]
    assert [find_phase(phases, step).name for step in (1, 10, 11, 13, 14, 15, 16)] == ["", "", "a", "a", "b", "b", "b"]
    assert [phase.recursion is not None for phase in phases] == [False, False, True]
    assert [phase.pools is not None for phase in phases] == [False, True, False]


@settings(deadline=None)
@given(st.text(max_size=200) | st.sampled_from(["title: 2020-13-45", "a: !!int x", "a: !!timestamp x", "&a [*a]"]))
def test_any_text_is_a_recipe_or_says_why_not(text):
    try:
        parse_recipe(text)
    except InvalidRecipe as error:
        assert error.problems and all(what for _, what in error.problems)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"speed": 1}, "speed"),
        ({"sft": {"stepps": 1}}, "sft.stepps"),
        ({"sft": {"optimizer": {"lr": 1}}}, "sft.optimizer.lr"),
        ({"model": {"lora": {"r": 8}}}, "model.lora.r"),
        ({"sft": {"steps": 0}}, "sft.steps"),
        ({"sft": {"steps": "many"}}, "sft.steps"),
        ({"model": {"dialect": "french"}}, "model.dialect"),
        ({"model": {"lora": {"targets": 5}}}, "model.lora.targets"),
        ({"model": {"lora": {"targets": ["q_proj", 5]}}}, "model.lora.targets.1"),
        ({"tasks": {"levels": [1, "two"]}}, "tasks.levels.1"),
        ({"grpo": {"rewards": [{"term": "accuracy"}, {"weight": 2}]}}, "grpo.rewards.1.term"),
        ({"grpo": {"rewards": []}}, "grpo.rewards"),
        ({"grpo": {"micro_batch": 5}}, "grpo"),
        ({"grpo": {"rollouts": {"max_cost": -1}}}, "grpo.rollouts.max_cost"),
        ({"sft": {"optimizer": {"max_grad_norm": float("inf")}}}, "sft.optimizer.max_grad_norm"),
        ({"evaluate": {"repairs": ["spelling"]}}, "evaluate.repairs"),
        ({"name": "My Model"}, "name"),
    ],
)
def test_a_problem_is_told_at_its_key(change, key):
    found = problems(yaml.safe_dump({"sft": {}} | change))
    assert list(found) == [key] and found[key]


def test_repairs_of_readers_are_on_unless_a_recipe_or_the_command_line_says_so():
    shipped, alone = EvaluateSettings(), EvaluateSettings(repairs=())
    assert (shipped.without, alone.without) == ((), ("all",))
    assert EvaluateSettings(repairs=("other_words", "other_plans")).without == tuple(
        name for name in REPAIRS if name not in ("other_words", "other_plans")
    )
    changed = Recipe(evaluate=shipped).without_repairs(["other_words"])
    assert changed.evaluate is not None and changed.evaluate.without == ("other_words",)
    with pytest.raises(InvalidRecipe, match="evaluates nothing"):
        Recipe(sft=SftSettings()).without_repairs(["all"])


def test_a_stored_recipe_may_name_repairs_that_are_no_more():
    assert EvaluateSettings(repairs=("joined_names", *REPAIRS)).without == ()
    assert EvaluateSettings(repairs=("joined_names",)).without == tuple(REPAIRS)
    assert Recipe(evaluate=EvaluateSettings()).without_repairs(["joined_names"]).evaluate.without == ()


def test_an_evaluation_leaves_repairs_out_of_readers_alone(tmp_path):
    settings = EvaluateSettings(orchestrators=("smollm2-reader", "starter-grpo", "fan_out"), repairs=("substitutes",))
    names = choose_orchestrators(settings, ModelSettings(), JobFolder(tmp_path / "job"))
    assert names == [str(OrchestratorName("smollm2-reader", options=TurnOptions(without=settings.without))), *names[1:]]
    assert names[1:] == ["starter-grpo", "fan_out"]


def test_an_evaluation_names_what_the_job_starts_from_and_what_it_trains(tmp_path):
    """Without training there is no checkpoint yet, so `trained` names nothing."""
    names = ("direct:each", "start", "start+who=predictor", "trained+who=predictor")
    model = ModelSettings(start="smollm2-reader")
    chosen = choose_orchestrators(EvaluateSettings(orchestrators=names), model, JobFolder(tmp_path / "job"))
    assert chosen == ["direct:each", "smollm2-reader", "smollm2-reader+who=predictor"]


def test_all_problems_are_told_at_once():
    found = problems("{sft: {steps: 0, batch: -1}, model: {precision: half}, colour: red}")
    assert set(found) == {"sft.steps", "sft.batch", "model.precision", "colour"}


def test_a_recipe_without_a_stage_is_none():
    assert "needs" in problems("pool: starter")[""]


@pytest.mark.parametrize("text", ["", "- a", "sft", "{", "x" * (MAX_RECIPE_BYTES + 1)])
def test_what_is_no_mapping_is_refused(text):
    assert problems(text)[""]


def fields_of(part: type[RecipeSection], where: str = "") -> list[tuple[str, Any, type[RecipeSection] | None]]:
    """Every field below a section as (key, field, the section it holds if it is one)."""
    found = []
    for name, field in part.model_fields.items():
        section = section_of(field.annotation)
        found.append((f"{where}{name}", field, section))
        if section is not None:
            found += fields_of(section, f"{where}{name}.")
    return found


def section_of(annotation: Any) -> type[RecipeSection] | None:
    if (
        isinstance(annotation, type)
        and not isinstance(annotation, types.GenericAlias)
        and issubclass(annotation, RecipeSection)
    ):
        return annotation
    inner = get_args(annotation) if get_origin(annotation) in (types.UnionType, tuple) else ()
    return next((section for each in inner if (section := section_of(each)) is not None), None)


def test_every_field_says_what_it_is():
    for key, field, section in fields_of(Recipe):
        assert field.description or (section is not None and section.__doc__), f"{key} has no description"


def test_every_default_is_allowed_by_its_own_rule():
    assert parse_recipe("{sft: {}, grpo: {}, evaluate: {}}") == Recipe(
        sft=SftSettings(), grpo=GrpoSettings(), evaluate=EvaluateSettings()
    )


def test_one_stage_can_be_taken_out_and_a_missing_one_is_told():
    recipe = parse_recipe("{sft: {}, evaluate: {}}")
    assert recipe.stages == ("sft", "evaluate") and recipe.with_only("sft").stages == ("sft",)
    with pytest.raises(InvalidRecipe, match="no grpo section"):
        recipe.with_only("grpo")


@pytest.mark.parametrize("name", list_presets() or [pytest.param("none", marks=pytest.mark.skip("no presets ship"))])
def test_a_preset_loads_and_survives_being_written(name):
    recipe = load_recipe(name)
    assert recipe.title and recipe.stages and parse_recipe(dump_recipe(recipe)) == recipe


@pytest.mark.parametrize(
    "name", ["reader-cpu", "reader-gpu", "single-gpu-24gb", "single-gpu-80gb", "conductor-paper", "paramanager-paper"]
)
def test_a_preset_that_learns_to_read_pools_draws_from_every_source_of_pools(name):
    recipe = load_recipe(name)
    later = [phase.tasks.source for phase in recipe.grpo.phases if phase.tasks] if recipe.grpo else []
    for source in (recipe.tasks.source, *later):
        assert {"worlds", "projects", "everyday"} <= {part.partition("*")[0] for part in source.split(" + ")}


def test_a_file_that_is_no_recipe_is_told_with_the_presets(tmp_path):
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "missing.yaml", tmp_path / "bytes.yaml", tmp_path):
        with pytest.raises(InvalidRecipe, match="no recipe file"):
            load_recipe(str(path))


@pytest.mark.parametrize(("start", "hints", "shown"), [("", None, 0), ("", 5, 5), ("older", None, 3), ("older", 0, 0)])
def test_hints_are_those_of_the_checkpoint_that_training_starts_from(monkeypatch, start, hints, shown):
    older = Checkpoint(name="older", kind="adapter", base="b", stage="sft", prompt="reader", hints=3)
    monkeypatch.setattr("trainer.recipe_sections.find_checkpoint", {"older": (Path(), older)}.get)
    assert ModelSettings(start=start, hints=hints, prompt="reader").count_hints() == shown


@pytest.mark.parametrize("source", ["ledger", "worlds", "everyday", "worlds*2 + ledger"])
def test_another_seed_of_the_tasks_draws_other_tasks(source):
    from trainer.run_recipe import load_tasks

    drawn = TaskSettings(source=source, levels=(1,))
    first, again, other = (
        [task.query for task in load_tasks(drawn.model_copy(update={"seed": seed}), "train", 24)] for seed in (0, 0, 1)
    )
    assert first == again
    assert len(set(first) & set(other)) < len(first) // 2
