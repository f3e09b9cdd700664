-- Conversations on disk. A message knows its parent from the first version on, so that branches need no change of schema.
-- user_version counts changes of this schema; history.py upgrades an older file.
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    created REAL NOT NULL, -- seconds since the epoch
    updated REAL NOT NULL,
    head TEXT -- the last message of the open branch; NULL while there is none
) STRICT;
CREATE INDEX IF NOT EXISTS conversations_by_update ON conversations (updated DESC);
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY, -- in the order of their first saving; the row of their text in message_text
    id TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    parent_id TEXT,
    created REAL NOT NULL,
    content TEXT NOT NULL -- JSON: conversation.to_json of the message
) STRICT;
CREATE INDEX IF NOT EXISTS messages_of_conversation ON messages (conversation_id);
-- What search finds: the text of messages, arguments and results.
CREATE VIRTUAL TABLE IF NOT EXISTS message_text USING fts5 (
    text, tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
);
