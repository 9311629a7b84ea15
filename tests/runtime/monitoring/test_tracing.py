"""Each batch is a trace with a span for each phase and step, linked to the traces of some of the records it read."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode

from potok import StreamsBuilder
from potok.operators.core.step_times import MOST_TRACES
from potok.records.log_record import LogRecord
from potok.runtime.monitoring import tracing
from potok.runtime.monitoring.tracing import BatchTracer, tracer_of
from potok.settings import Settings
from potok.state.fence import Attempt
from potok.testing.outputs import read_outputs
from runtime.queries.by_hand import ByHand

SAMPLED = "00-{:032x}-00f067aa0ba902b7-01"
UNSAMPLED = "00-{:032x}-00f067aa0ba902b7-00"


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def group(tmp_path: Path, spans: InMemorySpanExporter) -> Iterator[ByHand]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    found = ByHand(tmp_path)
    found.tracer = BatchTracer(provider)
    found.broker.create_topic("orders", 2)
    yield found
    found.stop()
    found.broker.close()


def program() -> StreamsBuilder:
    builder = StreamsBuilder("shop")
    orders = builder.stream("orders", value="user string, amount bigint")
    large = orders.filter(lambda v: v["amount"] > 10, name="large")
    large.to("copies")
    large.group_by("user").count(name="counts").to_stream().to("counts-out")
    return builder


def send(group: ByHand, *traceparents: str | None, amount: int = 20) -> None:
    value = json.dumps({"user": "ann", "amount": amount}).encode()
    headers = [() if each is None else (("traceparent", each.encode()),) for each in traceparents]
    group.broker.append("orders", [LogRecord(b"k", value, 1_000, headers=each) for each in headers])


def by_name(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


def test_a_batch_is_one_trace_with_a_span_for_each_phase_and_step(group: ByHand, spans: InMemorySpanExporter) -> None:
    send(group, None, None)
    group.add(program())
    group.settle()
    found = by_name(spans)
    batch = found["shop batch"]
    assert dict(batch.attributes or {}) == {
        "potok.query": "shop",
        "potok.batch": 1,
        "potok.epoch": 1,
        "potok.records.written": 3,
        "potok.dead_letters": 0,
    }
    assert {"execute", "commit", "orders", "large", "large.to.copies", "counts"} <= found.keys()
    assert {span.context.trace_id for span in found.values()} == {batch.context.trace_id}
    assert found["execute"].parent is not None and found["execute"].parent.span_id == batch.context.span_id
    assert found["large"].parent is not None and found["large"].parent.span_id == found["execute"].context.span_id
    large = found["large"].attributes or {}
    assert (large["potok.records.in"], large["potok.records.out"]) == (2, 2)
    assert batch.status.status_code is StatusCode.UNSET


def test_spans_lie_inside_their_batch(group: ByHand, spans: InMemorySpanExporter) -> None:
    send(group, None)
    group.add(program())
    group.settle()
    found = by_name(spans)
    batch = found["shop batch"]
    for span in found.values():
        assert span.start_time <= span.end_time
        assert span.end_time <= batch.end_time
    assert found["execute"].end_time <= found["commit"].end_time


def test_a_batch_is_linked_to_the_sampled_traces_of_its_input(group: ByHand, spans: InMemorySpanExporter) -> None:
    send(group, SAMPLED.format(1), None, SAMPLED.format(2), SAMPLED.format(1), UNSAMPLED.format(3), "nonsense")
    group.add(program())
    group.settle()
    assert sorted(link.context.trace_id for link in by_name(spans)["shop batch"].links) == [1, 2]


def test_there_are_never_many_links(group: ByHand, spans: InMemorySpanExporter) -> None:
    send(group, *(SAMPLED.format(n + 1) for n in range(10 * MOST_TRACES)))
    group.add(program())
    group.settle()
    assert len(by_name(spans)["shop batch"].links) == MOST_TRACES


def test_the_trace_of_a_record_is_carried_through_steps_and_across_shards(group: ByHand) -> None:
    builder = StreamsBuilder("keyed")
    orders = builder.stream("orders", value="user string, amount bigint")
    orders.map_values(lambda v: {**v, "more": 1}).filter(lambda v: v["amount"] > 10).to("mapped")
    orders.select_key(lambda v: v["user"]).repartition().to("moved")
    send(group, SAMPLED.format(7))
    group.add(builder)
    group.settle()
    for topic in ("mapped", "moved"):
        [record] = read_outputs(group.broker, topic)
        assert dict(record.headers)["traceparent"] == SAMPLED.format(7).encode()


def test_an_attempt_that_fails_is_a_trace_with_an_error(group: ByHand, spans: InMemorySpanExporter) -> None:
    send(group, None)
    group.add(program())
    group.executor.dies_with = {"shop"}
    group.step()
    [failed] = spans.get_finished_spans()
    assert (failed.name, failed.status.status_code) == ("shop batch", StatusCode.ERROR)
    assert [event.name for event in failed.events] == ["exception"]


def test_the_error_of_a_trace_has_no_secrets(spans: InMemorySpanExporter) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace = BatchTracer(provider).begin("shop", Attempt(1, 1))
    assert trace is not None
    try:
        raise ValueError("cannot reach postgresql://ann:hunter2@db/shop\nsecond line")
    except ValueError as error:
        trace.fail(error)
    [failed] = spans.get_finished_spans()
    [event] = failed.events
    found = event.attributes or {}
    assert failed.status.description == "cannot reach postgresql://ann@db/shop"
    assert found["exception.type"] == "ValueError"
    assert "second line" in str(found["exception.message"]) and "Traceback" in str(found["exception.stacktrace"])
    assert "hunter2" not in failed.to_json()


def test_a_batch_that_is_not_sampled_measures_nothing(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    group = ByHand(tmp_path)
    provider = TracerProvider(sampler=ALWAYS_OFF)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    group.tracer = BatchTracer(provider)
    group.broker.create_topic("orders", 1)
    send(group, SAMPLED.format(1))
    group.add(program())
    group.settle()
    assert spans.get_finished_spans() == ()
    group.stop()
    group.broker.close()


def test_without_the_setting_there_is_no_tracer() -> None:
    assert tracer_of(Settings()) is None


class Receiver(BaseHTTPRequestHandler):
    """The OTLP receiver of a collector."""

    received: list[tuple[str, ExportTraceServiceRequest]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        request = ExportTraceServiceRequest.FromString(body)
        self.received.append((self.path, request))
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def test_spans_arrive_at_a_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Receiver, "received", [])
    monkeypatch.setenv("OTEL_SERVICE_NAME", "orders-service")
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        group = ByHand(tmp_path, tracing=url)
        group.broker.create_topic("orders", 1)
        send(group, SAMPLED.format(5))
        group.add(program())
        group.settle()
        group.stop()
        group.broker.close()
        tracing._providers.pop(url).shutdown()
        server.shutdown()
    assert {path for path, _ in Receiver.received} == {"/v1/traces"}
    resources = [each for _, request in Receiver.received for each in request.resource_spans]
    services = {a.value.string_value for each in resources for a in each.resource.attributes if a.key == "service.name"}
    assert services == {"orders-service"}
    spans = [span for each in resources for scope in each.scope_spans for span in scope.spans]
    [batch] = [span for span in spans if span.name == "shop batch"]
    assert [int.from_bytes(link.trace_id, "big") for link in batch.links] == [5]
    assert {span.trace_id for span in spans} == {batch.trace_id}
