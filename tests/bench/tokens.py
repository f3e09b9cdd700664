"""What the model's one tool costs in tokens, against sending it every schema of all servers.

With ``--data FOLDER`` on the lists in its ``real_servers`` folder, a JSON file a server (``tools``, ``instructions``,
``serverInfo``); by default that of ``../shared/data`` beside the repository, else a small set made here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from desktop.assistant import toolbox
from desktop.assistant.conversation import ToolCall
from desktop.assistant.mcp_tools import McpTools
from desktop.assistant.provider_messages import to_tools
from desktop.assistant.results import ResultStore
from desktop.assistant.toolbox import Toolbox
from desktop.catalog_entries import ServerEntry, ToolDefinition
from tests.bench._measuring import report
from tests.fakes.in_memory_host import Servers, tool

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
TOKENIZER = "o200k_base"
STANDING_BUDGET = 600
FIRST_USE_BUDGET = 1500


def count(value: Any) -> int:
    """Tokens of a text, or of a value as JSON. The tokenizer is one that litellm brings along: no network."""
    found = find_spec("litellm")
    assert found is not None and found.submodule_search_locations
    os.environ["TIKTOKEN_CACHE_DIR"] = f"{found.submodule_search_locations[0]}/litellm_core_utils/tokenizers"
    import tiktoken

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(tiktoken.get_encoding(TOKENIZER).encode(text, disallowed_special=()))


def lists_in(folder: Path) -> dict[str, Mapping[str, Any]]:
    """What each server lists, by its name."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}


def made_lists() -> dict[str, Mapping[str, Any]]:
    """Twelve servers that each read, find, make, change and delete three kinds of thing."""

    def made(verb: str, thing: str) -> dict[str, Any]:
        properties = {
            name: {"type": "string", "description": f"The {name} of the {thing} to {verb}"}
            for name in ("name", "folder", "owner", "label")
        }
        schema = {"type": "object", "properties": properties, "required": ["name"]}
        return {"name": f"{verb}_{thing}", "description": f"{verb.title()}s a {thing}.", "inputSchema": schema}

    verbs, things = ("read", "find", "make", "change", "delete"), ("page", "task", "message")
    tools = [made(verb, thing) for verb in verbs for thing in things]
    return {f"server-{number}": {"tools": tools, "instructions": "Pages, tasks and messages."} for number in range(12)}


def definitions(server: str, listed: Mapping[str, Any]) -> list[ToolDefinition]:
    return [
        tool(server, each["name"], description=each.get("description") or "", schema=each["inputSchema"])
        for each in listed["tools"]
    ]


async def main(data: Path) -> None:
    lists = lists_in(data / "real_servers") or made_lists()
    tools = [each for server, listed in lists.items() for each in definitions(server, listed)]
    servers = Servers([*tools], [ServerEntry(name, listed.get("instructions") or "") for name, listed in lists.items()])
    everything = sum(
        count({"name": each.name, "description": each.description, "inputSchema": each.input_schema}) for each in tools
    )
    with tempfile.TemporaryDirectory() as folder:
        mcp_tools = McpTools(servers, servers, ResultStore(Path(folder)))

        async def answer(**arguments: Any) -> int:
            call = ToolCall("1", toolbox.MCP_TOOLS, json.dumps(arguments))
            return count((await mcp_tools.execute(call, "c", Toolbox([]))).text)

        standing = count(to_tools([mcp_tools.spec()])[0])
        queries = [await answer(query="anything", server=name, limit=5) for name in lists]
        pairs = zip(tools[::2], tools[1::2], strict=False)
        activations = [await answer(activate=[one.identifier, other.identifier]) for one, other in pairs]
    schemas = [count(to_tools([toolbox.spec(each)])[0]) for each in tools]
    parts = {
        "query": statistics.mean(queries),
        "activation": statistics.mean(activations),
        "two_schemas": 2 * statistics.mean(schemas),
    }
    first_use = standing + sum(parts.values())
    against = f"{everything:,} for all {len(tools)} tools of {len(lists)} servers, {TOKENIZER}"
    report("tokens_standing", standing, "tokens", against=against, budget=STANDING_BUDGET)
    more = {name: round(figure) for name, figure in parts.items()}
    report("tokens_first_use", first_use, "tokens", against=against, budget=FIRST_USE_BUDGET, **more)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    asyncio.run(main(parser.parse_args().data))
