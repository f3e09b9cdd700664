"""The sentences for what the assistant and the host say in codes: title, detail and remedy, in the person's language.

Used by the chat, the panels and the error box. They speak to the person; ``desktop/errors.py`` holds what the model and the
terminal read. ``tests/ui/test_messages.py`` holds that every code has its sentences.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from desktop.errors import CATALOGUE, Diagnostic
from desktop.visible_text import visible


@dataclass(frozen=True, slots=True)
class Words:
    title: str
    """A few words without a full stop."""
    detail: str
    """What happened, in a sentence; may be ""."""
    remedy: str
    """What the person can do; may be ""."""


def tr(text: str) -> str:
    """Translates a literal where there is no QObject to do it; Qt's tools file such a one without a context."""
    return QCoreApplication.translate("", text)


def words(diagnostic: Diagnostic) -> Words:
    """A diagnostic in words, hidden characters in its values made visible; in English where it has no sentence here."""
    # Not `visible_line`: the space that some values begin with belongs to the sentence.
    values = _Values({name: visible(str(value))[:300] for name, value in diagnostic.values.items()})
    texts = _sentences().get(diagnostic.code) or (tr("The operation failed"), *CATALOGUE[diagnostic.code])
    return Words(*(text.format_map(values) for text in texts))


def message(diagnostic: Diagnostic) -> str:
    """What happened, one sentence."""
    said = words(diagnostic)
    return said.detail or said.title


def hint(diagnostic: Diagnostic) -> str:
    """What to do next, or ""."""
    return words(diagnostic).remedy


class _Values(dict[str, str]):
    """Values for a sentence; one that is not given is left out."""

    def __missing__(self, key: str) -> str:
        return ""


