"""Providers of chat models, and the list of models that an endpoint offers.

Every one of them answers the `chat` kind through its base URL alone. What differs is in `settings`, in
ChatConfig's words. Names of models are suggestions from the providers' own documentation (November 2026);
`models` asks the endpoint itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from pool_registry import secrets
from pool_registry.actions import JsonValue
from pool_registry.errors import SecretNotFound, WorkerFault
from pool_registry.network import http_client
from pool_registry.network.address_policy import CONFIGURED, AddressPolicy

LIST_S = 10.0  # seconds that an endpoint may take to list its models
# Models that think count their thoughts as output: 1,024 tokens can end before the first word of the answer.
THINKING: Mapping[str, JsonValue] = {"max_tokens": 8192}


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider. `key` is the usual name of its environment variable, "" where no key is needed;
    `key_url` is where a person gets one; `note` is what a person should know before choosing it."""

    name: str
    label: str
    base_url: str
    key: str = ""
    key_url: str = ""
    suggested: tuple[str, ...] = ()
    note: str = ""
    settings: Mapping[str, JsonValue] = field(default_factory=dict)
    about: str = ""

    @property
    def line(self) -> str:
        """The line that the gallery shows."""
        return self.about or (f"Models that {self.label} serves." if self.is_local else f"Models by {self.label}.")

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine, and may be found there by asking its port."""
        return urlsplit(self.base_url).hostname == "127.0.0.1"

    def config(self, model: str = "", key: str | None = None) -> dict[str, JsonValue]:
        """Build the configuration of a chat worker; `key` is a reference, by default to the usual variable."""
        usual = f"env:{self.key}" if self.key else ""
        return {
            "base_url": self.base_url,
            "model": model or (self.suggested[0] if self.suggested else ""),
            "api_key": usual if key is None else key,
            **self.settings,
        }


PROVIDERS: tuple[Provider, ...] = (
    Provider(
        "openai",
        "OpenAI",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "https://platform.openai.com/api-keys",
        ("gpt-6-luna", "gpt-6.1-sol"),
        "Models from gpt-5 on refuse `max_tokens` and any temperature but their own; the settings see to both.",
        # developers.openai.com, chat completions: max_tokens is deprecated, reasoning models take temperature 1 only
        {**THINKING, "token_limit": "max_completion_tokens", "extra": {"temperature": None}},
        about="The GPT models.",
    ),
    Provider(
        "anthropic",
        "Anthropic",
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
        "https://platform.claude.com/settings/keys",
        ("claude-sonnet-5", "claude-opus-5-5"),
        "Anthropic offers its OpenAI-compatible endpoint for trying models out. From Opus 4.7 on they refuse a "
        "temperature, so none is sent.",
        {**THINKING, "extra": {"temperature": None}},
        about="The Claude models.",
    ),
    Provider(
        "gemini",
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        "https://aistudio.google.com/apikey",
        ("gemini-3.5-flash",),
        "Google's OpenAI-compatible endpoint.",
        THINKING,
        about="Google's models.",
    ),
    Provider(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        "https://console.mistral.ai/api-keys",
        ("mistral-small-latest", "mistral-medium-latest"),
        "Names that end in -latest follow Mistral's newest version.",
    ),
    Provider(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com",
        "DEEPSEEK_API_KEY",
        "https://platform.deepseek.com/api_keys",
        ("deepseek-flash",),
        "The older names deepseek-chat and deepseek-reasoner ended in July 2026.",
        THINKING,
    ),
    Provider(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        "https://openrouter.ai/settings/keys",
        ("openrouter/auto",),
        "One key for the models of many providers. Its list is public: it does not show whether the key is right.",
        THINKING,
        about="Many providers' models behind one key.",
    ),
    Provider(
        "huggingface",
        "Hugging Face router",
        "https://router.huggingface.co/v1",
        "HF_TOKEN",
        "https://huggingface.co/settings/tokens",
        (),
        'The token needs the permission "Make calls to Inference Providers". A name may end in :fastest, '
        ":cheapest or a provider's name.",
        about="Open models at many providers.",
    ),
    Provider(
        "ollama",
        "Ollama",
        "http://127.0.0.1:11434/v1",
        note="Cuts long prompts without a word at its own context length; set OLLAMA_CONTEXT_LENGTH where it runs.",
    ),
    Provider(
        "lmstudio",
        "LM Studio",
        "http://127.0.0.1:1234/v1",
        note="Start its local server first. The first call loads the model and may take a minute.",
    ),
    Provider("vllm", "vLLM", "http://127.0.0.1:8000/v1", note="vllm serve MODEL; the model needs a chat template."),
)


def provider_of(base_url: str) -> Provider | None:
    """Find the provider of a base URL by its host; None for any other endpoint."""
    place = urlsplit(base_url).netloc
    return next((provider for provider in PROVIDERS if urlsplit(provider.base_url).netloc == place), None)


async def models(base_url: str, api_key: str = "", policy: AddressPolicy = CONFIGURED) -> list[str]:
    """List the models of an OpenAI-compatible endpoint, in its order; `api_key` is a reference.

    Raises WorkerFault: `auth` when the key does not resolve or is refused, or what egress says.
    """
    base_url = base_url.rstrip("/")
    provider = provider_of(base_url)
    native = provider is not None and provider.name == "anthropic"
    headers = key_header(api_key)
    if native and api_key:
        # Chat completions take a bearer there, the list of models does not (and has 20 entries a page).
        headers = {"x-api-key": headers["authorization"].removeprefix("Bearer "), "anthropic-version": "2023-06-01"}
    listing = await http_client.get_json(f"{base_url}/models{'?limit=1000' if native else ''}", headers, LIST_S, policy)
    return _names(listing)


def key_header(api_key: str) -> dict[str, str]:
    """Return the header with the key behind a reference, or none. Raises WorkerFault `auth`."""
    if not api_key:
        return {}
    try:
        key = secrets.resolve(api_key)
    except SecretNotFound as error:
        raise WorkerFault("auth", str(error)) from error
    return {"authorization": f"Bearer {key.get_secret_value()}"}


def _names(listing: Any) -> list[str]:
    """Normalize ids: Gemini lists `models/NAME`, but takes NAME."""
    entries = listing.get("data") if isinstance(listing, dict) else None
    if not isinstance(entries, list):
        return []
    named = [entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    return [name.removeprefix("models/") for name in named if name]
