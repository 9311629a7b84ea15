"""Send records as webhooks to one or more endpoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from potok.errors import TopologyError
from potok.sinks.guarantee import Guarantee
from potok.sinks.http.http import check_header
from potok.sinks.json_bodies import json_bodies
from potok.sinks.sink_spec import LoggedTarget, Prepared, Rows, Types
from potok.sinks.urls import address_of, clear_url, host_of
from potok.sinks.webhooks.retry_schedule import RetrySchedule
from potok.sinks.webhooks.signing import ID_HEADER, SIGNATURE_HEADER, TIME_HEADER, Signer

_OURS = frozenset({ID_HEADER, TIME_HEADER, SIGNATURE_HEADER})


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """A receiver of webhooks.

    Args:
        url: The URL to post to.
        secrets: Each signs: `whsec_...` with HMAC-SHA256, `whsk_...` with ed25519; or `env:NAME` or `file:PATH` that
            contains one.
        name: Identifies the endpoint in records of attempts and in `potok webhooks`; by default the host of the URL.
            Deliveries that wait belong to the name, so the URL may change.
        headers: Sent with each request.
    """

    url: str = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    name: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.secrets, str):
            object.__setattr__(self, "secrets", (self.secrets,))
        object.__setattr__(self, "name", self.name or host_of(self.url))

    def check(self) -> None:
        if self.url.partition(":")[0] not in ("http", "https") or not clear_url(self.url).hosts:
            raise TopologyError("this is not an HTTP address", hint='write "https://example.org/webhooks"')
        if "/" in self.name:
            raise TopologyError(f'an endpoint cannot be named "{self.name}"', hint="leave the slash out")
        if not self.secrets:
            raise TopologyError(
                f'endpoint "{self.name}" has no secret, so its owner could not verify the sender of a webhook',
                hint='pass secrets=["env:WEBHOOK_SECRET"] with "whsec_" and the output of openssl rand -base64 32',
            )
        # Where the program is only described, the environment need not have the secrets.
        Signer([secret for secret in self.secrets if not secret.startswith(("env:", "file:"))])
        for name, value in self.headers:
            check_header(name, value)
            if name.lower() in _OURS:
                raise TopologyError(f"the header {name} is set by Potok", hint="leave it out")


@dataclass(frozen=True, slots=True)
class WebhookTarget(LoggedTarget):
    """Endpoints that get every record. Deliveries are records of a topic until every endpoint has taken them."""

    verb: ClassVar[str] = "to_webhook"

    endpoints: tuple[WebhookEndpoint, ...]
    schedule: RetrySchedule
    concurrency: int
    timeout_ms: int
    retention_ms: int
    with_key: bool

    @property
    def label(self) -> str:
        return ", ".join(address_of(endpoint.url) for endpoint in self.endpoints)

    def check(self, types: Types, guarantee: Guarantee) -> None:
        if not self.endpoints:
            raise TopologyError("there is no endpoint", hint='write to_webhook("https://example.org/webhooks", ...)')
        names = [endpoint.name for endpoint in self.endpoints]
        for endpoint in self.endpoints:
            endpoint.check()
            if names.count(endpoint.name) > 1:
                hint = f'name them: WebhookEndpoint(url, secrets, name="{endpoint.name}-billing")'
                raise TopologyError(f'two endpoints are named "{endpoint.name}"', hint=hint)
        if self.concurrency < 1:
            raise TopologyError(f"concurrency={self.concurrency} is too small", hint="write concurrency=1 or more")
        longest = sum(self.schedule.pauses_ms)
        if self.retention_ms < 2 * longest:
            raise TopologyError(
                "the deliveries are not retained as long as they are retried",
                hint="make retention at least twice the sum of the pauses in retry",
            )

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        """Prepare bodies as values."""
        bodies = json_bodies(rows, with_key=self.with_key)
        return Prepared(rows.key, bodies.values, bodies.errors)
