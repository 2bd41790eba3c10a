"""Providers of chat models. Every one of them answers the `chat` kind through its base URL alone; what differs is in
`settings`, in ChatConfig's words."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import TypeAdapter

from pool_registry.actions import JsonValue
from pool_registry.gallery import read_gallery
from pool_registry.strict_model import FrozenModel


class Provider(FrozenModel):
    """One provider. `key` is the usual name of its environment variable, "" where no key is needed;
    `key_url` is where a person gets one; `note` is what a person should know before choosing it."""

    name: str
    label: str
    base_url: str
    key: str = ""
    key_url: str = ""
    suggested: tuple[str, ...] = ()
    note: str = ""
    settings: dict[str, JsonValue] = {}
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


PROVIDERS = TypeAdapter(tuple[Provider, ...]).validate_python(read_gallery("providers"))


def provider_of(base_url: str) -> Provider | None:
    """Find the provider of a base URL by its host; None for any other endpoint."""
    place = urlsplit(base_url).netloc
    return next((provider for provider in PROVIDERS if urlsplit(provider.base_url).netloc == place), None)
