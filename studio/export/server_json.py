"""`server.json`: a pool that is served over MCP, as the MCP registry lists servers.

Format: modelcontextprotocol/registry, docs/reference/server-json, schema of 2025-12-11.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from orchestrator.errors import OrchestratorError
from pool_registry.text import shorten
from pool_registry.validation_words import describe_problems

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
PACKAGE = "podium-studio"
MAX_DESCRIPTION = 100


class InvalidServer(OrchestratorError):
    """Raised when no server can be described so; the message says what to correct."""


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Argument(_Part):
    type: str
    value: str
    name: str | None = None


class Variable(_Part):
    """An environment variable or a header, which the client asks a person for."""

    name: str
    description: str
    is_required: bool = False
    is_secret: bool = False
    value: str | None = None
    variables: dict[str, dict[str, str | bool]] | None = None


class Transport(_Part):
    type: str
    url: str | None = None
    headers: list[Variable] | None = None


class Package(_Part):
    registry_type: str
    identifier: str
    version: str
    runtime_hint: str
    transport: Transport
    package_arguments: list[Argument]
    environment_variables: list[Variable]


class ServerJson(_Part):
    """The document. A name is a domain of the publisher, reversed, a slash and the server's own name."""

    schema_: str = Field(default=SCHEMA, alias="$schema")
    name: str = Field(pattern=r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", min_length=3, max_length=200)
    description: str = Field(min_length=1, max_length=MAX_DESCRIPTION)
    version: str = Field(max_length=255)
    packages: list[Package]
    remotes: list[Transport] | None = None


def build_server_json(name: str, pool: str, description: str = "", url: str = "") -> dict[str, Any]:
    """Describe a served pool; `url` is where it is served over HTTP, besides by `podium serve --mcp`. Raises
    InvalidServer."""
    if url and (urlsplit(url).scheme != "https" or not urlsplit(url).hostname):
        raise InvalidServer("--url: the registry takes an address with https:// alone, such as https://HOST/mcp")
    try:
        document = ServerJson(
            name=name,
            description=shorten(description or f"Answers a question with the agents and tools of {pool}.", 100),
            version=version(PACKAGE),
            packages=[_build_package(pool)],
            remotes=[_build_remote(url)] if url else None,
        )
    except ValidationError as error:
        raise InvalidServer(f"{describe_problems(error)}; a name is such as io.github.YOU/{pool}") from error
    return document.model_dump(mode="json", by_alias=True, exclude_none=True)


def _build_package(pool: str) -> Package:
    """What a client starts: uvx podium-studio serve --mcp --pool POOL."""
    return Package(
        registry_type="pypi",
        identifier=PACKAGE,
        version=version(PACKAGE),
        runtime_hint="uvx",
        transport=Transport(type="stdio"),
        package_arguments=[
            Argument(type="positional", value="serve"),
            Argument(type="positional", value="--mcp"),
            Argument(type="named", name="--pool", value=pool),
        ],
        environment_variables=[Variable(name="PODIUM_HOME", description="The data folder that has the pool.")],
    )


def _build_remote(url: str) -> Transport:
    token: dict[str, dict[str, str | bool]] = {
        "token": {"description": "From podium tokens add NAME.", "isRequired": True, "isSecret": True}
    }
    header = Variable(
        name="Authorization",
        description="A token of this server.",
        is_required=True,
        is_secret=True,
        value="Bearer {token}",
        variables=token,
    )
    return Transport(type="streamable-http", url=url, headers=[header])
