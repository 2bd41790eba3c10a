"""Makes an orchestrator of a folder that was trained elsewhere: a look at its base, its chat template and its dialect,
then the manifest that Podium's own checkpoints have."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from orchestrator.checkpoints import MANIFEST, Checkpoint, seal
from orchestrator.dialects import find_dialect
from orchestrator.errors import UnknownOrchestrator
from orchestrator.prompt_styles import PROMPTS, PromptStyle
from pool_registry.actions import JsonValue
from pool_registry.errors import WorkerFault
from pool_registry.language_models.adapter_fit import check_fit, describe_base
from pool_registry.language_models.adapter_folder import ADAPTER_CONFIG, check_adapter, read_base, read_json
from pool_registry.language_models.model_files import HUB, is_available, model_path
from pool_registry.language_models.model_guesses import explain_reference

STAGE = "elsewhere"  # in the manifest, in the place of the method that trained it
TEMPLATE_FILE, TOKENIZER_CONFIG = "chat_template.jinja", "tokenizer_config.json"
_CALLS_TOOLS = ("tool_call", "tools")  # words of a template that offers functions


@dataclass(frozen=True, slots=True)
class ForeignCheckpoint:
    """What a folder holds: a whole model, or an adapter for `base`. `dialect` is the one that its chat template speaks
    for, `why` says so; `questions` are what a person should look at."""

    folder: Path
    kind: Literal["full", "adapter"]
    base: str
    dialect: str
    why: str
    questions: tuple[str, ...] = ()


def inspect_folder(folder: Path, base: str = "") -> ForeignCheckpoint:
    """Look at a folder; `base` is the base model where its adapter names none that is here.

    Raises UnknownOrchestrator saying what keeps it from being one.
    """
    if (folder / MANIFEST).exists():
        raise UnknownOrchestrator(f"{folder} has a {MANIFEST} already: use it as it is, or remove that file first")
    try:
        if (folder / ADAPTER_CONFIG).is_file():
            return _inspect_adapter(folder, base)
        is_available(str(folder))
    except WorkerFault as fault:
        raise UnknownOrchestrator(f"{folder} cannot be an orchestrator: {fault}") from fault
    template = _read_template(folder)
    if not template:
        raise UnknownOrchestrator(
            f"{folder} has no chat template, so it is not known how to ask it: save its tokenizer there with one "
            f"({TEMPLATE_FILE}, or chat_template in {TOKENIZER_CONFIG})"
        )
    return ForeignCheckpoint(folder, "full", str(folder.resolve()), *_choose_dialect(template))


def make_checkpoint(foreign: ForeignCheckpoint, dialect: str = "", prompt: PromptStyle = "full") -> Checkpoint:
    """Write the manifest of a folder that was looked at. Raises UnknownOrchestrator for a dialect that is none."""
    chosen = find_dialect(dialect or foreign.dialect).name
    manifest = Checkpoint(
        name=foreign.folder.resolve().name,
        kind=foreign.kind,
        base=foreign.base,
        stage=STAGE,
        dialect=chosen,
        prompt=prompt,
        prompt_version=PROMPTS[prompt].version,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return seal(foreign.folder, manifest)


def _inspect_adapter(folder: Path, base: str) -> ForeignCheckpoint:
    """Raises WorkerFault, and UnknownOrchestrator where its base is not here."""
    check_adapter(folder)
    chosen = base or _find_base(read_base(folder))
    if chosen.startswith(HUB):
        question = f"its base {chosen} is fetched at the first use; whether the adapter fits it is seen then"
        why = "its chat template is that of its base"
        return ForeignCheckpoint(folder, "adapter", chosen, "plan", why, (question,))
    where = model_path(chosen)
    check_fit(folder, where)
    template = _read_template(folder) or _read_template(where)
    question = describe_base(folder, chosen)
    return ForeignCheckpoint(folder, "adapter", chosen, *_choose_dialect(template), tuple(filter(None, (question,))))


def _find_base(name: str) -> str:
    """The base that an adapter names, as a reference. Raises UnknownOrchestrator."""
    if not name:
        raise UnknownOrchestrator(f"its {ADAPTER_CONFIG} names no base model; say which with --base")
    if name.startswith(("starter:", HUB)) or Path(name).expanduser().is_dir():
        return name
    if name.count("/") == 1 and not name.startswith((".", "~", "/")):
        return f"{HUB}{name}"
    guess = explain_reference(name) or f"its base model {name} is not here"
    raise UnknownOrchestrator(f"{guess}; say where the base is with --base FOLDER")


def _read_template(folder: Path) -> str:
    """The chat template of a folder; "" where it has none. Raises WorkerFault for a damaged configuration."""
    file = folder / TEMPLATE_FILE
    if file.is_file():
        return file.read_text(encoding="utf-8", errors="replace")
    if not (folder / TOKENIZER_CONFIG).is_file():
        return ""
    document = read_json(folder / TOKENIZER_CONFIG)
    return _join_templates(document.get("chat_template")) if isinstance(document, dict) else ""


def _join_templates(template: JsonValue) -> str:
    """One template, or several by name as older tokenizers have them, as one text."""
    entries = template if isinstance(template, list) else [template]
    texts = [entry.get("template") if isinstance(entry, dict) else entry for entry in entries]
    return "\n".join(text for text in texts if isinstance(text, str))


def _choose_dialect(template: str) -> tuple[str, str]:
    """The dialect, and why it is this one."""
    if any(word in template for word in _CALLS_TOOLS):
        return "tool_calls", "its chat template offers functions"
    return "plan", "its chat template offers no functions"
