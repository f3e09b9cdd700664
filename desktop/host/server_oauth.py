"""The ``oauth`` of an entry of the servers' file, checked strictly. Used by ``server_entry`` alone.

What stands here decides to whom credentials go, so nothing is ignored: a field that isn't known is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast, get_args

from desktop import links
from desktop.host.commented_json import JsonObject
from desktop.host.server_config import Grant, OAuthSettings
from desktop.host.server_references import Invalid, at, checked_text, expand

_FIELDS = frozenset(
    ("grant", "clientId", "clientSecret", "scopes", "callbackPort", "clientMetadataUrl", "dpop", "allowMissingPkce")
)
_KEYRING_REFERENCE = re.compile(r"\$\{keyring:([A-Za-z0-9_.-]{1,128})\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: RFC 6749, 3.3.
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,256}")
_MOST_SCOPES = 100
_LONGEST_CLIENT_ID = 4096


def oauth_of(value: object, environ: Mapping[str, str] | None) -> OAuthSettings:
    """Raises Invalid. Without `environ`, variables are taken to be set."""
    if not isinstance(value, dict):
        raise Invalid("it must be an object", "oauth")
    given = cast("dict[str, Any]", value)
    if isinstance(given, JsonObject) and given.repeated:
        raise Invalid("it is given twice", "oauth", min(given.repeated))
    if unknown := given.keys() - _FIELDS:
        raise Invalid("there is no such field", "oauth", min(unknown))
    settings = OAuthSettings(
        grant=_grant(given.get("grant", "authorization_code")),
        client_id=_client_id(given["clientId"], environ) if "clientId" in given else "",
        client_secret=_client_secret(given["clientSecret"]) if "clientSecret" in given else "",
        scopes=_scopes(given["scopes"]) if "scopes" in given else (),
        callback_port=_port(given["callbackPort"]) if "callbackPort" in given else None,
        client_metadata_url=_metadata_url(given["clientMetadataUrl"]) if "clientMetadataUrl" in given else "",
        dpop=_flag(given, "dpop"),
        allow_missing_pkce=_flag(given, "allowMissingPkce"),
    )
    if settings.client_secret and not settings.client_id:
        raise Invalid("it needs a `clientId`", "oauth", "clientSecret")
    if settings.grant == "client_credentials" and not settings.client_secret:
        raise Invalid("this grant needs `clientId` and `clientSecret`", "oauth", "grant")
    return settings


def _grant(value: Any) -> Grant:
    if value not in get_args(Grant):
        raise Invalid(f"it must be one of {', '.join(get_args(Grant))}", "oauth", "grant")
    return value


def _client_id(value: Any, environ: Mapping[str, str] | None) -> str:
    client_id = checked_text(value, "oauth", "clientId")
    if environ is not None:
        with at("oauth", "clientId"):
            client_id = checked_text(expand(client_id, environ), "oauth", "clientId")
    if len(client_id) > _LONGEST_CLIENT_ID or _CONTROL.search(client_id):
        raise Invalid(
            f"it must be at most {_LONGEST_CLIENT_ID} characters without control characters", "oauth", "clientId"
        )
    return client_id


def _client_secret(value: Any) -> str:
    reference = _KEYRING_REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if reference is None:
        raise Invalid("it must be a reference into the keyring, `${keyring:NAME}`", "oauth", "clientSecret")
    return reference[1]


def _scopes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(cast("list[Any]", value)) <= _MOST_SCOPES:
        raise Invalid(f"it must be a list of 1 to {_MOST_SCOPES} texts", "oauth", "scopes")
    scopes = cast("list[Any]", value)
    for number, scope in enumerate(scopes):
        if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):
            raise Invalid(
                'it must be 1 to 256 printable ASCII characters without space, " and \\', "oauth", "scopes", number
            )
        if scope in scopes[:number]:
            raise Invalid("it is given twice", "oauth", "scopes", number)
    return tuple(scopes)


def _port(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= 65535:
        raise Invalid("it must be a whole number from 1 to 65535", "oauth", "callbackPort")
    return value


def _metadata_url(value: Any) -> str:
    """A client's identifier that is the address of its metadata: https, with a path."""
    url = checked_text(value, "oauth", "clientMetadataUrl")
    if links.check(url) is None or "#" in url or not re.match(r"https://[^/?]+/[^/?]", url):
        raise Invalid(
            "it must be an https address with a path, without user and fragment", "oauth", "clientMetadataUrl"
        )
    return url


def _flag(given: Mapping[str, Any], key: str) -> bool:
    value = given.get(key, False)
    if not isinstance(value, bool):
        raise Invalid("it must be true or false", "oauth", key)
    return value
