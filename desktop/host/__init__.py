"""The MCP host: one client a server. Knows no Qt and nothing of the assistant."""
