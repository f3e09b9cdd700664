"""The assistant: what happens in a conversation. Knows no Qt and no MCP sessions; see ``interfaces.py`` for what it needs."""
