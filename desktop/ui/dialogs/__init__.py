"""Dialogs. They open with `open()` and a future (``ui/tasks.py``), never with `exec()`."""
