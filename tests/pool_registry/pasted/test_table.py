"""Each kind of text is recognised and becomes the workers that it describes; no key in it is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.errors import InvalidPool
from pool_registry.imports import Offer
from pool_registry.kinds import load_config
from pool_registry.pasted.base import ImportSettings, Source
from pool_registry.pasted.table import KINDS, RecognisedText, find_kind, recognise

KEY = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
NPX = {"command": "npx", "args": ["-y", "@acme/server-files"]}
TOOL = {"name": "get_stock", "description": "Stock.", "parameters": {
    "type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]
}}  # fmt: skip
OPENAPI = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {"/a": {"get": {"operationId": "a"}}}}
CARD = {
    "protocolVersion": "0.3.0", "name": "Geo", "description": "Routes.", "url": "https://geo.example.com/a2a",
    "version": "1", "capabilities": {}, "skills": [{"id": "r", "name": "r", "description": "d", "tags": []}],
}  # fmt: skip
COLLECTION = {
    "info": {"name": "Shop", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
    "item": [{"name": "Stock", "request": "https://shop.example.com/stock"}],
}
SKILL = "---\nname: pdf-forms\ndescription: Fills forms: all of them.\n---\n# Forms\n\nUse scripts/fill.py."


def read(text: object, **settings: Any) -> RecognisedText:
    return recognise(text if isinstance(text, str) else json.dumps(text), ImportSettings(**settings))


def servers(text: object, **settings: Any) -> dict[str, Any]:
    """The servers of a client's settings by name, as they would be asked."""
    return {source.name: source.fields["server"] for source in read(text, **settings).recognition.sources}


def offer(text: object, **settings: Any) -> Offer:
    [only] = read(text, **settings).recognition.offers
    return only


def config(text: object, **settings: Any) -> dict[str, Any]:
    ready = offer(text, **settings)
    assert not ready.problem, ready.problem
    return ready.spec.config


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ({"mcpServers": {"files": NPX}}, "mcp_servers"),
        ({"servers": {"files": {"type": "http", "url": "https://a.example.com/mcp"}}, "inputs": []}, "mcp_servers"),
        ({"mcp": {"servers": {"files": NPX}}}, "mcp_servers"),
        ({"files": NPX, "more": NPX}, "mcp_servers"),
        ('"files": {"command": "npx", "args": []},', "mcp_servers"),
        ('[mcp_servers.files]\ncommand = "npx"', "mcp_servers"),
        ("npx -y @acme/server-files /tmp", "mcp_servers"),
        ("claude mcp add files -- npx -y @acme/server-files", "mcp_servers"),
        ("mcpServers:\n  files:\n    command: npx", "mcp_servers"),
        (COLLECTION, "postman"),
        ({"collection": COLLECTION}, "postman"),
        (OPENAPI, "openapi"),
        (OPENAPI | {"servers": [{"url": "https://a.example.com"}]}, "openapi"),
        ("openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths: {}", "openapi"),
        ({"swagger": "2.0", "paths": {}}, "openapi"),
        ([TOOL], "tools_list"),
        ([{"type": "function", "function": TOOL}], "tools_list"),
        ([{"type": "function", **TOOL}], "tools_list"),
        ({"model": "m", "messages": [], "tools": [{"type": "function", "function": TOOL}]}, "tools_list"),
        ([{"name": "get_stock", "input_schema": TOOL["parameters"]}], "tools_list"),
        ([{"functionDeclarations": [TOOL]}], "tools_list"),
        ("curl https://a.example.com", "curl"),
        ("$ curl -s https://a.example.com | jq .", "curl"),
        (CARD, "agent_card"),
        (SKILL, "skill"),
        ("http://localhost:11434", "address"),
        ("192.168.1.5:8000/v1", "address"),
        ("https://a.example.com/openapi.json env:ACME_KEY", "address"),
    ],
)
def test_each_kind_is_recognised_in_a_chats_fence_too(text, kind):
    written = text if isinstance(text, str) else json.dumps(text, indent=2)
    for form in (written, f"```json\n{written}\n```", f"\ufeff\r\n{written}\r\n"):
        row = find_kind(form)
        assert row is not None and row.name == kind


