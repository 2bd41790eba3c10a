"""`podium pool add --paste`, and the settings of what a source offers, from the shell."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pool_registry.errors import InvalidPool
from studio.__main__ import app

MCP_SERVER = Path(__file__).parents[2] / "pool_registry" / "support" / "mcp_server.py"
PETS = {
    "openapi": "3.0.3", "info": {"title": "Pets", "version": "1"},
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "api_key"}}},
    "paths": {
        "/pet/{id}": {"get": {
            "operationId": "getPet", "security": [{"key": []}],
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
        }},
        "/stock": {"get": {"operationId": "getStock"}},
    },
}  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}]


@pytest.fixture
def podium(tmp_path):
    """Runs a command on a data folder of its own, with a pool `mine` in it; a problem is raised."""

    def run(*words: str, typed: str = "") -> str:
        result = CliRunner().invoke(app, ["pool", *words, "--home", str(tmp_path / "home")], input=typed)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    run("new", "mine")
    return run


def workers(podium) -> dict[str, dict]:
    return {worker["name"]: worker for worker in json.loads(podium("show", "mine", "--json"))["workers"]}


@pytest.fixture
def pets(tmp_path) -> str:
    file = tmp_path / "pets.json"
    file.write_text(json.dumps(PETS), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("way", [("--from", "openapi:{}"), ("--paste", "{}")])
def test_a_document_that_wants_a_key_takes_it_from_the_shell(podium, pets, way):
    option, place = way
    podium("add", "mine", option, place.format(pets), "--key", "env:PETS", "--server", "https://pets.example.com/v3")
    config = workers(podium)["get_pet"]["config"]
    assert (config["api_key"], config["base_url"]) == ("env:PETS", "https://pets.example.com/v3")
    podium(
        "add",
        "mine",
        "get_pet",
        option,
        place.format(pets),
        "--header",
        "X-Pets: env:PETS",
        "--server",
        "http://10.0.0.1",
        "--private",
    )
    config = workers(podium)["get_pet_2"]["config"]
    assert config["auth"] == {"kind": "header", "name": "X-Pets"} and config["allow_private"]


def test_a_text_is_typed_or_piped_in(podium):
    curl, tools = "curl https://a.example.com/x?city=Oslo", json.dumps(TOOLS)
    assert "Added weather" in podium("add", "mine", "--paste", "--name", "weather", typed=curl)
    assert "Added find" in podium("add", "mine", "--paste", "-", "--server", "https://b.example.com", typed=tools)
    podium("add", "mine", "--server", "https://c.example.com", "--reads-only", "--paste", typed=tools)
    podium("add", "mine", "--paste", "curl https://a.example.com/y", "--name", "written")
    added = workers(podium)
    assert "written" in added
    assert added["weather"]["config"]["defaults"] == {"city": "Oslo"}
    assert added["find_2"]["config"]["url"] == "https://c.example.com/find" and added["find_2"]["effects"] == "none"


def test_keys_in_a_text_are_named_and_not_kept(podium):
    line = "curl https://api.acme.com/x -H 'Authorization: Bearer abcdefgh12345678'"
    assert "export API_ACME_COM_TOKEN=..." in podium("add", "mine", "--paste", typed=line)
    assert "abcdefgh12345678" not in podium("show", "mine", "--json")


@pytest.mark.medium
def test_a_clients_settings_and_a_command_take_environment_and_name(podium, tmp_path):
    entry = {"command": sys.executable, "args": [str(MCP_SERVER)]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"helpers": entry}}), encoding="utf-8")
    podium("add", "mine", "sums_add", "--paste", str(tmp_path / "mcp.json"), "--name", "sums", "--env", "LEVEL=2")
    source = f"mcp:{sys.executable} {MCP_SERVER}"
    podium("add", "mine", "more_add", "--from", source, "--name", "more", "--env", "LEVEL=3")
    added = workers(podium)
    assert added["sums_add"]["config"]["server"]["env"] == {"LEVEL": "2"}
    assert added["more_add"]["config"]["server"]["env"] == {"LEVEL": "3"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--paste", "no-such-file"), "cannot be read"),
        (("--from", "function:tools.py", "--key", "env:K"), "--key is of no use"),
        (("calc", "--kind", "calculator", "--private"), "--private is of no use"),
        (("--from", "mcp:npx acme", "--header", "a: b"), "--header is of no use"),
        (("--from", "openapi:{pets}", "--key", "written-out"), "env:NAME"),
        (("--paste", "{pets}", "--env", "A=b"), "no use"),
    ],
)
def test_a_setting_without_use_is_refused(podium, pets, words, why):
    with pytest.raises(InvalidPool, match=why):
        podium("add", "mine", *(word.format(pets=pets) for word in words))


def test_an_import_of_something_else_names_the_command(podium, pets):
    with pytest.raises(InvalidPool, match="podium pool add POOL --paste FILE"):
        podium("import", pets)
