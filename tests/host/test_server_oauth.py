"""What may stand in the ``oauth`` of an entry, and what is refused; a server that has one connects without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from desktop.host.server_config import Configuration, OAuthSettings
from desktop.host.servers_file import read_configuration
from tests.host.conftest import MakeConnection
from tests.servers.running import friendly, http_server

URL = "https://example.org/mcp"


def read(tmp_path: Path, oauth: Any, **more: Any) -> Configuration:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"url": URL, "oauth": oauth, **more}}}))
    return read_configuration(file, {"CLIENT": "from-outside"})


def test_everything_that_may_be_given_is_read(tmp_path: Path) -> None:
    (definition,) = read(
        tmp_path,
        {
            "grant": "client_credentials",
            "clientId": "${CLIENT}",
            "clientSecret": "${keyring:secret}",
            "scopes": ["read", "files:write"],
            "callbackPort": 3118,
            "clientMetadataUrl": "https://example.org/client.json",
            "dpop": True,
            "allowMissingPkce": True,
        },
    ).definitions
    assert definition.oauth == OAuthSettings(
        grant="client_credentials",
        client_id="from-outside",
        client_secret="secret",
        scopes=("read", "files:write"),
        callback_port=3118,
        client_metadata_url="https://example.org/client.json",
        dpop=True,
        allow_missing_pkce=True,
    )


def test_nothing_needs_to_be_given_and_the_client_is_part_of_the_identity(tmp_path: Path) -> None:
    (empty,) = read(tmp_path, {}).definitions
    assert empty.oauth == OAuthSettings()
    (named,) = read(tmp_path, {"clientId": "!me"}).definitions  # no command here
    assert named.oauth == OAuthSettings(client_id="!me") and named.secret_commands == {}
    assert named.identity != empty.identity


@pytest.mark.parametrize(
    ("oauth", "where", "reason"),
    [
        (None, "oauth", "it must be an object"),
        ([], "oauth", "it must be an object"),
        ({"clientID": "x"}, "oauth.clientID", "there is no such field"),
        ({"grant": "password"}, "oauth.grant", "it must be one of authorization_code, client_credentials"),
        ({"grant": "client_credentials"}, "oauth.grant", "this grant needs `clientId` and `clientSecret`"),
        ({"clientId": " "}, "oauth.clientId", "it is empty"),
        ({"clientId": 7}, "oauth.clientId", "it must be text"),
        ({"clientId": "x" * 4097}, "oauth.clientId", "it must be at most 4096 characters"),
        ({"clientId": "a\x1bb"}, "oauth.clientId", "it must be at most 4096 characters without control characters"),
        ({"clientSecret": "${keyring:a}"}, "oauth.clientSecret", "it needs a `clientId`"),
        ({"clientId": "a", "clientSecret": "canary"}, "oauth.clientSecret", "it must be a reference into the keyring"),
        (
            {"clientId": "a", "clientSecret": "${CLIENT}"},
            "oauth.clientSecret",
            "it must be a reference into the keyring",
        ),
        ({"clientId": "a", "clientSecret": "!pass"}, "oauth.clientSecret", "it must be a reference into the keyring"),
        ({"scopes": []}, "oauth.scopes", "it must be a list of 1 to 100 texts"),
        ({"scopes": "read write"}, "oauth.scopes", "it must be a list of 1 to 100 texts"),
        ({"scopes": [str(n) for n in range(101)]}, "oauth.scopes", "it must be a list of 1 to 100 texts"),
        ({"scopes": ["a", "a"]}, "oauth.scopes[1]", "it is given twice"),
        ({"scopes": ["a b"]}, "oauth.scopes[0]", "it must be 1 to 256 printable ASCII characters"),
        ({"scopes": ["a", 'b"']}, "oauth.scopes[1]", "it must be 1 to 256 printable ASCII characters"),
        ({"scopes": ["x" * 257]}, "oauth.scopes[0]", "it must be 1 to 256 printable ASCII characters"),
        ({"scopes": [1]}, "oauth.scopes[0]", "it must be 1 to 256 printable ASCII characters"),
        ({"callbackPort": 0}, "oauth.callbackPort", "it must be a whole number from 1 to 65535"),
        ({"callbackPort": 65536}, "oauth.callbackPort", "it must be a whole number from 1 to 65535"),
        ({"callbackPort": "80"}, "oauth.callbackPort", "it must be a whole number from 1 to 65535"),
        ({"callbackPort": True}, "oauth.callbackPort", "it must be a whole number from 1 to 65535"),
        ({"clientMetadataUrl": "http://example.org/c"}, "oauth.clientMetadataUrl", "it must be an https address"),
        ({"clientMetadataUrl": "https://example.org"}, "oauth.clientMetadataUrl", "it must be an https address"),
        ({"clientMetadataUrl": "https://u@example.org/c"}, "oauth.clientMetadataUrl", "it must be an https address"),
        ({"dpop": "yes"}, "oauth.dpop", "it must be true or false"),
        ({"allowMissingPkce": 1}, "oauth.allowMissingPkce", "it must be true or false"),
    ],
)
def test_what_is_not_known_or_does_not_fit_is_refused_by_field(
    tmp_path: Path, oauth: Any, where: str, reason: str
) -> None:
    configuration = read(tmp_path, oauth)
    (fault,) = configuration.faults
    assert configuration.definitions == ()
    assert (fault.server, fault.values["where"]) == ("a", f" at {where}")
    assert str(fault.values["reason"]).startswith(reason) and "canary" not in str(fault)


def test_a_variable_that_is_not_set_is_named_with_its_field(tmp_path: Path) -> None:
    (fault,) = read(tmp_path, {"clientId": "${NOT_SET}"}).faults
    assert (fault.code, fault.values["variable"], fault.values["where"]) == (
        "variable_missing",
        "NOT_SET",
        " at oauth.clientId",
    )


def test_a_program_has_no_oauth_and_a_header_of_ones_own_leaves_no_room_for_it(tmp_path: Path) -> None:
    (fault,) = read(tmp_path, {}, headers={"authorization": "Bearer x"}).faults
    assert fault.values["where"] == " at oauth"
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "oauth": {"dpop": True}}}}))
    (fault,) = read_configuration(file).faults
    assert fault.values["where"] == " at oauth"


@pytest.mark.anyio
async def test_a_server_that_needs_no_sign_in_connects_whatever_its_oauth_says(make: MakeConnection) -> None:
    async with http_server(friendly()) as url:
        connection = make(kind="http", url=url, oauth=OAuthSettings(client_id="me"))
        await connection.connect()
        assert connection.state.status == "connected"
