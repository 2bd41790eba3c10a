"""Commands that add an MCP server to a client, and settings in YAML, are read as the entries that they stand for."""

from __future__ import annotations

from typing import Any

import pytest

from pool_registry.errors import InvalidPool
from pool_registry.pasted.base import ImportSettings
from pool_registry.pasted.table import recognise

KEY = "pat1234567890abcdefghijklmnop"


def read_servers(text: str) -> dict[str, dict[str, Any]]:
    """What is set of each server, by name."""
    sources = recognise(text, ImportSettings()).recognition.sources
    return {
        source.name: {name: value for name, value in source.fields["server"].items() if value and name != "name"}
        for source in sources
    }


def program(*words: str, **env: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"transport": "stdio", "command": words[0]}
    return entry | ({"args": list(words[1:])} if words[1:] else {}) | ({"env": env} if env else {})


@pytest.mark.parametrize(
    ("text", "name", "entry"),
    [
        ("claude mcp add files -- npx -y @acme/files -e x", "files", program("npx", "-y", "@acme/files", "-e", "x")),
        (
            "$ claude mcp add -s user -e A=1 B=2 weather \\\n  -- uvx mcp-weather",
            "weather",
            program("uvx", "mcp-weather", A="1", B="2"),
        ),
        ("codex mcp add --env A=1 docs -- npx docs", "docs", program("npx", "docs", A="1")),
        ("gemini mcp add --trust mine /srv/run one -v", "mine", program("/srv/run", "one", "-v")),
        (
            """claude mcp add-json --scope user w '{"command": "/srv/run", "args": ["one"]}'""",
            "w",
            program("/srv/run", "one"),
        ),
        ("""code --add-mcp '{"name": "p", "command": "npx", "args": ["p"]}'""", "p", program("npx", "p")),
        (
            "claude mcp add --transport=http web https://a.example.com/mcp --header 'X-Team: blue'",
            "web",
            {"transport": "http", "url": "https://a.example.com/mcp", "headers": {"X-Team": "blue"}},
        ),
        (
            "codex mcp add web --url https://a.example.com/mcp --bearer-token-env-var ACME",
            "web",
            {
                "transport": "http",
                "url": "https://a.example.com/mcp",
                "headers": {"Authorization": "Bearer env:ACME"},
            },
        ),
        ("mcpServers:\n  files:\n    command: npx\n    args: [files]", "files", program("npx", "files")),
        (
            "name: x\nmcpServers:\n  - name: files\n    command: npx\n    args:\n      - files",
            "files",
            program("npx", "files"),
        ),
        ("extensions:\n  gh:\n    cmd: npx\n    args: [gh]\n    envs: {A: b}", "gh", program("npx", "gh", A="b")),
    ],
)  # fmt: skip
def test_a_command_is_the_entry_that_it_writes(text: str, name: str, entry: dict[str, Any]):
    assert read_servers(text) == {name: entry}


def test_several_commands_among_other_lines_are_read_and_no_key_is_kept():
    text = (
        "# the tools of the team\n"
        f"claude mcp add one --env ACME_API_KEY={KEY} -- npx one\n"
        f'claude mcp add -t http two https://a.example.com/mcp -H "Authorization: Bearer {KEY}"\n'
    )
    servers = read_servers(text)
    assert servers["one"]["env"] == {"ACME_API_KEY": "env:ACME_API_KEY"}
    assert servers["two"]["headers"] == {"Authorization": "Bearer env:TWO_AUTHORIZATION"}
    assert KEY not in repr(servers)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("claude mcp add files", "names no program and no address"),
        ("claude mcp add 'files", "quotation mark"),
        ("claude mcp add-json files {oops", "no JSON object"),
        ("\n".join("claude mcp add a -- b" for _ in range(60)), "at most 50"),
        ("claude mcp add a -- " + "b" * 5000, "at most 50 commands of 4,000"),
    ],
)
def test_a_command_that_cannot_be_read_says_what_is_wrong(text: str, problem: str):
    with pytest.raises(InvalidPool, match=problem):
        read_servers(text)


def test_yaml_that_is_nested_too_deep_ends_no_process():
    with pytest.raises(InvalidPool, match="Accepted are"):
        read_servers("mcpServers:\n  a: " + "[" * 90_000 + "]" * 90_000)


def test_yaml_that_repeats_itself_is_not_unfolded():
    levels = "\n".join(f"l{k}: &l{k} [*l{k - 1}, *l{k - 1}]" for k in range(1, 40))
    with pytest.raises(InvalidPool, match="Accepted are"):
        read_servers(f"mcpServers:\n  a: {{command: npx}}\nl0: &l0 [x]\n{levels}")
