"""The Python clients, each with every feature that it has. Run by record.py in an environment of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback

from pydantic import BaseModel

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
BASE, MODEL = sys.argv[1], "podium-edge"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
ASK_TOOL = 'call get_weather {"city": "Paris"}'
PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR4nGNgYGBgAAAABQABXvMqGgAAAABJRU5ErkJggg=="
)
USER = [{"role": "user", "content": "say hello"}]
ASK_WITH_TOOL = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ASK_TOOL}]


class Reply(BaseModel):
    word: str
    count: int


def url(client: str, feature: str) -> str:
    return f"{BASE}/{client}/{feature}/v1"


def openai_python() -> None:
    from openai import OpenAI

    def client(feature: str) -> OpenAI:
        return OpenAI(base_url=url("openai-python", feature), api_key="none", max_retries=0)

    client("models").models.list()
    client("completions").completions.create(
        model=MODEL,
        prompt=["say hello", "say hello again"],
        max_tokens=50,
        temperature=0.2,
        stop=["END"],
        n=1,
        user="u1",
    )
    list(
        client("completions-streaming").completions.create(
            model=MODEL, prompt="say hello", stream=True, stream_options={"include_usage": True}
        )
    )
    client("chat").chat.completions.create(
        model=MODEL, messages=USER, temperature=0.2, top_p=0.9, seed=7, stop=["END"], n=1, max_completion_tokens=200,
        presence_penalty=0.1, frequency_penalty=0.1, logit_bias={"50256": -100}, user="u1", metadata={"a": "b"},
        store=True, reasoning_effort="low", logprobs=True, top_logprobs=2, parallel_tool_calls=False,
        service_tier="auto", safety_identifier="s1", prompt_cache_key="k", verbosity="low",
    )  # fmt: skip
    list(
        client("streaming").chat.completions.create(
            model=MODEL, messages=USER, stream=True, stream_options={"include_usage": True}
        )
    )
    client("json-object").chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": 'say {"a": 1}'}], response_format={"type": "json_object"}
    )
    parsed = client("structured").chat.completions.parse(model=MODEL, messages=USER, response_format=Reply)
    assert isinstance(parsed.choices[0].message.parsed, Reply)
    with client("structured-streaming").chat.completions.stream(
        model=MODEL, messages=USER, response_format=Reply
    ) as stream:
        assert isinstance(stream.get_final_completion().choices[0].message.parsed, Reply)
    picture = {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}
    parts = [{"type": "text", "text": "say hello"}, picture]
    client("images").chat.completions.create(model=MODEL, messages=[{"role": "user", "content": parts}])
    for feature, streamed in (("tools", False), ("tools-streaming", True)):
        api = client(feature)
        messages = list(ASK_WITH_TOOL)
        if streamed:
            with api.chat.completions.stream(model=MODEL, messages=messages, tools=[TOOL]) as stream:
                message = stream.get_final_completion().choices[0].message
        else:
            message = api.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL]).choices[0].message
        assert message.tool_calls, message
        call = message.tool_calls[0]
        messages += [
            message.to_dict(),
            {"role": "tool", "tool_call_id": call.id, "content": "21 degrees in Paris"},
        ]
        done = api.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL])
        assert "21 degrees" in done.choices[0].message.content, done
    forced = client("tool-choice").chat.completions.create(
        model=MODEL, messages=USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "get_weather"}}
    )
    assert forced.choices[0].message.tool_calls
    openai_responses(client)


def openai_responses(client) -> None:
    api = client("responses")
    first = api.responses.create(
        model=MODEL, input="say hello", instructions="Be brief.", temperature=0.1, max_output_tokens=200,
        metadata={"a": "b"}, reasoning={"effort": "low", "summary": "auto"}, include=["reasoning.encrypted_content"],
        truncation="auto", store=True, user="u1",
    )  # fmt: skip
    assert first.output_text == "hello", first
    second = api.responses.create(model=MODEL, input="say hello again", previous_response_id=first.id)
    assert second.output_text == "hello again"
    api.responses.retrieve(second.id)
    list(client("responses-streaming").responses.create(model=MODEL, input="say hello", stream=True))
    parsed = client("responses-structured").responses.parse(model=MODEL, input="say hello", text_format=Reply)
    assert isinstance(parsed.output_parsed, Reply)
    api = client("responses-tools")
    flat = {"type": "function", **TOOL["function"], "strict": True}
    first = api.responses.create(model=MODEL, input=ASK_TOOL, tools=[flat, {"type": "web_search"}])
    call = next(item for item in first.output if item.type == "function_call")
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees in Paris"}
    done = api.responses.create(model=MODEL, input=[output], previous_response_id=first.id, tools=[flat])
    assert "21 degrees" in done.output_text
    picture = {"type": "input_image", "image_url": PICTURE, "detail": "low"}
    content = [{"type": "input_text", "text": "say hello"}, picture]
    client("responses-images").responses.create(model=MODEL, input=[{"role": "user", "content": content}])
    api = client("responses-background")
    queued = api.responses.create(model=MODEL, input="say hello", background=True)
    while queued.status in ("queued", "in_progress"):
        queued = api.responses.retrieve(queued.id)
    assert queued.output_text == "hello"


def langchain() -> None:
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    def chat(feature: str, **more: object) -> ChatOpenAI:
        return ChatOpenAI(base_url=url("langchain-openai", feature), api_key="none", model=MODEL, max_retries=0, **more)

    @tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        return f"21 degrees in {city}"

    chat("chat", temperature=0.3, max_tokens=100, seed=3, stop_sequences=["END"]).invoke("say hello")
    list(chat("streaming", stream_usage=True).stream("say hello"))
    for method in ("json_schema", "function_calling", "json_mode"):
        feature = "structured" if method == "json_schema" else f"structured-{method.replace('_', '-')}"
        question = 'say {"word": "a", "count": 1}' if method == "json_mode" else "say hello"
        assert isinstance(chat(feature).with_structured_output(Reply, method=method).invoke(question), Reply)
    bound = chat("tools").bind_tools([get_weather])
    messages: list[object] = [("user", ASK_TOOL)]
    first = bound.invoke(messages)
    assert first.tool_calls
    messages += [first, get_weather.invoke(first.tool_calls[0])]
    assert "21 degrees" in bound.invoke(messages).content
    chat("tool-choice").bind_tools([get_weather], tool_choice="any").invoke("say hello")
    over = chat("responses", use_responses_api=True, reasoning={"effort": "low", "summary": "auto"})
    assert over.invoke("say hello").text == "hello"
    list(chat("responses-streaming", use_responses_api=True).stream("say hello"))
    bound = chat("responses-tools", use_responses_api=True).bind_tools([get_weather])
    messages = [("user", ASK_TOOL)]
    first = bound.invoke(messages)
    messages += [first, get_weather.invoke(first.tool_calls[0])]
    assert "21 degrees" in bound.invoke(messages).text


def pydantic_ai() -> None:
    from pydantic_ai import Agent, NativeOutput, PromptedOutput
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def agent(feature: str, kind=OpenAIChatModel, **more: object) -> Agent:
        provider = OpenAIProvider(base_url=url("pydantic-ai", feature), api_key="none")
        return Agent(kind(MODEL, provider=provider), system_prompt="Be brief.", retries=0, **more)

    settings = {"temperature": 0.2, "max_tokens": 300, "seed": 5, "top_p": 0.8, "parallel_tool_calls": False}
    assert agent("chat").run_sync("say hello", model_settings=settings).output == "hello"

    async def stream() -> None:
        async with agent("streaming").run_stream("say hello") as run:
            assert await run.get_output() == "hello"

    asyncio.run(stream())
    as_json = 'say {"word": "a", "count": 1}'
    kinds = {
        "structured": Reply,
        "structured-native": NativeOutput(Reply),
        "structured-prompted": PromptedOutput(Reply),
    }
    for feature, kind in kinds.items():
        question = as_json if feature == "structured-prompted" else "say hello"
        assert isinstance(agent(feature, output_type=kind).run_sync(question).output, Reply)
    for feature, kind in (("tools", OpenAIChatModel), ("responses-tools", OpenAIResponsesModel)):
        helped = agent(feature, kind)

        @helped.tool_plain
        def get_weather(city: str) -> str:
            """The weather of a city."""
            return f"21 degrees in {city}"

        assert "21 degrees" in helped.run_sync(ASK_TOOL).output
    assert agent("responses", OpenAIResponsesModel).run_sync("say hello").output == "hello"


def litellm() -> None:
    import litellm as lite

    lite.suppress_debug_info = True

    def ask(feature: str, question: str = "say hello", **more: object):
        messages = more.pop("messages", [{"role": "user", "content": question}])
        return lite.completion(
            model=f"openai/{MODEL}", api_base=url("litellm", feature), api_key="none", messages=messages,
            num_retries=0, **more,
        )  # fmt: skip

    ask("chat", temperature=0.1, top_p=0.5, max_tokens=50, stop=["END"], seed=1, user="u", n=1, metadata={"a": "b"})
    list(ask("streaming", stream=True, stream_options={"include_usage": True}))
    ask("structured", response_format=Reply)
    ask("json-object", 'say {"a": 1}', response_format={"type": "json_object"})
    first = ask("tools", ASK_TOOL, tools=[TOOL], tool_choice="auto", parallel_tool_calls=True).choices[0].message
    call = first.tool_calls[0]
    messages = [
        {"role": "user", "content": ASK_TOOL},
        first.model_dump(),
        {"role": "tool", "tool_call_id": call.id, "name": "get_weather", "content": "21 degrees in Paris"},
    ]
    assert "21 degrees" in ask("tools", messages=messages, tools=[TOOL]).choices[0].message.content
    lite.responses(model=f"openai/{MODEL}", input="say hello", api_base=url("litellm", "responses"), api_key="none")


if __name__ == "__main__":
    failed = False
    for program in (openai_python, langchain, pydantic_ai, litellm):
        try:
            program()
        except Exception:  # noqa: BLE001  the other clients are recorded all the same
            failed = True
            traceback.print_exc()
        print(program.__name__, "done", file=sys.stderr)
    sys.exit(failed)
