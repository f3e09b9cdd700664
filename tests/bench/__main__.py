"""Measures Deskhand: ``python3 packaging/dev.py bench [NAME …] [OPTION …]``, a JSON line a figure.

Each measurement is a program beside this file that prints lines such as ``{"name": "tool_call", "figure": 1.08,
"unit": "ratio", "against": "the bare SDK", "budget": 1.2}``. A ratio is taken in the same run on the same machine, against the
baseline that the line names. Options (``--data FOLDER``, say) go to each measurement. Nothing here gates.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    options = list(itertools.dropwhile(lambda each: not each.startswith("-"), arguments))
    names = arguments[: len(arguments) - len(options)]
    programs = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith(("_", "baseline")))
    if unknown := set(names) - {*programs}:
        print(f"No measurement of that name: {', '.join(unknown)}. There are: {', '.join(programs)}", file=sys.stderr)
        return 2
    commands = [[sys.executable, "-m", f"{__package__}.{name}", *options] for name in names or programs]
    return max(subprocess.run(command, check=False).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
