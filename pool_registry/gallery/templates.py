"""The gallery of templates: workers with sane defaults, ready to be added with one click.

A template is a `WorkerSpec` preset and what it still needs from a person. Data only: gallery.py makes
workers of it, facts about providers stand in providers.py, the role agents' prompts in assets/templates/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from assets import asset
from pool_registry.actions import JsonValue
from pool_registry.kinds import KINDS
from pool_registry.language_models.providers import PROVIDERS, Provider
from pool_registry.starter import STARTER_MODEL
from pool_registry.worker import WorkerSpec

Group = Literal["models", "roles", "tools", "imports"]
Needs = Literal["nothing", "a key", "a running server", "a file", "a model", "an address", "a program"]
Control = Literal["text", "model", "key", "path", "documents"]


@dataclass(frozen=True, slots=True)
class Need:
    """A field of the worker's configuration that a person may have to fill in, and how the page asks for it."""

    field: str
    label: str
    about: str = ""
    control: Control = "text"
    value: str = ""  # the default; "" when there is none
    choices: tuple[str, ...] = ()
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """One card of the gallery. `spec` is None for what opens an importer of its own."""

    id: str
    group: Group
    title: str
    line: str
    needs: Needs = "nothing"
    spec: WorkerSpec | None = None
    fields: tuple[Need, ...] = ()
    note: str = ""  # what a person should know before choosing it
    runs_on_model: bool = False  # a role agent: takes endpoint and model from another agent


SHIPPED_MODEL = WorkerSpec(
    name="small_model",
    kind="local_model",
    description="A small general language model on this machine; answers short questions.",
    config={"model": STARTER_MODEL},
    max_concurrency=16,
    timeout_s=300,
)


@cache
def templates() -> Mapping[str, Template]:
    """Every template by its id, in the order of the gallery."""
    return {each.id: each for each in (*_models(), *_roles(), *_tools(), *_imports())}


def _models() -> Iterator[Template]:
    """One for each provider, one for any other endpoint, two for checkpoints on this machine."""
    yield from map(_provider, PROVIDERS)
    chat = WorkerSpec(name="model", kind="chat", description="A language model ({model}).", timeout_s=120)
    fields: tuple[Need, ...] = (
        Need("base_url", "Base URL", "Up to and without /chat/completions."),
        Need("model", "Model", "The model's name at that endpoint.", "model"),
        Need("api_key", "API key", "A reference; leave it empty when the endpoint wants none.", "key", optional=True),
    )
    title = "Any OpenAI-compatible URL"
    yield Template("compatible", "models", title, "Whatever answers /chat/completions.", "an address", chat, fields)
    where = "A folder with a transformers checkpoint, or hub:owner/name for one that was downloaded before."
    checkpoint = SHIPPED_MODEL.model_copy(
        update={"name": "checkpoint", "description": "A language model on this machine ({model}).", "config": {}}
    )
    line = "A transformers folder, on CPU or GPU."
    fields = (Need("model", "Model", where, "path"),)
    yield Template("checkpoint", "models", "Local checkpoint", line, "a file", checkpoint, fields)
    line = "135 million parameters, on the CPU: for trying things out."
    yield Template("small_model", "models", "The small model that ships", line, "nothing", SHIPPED_MODEL)


def _provider(provider: Provider) -> Template:
    """A chat worker at this provider: asks for a model and, unless it runs on this machine, a key."""
    spec = WorkerSpec(
        name=provider.name,
        kind="chat",
        description=f"A language model at {provider.label} ({{model}}).",
        config=provider.config(),
        timeout_s=180 if provider.is_local else 120,
    )
    suggested = provider.suggested[0] if provider.suggested else ""
    model = Need("model", "Model", "As the provider names it.", "model", suggested, provider.suggested)
    needs: Needs = "a running server" if provider.is_local else "a key"
    if provider.is_local:
        place = Need("base_url", "Base URL", "Where it listens.", value=provider.base_url)
        line, fields = f"Models that {provider.label} serves.", (place, model)
    else:
        about = f"A key can be had at {provider.key_url}" if provider.key_url else ""
        key = Need("api_key", "API key", about, "key", f"env:{provider.key}")
        line, fields = _LINES.get(provider.name, f"Models by {provider.label}."), (key, model)
    return Template(provider.name, "models", provider.label, line, needs, spec, fields, provider.note)


_LINES = {
    "openrouter": "Many providers' models behind one key.",
    "huggingface": "Open models at many providers.",
    "gemini": "Google's models.",
    "anthropic": "The Claude models.",
    "openai": "The GPT models.",
}

_ROLES = (
    (
        "planner",
        "Planner",
        "Splits a task into a few checkable steps.",
        "Splits a task into a few numbered, checkable steps and says which can run at the same time.",
    ),
    (
        "reasoner",
        "Reasoner",
        "Draws the conclusion, step by step.",
        "Reasons step by step from what it may see, checks the result, and ends with one answer line.",
    ),
    (
        "coder",
        "Coder",
        "Writes Python that a sandbox can run.",
        "Writes or repairs a whole Python program for the python tool; replies with one code block.",
    ),
    (
        "critic",
        "Critic",
        "Finds what is wrong with an answer.",
        "Checks a proposed answer against the question and the evidence: correct, wrong (and why), or unsure.",
    ),
    (
        "searcher",
        "Searcher",
        "Writes queries, reads what was found.",
        "Writes search queries; shown search results, quotes the facts in them and says what to look for next.",
    ),
    (
        "summarizer",
        "Summarizer",
        "Shortens without losing a figure.",
        "Shortens what it may see to the points that matter, keeping figures, conditions and disagreements.",
    ),
)


