"""Agents of LangGraph, the OpenAI Agents SDK and CrewAI in a person's file, run by these packages themselves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pool_registry.actions import Action, Observation
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.imports import Offer
from pool_registry.imports.functions import list_functions
from pool_registry.pool import Pool
from pool_registry.processes.function_process import FunctionPermissions
from pool_registry.wants import list_wants
from tests.framework_python import find_python

GRAPHS = """
from typing import TypedDict

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt


class Joke(TypedDict):
    topic: str
    joke: str


class Topic(TypedDict):
    topic: str


def build(node, state, **schemas):
    return StateGraph(state, **schemas).add_node("node", node).add_edge(START, "node")


def reply(state: MessagesState) -> dict:
    return {"messages": [AIMessage([{"type": "text", "text": f"{len(state['messages'])} heard"}])]}


async def write_joke(state: Joke) -> dict:
    return {"joke": f"a joke about {state['topic']}"}


def fail(state: MessagesState) -> dict:
    raise ValueError("no such city")


def wait(state: MessagesState) -> dict:
    interrupt("sure?")


builder = build(reply, MessagesState)
graph = builder.compile(checkpointer=InMemorySaver())
same_graph = graph
jokes = build(write_joke, Joke).compile()
strict_jokes = build(write_joke, Joke, input_schema=Topic).compile()
failing = build(fail, MessagesState).compile()
waiting = build(wait, MessagesState).compile(checkpointer=InMemorySaver())
_hidden = failing
"""
SDK = """
from agents import Agent, Model, ModelResponse, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)


