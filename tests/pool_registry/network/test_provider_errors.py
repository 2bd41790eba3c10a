"""The documented errors of real providers, each as the code that a step's observation carries."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.network import provider_errors

QUOTA_TEXT = "You exceeded your current quota, please check your plan and billing details."


def openai(message: str, kind: str | None, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}


def gemini(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def mistral(message: str, kind: str, code: str) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def openrouter(code: int, message: str, **metadata: Any) -> dict[str, Any]:
    return {"error": {"message": message, "code": code, "metadata": metadata}, "user_id": "user_2"}


def vllm(message: str, kind: str, code: int) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "25.6s"}
PER_DAY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "50"}],
}
BAD_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
AZURE = {
    "error": {
        "message": "The response was filtered due to the prompt triggering the content management policy.",
        "type": None, "param": "prompt", "code": "content_filter", "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}},
    }
}  # fmt: skip

TABLE = [
    # OpenAI and Azure
    (401, openai("Incorrect API key provided: sk-ab***. Find yours at ...", "invalid_request_error", "invalid_api_key"), "auth"),
    (403, {"error": {"code": "unsupported_country_region_territory", "message": "Country not supported", "type": "request_forbidden"}}, "auth"),
    (404, openai("The model `gpt-9` does not exist or you do not have access to it.", "invalid_request_error", "model_not_found"), "not_found"),
    (400, openai("This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.", "invalid_request_error", "context_length_exceeded", "messages"), "context_overflow"),
    (429, openai("Rate limit reached for gpt-5 in organization org-x on requests per min (RPM): Limit 3, Used 3.", "requests", "rate_limit_exceeded"), "rate_limited"),
    (429, openai(f"{QUOTA_TEXT} For more information read the docs.", "insufficient_quota", "insufficient_quota"), "quota"),
    (400, openai("Billing hard limit has been reached", "invalid_request_error", "billing_hard_limit_reached"), "quota"),
    (400, openai("Your request was rejected as a result of our safety system.", "invalid_request_error", "content_policy_violation"), "content_filtered"),
    (400, openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "invalid_request_error", "unsupported_parameter", "max_tokens"), "bad_request"),
    (500, openai("The server had an error while processing your request. Sorry about that!", "server_error"), "server_error"),
    (503, openai("That model is currently overloaded with other requests.", "server_error"), "server_error"),
    (400, AZURE, "content_filtered"),
    (404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist."}}, "not_found"),
    # Anthropic
    (401, anthropic("authentication_error", "invalid x-api-key"), "auth"),
    (403, anthropic("permission_error", "Your API key does not have permission to use the specified resource."), "auth"),
    (404, anthropic("not_found_error", "model: claude-9"), "not_found"),
    (413, anthropic("request_too_large", "Request exceeds the maximum allowed number of bytes."), "context_overflow"),
    (400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), "context_overflow"),
    (400, anthropic("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), "quota"),
    (402, anthropic("billing_error", "There is an issue with your billing or payment information."), "quota"),
    (400, anthropic("invalid_request_error", "Output blocked by content filtering policy"), "content_filtered"),
    (400, anthropic("invalid_request_error", "max_tokens: Field required"), "bad_request"),
    (429, anthropic("rate_limit_error", "This request would exceed your organization's rate limit."), "rate_limited"),
    (500, anthropic("api_error", "Internal server error"), "server_error"),
    (504, anthropic("timeout_error", "The request timed out"), "timeout"),
    (529, anthropic("overloaded_error", "Overloaded"), "server_error"),
    # Gemini, also through its OpenAI-compatible door, which wraps errors in a list
    (400, gemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", BAD_KEY), "auth"),
    (400, [gemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", BAD_KEY)], "auth"),
    (403, gemini(403, "PERMISSION_DENIED", "Generative Language API has not been used in project 1 before."), "auth"),
    (404, gemini(404, "NOT_FOUND", "models/gemini-9 is not found for API version v1beta"), "not_found"),
    (400, gemini(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), "context_overflow"),
    (400, gemini(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), "bad_request"),
    (429, [gemini(429, "RESOURCE_EXHAUSTED", f"{QUOTA_TEXT} Please retry in 25.6s.", RETRY)], "rate_limited"),
    (429, gemini(429, "RESOURCE_EXHAUSTED", QUOTA_TEXT, PER_DAY, RETRY), "quota"),
    (429, gemini(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."), "rate_limited"),
    (500, gemini(500, "INTERNAL", "An internal error has occurred."), "server_error"),
    (503, gemini(503, "UNAVAILABLE", "The model is overloaded. Please try again later."), "server_error"),
    (504, gemini(504, "DEADLINE_EXCEEDED", "The service was unable to finish processing within the deadline."), "timeout"),
    # Mistral and DeepSeek
    (401, {"detail": "Unauthorized"}, "auth"),
    (400, mistral("Invalid model: mistral-x", "invalid_model", "1500"), "not_found"),
    (400, mistral("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", "invalid_request_error", "3051"), "context_overflow"),
    (422, {"object": "error", "message": {"detail": [{"type": "missing", "loc": ["body", "model"], "msg": "Field required"}]}, "type": "invalid_request_error"}, "bad_request"),
    (429, mistral("Requests rate limit exceeded", "rate_limited", "1300"), "rate_limited"),
    (429, mistral("Service tier capacity exceeded for this model.", "service_tier_capacity_exceeded", "3505"), "rate_limited"),
    (402, openai("Insufficient Balance", "unknown_error", "invalid_request_error"), "quota"),
    # OpenRouter and the Hugging Face router
    (401, openrouter(401, "No auth credentials found"), "auth"),
    (402, openrouter(402, "Insufficient credits. Add more using https://openrouter.ai/settings/credits"), "quota"),
    (403, openrouter(403, "x/y requires moderation. Your input was flagged", reasons=["violence"], provider_name="X"), "content_filtered"),
    (404, openrouter(404, "No endpoints found for x/y."), "not_found"),
    (408, openrouter(408, "Request timed out"), "timeout"),
    (400, openrouter(400, "This endpoint's maximum context length is 131072 tokens. However, you requested about 200010."), "context_overflow"),
    (429, openrouter(429, "Provider returned error", raw="x/y:free is temporarily rate-limited upstream.", provider_name="X"), "rate_limited"),
    (502, openrouter(502, "Provider returned error", provider_name="X"), "server_error"),
    (401, {"error": "Invalid username or password."}, "auth"),
    (402, {"error": "You have exceeded your monthly included credits for Inference Providers."}, "quota"),
    (503, {"error": "Model x is currently loading", "estimated_time": 20.0}, "server_error"),
    # vLLM, TGI, llama.cpp, LM Studio, Ollama
    (401, {"error": "Unauthorized"}, "auth"),
    (404, vllm("The model `x` does not exist.", "NotFoundError", 404), "not_found"),
    (400, vllm("This model's maximum context length is 2048 tokens. However, you requested 3000 tokens.", "BadRequestError", 400), "context_overflow"),
    (400, {"error": vllm("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", "BadRequestError", 400)}, "context_overflow"),
    (400, vllm("temperature must be non-negative, got -1.0.", "BadRequestError", 400), "bad_request"),
    (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.", "error_type": "validation"}, "context_overflow"),
    (400, {"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error", "n_ctx": 4096}}, "context_overflow"),
    (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, "server_error"),
    (400, {"error": "The number of tokens to keep from the initial prompt is greater than the context length."}, "context_overflow"),
    (404, openai('model "llama9" not found, try pulling it first', "api_error"), "not_found"),
    (404, {"error": "model 'llama9' not found, try pulling it first"}, "not_found"),
    (400, openai("registry.ollama.ai/library/x does not support tools", "api_error"), "bad_request"),
    (400, {"error": "the input length exceeds the context length"}, "context_overflow"),
    (500, openai("model requires more system memory (8.0 GiB) than is available (4.0 GiB)", "api_error"), "server_error"),
    (503, {"error": "server busy, please try again.  maximum pending requests exceeded"}, "server_error"),
    # Gateways and what is no API at all
    (502, "<html><h1>502 Bad Gateway</h1></html>", "server_error"),
    (524, "error code: 524", "timeout"),
    (404, "<html>not found</html>", "not_found"),
    (400, "", "bad_request"),
    (418, "null", "bad_request"),
    (429, "[]", "rate_limited"),
    (302, "", "invalid_response"),
]  # fmt: skip
PASSING = {"rate_limited", "server_error", "timeout"}


def fault(status: int, body: Any, **headers: str):
    raw = body if isinstance(body, str) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return provider_errors.fault("api.example", "https://api.example/v1", status, named, raw.encode())


@pytest.mark.parametrize(("status", "body", "code"), TABLE)
def test_a_documented_error_has_the_code_that_it_means(status, body, code):
    found = fault(status, body)
    assert (found.code, found.retryable) == (code, code in PASSING)
    assert len(str(found)) < 500 and "api.example" in str(found)


def test_every_code_of_the_table_is_covered():
    assert {code for _, _, code in TABLE} >= {
        "auth", "quota", "rate_limited", "context_overflow", "content_filtered", "server_error", "not_found",
        "bad_request", "timeout",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry_after": "2"}, 2.0),
        ({"retry_after": "2.5"}, 2.5),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-5"}, None),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "Sat, 01 Jan 2000 00:00:00 GMT"}, 0.0),
    ],
)
def test_the_wait_that_a_peer_asks_for_is_read_in_every_form(headers, wait):
    assert fault(429, "{}", **headers).retry_after_s == wait


def test_a_date_to_wait_for_is_read():
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 25 < fault(503, "{}", retry_after=later).retry_after_s <= 30
    assert fault(429, gemini(429, "RESOURCE_EXHAUSTED", "slow", RETRY)).retry_after_s == 25.6


def test_who_asks_to_wait_longer_than_a_step_can_is_not_asked_again():
    found = fault(429, "{}", retry_after="3600")
    assert not found.retryable and "asks to wait 3,600 s" in str(found)


def test_an_error_in_an_answer_with_status_200_is_found():
    assert provider_errors.fault_within("h", "u", {"choices": []}) is None
    assert provider_errors.fault_within("h", "u", ["error"]) is None
    found = provider_errors.fault_within("h", "u", openrouter(429, "Provider returned error", raw="slow down"))
    assert (found.code, found.retryable) == ("rate_limited", True) and "slow down" in str(found)
    assert provider_errors.fault_within("h", "u", {"error": "broken"}).code == "server_error"


NAMES = ["error", "message", "code", "type", "status", "details", "metadata", "raw", "retryDelay"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
)


@given(st.integers(300, 599), JSON, st.text(max_size=20))
def test_any_body_is_a_fault_with_a_code(status, body, wait):
    found = fault(status, body, retry_after=wait)
    assert found.code and (found.retry_after_s is None or 0 <= found.retry_after_s <= 60)
    provider_errors.fault_within("h", "u", body)
