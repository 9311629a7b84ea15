"""Errors that a page raises: each has an HTTP status, and becomes an `application/problem+json` response.

WebError
├── ServerError             500
├── ValidationError         400
├── ParseError              400
├── AuthenticationFailed    401
├── NotAuthenticated        401
├── PermissionDenied        403
├── NotFound                404
├── MethodNotAllowed        405
├── NotAcceptable           406
├── UnsupportedMediaType    415
└── Throttled               429
"""

from __future__ import annotations

import re
from typing import Any, ClassVar


class WebError(Exception):
    """`detail` is what the client reads, `code` the status; further arguments are added to the response."""

    code: ClassVar[int] = 500
    detail: ClassVar[str] = "the page failed"

    def __init__(self, detail: str | None = None, *, code: int | None = None, **extra_context: Any) -> None:
        self.status = code or type(self).code
        self.message = detail or type(self).detail
        self.extra_context = extra_context
        super().__init__(self.message)

    def problem(self) -> dict[str, Any]:
        """Return an RFC 9457 problem; clients of Faust read `error`."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower()
        problem = {"type": f"urn:potok:page:{words.replace(' ', '-')}", "title": words, "status": self.status}
        return {**self.extra_context, **problem, "detail": self.message, "error": self.message}


class ServerError(WebError):
    pass


class ValidationError(WebError):
    code, detail = 400, "the request is not valid"


class ParseError(WebError):
    code, detail = 400, "the request cannot be parsed"


class AuthenticationFailed(WebError):
    code, detail = 401, "these credentials are not valid"


class NotAuthenticated(WebError):
    code, detail = 401, "this page requires authentication"


class PermissionDenied(WebError):
    code, detail = 403, "permission denied"


class NotFound(WebError):
    code, detail = 404, "not found"


class MethodNotAllowed(WebError):
    code, detail = 405, "the page does not support this method"


class NotAcceptable(WebError):
    code, detail = 406, "the page has no response of this type"


class UnsupportedMediaType(WebError):
    code, detail = 415, "the page does not accept bodies of this type"


class Throttled(WebError):
    code, detail = 429, "too many requests"