@pytest.mark.parametrize(
    "text", ["", "  ", "hello", "[1, 2]", "{}", '{"a": 1', '{"podium_pool": 1}', "---\nx\n---", "curly"]
)
def test_what_is_nothing_says_what_is_accepted(text):
    with pytest.raises(InvalidPool) as refused:
        read(text)
    assert "paste something" in str(refused.value) or "Accepted are" in str(refused.value)


def test_json_is_read_with_comments_and_trailing_commas():
    text = '{\n // mine\n "mcpServers": {"web": {"url": "https://a.example.com/mcp", /* x */ "type": "http",},},\n}'
    assert servers(text)["web"]["url"] == "https://a.example.com/mcp"


def test_a_servers_keys_become_references_and_the_rest_stays():
    env = {"GITHUB_TOKEN": KEY, "PORT": 8080, "DEBUG": True, "HOME_DIR": "/tmp", "DB": "postgresql://u:secret12@h/d"}
    web = {"url": "https://a.example.com/mcp", "headers": {"Authorization": f"Bearer {KEY}", "X-Team": "blue"}}
    text = read({"mcpServers": {"git": {**NPX, "env": env}, "web": web}})
    asked = {source.name: source.fields["server"] for source in text.recognition.sources}
    assert asked["git"]["env"] == {
        "GITHUB_TOKEN": "env:GITHUB_TOKEN", "PORT": "8080", "DEBUG": "true", "HOME_DIR": "/tmp", "DB": "env:DB"
    }  # fmt: skip
    assert asked["web"]["headers"] == {"Authorization": "Bearer env:WEB_AUTHORIZATION", "X-Team": "blue"}
    assert KEY not in repr(text) and "secret12" not in repr(text)
    assert any("export GITHUB_TOKEN=..." in note for note in text.recognition.notes)


def test_what_a_client_would_fill_in_is_read_from_the_environment():
    entry = {"url": "https://a.example.com/mcp", "headers": {"Authorization": "Bearer ${input:git-token}"}}
    assert servers({"servers": {"web": entry}})["web"]["headers"] == {"Authorization": "Bearer env:GIT_TOKEN"}
    env = {"A": "${env:MINE}", "B": "$MINE", "C": "${MINE:-none}"}
    assert set(servers({"mcpServers": {"git": {**NPX, "env": env}}})["git"]["env"].values()) == {"env:MINE"}


def test_a_key_among_the_arguments_goes_through_the_environment():
    header = f"Authorization: Bearer {KEY}"
    args = [
        "-y",
        "acme",
        "--api-key",
        "acme-12345678",
        "--header",
        header,
        "--dir",
        "my files",
        "postgresql://u:pass1234@h",
    ]
    server = servers({"mcpServers": {"acme": {"command": "npx", "args": args}}})["acme"]
    assert server["command"] == "sh" and KEY not in json.dumps(server) and "pass1234" not in json.dumps(server)
    assert '--api-key "$ACME_API_KEY"' in server["args"][1] and "'my files'" in server["args"][1]
    assert server["env"]["ACME_API_KEY"] == "env:ACME_API_KEY"


def test_one_server_that_cannot_be_used_leaves_the_others():
    entries = {
        "bad": {"url": f"https://a.example.com/mcp?api_key={KEY}"},
        "off": {**NPX, "disabled": True},
        "good": NPX,
        "odd": 3,
    }
    text = read({"mcpServers": entries})
    assert [source.name for source in text.recognition.sources] == ["good"]
    reasons = {refusal.spec.name: refusal.problem for refusal in text.recognition.offers}
    assert (
        "holds a key" in reasons["bad"] and "switched off" in reasons["off"] and "neither a command" in reasons["odd"]
    )


