"""Links that add an MCP server to a client, the registry's server.json, and settings with a client's own switches."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest

from pool_registry.errors import InvalidPool
from pool_registry.pasted.base import ImportSettings
from pool_registry.pasted.mcp_link import read_install_link
from pool_registry.pasted.table import recognise
from tests.pool_registry.pasted.test_client_commands import program, read_servers

ENTRY = {"command": "npx", "args": ["-y", "@acme/files", "a b"], "env": {"A": "1"}}
FILES = program("npx", "-y", "@acme/files", "a b", A="1")
CODED = base64.b64encode(json.dumps(ENTRY).encode()).decode()
WEB = {"transport": "http", "url": "https://a.example.com/mcp"}
NAME = "io.github.acme/files"


@pytest.mark.parametrize(
    "link",
    [
        f"cursor://anysphere.cursor-deeplink/mcp/install?name=files&config={quote(CODED)}",
        f"cursor://anysphere.cursor-deeplink/mcp/install?name=files&config={CODED}",
        f"https://cursor.com/en/install-mcp?name=files&config={CODED.rstrip('=')}",
        f"lmstudio://add_mcp?name=files&config={quote(CODED)}",
        f"vscode:mcp/install?{quote(json.dumps({'name': 'files', **ENTRY}))}",
        f"https://insiders.vscode.dev/redirect/mcp/install?name=files&config={quote(json.dumps(ENTRY))}&quality=insiders",
    ],
)
def test_a_link_is_the_entry_that_it_would_write(link):
    assert read_servers(link) == {"files": FILES}
    assert read_servers(f"\n{link}\n") == {"files": FILES}


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example.com/mcp/install?name=files",
        "cursor://anysphere.cursor-deeplink/mcp/install?name=files&config=@@",
        "see https://cursor.com/install-mcp?name=a&config=e30",
        "vscode:mcp/install?" + "%" * 30_000,
    ],
)
def test_what_names_no_server_is_no_link(text):
    assert read_install_link(text) == {}


def listed(**more: Any) -> str:
    return json.dumps({"name": NAME, "description": "Files.", "version": "1.2.0", **more})


@pytest.mark.parametrize(
    ("package", "entry"),
    [
        ({"registryType": "npm", "identifier": "@acme/files"}, program("npx", "-y", "@acme/files@1.2.0")),
        ({"registryType": "pypi", "identifier": "acme-files"}, program("uvx", "acme-files==1.2.0")),
        ({"registry_type": "npm", "identifier": "@acme/files@2"}, program("npx", "-y", "@acme/files@2")),
        (
            {
                "registryType": "oci",
                "identifier": "acme/files:1",
                "environmentVariables": [{"name": "A", "default": "1"}],
            },
            program("docker", "run", "-i", "--rm", "-e", "A", "acme/files:1", A="1"),
        ),
        (
            {
                "registryType": "npm",
                "identifier": "files",
                "environmentVariables": [{"name": "TOKEN", "isSecret": True}, {"name": "MORE"}],
                "packageArguments": [{"type": "named", "name": "--mode", "value": "x"}, {"type": "positional"}],
            },
            program("npx", "-y", "files@1.2.0", "--mode", "x", TOKEN="env:TOKEN"),
        ),
    ],
)
def test_a_listing_is_started_from_its_package(package, entry):
    assert read_servers(listed(packages=[{"version": "1.2.0", **package}])) == {"files": entry}


def test_a_listing_is_reached_at_its_address_also_as_the_registry_wraps_it():
    remotes = [{"type": "streamable-http", "url": WEB["url"], "headers": [{"name": "X-Key", "isRequired": True}]}]
    document = json.loads(listed(remotes=remotes, packages=[{"registryType": "npm", "identifier": "files"}]))
    entry = {**WEB, "headers": {"X-Key": "env:X_KEY"}}
    for text in (document, {"server": document, "_meta": {}}):
        assert read_servers(json.dumps(text)) == {"files": entry}


def test_a_listing_that_leaves_something_to_a_person_says_what():
    needy = {
        "registryType": "npm",
        "identifier": "files",
        "packageArguments": [{"valueHint": "folder", "isRequired": True}],
    }
    with pytest.raises(InvalidPool, match="it needs folder, which its listing leaves to you"):
        recognise(listed(packages=[needy]), ImportSettings())
    with pytest.raises(InvalidPool, match="none of npm, pypi, oci"):
        recognise(listed(packages=[{"registryType": "nuget", "identifier": "files"}]), ImportSettings())


def test_an_address_is_a_server_whatever_else_its_client_sets():
    entry = {"httpUrl": WEB["url"], "timeout": 5000, "trust": True, "includeTools": ["a"]}
    assert read_servers(json.dumps({"mcpServers": {"web": entry}})) == {"web": WEB}
    with pytest.raises(InvalidPool):
        recognise(json.dumps({"servers": {"web": {"url": WEB["url"], "weight": 3}}}), ImportSettings())
