"""A folder that was trained elsewhere becomes an orchestrator by one command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assets import asset
from orchestrator.checkpoints import MANIFEST, find_checkpoint, open_checkpoint
from orchestrator.errors import UnknownOrchestrator
from orchestrator.foreign_checkpoints import inspect_folder, make_checkpoint
from studio.__main__ import app

TINY = asset("starters") / "tiny-base"
TOOLS = "{% for tool in tools %}{{ tool }}{% endfor %}<tool_call>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A trained folder as any trainer saves it."""
    copied = tmp_path / "my model"
    shutil.copytree(TINY, copied)
    (copied / MANIFEST).unlink()
    return copied


def test_a_trained_folder_without_a_manifest_names_the_command(folder):
    with pytest.raises(
        UnknownOrchestrator, match=f"make it an orchestrator with `podium make-orchestrator '{folder}'`"
    ):
        find_checkpoint(str(folder))


def test_the_command_writes_the_manifest_and_it_is_found(folder):
    result = CliRunner().invoke(app, ["make-orchestrator", str(folder)])
    assert result.exit_code == 0 and "is an orchestrator now (full" in result.output, result.output
    place, checkpoint = open_checkpoint(str(folder))
    assert place == folder and (checkpoint.stage, checkpoint.prompt, checkpoint.dialect) == (
        "elsewhere",
        "full",
        "plan",
    )
    assert "model.safetensors" in checkpoint.files
    with pytest.raises(UnknownOrchestrator, match="already"):
        inspect_folder(folder)


def test_the_dialect_is_that_of_the_chat_template_or_as_chosen(folder):
    (folder / "chat_template.jinja").write_text(TOOLS)
    foreign = inspect_folder(folder)
    assert foreign.dialect == "tool_calls" and "offers functions" in foreign.why
    with pytest.raises(UnknownOrchestrator, match="there is no dialect"):
        make_checkpoint(foreign, "esperanto")
    assert not (folder / MANIFEST).exists()
    assert make_checkpoint(foreign, "conductor").dialect == "conductor"


def test_a_folder_without_a_chat_template_is_refused(folder):
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(UnknownOrchestrator, match="has no chat template"):
        inspect_folder(folder)
    assert not (folder / MANIFEST).exists()


@pytest.mark.parametrize("reference", ["qwen3:0.6b", "/nowhere/model.gguf"])
def test_models_that_others_serve_become_agents_first(reference):
    with pytest.raises(UnknownOrchestrator, match=r"chat worker .*then take model:WORKER as the orchestrator"):
        find_checkpoint(reference)


def test_what_cannot_be_guessed_lists_the_checkpoints():
    with pytest.raises(UnknownOrchestrator, match=r"there is no checkpoint 'nobody'; there are: .*base"):
        find_checkpoint("nobody")


def make_adapter(folder: Path, base: str) -> Path:
    shutil.copytree(asset("starters") / "smollm2-sft", folder)
    (folder / MANIFEST).unlink()
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": base}))
    return folder


def test_an_adapter_takes_the_base_that_it_names(tmp_path):
    hub = inspect_folder(make_adapter(tmp_path / "one", "org/some-model"))
    assert (hub.kind, hub.base) == ("adapter", "hub:org/some-model") and "fetched at the first use" in hub.questions[0]
    for base in ("", "/nowhere/at/all", "qwen3:0.6b"):
        with pytest.raises(UnknownOrchestrator, match="--base"):
            inspect_folder(make_adapter(tmp_path / f"none-{len(base)}", base))


def test_an_adapter_of_another_base_is_no_orchestrator(tmp_path):
    adapter = make_adapter(tmp_path / "one", "org/some-model")
    with pytest.raises(UnknownOrchestrator, match=r"made for another model than .*give org/some-model as the model"):
        inspect_folder(adapter, "starter:tiny")


def test_a_run_says_so_without_a_list_of_everything_else(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))  # the command chooses it for its whole process
    words = ["run", "hello", "--orchestrator", "qwen3:0.6b", "--home", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, UnknownOrchestrator)
    assert str(result.exception).startswith("qwen3:0.6b is Ollama's name") and "router" not in str(result.exception)
