"""Errors whose remedy is known, and the one catalogue of their codes. Shared by the assistant, the host and the window.

The command line and the model get the English message and hint from here; the window words them in the person's language
(``ui/messages.py``). A message is fixed by its code: text of an exception, of a server, of a command or of a file never
becomes part of it, so that no secret and no injected text can travel in an error.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, field
from typing import Literal

Operation = Literal[
    "configuration",
    "connect",
    "search",
    "activate",
    "call",
    "read",
    "complete",
    "prompt",
    "subscribe",
    "auth",
    "model",
    "storage",
]

#: code -> (message, hint). ``{name}`` takes a value of the diagnostic; values are numbers, field names or names that
#: the person chose, never text of a server or of an exception.
CATALOGUE: dict[str, tuple[str, str]] = {
    # configuration
    "configuration_invalid": (
        "The server's definition is not valid{where}{place}: {reason}.",
        "Correct the definition in mcp.json; the other servers work.",
    ),
    "configuration_unreadable": (
        "The configuration file can't be read: {reason}.",
        "Correct the file; Deskhand has not changed it and will not write to it until it can be read.",
    ),
    "import_unreadable": (
        "The file's servers can't be read: {reason}.",
        "Choose another file, or correct this one in the program it belongs to.",
    ),
    "folder_unavailable": (
        "The folder {folder} can't be opened: {reason}.",
        "Choose another, or see that you may read it.",
    ),
    "folder_not_open": (
        "The definition refers to the open folder, and none is open.",
        "Open a folder, or write a path into the definition.",
    ),
    "folder_not_trusted": (
        "The folder's own servers are left out: the folder is not trusted.",
        "Open the folder in Deskhand's window and trust it there, if you do.",
    ),
    "folder_file_shared": (
        "The folder's file of servers is your own one: it counts once, as yours.",
        "Give the folder a file of its own.",
    ),
    "variable_missing": (
        "The environment variable {variable} that the definition names{where}{place} is not set.",
        "Set it, or write the value into the definition.",
    ),
    "secret_missing": (
        "The secret {variable} that the definition refers to is not in the keyring.",
        "Enter it in the server's editor.",
    ),
    "secret_lookup_failed": (
        "The command for the value of {variable} failed: {reason}.",
        "Try the command in a terminal; it runs by the platform's shell, in the server's `cwd`.",
    ),
    # servers
    "server_unknown": ("No server of that name is configured.", "Leave out the server, or name a configured one."),
    "server_disabled": ("The server is disabled.", "It can be enabled in the servers panel."),
    "consent_required": (
        "The server's command has not been allowed to start.",
        "The person can look at it and allow it in the servers panel.",
    ),
    "server_not_started": (
        "The server is connected by hand only, and is not connected.",
        "The person can connect it in the servers panel.",
    ),
    "connection_failed": (
        "The connection to the server failed{reason}{outcome}.",
        "See the server's log in the servers panel.",
    ),
    "command_not_found": (
        "The server's command was not found.",
        "Install it, or give its full path in the server's definition.",
    ),
    "runtime_missing": (
        "The server's command {program} was not found.",
        "Install {runtime}, which brings it: {site}. Then connect the server again.",
    ),
    "server_exited": (
        "The server's process ended{status}{outcome}.",
        "Its last lines of error output are in the servers panel.",
    ),
    "session_lost": (
        "The server had forgotten the connection and did nothing; it is connected again.",
        "Ask again.",
    ),
    "certificate_refused": (
        "The server's certificate is not trusted{reason}.",
        "If you trust its issuer, name a file of the issuer's certificates as `caFile` in the server's definition.",
    ),
    "rate_limited": (
        "The server did nothing: it takes the next request in {seconds} seconds.",
        "Wait that long, then ask again.",
    ),
    "authentication_required": (
        "The server asks for a sign-in.",
        "Deskhand can't sign in yet; where the server takes a token, give it as a header in the server's definition.",
    ),
    "permission_denied": ("The server refused access.", "Check the credentials and what they allow."),
    "protocol_error": ("The server answered outside the protocol{reason}.", "See the server's log; tell its authors."),
    "protocol_unsupported": (
        "The server and Deskhand know no version of the protocol in common.",
        "Update the server, or Deskhand.",
    ),
    "server_error": (
        "The server answered with error {number}.",
        "What it says about it is in the server's log in the servers panel.",
    ),
    "capability_required": ("The server needs a feature that Deskhand does not offer.", ""),
    "list_incomplete": ("The server's list is not complete: {reason}.", "Tell the server's authors."),
    "message_too_large": (
        "The server sent a message of more than {limit} MiB.",
        "Ask for less at a time, for instance by a filter or a page.",
    ),
    "timeout": ("The server did not answer in time{outcome}.", "Try again, or raise the server's time limit."),
    "cancelled": ("Stopped.", ""),
    "busy": ("The server is busy connecting.", "Try again in a moment."),
    # catalog, tools, resources
    "tool_unknown": ("There is no tool of that name.", "Search with `query` for the tool's exact identifier."),
    "tool_changed": (
        "The tool has changed or is gone since it was activated.",
        "Search for it and activate it again.",
    ),
    "tool_not_active": ("The tool is not active in this conversation.", "Activate it first."),
    "tool_name_taken": ("Another tool is active under the same name.", "Unload that one first."),
    "arguments_invalid": ("The arguments are not valid{where}: {reason}.", "Correct the arguments and call again."),
    "usage": (
        "The arguments are not of one of the four forms.",
        'Give exactly one of: {{"query": "words"}} with optional "kind", "server", "limit"; {{"activate": ["server.tool"]}};'
        ' {{"read": {{"server": "…", "uri": "…"}}}} or with "template" and "arguments" instead of "uri"; {{"complete":'
        ' {{"server": "…", "template": "…", "argument": {{"name": "…", "value": "…"}}}}}}.',
    ),
    "resource_invalid": ("The URI is not valid.", "Give an absolute URI without spaces."),
    "resource_not_found": ("The server has no such resource.", "Search with `query` for the exact URI."),
    "resources_unsupported": ("The server offers no resources.", ""),
    "subscriptions_unsupported": ("The server doesn't tell when this resource changes.", ""),
    "subscription_limit": (
        "{limit} resources of the server are watched already.",
        "Stop watching another one first.",
    ),
    "prompts_unsupported": ("The server offers no prompts.", ""),
    "prompt_not_found": ("The server has no such prompt.", "Refresh the server's prompts."),
    "prompt_too_large": ("The prompt is too large to be used: {reason}.", "Choose other arguments, if it has any."),
    "prompt_invalid": ("The server refused the prompt's name or arguments.", "Refresh the server's prompts."),
    "elicitation_required": ("The server asks for an answer on a web page first.", ""),
    "elicitation_declined": (
        "The person did not answer on the web page that the server asked to visit first.",
        "Don't repeat the call; ask what to do instead.",
    ),
    "elicitation_completed": (
        "The person has answered on the web page that the server asked to visit first; the tool has not run yet.",
        "Call it again if it is still wanted.",
    ),
    "completion_invalid": ("The completion request is not valid.", "Name a variable of the server's template."),
    "completions_unsupported": ("The server offers no completions.", ""),
    "attachment_unreadable": ("The file can't be read: {reason}.", "See that it is there and that you may read it."),
    "attachment_too_large": (
        "The file is larger than {limit} MiB.",
        "Attach a smaller part of it, or have a server read it.",
    ),
    "attachment_unsupported": (
        "The file is neither text nor an image.",
        "Attach text, PNG, JPEG, GIF or WebP.",
    ),
    "result_gone": ("The stored result is gone.", "Call the tool again if its content is still needed."),
    # approval
    "denied": ("The person did not allow this call.", "Don't repeat it; ask what to do instead."),
    "call_limit": (
        "This turn has reached its limit of {limit} tool calls.",
        "Say what is done and what is left; the person can ask to go on.",
    ),
    # models
    "model_unknown": ("The model's name is not known to its provider.", "Choose another model."),
    "model_key_missing": ("No key for this model's provider is stored.", "Enter one in the settings under Models."),
    "model_key_refused": ("The provider refused the key.", "Enter a valid key in the settings under Models."),
    "model_not_allowed": (
        "The provider doesn't let this key use the model.",
        "Choose another model, or enter a key that may use it in the settings under Models.",
    ),
    "model_credit_exhausted": (
        "The provider says that the account has no credit left.",
        "Add credit at the provider, or choose another model.",
    ),
    "model_unreachable": (
        "The model can't be reached{reason}.",
        "Check the network and the address, or that the local model is running.",
    ),
    "model_unavailable": (
        "The model's server failed to answer{status}.",
        "Send again in a while; a local model may still be loading, or need more memory than there is.",
    ),
    "model_rate_limited": ("The provider limits the rate of requests{wait}.", "Wait a little, then send again."),
    "model_context_exceeded": (
        "The conversation is longer than the model takes.",
        "Start a new conversation or choose a model with a larger context.",
    ),
    "model_refused_request": (
        "The provider refused the request{status}.",
        "Try again in other words, or with another model.",
    ),
    "model_refused_tool": (
        "The provider refuses the tool {tool}{where}.",
        "It is set aside for this model; the answer goes on without it.",
    ),
    "model_refused_images": ("The model takes no images.", "They are left out for this model."),
    "model_refused_deferral": (
        "The provider takes no tools that are added in the midst of a conversation.",
        "They are sent at its beginning; each time one is loaded, the provider reads everything anew at the full price.",
    ),
    "context_summarised": (
        "The conversation is longer than the model takes: it gets a summary of the earlier turns.",
        "Loaded tools stay loaded. What was said stays here as it was.",
    ),
    "context_left_out": (
        "The conversation is longer than the model takes, and the earlier turns could not be summarised: it gets them no more.",
        "Loaded tools stay loaded. Say again what it should know.",
    ),
    "model_failed": ("The model's answer broke off.", "What came is kept; send again to go on."),
    # storage
    "credential_store_unavailable": (
        "The keyring is not available.",
        "Unlock or install a keyring; until then keys are kept for this run only.",
    ),
    "storage_failed": ("A file could not be written: {reason}.", "Free some space or check the folder's permissions."),
    "history_damaged": (
        "The history could not be read; it is kept as {name}, and a new one was begun.",
        "The file is in Deskhand's data folder.",
    ),
    "operation_failed": ("The operation failed.", "The log has the details."),
}

_OS_REASONS = {
    errno.ENOENT: "it is not there",
    errno.EACCES: "there is no permission",
    errno.EPERM: "there is no permission",
    errno.EROFS: "the disk is read-only",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EISDIR: "it is a folder",
    errno.ENOTDIR: "a part of its path is no folder",
    errno.ELOOP: "it is a link that leads to itself",
    errno.ENAMETOOLONG: "its name is too long",
}
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What went wrong, where, and what to do: a code of `CATALOGUE` and the values its message takes."""

    code: str
    operation: Operation | None = None
    server: str | None = None
    values: dict[str, str | int] = field(default_factory=dict[str, "str | int"])

    @property
    def message(self) -> str:
        return CATALOGUE[self.code][0].format_map(_Values(self.values))

    @property
    def hint(self) -> str:
        return CATALOGUE[self.code][1].format_map(_Values(self.values))

    def __str__(self) -> str:
        """``server: [code] message hint``: the form for the command line and the model."""
        named = self.server is not None and _SERVER_NAME.fullmatch(self.server)
        return f"{self.server + ': ' if named and self.server else ''}[{self.code}] {self.message} {self.hint}".rstrip()


class AssistantError(Exception):
    """An error with a diagnostic; everything else that is raised is a fault of Deskhand's own."""

    def __init__(
        self, code: str, *, operation: Operation | None = None, server: str | None = None, **values: str | int
    ) -> None:
        self.diagnostic = Diagnostic(code, operation, server, values)
        super().__init__(str(self.diagnostic))

    @classmethod
    def of(cls, diagnostic: Diagnostic) -> AssistantError:
        """An error with a diagnostic that is there already."""
        values = diagnostic.values
        return cls(diagnostic.code, operation=diagnostic.operation, server=diagnostic.server, **values)


def os_reason(error: OSError) -> str:
    """Why the system refused, in a text of ours: an OSError's own text names files."""
    return _OS_REASONS.get(error.errno or 0, f"the system refused ({errno.errorcode.get(error.errno or 0, 'unknown')})")


class _Values(dict[str, "str | int"]):
    """Values for a message; one that is not given is left out."""

    def __missing__(self, key: str) -> str:
        return ""
