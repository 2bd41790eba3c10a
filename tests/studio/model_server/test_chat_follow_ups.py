"""Follow-up questions of a served model's clients: read like those on the Run page, asked about, and switched off."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from fastapi.testclient import TestClient

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from studio.deployments.states import DeploymentOptions, ServingSide
from studio.episode_documents.view import build_episode_view
from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel
from studio.model_server.setup import reads_conversation
from studio.model_server.sides import build_served_model
from studio.model_server.which_question import choose, read_choices, write_choices
from studio.prepare import prepare_store
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from tests.studio.pages.test_follow_up_routes import plan_sums

__all__ = ["endpoint"]

pytestmark = pytest.mark.medium
BOTH = ["How much is 6 * 7 and 4 * 5?", "How much is 2 * 3 and 6 * 7?"]


@pytest.fixture
def store(tmp_path, endpoint):
    Endpoint.reply = staticmethod(plan_sums)
    store = prepare_store(str(tmp_path))
    store.pools.save(pool_of(endpoint, "ada"))
    yield store
    store.close()


@contextmanager
def serve(home, **options):
    app = create_model_app(open_store(find_home(str(home))), ServedModel("p", "model:ada:plan", "m", **options),
                           loopback=True)  # fmt: skip
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def client(store, tmp_path):
    with serve(tmp_path) as client:
        yield client


class Chat:
    """A client that sends its whole conversation with each message."""

    def __init__(self, client, *messages, **fields):
        self.client, self.messages, self.fields = client, [*messages], fields

    def ask(self, text, **fields):
        self.messages.append({"role": "user", "content": text})
        body = {"model": "m", "messages": self.messages, **self.fields, **fields}
        self.reply = self.client.post("/v1/chat/completions", json=body)
        assert self.reply.status_code == 200, self.reply.text
        answer = self.reply.json()["choices"][0]["message"]["content"]
        self.messages.append({"role": "assistant", "content": answer})
        return answer

    @property
    def follow_up(self):
        return self.reply.json()["podium"].get("follow_up")

    @property
    def trace(self):
        return self.reply.json()["podium"]["trace"]


def test_a_message_is_read_as_a_follow_up_of_the_one_before(client, store):
    chat = Chat(client)
    assert chat.ask("What is 6 * 7?") == "42" and chat.follow_up is None
    assert "x-podium-follow-up" not in chat.reply.headers
    first = chat.trace
    assert chat.ask("and 8 * 9?") == "72"
    assert chat.reply.headers["x-podium-follow-up"] == "understood as: What is 8 * 9?"
    assert chat.follow_up == {
        "text": "and 8 * 9?", "question": "What is 8 * 9?", "how": "understood as", "quotes": False, "before": [first],
    }  # fmt: skip
    second = chat.trace
    row = store.traces.row(second)
    assert (row.query, row.continues) == ("What is 8 * 9?", first)
    chat.ask("what is that times 2?")
    third = store.traces.episode(chat.trace)
    assert [run.question for run in third.started.follow_up.before] == ["What is 6 * 7?", "What is 8 * 9?"]
    head = build_episode_view(third, store.traces.row(third.id), None, None).episode
    assert (head.query, head.follow_up.text, head.follow_up.how) == (
        "What is 72 times 2?",
        "what is that times 2?",
        "understood as",
    )
    assert [run.episode for run in head.follow_up.before] == [first, second]


def test_what_stands_alone_or_cannot_be_read_comes_with_the_conversation_as_before(client, store):
    chat = Chat(client)
    chat.ask("What is 6 * 7?")
    for text in ("What is 3 * 3 then?", "please compute 9 * 9 now and tell me the result of it"):
        chat.ask(text)
        query = store.traces.row(chat.trace).query
        assert query.startswith("Conversation so far:\n[user] What is 6 * 7?\n[assistant] 42"), query
        assert query.endswith(f"Now:\n{text}") and chat.follow_up is None
    calls = len(Endpoint.bodies)
    chat.ask("why not him 5 * 5")
    assert chat.follow_up is None and len(Endpoint.bodies) == calls + 1, "no agent is asked to rewrite a message"


def test_a_conversation_that_is_not_known_here_is_read_by_its_words(client, store):
    talk = [
        {"role": "user", "content": "What is it for 6 * 7?"},
        {"role": "assistant", "content": "forty-two"},
        {"role": "user", "content": "and for 8 * 9?"},
        {"role": "assistant", "content": "72"},
    ]
    chat = Chat(client, *talk)
    assert chat.ask("and for 2 * 2?") == "4"
    assert chat.follow_up["question"] == "What is it for 2 * 2?" and chat.follow_up["before"] == []
    episode = store.traces.episode(chat.trace)
    assert [run.question for run in episode.started.follow_up.before] == [
        "What is it for 6 * 7?",
        "What is it for 8 * 9?",
    ]
    assert store.traces.row(chat.trace).continues is None


@pytest.mark.parametrize(("reply", "question"), [("2", BOTH[1]), ("the first one", BOTH[0]), (BOTH[1], BOTH[1])])
def test_where_two_fit_the_answer_asks_which_and_the_next_message_chooses(client, store, reply, question):
    chat = Chat(client)
    chat.ask("How much is 2 * 3 and 4 * 5?")
    calls = len(Endpoint.bodies)
    answer = chat.ask("and 6 * 7?")
    assert read_choices(answer) == BOTH and len(Endpoint.bodies) == calls, "nothing ran"
    assert chat.follow_up == {"text": "and 6 * 7?", "readings": BOTH}
    assert chat.reply.headers["x-podium-follow-up"] == f"asks which: {' | '.join(BOTH)}"
    assert not store.traces.episode(chat.trace).steps
    chat.ask(reply)
    assert (store.traces.row(chat.trace).query, chat.follow_up["text"]) == (question, "and 6 * 7?")
    chat.ask("and what is that times 2?")
    assert chat.follow_up["quotes"] and len(chat.follow_up["before"]) == 2, "it goes on with what was chosen"


def test_where_two_fit_another_question_can_be_asked_in_place_of_choosing(client, store):
    chat = Chat(client)
    chat.ask("How much is 2 * 3 and 4 * 5?")
    chat.ask("and 6 * 7?")
    assert chat.ask("What is 3 * 3 then?") == "9" and chat.follow_up is None


def test_where_workers_have_effects_a_question_that_holds_an_answer_is_asked_about_first(client, store, endpoint):
    pool = pool_of(endpoint, "ada")
    workers = tuple(spec.model_copy(update={"effects": "some"}) for spec in pool.workers if spec.name == "calc")
    store.pools.save(pool.model_copy(update={"workers": (*workers, pool.worker("ada"))}))
    with serve(store.home.root) as served:
        chat = Chat(served)
        chat.ask("What is 6 * 7?")
        assert read_choices(chat.ask("what is that times 2?")) == ["What is 42 times 2?"]
        assert not store.traces.episode(chat.trace).steps
        chat.ask("1")
        assert chat.follow_up["question"] == "What is 42 times 2?" and chat.follow_up["quotes"]


def test_a_system_prompt_stays_in_front_of_the_question(client, store):
    chat = Chat(client, {"role": "system", "content": "Be brief. " * 500})
    chat.ask("What is 6 * 7?")
    chat.ask("and 8 * 9?")
    query = store.traces.row(chat.trace).query
    assert query.startswith("Conversation so far:\n[system] Be brief.") and query.endswith("\n\nNow:\nWhat is 8 * 9?")
    assert "6 * 7" not in query
    chat.ask("and 2 * 2?")
    assert chat.follow_up["question"] == "What is 2 * 2?" and len(chat.follow_up["before"]) == 2


def test_a_request_or_the_server_switches_it_off(client, store):
    chat = Chat(client, podium={"follow_ups": False})
    chat.ask("What is 6 * 7?")
    chat.ask("and 8 * 9?")
    assert chat.follow_up is None and "Now:\nand 8 * 9?" in store.traces.row(chat.trace).query
    with serve(store.home.root, follow_ups=False) as served:
        chat = Chat(served)
        chat.ask("What is 6 * 7?")
        chat.ask("and 8 * 9?")
        assert chat.follow_up is None


def test_a_deployment_switches_it_off():
    serving = ServingSide(pool="p", pool_version=1, orchestrator="direct")
    assert build_served_model("d", serving).follow_ups
    options = DeploymentOptions(follow_ups=False)
    assert not build_served_model("d", serving.model_copy(update={"options": options})).follow_ups


def test_a_stream_tells_how_the_message_was_read(client):
    chat = Chat(client)
    chat.ask("What is 6 * 7?")
    body = {"model": "m", "messages": [*chat.messages, {"role": "user", "content": "and 8 * 9?"}], "stream": True}
    reply = client.post("/v1/chat/completions", json=body)
    assert reply.headers["x-podium-follow-up"] == "understood as: What is 8 * 9?"
    chunks = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
    reasoning = "".join(chunk["choices"][0]["delta"].get("reasoning_content", "") for chunk in chunks)
    assert reasoning.startswith("Understood as: What is 8 * 9?\n")
    assert chunks[-1]["podium"]["follow_up"]["question"] == "What is 8 * 9?"


def test_the_responses_api_reads_follow_ups_by_id_and_in_lists(client):
    first = client.post("/v1/responses", json={"model": "m", "input": "What is 6 * 7?"}).json()
    body = {"model": "m", "input": "and 8 * 9?", "previous_response_id": first["id"]}
    second = client.post("/v1/responses", json=body)
    assert second.headers["x-podium-follow-up"] == "understood as: What is 8 * 9?"
    assert second.json()["podium"]["follow_up"]["before"] == [first["podium"]["trace"]]
    body = {"model": "m", "input": "and 2 * 2?", "previous_response_id": second.json()["id"]}
    third = client.post("/v1/responses", json=body).json()
    assert third["podium"]["follow_up"]["question"] == "What is 2 * 2?"
    items = [
        {"role": "user", "content": "What is 6 * 7?"},
        {"role": "assistant", "content": "42"},
        {"role": "user", "content": "and 8 * 9?"},
    ]
    listed = client.post("/v1/responses", json={"model": "m", "input": items, "instructions": "Be brief."}).json()
    assert listed["podium"]["follow_up"]["question"] == "What is 8 * 9?"


def test_outputs_of_the_clients_tools_go_on_with_their_own_question(client, store):
    talk = [
        {"role": "user", "content": "What is 6 * 7?"},
        {"role": "assistant", "content": "42"},
        {"role": "user", "content": "and 8 * 9?"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "sum", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "72"},
    ]  # fmt: skip
    reply = client.post("/v1/chat/completions", json={"model": "m", "messages": talk})
    assert "x-podium-follow-up" not in reply.headers
    assert "Done for this so far:" in store.traces.row(reply.headers["x-podium-trace"]).query


def test_choices_are_read_back_and_other_answers_offer_none():
    assert read_choices(write_choices(BOTH)) == BOTH
    assert read_choices("1. one\n2. two") == []
    assert choose(BOTH, "(2)") == BOTH[1] and choose(BOTH, "3") == choose(BOTH, "neither") == ""


def test_a_model_that_was_trained_on_questions_alone_gets_the_message_alone(store, tmp_path, monkeypatch):
    monkeypatch.setattr("studio.model_server.service.reads_conversation", lambda name: name != "model:ada:plan")
    with serve(tmp_path) as client:
        chat = Chat(client, {"role": "system", "content": "Be brief."})
        chat.ask("What is 6 * 7?")
        for text in ("What is 3 * 3 then?", "please compute 9 * 9 now and tell me the result of it"):
            chat.ask(text)
            query = store.traces.row(chat.trace).query
            assert "Be brief." in query and query.endswith(text) and "6 * 7" not in query
        chat.ask("What is 5 * 5?", podium={"follow_ups": False})
        assert "6 * 7" in store.traces.row(chat.trace).query


def test_which_orchestrators_read_conversations():
    assert all(map(reads_conversation, ("model:ada:plan", "direct:ada")))
    assert not any(map(reads_conversation, ("smollm2-reader", "smollm2-reader+samples=3", "starter-sft")))
