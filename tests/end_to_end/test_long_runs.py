"""A minute of what ``dev.py test --long NAME`` runs for longer."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.end_to_end.programs import ROOT, environment


@pytest.mark.timeout(240)
def test_a_minute_of_turns_leaves_nothing_behind() -> None:
    command = [sys.executable, "-m", "tests.long.soak", "--minutes", "1"]
    found = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=200
    )
    assert found.returncode == 0, found.stdout + found.stderr
    last = json.loads(found.stdout.splitlines()[-1])
    assert last["verdict"] == "flat"
    assert last["turns"] >= 10
