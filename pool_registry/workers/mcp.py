"""Kind `mcp`: one tool of an MCP server, over stdio or streamable HTTP."""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pool_registry import egress, secrets

SECRET_NAME = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)


class McpServer(BaseModel):
    """How to reach an MCP server: a program to start on this machine, or a URL.

    Values of `env` and `headers` are plain text, or a secret reference (`env:NAME`, `keyring:NAME`); in a
    header it may stand behind a word: `Bearer env:NAME`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        default_factory=dict, description="For http: such as Authorization: Bearer env:NAME."
    )

    @field_validator("url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        return egress.check_url(value) if value else value

    @field_validator("env", "headers")
    @classmethod
    def _holds_no_secret(cls, values: dict[str, str]) -> dict[str, str]:
        for name, value in values.items():
            reference = value.rpartition(" ")[2]
            if SECRET_NAME.search(name) and value and not secrets.REFERENCE.match(reference):
                raise ValueError(f"{name} looks like a secret: write env:NAME or keyring:NAME; the key is never stored")
            if not name.isprintable() or not value.isprintable() or "=" in name or not name.strip():
                raise ValueError(f"{name!r} is no name with a printable value")
        return values

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.transport == "stdio" and not self.command.strip():
            raise ValueError("command is missing: the program that is the server, such as npx")
        if self.transport == "http" and not self.url:
            raise ValueError("url is missing: where the server listens, such as http://127.0.0.1:8000/mcp")
        return self


class McpConfig(BaseModel):
    model_config = ConfigDict(extra="forbid")

    server: McpServer
    tool: str = Field(min_length=1, max_length=256, description="The tool's name at the server.")
    parameters: dict[str, Any] = Field(
        default_factory=lambda: {"type": "object"}, description="JSON Schema of its arguments, as recorded at import."
    )
