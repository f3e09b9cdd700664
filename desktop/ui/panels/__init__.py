"""The panels at the side of the window."""
