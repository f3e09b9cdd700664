"""Who may import whom (``desktop/__init__.py``), and the narrow ways out: processes, links, secrets."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "desktop").rglob("*.py"))
#: The modules that build the objects and join them: they may import everything but what is named below.
JOINING = {
    "desktop/app.py",
    "desktop/cli.py",
    "desktop/doctor.py",
    "desktop/core.py",
    "desktop/terminal.py",
    "desktop/__main__.py",
}


def name_of(module: Path) -> str:
    return module.relative_to(ROOT).as_posix()


def imports(module: Path) -> Iterator[str]:
    """Every dotted name the module imports anywhere in it, but for types alone."""
    tree = ast.parse(module.read_text())
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importers(*packages: str) -> set[str]:
    return {
        name_of(module)
        for module in MODULES
        if any(name == package or name.startswith(f"{package}.") for name in imports(module) for package in packages)
    }


def below(*folders: str) -> set[str]:
    return {
        name for name in map(name_of, MODULES) if name.startswith(tuple(f"desktop/{folder}/" for folder in folders))
    }


def test_assistant_and_host_know_neither_each_other_nor_the_window() -> None:
    assert not importers("desktop.host", "desktop.ui") & below("assistant")
    assert not importers("desktop.assistant", "desktop.ui") & below("host")


def test_shared_modules_import_none_of_the_packages() -> None:
    shared = set(map(name_of, MODULES)) - below("assistant", "host", "ui") - JOINING
    assert not importers("desktop.assistant", "desktop.host", "desktop.ui") & shared


@pytest.mark.parametrize(
    ("packages", "allowed"),
    [
        (("PySide6", "qasync"), below("ui") | {"desktop/app.py"}),
        (("qasync",), {"desktop/ui/event_loop.py"}),
        (("mcp",), below("host")),
        (("litellm",), {"desktop/assistant/litellm_model.py"}),
        (("keyring",), {"desktop/credentials.py"}),
        (("subprocess", "asyncio.subprocess"), {"desktop/processes.py"}),
        (("webbrowser", "PySide6.QtGui.QDesktopServices"), {"desktop/links.py"}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_each_way_out_has_its_modules(packages: tuple[str, ...], allowed: set[str]) -> None:
    assert importers(*packages) <= allowed


@pytest.mark.parametrize("call", ["os.system(", "shell=True", ".exec()", "processEvents(", "QMessageBox."])
def test_what_blocks_the_loop_or_opens_a_shell_is_nowhere(call: str) -> None:
    allowed = {"desktop/ui/event_loop.py"}
    found = {name_of(module) for module in MODULES if call in _code(module)}
    assert found <= allowed


def test_the_window_imports_nothing_slow_at_module_level() -> None:
    program = (
        "import sys, desktop.app, desktop.ui.main_window\n"
        "slow = {'mcp', 'mcp_types', 'litellm', 'pydantic', 'keyring', 'numpy', 'jsonschema', 'openai'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert found.stdout.strip() == "[]"


def _code(module: Path) -> str:
    """The module without comments and docstrings."""
    tree = ast.parse(module.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            node.body[0] = ast.Pass()
    return ast.unparse(tree)
