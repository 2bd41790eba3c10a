"""Spans through OpenTelemetry's own SDK: pushed to a collector as they end, or as OTLP's JSON for a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from orchestrator.errors import TrackerRefused
from orchestrator.tracking.packages import require_package
from orchestrator.tracking.spans import Span

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

TRACES = "/v1/traces"
END_MS = 5000


class OtlpTracker:
    """Pushes spans to a collector: batched, retried and dropped as the SDK's variables say (OTEL_BSP_...)."""

    def __init__(self, target: str) -> None:
        """Raises TrackerRefused."""
        address = urlsplit(target)
        if address.scheme not in ("http", "https") or not address.netloc:
            raise TrackerRefused(f"{target!r} is no address of a collector; write otlp:http://HOST:4318")
        endpoint = target if address.path.rstrip("/") else target.rstrip("/") + TRACES
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self._endpoint = endpoint
        self._exporter = _make_exporter(endpoint)
        self._pipeline = _Pipeline(BatchSpanProcessor(self._exporter))

    def push(self, spans: Iterable[Span]) -> None:
        self._pipeline.push(spans)

    def log(self, run: str, step: int, figures: Mapping[str, float]) -> None:
        """A collector of traces takes no curves."""

    def close(self) -> None:
        """Raises TrackerRefused when the collector did not take something."""
        self._pipeline.close()
        if self._exporter.refused:
            raise TrackerRefused(f"{self._endpoint} did not take {self._exporter.refused:,} spans; the log says why")


def _make_exporter(endpoint: str) -> Any:
    """The SDK's exporter, which counts what the collector did not take: the SDK only logs it."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    class CountingExporter(OTLPSpanExporter):
        refused = 0

        def export(self, spans: Sequence[Any]) -> SpanExportResult:
            result = super().export(spans)
            if result is not SpanExportResult.SUCCESS:
                self.refused += len(spans)
            return result

    return CountingExporter(endpoint)


def encode_json(spans: Iterable[Span]) -> dict[str, Any]:
    """The spans as an export request in OTLP's JSON. Raises TrackerRefused where the SDK is not installed."""
    require_package("the form otlp", "opentelemetry.exporter.otlp.json.common", "telemetry")
    from opentelemetry.exporter.otlp.json.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    memory = InMemorySpanExporter()
    pipeline = _Pipeline(SimpleSpanProcessor(memory))
    pipeline.push(spans)
    document: dict[str, Any] = encode_spans(memory.get_finished_spans()).to_dict()
    pipeline.close()
    return document


class _Pipeline:
    """A tracer of the SDK whose spans have our ids and times."""

    def __init__(self, processor: SpanProcessor) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON

        self._ids = _make_ids()
        resource = Resource.create({"service.name": "podium", "service.version": _version()})
        self._provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, id_generator=self._ids)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("podium", _version())

    def push(self, spans: Iterable[Span]) -> None:
        from opentelemetry import trace as api

        kinds = {"internal": api.SpanKind.INTERNAL, "client": api.SpanKind.CLIENT}

        def place(span: Span, span_id: int) -> api.SpanContext:
            return api.SpanContext(span.trace_id, span_id, is_remote=False, trace_flags=api.TraceFlags(1))

        for span in spans:
            self._ids.trace_id, self._ids.span_id = span.trace_id, span.span_id
            parent = api.NonRecordingSpan(place(span, span.parent_id or 0))
            links = [api.Link(place(span, link.span_id), link.attributes) for link in span.links]
            started = self._tracer.start_span(
                span.name,
                api.set_span_in_context(parent),
                kinds[span.kind],
                span.attributes,
                links,
                span.start_ns,
            )
            code = api.StatusCode.ERROR if span.error else api.StatusCode.OK
            started.set_status(api.Status(code, span.error[1] if span.error else None))
            started.end(span.end_ns)

    def close(self) -> None:
        self._provider.force_flush(END_MS)
        self._provider.shutdown()


def _make_ids() -> Any:
    """The SDK's source of ids, which gives those of the next span."""
    from opentelemetry.sdk.trace.id_generator import IdGenerator

    class NextIds(IdGenerator):
        trace_id = span_id = 0

        def generate_trace_id(self) -> int:
            return self.trace_id

        def generate_span_id(self) -> int:
            return self.span_id

    return NextIds()


def _version() -> str:
    try:
        return version("podium-studio")
    except PackageNotFoundError:
        return "0"
