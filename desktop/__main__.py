"""``python -m desktop``: the same as the command ``deskhand``."""

import sys

from desktop.cli import main

if __name__ == "__main__":
    sys.exit(main())
