"""Deskhand: a desktop assistant for the Model Context Protocol.

``assistant`` holds what happens in a conversation, ``host`` the connections to MCP servers, ``ui`` the window.
``ui`` may use both; ``assistant`` and ``host`` don't know each other; ``core`` joins them. The modules beside this file
are shared by all and import nothing of ours. ``tests/test_architecture.py`` holds the rule.
"""

__version__ = "0.1.0"