def _roles() -> Iterator[Template]:
    """Our own prompts, on a model that the pool has or that ships."""
    for name, title, line, description in _ROLES:
        prompt = asset(f"templates/{name}.md").read_text(encoding="utf-8").strip()
        config = {**SHIPPED_MODEL.config, "role": prompt, "max_tokens": 512}
        preset = SHIPPED_MODEL.model_copy(update={"name": name, "description": description, "config": config})
        yield Template(name, "roles", title, line, "a model", preset, runs_on_model=True)


def _tools() -> Iterator[Template]:
    yield _tool(
        "calculator",
        "Evaluates one expression, exactly.",
        "Evaluates one arithmetic expression, for example round((3 + 4.5) / 2, 2).",
    )
    yield _tool(
        "python",
        "Runs a snippet in the sandbox.",
        "Runs a Python snippet in a sandbox and returns its last value or what it printed.",
        timeout_s=20,
    )
    yield _tool(
        "sql",
        "Reads SQLite or PostgreSQL; cannot write.",
        "Reads a database with one SELECT.",
        needs="a file",
        fields=(_DATABASE,),
    )
    yield _tool(
        "documents",
        "Searches your txt, md, pdf, csv, jsonl.",
        "Searches the documents for passages that fit the query.",
        needs="a file",
        fields=(_DOCUMENTS,),
    )
    yield _tool("web_fetch", "Reads one public web page as text.", "Fetches one public web page and returns its text.")
    yield _tool("units", "Converts between units of measure.", "Converts a value between units of measure.")
    yield _tool(
        "calendar",
        "Business days and public holidays.",
        "Business days and public holidays: 'last business day of Q2 2023 in US'.",
    )
    yield _tool(
        "http",
        "Calls one address of an HTTP API.",
        "Calls an HTTP endpoint; say here what it answers.",
        needs="an address",
        fields=(_URL,),
    )
    yield Template("space", "tools", "Hugging Face Space", "Endpoints of a Space, or of any Gradio app.", "an address")
    yield _tool(
        "airports",
        "Country, time zone, place of an airport.",
        "Tells where an airport is: 'country of LIS', 'time zone of LIS', 'coordinates of LIS'.",
    )
    yield _tool(
        "great_circle", "Kilometers between two airports.", "Distance in kilometers between two airports: 'LIS to GRU'."
    )
    yield _tool(
        "clock",
        "Local times across time zones.",
        "Local times: '2025-04-20 21:30 at LIS plus 90 minutes, local at GRU'.",
    )
    yield _tool("elements", "Molar mass of a compound.", "Molar mass in grams per mole: 'molar mass of CuSO4+5H2O'.")
    yield _tool(
        "search",
        "The CIA World Factbook, passage by passage.",
        "Finds one passage of the CIA World Factbook: 'Mexico Geography Irrigated land'.",
        title="World Factbook",
        name="atlas_search",
    )
    yield _tool(
        "extractor",
        "Pulls a number or a name out, by rules.",
        "Reads the passages it may see: 'the number in the passage', 'the country in the passage'.",
        name="reader",
    )
    yield _tool(
        "memos",
        "Made-up figures that no model knows.",
        "Room A's memos (generated text): 'memo 17: penalty total, section 4'.",
        name="room_a",
        config={"room": "a"},
    )
    yield _tool(
        "flaky",
        "Another tool that fails now and then.",
        "A tool that fails now and then.",
        config={
            "inner": {"name": "inner", "kind": "calculator", "description": "Evaluates one arithmetic expression."}
        },
    )
    self = WorkerSpec(
        name="self",
        kind="orchestrator",
        description="Solves a self-contained part of the query with an episode of its own.",
        timeout_s=300,
    )
    yield Template(
        "orchestrator", "tools", "Itself, one level deeper", "An episode inside the episode.", "nothing", self
    )


_DATABASE = Need(
    "database",
    "Database",
    "A SQLite file on this machine, starter:ledger (a sample), a postgresql:// URL without a password, "
    "or env:NAME holding the URL.",
    "path",
)
_DOCUMENTS = Need("path", "Documents", "Upload files, or name a file or folder on this machine.", "documents")
_URL = Need("url", "URL", "Placeholders such as {city} become arguments.")


def _imports() -> Iterator[Template]:
    yield Template("mcp", "imports", "MCP server", "Connect, see its tools, choose some.", "a program")
    yield Template("openapi", "imports", "OpenAPI document", "Operations of an HTTP API become tools.", "a file")
    yield Template("function", "imports", "Python function", "From a file or module, typed by its signature.", "a file")
    yield Template("pool_file", "imports", "Pool file", "A pool that was exported, as a new pool.", "a file")


def _tool(
    kind: str,
    line: str,
    description: str,
    *,
    title: str = "",
    name: str = "",
    needs: Needs = "nothing",
    config: dict[str, JsonValue] | None = None,
    fields: tuple[Need, ...] = (),
    timeout_s: float = 60.0,
) -> Template:
    """A template of a kind in the table, under the kind's own label."""
    spec = WorkerSpec(name=name or kind, kind=kind, description=description, config=config or {}, timeout_s=timeout_s)
    return Template(kind, "tools", title or KINDS[kind].label, line, needs, spec, fields)
