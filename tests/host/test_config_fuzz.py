"""Five hundred of the files that ``dev.py test --long config_fuzz`` makes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.end_to_end.programs import ROOT, environment


@pytest.mark.timeout(240)
def test_no_file_of_servers_crashes_starts_anything_is_overwritten_or_hides_a_bad_entry() -> None:
    command = [sys.executable, "-m", "tests.long.config_fuzz", "--files", "500"]
    found = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=200
    )
    assert found.returncode == 0, found.stdout + found.stderr
    last = json.loads(found.stdout.splitlines()[-1])
    assert (last["files"], last["failed"]) == (500, 0)
