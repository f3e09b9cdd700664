"""The chat in the middle of the window: messages, tool calls, composer, and the list of conversations."""
