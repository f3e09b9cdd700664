"""Exit codes of the command line and of ``packaging/dev.py``'s programs."""

DONE = 0
FAILED = 1
"""A turn or a result failed."""
USAGE = 2