class Echo(Model):
    async def get_response(self, system_instructions, input, *args, **kwargs):
        text = input if isinstance(input, str) else input[-1]["content"]
        part = ResponseOutputText(type="output_text", text=f"{system_instructions}: {text}", annotations=[])
        message = ResponseOutputMessage(
            id="1", type="message", role="assistant", status="completed", content=[part]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


echo = Agent(name="Echo", instructions="Say again", model=Echo())
routed = Agent(name="Routed", handoff_description="Speaks to a model", instructions="x" * 5000, model="gpt-4.1-mini")
"""
CREWS = """
from crewai import Agent, BaseLLM, Crew, Task


class Echo(BaseLLM):
    def call(self, messages, *args, **kwargs):
        last = messages if isinstance(messages, str) else messages[-1]["content"]
        return f"Thought: done\\nFinal Answer: {'about bees' if 'bees' in last else 'answered'}"


researcher = Agent(role="Researcher", goal="Find facts", backstory="Careful.", llm=Echo(model="echo"))
report = Task(description="Report on {topic}", expected_output="A line", agent=researcher)
crew = Crew(agents=[researcher], tasks=[report])
"""

CREW_CLASS = """
from crewai import Agent, BaseLLM, Crew, Task
from crewai.project import CrewBase, agent, crew, task


class Echo(BaseLLM):
    def call(self, messages, *args, **kwargs):
        last = messages if isinstance(messages, str) else messages[-1]["content"]
        return f"Thought: done\\nFinal Answer: {'about bees' if 'bees' in last else 'answered'}"


@CrewBase
class ReportCrew:
    \"\"\"Writes a short report.\"\"\"

    agents_config = "agents.yaml"
    tasks_config = "tasks.yaml"

    @agent
    def researcher(self) -> Agent:
        return Agent(config=self.agents_config["researcher"], llm=Echo(model="echo"))

    @task
    def report(self) -> Task:
        return Task(config=self.tasks_config["report"])

    @crew
    def crew(self) -> Crew:
        return Crew(agents=self.agents, tasks=self.tasks)
"""
CREW_AGENTS = "researcher:\n  role: Researcher\n  goal: Find facts\n  backstory: Careful.\n"
CREW_TASKS = "report:\n  description: Report on {topic}\n  expected_output: A line\n  agent: researcher\n"


def write_file(folder: Path, code: str) -> str:
    file = folder / "my_agents.py"
    file.write_text(code)
    return str(file)


def look(target: str, python: str, permissions: FunctionPermissions | None) -> dict[str, Offer]:
    return {offer.spec.name: offer for offer in asyncio.run(list_functions(target, python, permissions))}


def call(offers: dict[str, Offer], worker: str, **arguments: str) -> Observation:
    async def run() -> Observation:
        async with live_pool(Pool(name="p", workers=(offers[worker].spec,))) as pool:
            return await pool.call(Action(worker, arguments))

    return asyncio.run(run())


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Offer]:
    """The graphs of a file, looked at in the sandbox without any permission."""
    target = write_file(tmp_path_factory.mktemp("graphs"), GRAPHS)
    return look(target, find_python("langgraph"), FunctionPermissions())


@pytest.mark.medium
def test_a_file_with_agents_offers_each_once_and_none_of_its_nodes(graphs):
    assert list(graphs) == ["graph", "jokes", "strict_jokes", "failing", "waiting"]
    assert not any(offer.problem for offer in graphs.values())
    assert graphs["graph"].spec.timeout_s == 180


@pytest.mark.medium
def test_a_graph_over_messages_is_asked_in_words_and_keeps_nothing(graphs):
    assert list(graphs["graph"].spec.config["parameters"]["properties"]) == ["message"]
    assert call(graphs, "graph", message="hello").value == "1 heard"
    assert call(graphs, "graph", message="again").value == "1 heard"


@pytest.mark.medium
def test_another_graph_takes_the_fields_of_its_state(graphs):
    assert call(graphs, "jokes", topic="bees").value == {"topic": "bees", "joke": "a joke about bees"}
    assert graphs["strict_jokes"].spec.config["parameters"]["required"] == ["topic"]
    assert "required" not in graphs["jokes"].spec.config["parameters"]


@pytest.mark.medium
def test_what_goes_wrong_in_a_graph_is_named(graphs):
    error = call(graphs, "failing", message="hello").error
    assert error is not None and error.message.startswith("ValueError: no such city (my_agents.py, line ")
    error = call(graphs, "waiting", message="hello").error
    assert error is not None and "waits for a person" in error.message


@pytest.mark.slow
def test_an_agent_of_openais_sdk_answers_and_names_a_missing_key(tmp_path):
    python = find_python("agents")
    offers = look(write_file(tmp_path, SDK), python, FunctionPermissions(network=True))
    assert offers["echo"].spec.description == "Echo: Say again"
    assert offers["routed"].spec.description == "Speaks to a model"
    assert call(offers, "echo", message="hello").value == "Say again: hello"
    error = call(offers, "routed", message="hello").error
    assert error is not None and "OpenAIError" in error.message and "--allow key:env:NAME" in error.message


@pytest.mark.slow
def test_a_crew_takes_the_placeholders_of_its_tasks_and_its_agent_a_message(tmp_path):
    python, home = find_python("crewai"), tmp_path / "home"
    home.mkdir()
    permissions = FunctionPermissions(network=True, write=(home,))
    offers = look(write_file(tmp_path, CREWS), python, permissions)
    assert offers["crew"].spec.config["parameters"]["required"] == ["topic"]
    assert offers["crew"].spec.description == "Report on {topic}"
    assert call(offers, "crew", topic="bees").value == "about bees"
    assert call(offers, "researcher", message="hello").value == "answered"


@pytest.mark.slow
def test_a_crew_class_is_asked_through_the_crew_of_its_files(tmp_path):
    python, home = find_python("crewai"), tmp_path / "home"
    home.mkdir()
    (tmp_path / "agents.yaml").write_text(CREW_AGENTS)
    (tmp_path / "tasks.yaml").write_text(CREW_TASKS)
    permissions = FunctionPermissions(network=True, read=(tmp_path,), write=(home,))
    offers = look(write_file(tmp_path, CREW_CLASS), python, permissions)
    assert list(offers) == ["report_crew"]
    assert offers["report_crew"].spec.description == "Writes a short report."
    assert offers["report_crew"].spec.config["parameters"]["required"] == ["topic"]
    assert call(offers, "report_crew", topic="bees").value == "about bees"


OWN_AGENTS = """
class Agent:
    pass
"""
OWN_FILE = """
from agents import Agent

helper = Agent()


def add(a: int, b: int) -> int:
    return a + b
"""


@pytest.mark.medium
def test_a_package_of_ones_own_that_is_called_agents_is_no_framework(tmp_path):
    (tmp_path / "agents.py").write_text(OWN_AGENTS)
    offers = look(write_file(tmp_path, OWN_FILE), "", FunctionPermissions())
    assert list(offers) == ["add"] and call(offers, "add", a=1, b=2).value == 3


UNREADABLE = """
from agents import Agent

broken, whole = Agent("", "Broken"), Agent("Speaks", "Whole")
broken.name = None
del broken.instructions
"""
STAND_IN = """
class Runner:
    pass


class Agent:
    def __init__(self, about, name):
        self.handoff_description, self.name, self.instructions = about, name, "Say"
"""


@pytest.mark.medium
def test_an_agent_that_cannot_be_described_keeps_no_other_from_being_used(tmp_path):
    (tmp_path / "agents.py").write_text(STAND_IN)
    offers = look(write_file(tmp_path, UNREADABLE), "", FunctionPermissions())
    assert "AttributeError" in offers["broken"].problem and not offers["whole"].problem


@pytest.mark.medium
def test_a_state_whose_types_cannot_be_read_is_a_problem_of_its_graph(tmp_path):
    code = f"{GRAPHS}\nJoke.__annotations__['joke'] = 'Lost'\n"
    offers = look(write_file(tmp_path, code), find_python("langgraph"), FunctionPermissions())
    assert "Lost" in offers["jokes"].problem and not offers["graph"].problem


@pytest.mark.medium
def test_a_package_that_is_missing_is_named_with_what_to_do(tmp_path):
    target = write_file(tmp_path, "import no_such_framework\n")
    with pytest.raises(InvalidPool, match=r"No module named 'no_such_framework'.*--python"):
        look(target, "", FunctionPermissions())


@pytest.mark.medium
def test_an_agent_in_the_sandbox_sees_the_keys_that_it_is_allowed(tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", "a-long-secret-value")
    monkeypatch.setenv("OTHER_KEY", "another-long-secret")
    code = "import os\n\ndef read(name: str) -> str:\n    return str(len(os.environ.get(name, '')))\n"
    offers = look(write_file(tmp_path, code), "", FunctionPermissions(keys=("env:SEARCH_KEY",)))
    assert call(offers, "read", name="SEARCH_KEY").value == "19"
    assert call(offers, "read", name="OTHER_KEY").value == "0"
    assert any("env:SEARCH_KEY" in want for want in list_wants(offers["read"].spec))
    monkeypatch.delenv("SEARCH_KEY")
    error = call(offers, "read", name="SEARCH_KEY").error
    assert error is not None and error.code == "auth" and "export SEARCH_KEY" in error.message


@pytest.mark.medium
def test_another_interpreter_is_something_that_a_person_agrees_to(tmp_path):
    offers = look(write_file(tmp_path, "def add(a: int) -> int:\n    return a\n"), "", FunctionPermissions())
    spec = offers["add"].spec
    other = spec.model_copy(update={"config": {**spec.config, "python": "/opt/python"}})
    assert "starts the interpreter /opt/python on this machine, with your rights" in list_wants(other)
