"""How an MCP server is reached: a program to start, or a URL."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from pool_registry import secrets
from pool_registry.network import http_client
from pool_registry.network.address_policy import ALLOW_PRIVATE, AddressPolicy
from pool_registry.strict_model import FrozenModel


class McpServer(FrozenModel):
    """A program to start on this machine, or a URL.

    Values of `env` and `headers` are plain text, or a secret reference (`env:NAME`, `keyring:NAME`); it may
    stand behind a word: `Bearer env:NAME`.
    """

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_-]{0,23}$", description="Stands before its tools' names: a-z, 0-9, _ and -; 24 at most."
    )
    transport: Literal["stdio", "http"] = Field(
        default="stdio", description="stdio starts a program on this machine; http asks a URL (streamable HTTP)."
    )
    command: str = Field(default="", max_length=4000, description="The program alone, such as npx; it is run as you.")
    args: tuple[str, ...] = Field(default=(), description="Its arguments, one by one; no shell reads them.")
    env: dict[str, str] = Field(default_factory=dict, description="More environment; keys as env:NAME or keyring:NAME.")
    cwd: str = Field(default="", description="The folder it starts in; empty for the studio's.")
    url: str = Field(default="", description="For http: the full URL, often ending in /mcp.")
    headers: dict[str, str] = Field(
        default_factory=dict, description="For http, such as Authorization: Bearer env:NAME."
    )
    allow_private: bool = Field(default=False, description=ALLOW_PRIVATE)

    @field_validator("env", "headers")
    @classmethod
    def _holds_no_secret(cls, values: dict[str, str]) -> dict[str, str]:
        for name, value in values.items():
            if secrets.SECRET_NAME.search(name) and value and not secrets.ends_in_reference(value):
                raise ValueError(f"{name} looks like a secret: {secrets.WRITE_REFERENCE}")
            if not re.fullmatch(r"[!-<>-~]+", name) or not value.isprintable():
                raise ValueError(f"{name!r} is no name with a printable value")
        return values

    @field_validator("command", "args", "cwd")
    @classmethod
    def _holds_no_nul(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if "\0" in "".join(value):
            raise ValueError("this must not hold a NUL character")
        return value

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.transport == "stdio" and not self.command.strip():
            raise ValueError("command is missing: the program that is the server, such as npx")
        if self.transport == "http" and not self.url:
            raise ValueError("url is missing: where the server listens, such as http://127.0.0.1:8000/mcp")
        if self.url:
            http_client.check_url(self.url, self.reach)
        return self

    @property
    def reach(self) -> AddressPolicy:
        """Say which addresses requests to `url` may reach."""
        return AddressPolicy(private=self.allow_private, typed=True)

    @property
    def starts(self) -> str:
        """The command line that runs on this machine, for a person to read; "" for a server behind a URL."""
        return " ".join((self.command, *self.args)) if self.transport == "stdio" else ""
