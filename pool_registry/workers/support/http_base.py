"""The base of the kinds that make one HTTP request a call: `http` and `openapi`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pool_registry.actions import JsonValue
from pool_registry.network import http_client
from pool_registry.network.address_policy import AddressPolicy
from pool_registry.network.http_values import READING, Method, once, value_of
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker, WorkerSpec

PreparedRequest = tuple[str, dict[str, str], bytes | None]  # URL, headers, body


class HttpApiConfig(StrictModel):
    if TYPE_CHECKING:  # each kind has these fields, at the place in its form where they belong
        method: Method
        allow_private: bool

    @property
    def policy(self) -> AddressPolicy:
        return AddressPolicy(private=self.allow_private, typed=True)


C = TypeVar("C", bound=HttpApiConfig)


class HttpApi(Worker[C]):
    """Only calls of methods that may be repeated (GET, PUT, DELETE ...) are retried; only GET and HEAD are cached."""

    remote = True

    def __init__(self, spec: WorkerSpec, config: C) -> None:
        super().__init__(spec, config)
        self.cacheable = config.method in READING  # type: ignore[misc]  # the class can only say no for all

    @abstractmethod
    def request(self, arguments: Mapping[str, Any]) -> PreparedRequest:
        """Build what a call sends. Raises BadCall for an argument that cannot be written, WorkerFault for a key."""

    def value(self, answer: JsonValue) -> JsonValue:
        """Select what of an answer is returned. Raises WorkerFault."""
        return answer

    async def call(self, call: Call) -> Reply:
        config = self.config
        url, headers, body = self.request(call.arguments)
        with once(config.method):
            answer = await http_client.ask(
                config.method, url, headers=headers, body=body, timeout_s=self.spec.timeout_s, policy=config.policy
            )
            http_client.demand(answer)
        return Reply(self.value(value_of(config.method, answer)))
