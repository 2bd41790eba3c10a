"""Requests whose parameters or body a route cannot read: the framework's findings, in words of our own."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response

from pool_registry.validation_words import join_problems, list_problems


def answer_bad_requests(app: FastAPI) -> None:
    """Answer such requests with 422 and one sentence."""
    app.add_exception_handler(RequestValidationError, _answer)


async def _answer(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError), "registered for RequestValidationError"
    return JSONResponse({"detail": join_problems(list_problems(error.errors()))}, 422)