def _sentences() -> dict[str, tuple[str, str, str]]:
    """code -> (title, detail, remedy), translated now."""
    return {
        # configuration
        "configuration_invalid": (
            tr("Server definition not valid"),
            tr("The definition is not valid{where}{place}: {reason}."),
            tr("Edit the server, or correct it in mcp.json. The other servers work."),
        ),
        "configuration_unreadable": (
            tr("Configuration can't be read"),
            tr("The configuration file can't be read: {reason}."),
            tr("Correct the file. Deskhand has not changed it and won't write to it until it can be read."),
        ),
        "import_unreadable": (
            tr("Servers can't be read"),
            tr("The file's servers can't be read: {reason}."),
            tr("Choose another file, or correct this one in the program it belongs to."),
        ),
        "folder_unavailable": (
            tr("Folder can't be opened"),
            tr("The folder {folder} can't be opened: {reason}."),
            tr("Choose another, or see that you may read it."),
        ),
        "folder_not_open": (
            tr("No folder is open"),
            tr("The definition refers to the open folder, and none is open."),
            tr("Open a folder, or write a path into the definition."),
        ),
        "folder_not_trusted": (
            tr("Folder not trusted"),
            tr("The folder's own servers are left out: the folder is not trusted."),
            tr("Trust it in the servers panel, if you do."),
        ),
        "folder_file_shared": (
            tr("One file for both"),
            tr("The folder's file of servers is your own one: it counts once, as yours."),
            tr("Give the folder a file of its own, if it is to have servers of its own."),
        ),
        "secret_missing": (
            tr("Secret missing"),
            tr("The secret {variable} that the definition refers to is not in the keyring."),
            tr("Enter it in the server's editor."),
        ),
        "variable_missing": (
            tr("Environment variable missing"),
            tr("The environment variable {variable} that the definition names{where}{place} is not set."),
            tr("Set it and start Deskhand again, or write the value into the definition."),
        ),
        "secret_lookup_failed": (
            tr("No value from the command"),
            tr("The command for the value of {variable} failed: {reason}."),
            tr("Try the command in a terminal. It runs by the system's shell, in the server's cwd."),
        ),
        # servers
        "server_unknown": (
            tr("No such server"),
            tr("No server of that name is configured."),
            tr("Look for its name in the servers panel."),
        ),
        "server_disabled": (
            tr("Server disabled"),
            tr("The server is disabled."),
            tr("Enable it in the servers panel."),
        ),
        "consent_required": (
            tr("Not allowed to start"),
            tr("The server's command has not been allowed to start."),
            tr("Look at it in the servers panel and allow it there."),
        ),
        "server_not_started": (
            tr("Not connected"),
            tr("The server is connected by hand only, and is not connected."),
            tr("Connect it in the servers panel."),
        ),
        "connection_failed": (
            tr("Connection failed"),
            tr("The connection to the server failed{reason}{outcome}."),
            tr("See the server's log, then reconnect."),
        ),
        "command_not_found": (
            tr("Command not found"),
            tr("The server's command was not found on this computer."),
            tr("Install it, or give its full path in the server's definition."),
        ),
        "runtime_missing": (
            tr("Program not installed"),
            tr("The server's command {program} was not found on this computer."),
            tr("Install {runtime}, which brings it: {site}. Then reconnect."),
        ),
        "server_exited": (
            tr("Server ended"),
            tr("The server's process ended{status}{outcome}."),
            tr("Its last lines may say why; the log has more."),
        ),
        "session_lost": (
            tr("Connection was forgotten"),
            tr("The server had forgotten the connection and did nothing; it is connected again."),
            tr("Try again."),
        ),
        "certificate_refused": (
            tr("Certificate not trusted"),
            tr("The server's certificate is not trusted{reason}."),
            tr(
                "If you trust its issuer, name a file with the issuer's certificates as caFile in the server's definition."
            ),
        ),
        "rate_limited": (
            tr("Too many requests"),
            tr("The server did nothing: it takes the next request in {seconds} seconds."),
            tr("Wait that long, then try again."),
        ),
        "protocol_unsupported": (
            tr("No common protocol version"),
            tr("The server and Deskhand know no version of the protocol in common."),
            tr("Update the server, or Deskhand."),
        ),
        "server_error": (
            tr("Server reports an error"),
            tr("The server answered with error {number}."),
            tr("What it says about it is in the server's log."),
        ),
        "capability_required": (
            tr("Feature not supported"),
            tr("The server needs a feature that Deskhand does not offer."),
            "",
        ),
        "list_incomplete": (
            tr("List not complete"),
            tr("The server's list is not complete: {reason}."),
            tr("The rest works; its authors should know."),
        ),
        "authentication_required": (
            tr("Sign-in needed"),
            tr("The server asks for a sign-in."),
            tr("Deskhand can't sign in yet. Where the server takes a token, edit it and give the token as a header."),
        ),
        "permission_denied": (
            tr("Access refused"),
            tr("The server refused access."),
            tr("Check the credentials in the server's definition and what they allow."),
        ),
        "protocol_error": (
            tr("Answer outside the protocol"),
            tr("The server answered in a way that the protocol doesn't allow{reason}."),
            tr("See the server's log; its authors should know."),
        ),
        "message_too_large": (
            tr("Message too large"),
            tr("The server sent a message of more than {limit} MiB."),
            tr("Ask for less at a time, for instance by a filter or a page."),
        ),
        "timeout": (
            tr("No answer in time"),
            tr("The server did not answer in time{outcome}."),
            tr("Try again, or raise the server's time limit in its definition."),
        ),
        "cancelled": (tr("Stopped"), tr("Stopped."), ""),
        "busy": (tr("Still connecting"), tr("The server is busy connecting."), tr("Try again in a moment.")),
        # catalog, tools, resources
        "tool_unknown": (
            tr("No such tool"),
            tr("There is no tool of that name."),
            tr("Describe what you need; the assistant searches for it."),
        ),
        "tool_changed": (
            tr("Tool has changed"),
            tr("The tool has changed or is gone since it was loaded."),
            tr("The assistant has to search for it and load it again."),
        ),
        "tool_not_active": (
            tr("Tool not loaded"),
            tr("The tool is not loaded in this conversation."),
            tr("The assistant has to load it first."),
        ),
        "tool_name_taken": (
            tr("Name already in use"),
            tr("Another tool is loaded under the same name."),
            tr("Unload that one first."),
        ),
        "arguments_invalid": (
            tr("Arguments not valid"),
            tr("The arguments are not valid{where}: {reason}."),
            tr("Correct them and try again."),
        ),
        "usage": (
            tr("Request not understood"),
            tr("The assistant's request had none of the four forms it may have."),
            "",
        ),
        "resource_invalid": (tr("Address not valid"), tr("The resource's address is not valid."), ""),
        "resource_not_found": (
            tr("No such resource"),
            tr("The server has no such resource."),
            tr("It may have been moved or removed; search for it again."),
        ),
        "resources_unsupported": (tr("No resources"), tr("The server offers no resources."), ""),
        "completion_invalid": (tr("Completion not valid"), tr("The server has no such value to complete."), ""),
        "completions_unsupported": (tr("No completions"), tr("The server offers no completions."), ""),
        "subscriptions_unsupported": (
            tr("Can't be watched"),
            tr("The server doesn't tell when this resource changes."),
            tr("Open it again when you want to know."),
        ),
        "subscription_limit": (
            tr("Too many watched"),
            tr("{limit} resources of the server are watched already."),
            tr("Stop watching another one first."),
        ),
        "prompts_unsupported": (tr("No prompts"), tr("The server offers no prompts."), ""),
        "prompt_not_found": (
            tr("No such prompt"),
            tr("The server has no such prompt."),
            tr("It may have been removed; refresh the server's prompts."),
        ),
        "prompt_too_large": (
            tr("Prompt too large"),
            tr("The prompt is too large to be used: {reason}."),
            tr("Choose other arguments, if it has any."),
        ),
        "prompt_invalid": (
            tr("Prompt refused"),
            tr("The server refused the prompt's name or arguments."),
            tr("Refresh the server's prompts."),
        ),
        "elicitation_required": (
            tr("Answer needed on a web page"),
            tr("The server asks for an answer on a web page first."),
            "",
        ),
        "attachment_unreadable": (
            tr("File can't be read"),
            tr("The file can't be read: {reason}."),
            tr("See that it is there and that you may read it."),
        ),
        "attachment_too_large": (
            tr("File too large"),
            tr("The file is larger than {limit} MiB."),
            tr("Attach a smaller part of it, or have a server read it."),
        ),
        "attachment_unsupported": (
            tr("Neither text nor an image"),
            tr("The file is neither text nor an image."),
            tr("Attach text, PNG, JPEG, GIF or WebP."),
        ),
        "elicitation_declined": (
            tr("Not answered on the web page"),
            tr("You did not answer on the page that the server asked to visit first."),
            "",
        ),
        "elicitation_completed": (
            tr("Answered on the web page"),
            tr("You answered on the page that the server asked to visit first; the tool has not run yet."),
            tr("The assistant can call it again."),
        ),
        "result_gone": (
            tr("Stored result is gone"),
            tr("The stored result has been cleared."),
            tr("Run the tool again if you still need it."),
        ),
        # approval
        "denied": (tr("Not allowed"), tr("You did not allow this call."), ""),
        "call_limit": (
            tr("Limit of tool calls reached"),
            tr("This turn has reached its limit of {limit} tool calls."),
            tr("Send a message to let the assistant go on."),
        ),
        # models
        "model_unknown": (
            tr("Model not known"),
            tr("The provider doesn't know a model of this name."),
            tr("Check the name in the settings under Models, or choose another."),
        ),
        "model_key_missing": (
            tr("No key for this model"),
            tr("Its provider asks for one, and none is stored."),
            tr("Enter one in the settings under Models."),
        ),
        "model_key_refused": (
            tr("Key refused"),
            tr("The provider says that the key is not valid."),
            tr("Enter a valid key in the settings under Models."),
        ),
        "model_not_allowed": (
            tr("Model not allowed"),
            tr("The provider doesn't let this key use the model."),
            tr("Choose another model, or enter a key that may use it in the settings under Models."),
        ),
        "model_credit_exhausted": (
            tr("No credit left"),
            tr("The provider answers again once the account can pay."),
            tr("Add credit at the provider, or choose another model."),
        ),
        "model_unreachable": (
            tr("Model can't be reached"),
            tr("There is no connection to it{reason}."),
            tr("Check the network and the address, or that the local model is running."),
        ),
        "model_unavailable": (
            tr("Model can't answer now"),
            tr("Its server is there and reports an error{status}."),
            tr("Send again in a while. A local model may still be loading, or need more memory than there is."),
        ),
        "model_rate_limited": (
            tr("Too many requests"),
            tr("The provider limits how often it may be asked{wait}."),
            tr("Wait a little, then send again."),
        ),
        "model_context_exceeded": (
            tr("Conversation too long"),
            tr("The model doesn't take all that was said and attached here."),
            tr("Start a new conversation, or choose a model that takes more."),
        ),
        "model_refused_request": (
            tr("Request refused"),
            tr("The provider didn't accept what was sent{status}."),
            tr("Try again in other words, or with another model."),
        ),
        "model_refused_tool": (
            tr("Tool refused by the provider"),
            tr("The provider refuses the tool {tool}{where}."),
            tr("It is set aside for this model; the answer goes on without it."),
        ),
        "model_refused_images": (
            tr("No images for this model"),
            tr("The provider refused those in this conversation."),
            tr("They are left out for this model."),
        ),
        "model_refused_deferral": (
            tr("Loading tools costs more here"),
            tr(
                "The provider takes no tools that are added in the midst of a conversation, so they go at its beginning."
            ),
            tr("Each time one is loaded, the provider reads everything anew at the full price."),
        ),
        "context_summarised": (
            tr("Earlier turns are summarised"),
            tr("The conversation is longer than the model takes, so it gets a summary in their place."),
            tr("Loaded tools stay loaded, and what was said stays here as it was."),
        ),
        "context_left_out": (
            tr("Earlier turns are left out"),
            tr("The conversation is longer than the model takes, and a summary of it could not be made."),
            tr("Loaded tools stay loaded. Say again what the model should know."),
        ),
        "model_failed": (
            tr("Answer broke off"),
            tr("The connection ended, or the model stopped, before all of it had come."),
            tr("What came is kept. Send again to go on."),
        ),
        # storage
        "credential_store_unavailable": (
            tr("Keyring not available"),
            tr("The system's keyring is not available or is locked."),
            tr("Unlock or install a keyring; until then keys are kept for this run only."),
        ),
        "storage_failed": (
            tr("File could not be written"),
            tr("A file could not be written: {reason}."),
            tr("Free some space, or check the folder's permissions."),
        ),
        "history_damaged": (
            tr("The history is damaged"),
            tr("The history could not be read; it is kept as {name}, and a new one was begun."),
            tr("The file is in Deskhand's data folder."),
        ),
        "operation_failed": (
            tr("The operation failed"),
            tr("Something unexpected happened in Deskhand."),
            tr("The log has the details."),
        ),
    }
