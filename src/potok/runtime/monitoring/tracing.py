"""Traces of batches, exported by OpenTelemetry: a span for each batch of a query, and in it one per phase and step."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from potok.extras import need_extra
from potok.operators.core.task_report import Report
from potok.redact import redact
from potok.settings import Settings
from potok.state.fence import Attempt
from potok.version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

EXPORT_S = 5

_providers: dict[str, Any] = {}


class BatchTracer:
    """Makes the spans of batches.

    >>> tracer = tracer_of(settings)
    """

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("potok", __version__)

    def begin(self, query: str, attempt: Attempt) -> BatchTrace | None:
        """Begin the trace of an attempt at a batch; None if it is not sampled."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind

        attributes: dict[str, str | int] = {
            "potok.query": query,
            "potok.batch": attempt.batch,
            "potok.epoch": attempt.epoch,
        }
        span = self._tracer.start_span(f"{query} batch", Context(), SpanKind.CONSUMER, attributes)
        return BatchTrace(self._tracer, span) if span.is_recording() else None


class BatchTrace:
    """The trace of one attempt at a batch."""

    def __init__(self, tracer: Any, span: Span) -> None:
        self._tracer, self._span = tracer, span
        self.trace_id = f"{span.get_span_context().trace_id:032x}"

    def commit(self, report: Report, seconds: Mapping[str, float]) -> None:
        """End the trace of a batch that was committed now; the phases before that took `seconds`."""
        ended_ns = time.time_ns()
        began_ns = ended_ns - round(seconds["total"] * 1e9)
        executed_ns = began_ns + round(seconds["execute"] * 1e9)
        committing_ns = ended_ns - round(seconds["commit"] * 1e9)
        execute = self._child(self._span, "execute", began_ns)
        for step, found in report.times.items():
            counts = {"potok.records.in": report.records_in[step], "potok.records.out": report.records_out[step]}
            attributes = {"potok.step": step, **counts, "potok.busy_seconds": found.busy_ns / 1e9}
            self._child(execute, step, found.began_ns, attributes).end(found.ended_ns)
        execute.end(executed_ns)
        if report.outgoing or report.unfenced:
            self._child(self._span, "deliver", executed_ns).end(executed_ns + round(seconds["deliver"] * 1e9))
        self._child(self._span, "commit", committing_ns).end(ended_ns)
        self._link(report)
        self._span.set_attributes(
            {"potok.records.written": report.written, "potok.dead_letters": sum(report.reasons.values())}
        )
        self._span.end(ended_ns)

    def fail(self, error: BaseException) -> None:
        """End the trace of an attempt that is void."""
        from opentelemetry.trace import Status, StatusCode

        self._span.set_status(Status(StatusCode.ERROR, redact(str(error)).partition("\n")[0]))
        kind = type(error)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        self._span.add_event(
            "exception",
            {
                "exception.type": redact(name),
                "exception.message": redact(str(error)),
                "exception.stacktrace": redact("".join(traceback.format_exception(error))),
            },
        )
        self._span.end()

    def _child(self, parent: Span, name: str, start_ns: int, attributes: Mapping[str, Any] | None = None) -> Span:
        from opentelemetry.trace import set_span_in_context

        context = set_span_in_context(parent)
        return self._tracer.start_span(name, context, attributes=attributes, start_time=start_ns)  # type: ignore[no-any-return]

    def _link(self, report: Report) -> None:
        """Link the traces of some records that the batch read."""
        from opentelemetry.trace import get_current_span
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        for traceparent in report.traces:
            context = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
            found = get_current_span(context).get_span_context()
            if found.is_valid:
                self._span.add_link(found)


def tracer_of(settings: Settings) -> BatchTracer | None:
    """Return the tracer of this process if the setting `tracing` names a collector."""
    if not settings.tracing:
        return None
    if settings.tracing not in _providers:
        need_extra("tracing", "tracing")
        _providers[settings.tracing] = _provider(settings.tracing)
    return BatchTracer(_providers[settings.tracing])


def _provider(url: str) -> TracerProvider:
    """Export over OTLP/HTTP. OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER and the like apply."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = OTELResourceDetector().detect().attributes
    resource = Resource.create({} if "service.name" in named else {"service.name": "potok"})
    provider = TracerProvider(resource=resource)
    endpoint = url if url.rstrip("/").endswith("/v1/traces") else f"{url.rstrip('/')}/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_S)))
    return provider
