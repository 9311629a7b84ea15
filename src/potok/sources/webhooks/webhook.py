"""The options of a webhook listener, and its server."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from potok.duration import Duration, to_seconds
from potok.errors import TopologyError
from potok.sources.bodies import BODIES
from potok.sources.deduplication import Deduplication
from potok.sources.listener import Address, CannotListen, Listener, ListenerContext, ListenerSpec, option
from potok.sources.webhooks.signatures import Verifier, verifier_of

_TEMPLATE = re.compile(r"header:[\w-]+|body:\w+(\.\w+)*")
_STOP_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook(ListenerSpec):
    """POST requests over HTTP/1.1 or HTTP/2. The response is 202 once the records are in the log; without it the sender
    must repeat the request. With `id`, a repeated request is not appended again.
    """

    kind: ClassVar[str] = "webhook"
    extra: ClassVar[str | None] = "webhooks"

    listen: str = option("HOST:PORT to listen on.")
    path: str = option("The path of the URL.", default="/")
    body: Literal["json", "array", "ndjson", "raw"] = option(
        "`json`: one record; `array`: one record per element; `ndjson`: one record per line; `raw`: any bytes.",
        default="json",
    )
    signature: Literal["standard", "stripe", "github", "hmac", "none"] = option(
        "How requests are signed: Standard Webhooks, Stripe, GitHub, an HMAC in a header, or not at all.",
        default="none",
    )
    secrets: tuple[str, ...] = option(
        "The secrets that may have signed a request, as `env:NAME`, `file:PATH` or text; `whpk_...` is an ed25519 "
        "public key.",
        default=(),
        repr=False,
    )
    signature_header: str | None = option('The header of `signature = "hmac"`.', default=None)
    signature_hash: str = option('The hash of `signature = "hmac"`: sha256, sha512 or sha1.', default="sha256")
    signature_encoding: str = option('The encoding of `signature = "hmac"`: hex or base64.', default="hex")
    signature_prefix: str = option('The text before the signature, such as "sha256=".', default="")
    tolerance: Duration = option(
        "Maximum difference between the timestamp of a signature and the time of this machine.", default="5 minutes"
    )
    key: str | None = option("Where the key of a record is: `header:NAME` or `body:FIELD.FIELD`.", default=None)
    id: str | None = option(
        "Where the id of a request is, in the same form. A repeated request is answered without a second record; "
        "another body under the same id is rejected with 409.",
        default=None,
    )
    remember_ids: Duration = option("How long ids are remembered.", default="1 hour")
    max_ids: int = option("Maximum number of remembered ids.", default=1_000_000)
    tls_cert: str | None = option(
        "A PEM file with the certificate of the listener and its chain, read again when it is renewed.", default=None
    )
    tls_key: str | None = option("A PEM file with the private key of `tls_cert`.", default=None)
    max_body: int = option("Maximum size of a body in bytes, after decompression.", default=1 << 20)
    max_connections: int = option("Maximum number of concurrent connections.", default=1_000)
    timeout: Duration = option("How long a request waits for the log before the response is 503.", default="30 s")

    def check(self) -> None:
        ListenerSpec.check(self)
        Address.of(self.listen)
        self.verifier()
        if (self.tls_cert is None) != (self.tls_key is None):
            raise TopologyError("tls_cert and tls_key belong together", hint="write both, or neither")
        if self.body not in BODIES:
            raise TopologyError(f'there is no body "{self.body}"', hint=f"use one of {', '.join(BODIES)}")
        if not self.path.startswith("/"):
            raise TopologyError(f'the path "{self.path}" does not start with /', hint=f'write "/{self.path}"')
        for name in ("key", "id"):
            template = getattr(self, name)
            if template is not None and not _TEMPLATE.fullmatch(template):
                hint = f'write {name} = "header:webhook-id" or {name} = "body:data.id"'
                raise TopologyError(f'{name} = "{template}" names no header and no field', hint=hint)
            if template is not None and template.startswith("body:") and self.body in ("ndjson", "raw"):
                if name == "key" and self.body == "ndjson":
                    continue
                raise TopologyError(f'a body that is "{self.body}" has no fields for {name}', hint="name a header")
        if self.id is not None and self.id.startswith("body:") and self.body == "array":
            raise TopologyError("an array has no field for id", hint="name a header")
        if to_seconds(self.timeout) <= 0:
            raise TopologyError("timeout must be longer than 0", hint='write timeout = "30 s"')
        for name in ("max_ids", "max_body", "max_connections"):
            if getattr(self, name) < 1:
                raise TopologyError(f"{name} is too small", hint="write 1 or more")

    def verifier(self) -> Verifier:
        return verifier_of(
            self.signature,
            self.secrets,
            tolerance_s=to_seconds(self.tolerance),
            header=self.signature_header,
            algorithm=self.signature_hash,
            encoding=self.signature_encoding,
            prefix=self.signature_prefix,
        )

    def open(self, context: ListenerContext) -> Listener:
        return WebhookListener(self, context)


class WebhookListener(Listener):
    """An HTTP server in a thread."""

    def __init__(self, spec: Webhook, context: ListenerContext) -> None:
        import uvicorn

        from potok.server.http.either_protocol import protocol_over
        from potok.server.tls import CertificateReloader, Tls
        from potok.sources.webhooks.receive import Expected, Receive

        tls = Tls.of(spec.tls_cert, spec.tls_key)
        secure = None if tls is None else tls.context()
        self._reloader = None if tls is None or secure is None else CertificateReloader(tls, secure)

        address = Address.of(spec.listen)
        self._socket = _bound(spec.name, address)
        self.address = Address(address.host, int(self._socket.getsockname()[1]))
        known: Deduplication[asyncio.Future[str | None]] | None = Deduplication.of(spec, context.broker, "webhook")
        expected = Expected(
            spec.path,
            spec.body,
            spec.verifier(),
            spec.key,
            spec.id,
            spec.max_body,
            to_seconds(spec.timeout),
            full_status=429 if spec.overload.when_full == "block" else 503,
        )
        config = uvicorn.Config(
            Receive(expected, context, known),
            http=protocol_over(secure),
            limit_concurrency=spec.max_connections,
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_STOP_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name=f"potok-webhook-{spec.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()
        if self._reloader is not None:
            self._reloader.start()

    def stop(self) -> None:
        """End after the requests that are under way, for a few seconds."""
        if self._reloader is not None:
            self._reloader.close()
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()

    def close(self) -> None:
        self._socket.close()

    @property
    def problem(self) -> str | None:
        return None if self._thread.is_alive() or self._server.should_exit else "the HTTP server has stopped"

    def state(self) -> dict[str, Any]:
        return {"connections": len(self._server.server_state.connections)}

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])


def _bound(name: str, address: Address) -> socket.socket:
    opened = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind(address)
        opened.listen(1024)
    except (OSError, OverflowError) as error:
        opened.close()
        raise CannotListen(name, address, getattr(error, "strerror", None) or str(error)) from error
    return opened