def test_settings_reach_the_server_or_are_refused():
    server = servers({"mcpServers": {"a": NPX}}, name="files", env={"ROOT": "/tmp"})["files"]
    assert server["env"] == {"ROOT": "/tmp"}
    web = servers({"url": "http://10.0.0.1/mcp", "type": "http"}, name="web", key="env:K", private=True)["web"]
    assert (web["headers"], web["allow_private"]) == ({"Authorization": "Bearer env:K"}, True)
    with pytest.raises(InvalidPool, match="keep their names"):
        servers({"mcpServers": {"a": NPX, "b": NPX}}, name="files")
    with pytest.raises(InvalidPool, match="no use"):
        read({"mcpServers": {"a": NPX}}, server="https://a.example.com")


def test_a_documents_operations_take_the_key_and_the_server():
    document = OPENAPI | {
        "components": {"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
        "security": [{"k": []}],
    }
    assert "needs a key" in offer(document, server="https://a.example.com").problem
    ready = config(document, server="https://a.example.com", key="env:K")
    assert (ready["base_url"], ready["api_key"], ready["auth"]["name"]) == ("https://a.example.com", "env:K", "X-Key")
    mine = config(document, server="https://a.example.com", headers={"X-Mine": "env:K"})
    assert mine["auth"] == {"kind": "header", "name": "X-Mine"}


@pytest.mark.parametrize("form", [[{"type": "function", "function": TOOL}], [TOOL], TOOL])
def test_tools_are_called_where_a_person_says_and_echo_their_calls_till_then(form):
    stub = offer(form)
    assert (stub.problem, stub.spec.kind) == ("", "recorded") and stub.spec.config["echoes"] is True
    assert stub.spec.config["parameters"] == TOOL["parameters"]
    assert "not where they run" in read(form).recognition.notes[0]
    assert read(form, server="https://a.example.com").recognition.notes == ()
    ready = config(form, server="https://tools.example.com/", key="env:K")
    assert (ready["url"], ready["method"]) == ("https://tools.example.com/get_stock", "POST")
    assert (ready["body"], ready["parameters"]) == ({"item": "{item}"}, TOOL["parameters"])
    assert ready["headers"] == {"Authorization": "Bearer env:K"}


def test_an_agent_card_is_a_worker_at_its_address_for_json_rpc():
    ready = offer(CARD)
    assert (ready.spec.kind, ready.spec.name) == ("a2a", "geo")
    assert config(CARD) == {"url": "https://geo.example.com/a2a", "version": "0.3"}
    assert "Routes. r: d" in ready.spec.description
    card = {name: value for name, value in CARD.items() if name not in ("url", "protocolVersion")}
    grpc = {"url": "https://g.example.com", "protocolBinding": "GRPC", "protocolVersion": "1.0"}
    rpc = {"url": "https://r.example.com/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    assert config({**card, "supportedInterfaces": [grpc, rpc]}) == {"url": rpc["url"], "version": "1.0"}
    assert "it has: GRPC" in offer({**card, "supportedInterfaces": [grpc]}).problem


@pytest.mark.parametrize(
    "scheme",
    [
        {"type": "apiKey", "in": "header", "name": "X-Key"},
        {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
    ],
)
def test_an_agent_card_that_wants_a_key_takes_a_reference(scheme):
    card = CARD | {"securitySchemes": {"k": scheme}, "security": [{"k": []}]}
    assert "needs a key" in offer(card).problem
    ready = config(card, key="env:GEO")
    assert (ready["api_key"], ready["auth"]) == ("env:GEO", {"kind": "header", "name": "X-Key"})


def test_a_card_from_elsewhere_names_no_address_of_this_machine():
    card = CARD | {"url": "http://127.0.0.1:9/a2a"}
    assert "from elsewhere" in offer(card, source="https://geo.example.com/card").problem
    assert not offer(card).problem


def test_a_skill_is_the_role_of_an_agent():
    text = read(SKILL)
    [ready] = text.recognition.offers
    assert not ready.problem
    assert (ready.spec.name, ready.spec.description) == ("pdf-forms", "Fills forms: all of them.")
    assert ready.spec.config["role"].startswith("# Forms")
    assert "scripts/fill.py" in text.recognition.notes[0]


def test_an_address_is_asked_with_its_key():
    def ask(text: str) -> tuple[Source, tuple[str, ...]]:
        recognition = read(text).recognition
        return recognition.sources[0], recognition.notes

    source, notes = ask("https://a.example.com/v1 sk-abcdef0123456789abcdef")
    assert source.fields["api_key"] == "env:A_EXAMPLE_COM_KEY" and "export A_EXAMPLE_COM_KEY=..." in notes[0]
    assert ask("https://a.example.com/v1 key: env:MINE")[0].fields["api_key"] == "env:MINE"
    header = ask("https://a.example.com/openapi.json\nX-API-Key: abcdef0123456789")[0]
    assert header.fields["server"] == {"headers": {"X-API-Key": "env:A_EXAMPLE_COM_X_API_KEY"}}
    with pytest.raises(InvalidPool, match="allow private"):
        ask("http://10.0.0.1/v1")


MARKS = [
    "'",
    '"',
    "\\\n",
    "$'",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\x00",
    "\ud83d",
    "=",
    "&",
    "\n",
    "//",
    "/*",
    "@",
    "---\n",
]
WORDS = ["curl ", "-H ", "-d ", "-u ", "--json ", "https://a.example.com/", "http://", "npx ", "env:", "${A}", "[a]\n"]
NAMES = ["mcpServers", "command", "url", "openapi", "3.1.0", "tools", "name", "parameters", "skills", "description: "]
PIECES = st.sampled_from([*MARKS, *WORDS, *NAMES, "null", "1e999"])
FIELDS = [
    "servers",
    "mcp",
    "args",
    "env",
    "headers",
    "type",
    "function",
    "paths",
    "capabilities",
    "swagger",
    "functions",
]
KEYS = st.sampled_from([*NAMES[:5], *NAMES[6:9], *FIELDS, "input_schema", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=14).map("".join), JSON.map(json.dumps)))
def test_any_text_ends_in_workers_or_in_a_problem(text):
    try:
        reply = read(text)
    except InvalidPool as error:
        assert all(what for _, what in error.problems)
        return
    assert reply.kind in KINDS
    assert reply.recognition.offers or reply.recognition.sources
    for ready in reply.recognition.offers:
        if not ready.problem:
            load_config(ready.spec)
    json.dumps([ready.spec.model_dump() for ready in reply.recognition.offers]).encode()


SAID = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WRITTEN: dict[str, object] = {
    "MCP": {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "weather", "inputSchema": SAID}]}},
    "Bedrock": {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": SAID}}}]},
    "a reference": {"name": "weather", "parameters": {"$ref": "#/definitions/A", "definitions": {"A": SAID}}},
    "bare fields": {"name": "weather", "parameters": {"city": {"type": "str", "required": True}}},
    "a list of fields": {"name": "weather", "parameters": [{"name": "city", "type": "string", "required": True}]},
    "choices in words": {
        "name": "weather",
        "parameters": SAID | {"properties": {"city": {"type": "string", "enum": "Oslo, Rome"}}},
    },
}


@pytest.mark.parametrize("form", WRITTEN)
def test_arguments_are_those_of_the_tool_however_they_are_written(form):
    [offer] = recognise(json.dumps(WRITTEN[form]), ImportSettings()).recognition.offers
    assert offer.spec.name == "weather" and not offer.problem
    parameters = offer.spec.config["parameters"]
    assert parameters["properties"] == {"city": {"type": "string"}} and parameters["required"] == ["city"]
    assert bool(offer.spec.config.get("mended")) == (form not in ("MCP", "Bedrock", "a reference"))
