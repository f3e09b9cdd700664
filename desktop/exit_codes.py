"""Exit codes of the command line."""

DONE = 0
FAILED = 1
"""A turn or a result failed."""
USAGE = 2
