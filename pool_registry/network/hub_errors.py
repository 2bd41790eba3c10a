"""Errors of the Hub's client as one sentence that says what to do."""

from __future__ import annotations

from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

from pool_registry.secrets import redact

LOGIN = "log in with `hf auth login`, or name a token with a reference (env:NAME)"


def list_hub_errors() -> tuple[type[Exception], ...]:
    """What a call of the client may raise: refusals, names that are none, offline mode, a network that fails."""
    import httpx2  # what the Hub's client speaks through

    return HfHubHTTPError, HFValidationError, OfflineModeIsEnabled, OSError, httpx2.HTTPError


def is_network_error(error: BaseException) -> bool:
    """Whether the Hub could not be reached; it did not refuse."""
    return isinstance(error, list_hub_errors()) and not isinstance(
        error, HfHubHTTPError | HFValidationError | OfflineModeIsEnabled
    )


def read_status(error: BaseException) -> int | None:
    """The HTTP status with which the Hub refused; None where it did not answer."""
    return getattr(getattr(error, "response", None), "status_code", None)


def describe_hub_error(what: str, error: Exception, again: str, pay: str) -> str:
    """Describe an error of `list_hub_errors`. `what` was asked for, `again` is what to do to go on, `pay` what to do
    where the Hub asks for money."""
    if isinstance(error, HfHubHTTPError):
        return _describe_refusal(what, error, again, pay)
    if isinstance(error, HFValidationError):
        return f"{what}: {error}"
    if isinstance(error, OfflineModeIsEnabled):
        return f"the Hub's client is set to work offline; unset HF_HUB_OFFLINE and {again}"
    reason = redact(str(error).splitlines()[0][:300]) if str(error) else type(error).__name__
    return f"{what}: the Hub cannot be reached ({reason}); {again} to go on"


def _describe_refusal(what: str, error: HfHubHTTPError, again: str, pay: str) -> str:
    code = read_status(error)
    detail = redact(str(getattr(error, "server_message", None) or str(error).splitlines()[0])[:300])
    if code == 401:
        return f"{what}: the Hub does not know this token; {LOGIN}"
    if code == 403:
        return f"{what}: this token may not do that ({detail}); make one with write access to your repositories"
    if code == 402:
        return f"{what}: the Hub wants a payment method for this ({detail}); {pay}"
    if code in (409, 412):
        return f"{what}: it was changed meanwhile; {again}"
    if code == 429:
        return f"{what}: the Hub asks for a pause ({detail}); {again} in some minutes to go on"
    return f"{what}: the Hub answered {code or 'with an error'}: {detail}; {again} to go on"
