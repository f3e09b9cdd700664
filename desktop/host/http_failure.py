"""Why a request over HTTP has no answer of the protocol: as the HTTP client says it, and as the SDK's client passes it on.

Used by ``http_client`` and the connection. Of an exception its type decides and is logged, not its text, which may hold an
address or a secret.
"""

from __future__ import annotations

import errno
import math
import os
import secrets
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from typing import Any, cast

import httpx2
from mcp import MCPError
from mcp_types import ErrorData

from desktop.errors import AssistantError
from desktop.host.server_log import ServerLog

HTTP_FAILURE = -31003
"""Code of the error that answers a request which HTTP failed: see `HttpFailure.of`."""
_CODES = {401: "authentication_required", 403: "permission_denied", 429: "rate_limited"}
#: Seconds to wait where a server that limits the rate of requests doesn't say how long.
_USUAL_WAIT = 5
_LONGEST_WAIT = 24 * 3600
_LONGEST_CHAIN = 8
#: Numbers of OpenSSL's verdicts on a certificate.
_CERTIFICATES = {
    9: "it is not valid yet",
    10: "it has expired",
    18: "it is signed by itself",
    19: "its issuer is not known",
    20: "its issuer is not known",
    21: "its issuer is not known",
    62: "it is for another name",
    64: "it is for another address",
}
_ERRNOS = {
    errno.ECONNREFUSED: "nothing answers at its address",
    errno.ECONNRESET: "it broke off",
    errno.EHOSTUNREACH: "its address can't be reached",
    errno.ENETUNREACH: "its address can't be reached",
}
#: Tells our own errors from those of a server that uses their code.
_TOKEN = secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class HttpFailure:
    code: str
    """Of the diagnostic that it stands for: ``authentication_required`` (401), ``permission_denied`` (403), ``rate_limited``
    (429), ``session_lost`` (404 within a session), ``certificate_refused``, ``timeout``, ``protocol_error``, what a sign-in
    raised, else ``connection_failed``."""
    status: int | None = None
    """None: there was no answer, or it broke off."""
    seconds: int | None = None
    """How long to wait before the next request, for ``rate_limited``."""
    reason: str = ""
    """In words, where more is known than the code says."""

    @classmethod
    def of(cls, error: MCPError) -> HttpFailure | None:
        """The failure that an error of the SDK's client stands for, or None."""
        data: object = error.data
        if error.code != HTTP_FAILURE or not isinstance(data, dict):
            return None
        values = dict(cast("dict[str, Any]", data))
        return cls(**values) if values.pop("token", None) == _TOKEN else None

    @property
    def values(self) -> dict[str, str | int]:
        """The diagnostic's."""
        return {
            **({"reason": f": {self.reason}"} if self.reason else {}),
            **({"seconds": self.seconds} if self.seconds is not None else {}),
        }

    def as_error(self) -> ErrorData:
        """What answers the request, for the SDK's client; `of` finds the failure in it again."""
        return ErrorData(code=HTTP_FAILURE, message="The request failed.", data={**asdict(self), "token": _TOKEN})


def failure_of_status(response: httpx2.Response, *, in_session: bool) -> HttpFailure | None:
    """What a status of 400 and more stands for by itself; None where the answer's content may say more."""
    status = response.status_code
    if status == 404 and in_session:
        return HttpFailure("session_lost", status)
    if status not in _CODES:
        return None
    return HttpFailure(_CODES[status], status, _wait(response) if status == 429 else None)


def failure_of_exception(error: Exception, log: ServerLog) -> HttpFailure:
    """What an exception of the HTTP client stands for, noted in the log."""
    code, reason = "connection_failed", ""
    told: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(told) < _LONGEST_CHAIN:
        told.append(type(cause).__name__)
        if isinstance(cause, AssistantError):
            code = cause.diagnostic.code
        elif isinstance(cause, ssl.SSLCertVerificationError):
            code, reason = "certificate_refused", _CERTIFICATES.get(cause.verify_code, "")
        elif isinstance(cause, httpx2.TimeoutException):
            code = "timeout"
        elif isinstance(cause, httpx2.ProxyError):
            reason = reason or "the proxy that the system names (HTTPS_PROXY, HTTP_PROXY, NO_PROXY) could not be used"
        elif isinstance(cause, socket.gaierror):
            reason = reason or "its name is not known to the network"
        elif isinstance(cause, ssl.SSLError):
            reason = reason or "it speaks no TLS that is understood here"
        elif isinstance(cause, OSError) and cause.errno:
            told.append(os.strerror(cause.errno))
            reason = reason or _ERRNOS.get(cause.errno, "")
        cause = cause.__cause__ or cause.__context__
    log.append(f"A request failed: {', '.join(dict.fromkeys(told))}.", level="error")
    return HttpFailure(code, reason=reason if code in ("connection_failed", "certificate_refused") else "")


def _wait(response: httpx2.Response) -> int:
    """Seconds, as the server says by number or date (RFC 9110, 10.2.3)."""
    value = response.headers.get("retry-after", "").strip()
    seconds = float(_USUAL_WAIT)
    if value.isascii() and value.isdecimal():
        seconds = float(value)
    elif value:
        with suppress(ValueError, OverflowError, OSError):
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
    return math.ceil(min(max(seconds, 0), _LONGEST_WAIT))
