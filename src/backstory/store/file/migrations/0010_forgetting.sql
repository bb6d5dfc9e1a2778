-- Forgetting many memories at once: what each such forgetting hid, so that it can be undone whole; and what was
-- erased, so that no late event and no transcript brings it back.

CREATE TABLE forgettings (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- what people say to undo it; never used again
    at         INTEGER NOT NULL UNIQUE,    -- all that it hid has this moment and no other: memories.deleted_at and below
    said_by    TEXT NOT NULL CHECK (said_by IN ('user', 'retention')),
    conditions TEXT NOT NULL CHECK (json_valid(conditions)), -- store/forgetting.py, Conditions
    sessions   INTEGER NOT NULL,           -- how many it hid, for people
    turns      INTEGER NOT NULL,
    memories   INTEGER NOT NULL,           -- besides turns
    erasing    TEXT CHECK (erasing IN ('store', 'everywhere')) -- begun to be erased, also in backups; null: it can be undone
) STRICT;

-- A session is hidden by any of these, until it has a turn that nobody forgot.
CREATE TABLE forgotten_sessions (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    at         INTEGER NOT NULL,           -- forgettings.at
    PRIMARY KEY (session_id, at)
) STRICT, WITHOUT ROWID;

CREATE INDEX forgotten_sessions_by_time ON forgotten_sessions (at);

ALTER TABLE prompts ADD COLUMN forgotten_at INTEGER;
ALTER TABLE observation_queue ADD COLUMN forgotten_at INTEGER; -- when it was skipped for that
ALTER TABLE turns ADD COLUMN left_open_at INTEGER; -- forgotten then, while it was open: undoing that opens it again
CREATE INDEX memories_forgotten ON memories (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX prompts_forgotten ON prompts (forgotten_at) WHERE forgotten_at IS NOT NULL;
CREATE INDEX observation_queue_forgotten ON observation_queue (forgotten_at) WHERE forgotten_at IS NOT NULL;
CREATE INDEX turns_left_open ON turns (left_open_at) WHERE left_open_at IS NOT NULL;

-- Times of a session of which nothing is stored any more, nor ever again. The ledger of events has the ids as well.
CREATE TABLE erased_spans (
    session_id TEXT NOT NULL,              -- of no row: the session may be erased
    first_at   INTEGER NOT NULL,           -- 0: the whole session
    last_at    INTEGER,                    -- null: it goes on until the next prompt after `at`
    at         INTEGER NOT NULL,           -- when it was erased
    PRIMARY KEY (session_id, first_at)
) STRICT, WITHOUT ROWID;

-- What the daily retention did, the latest last.
CREATE TABLE retention_runs (
    at       INTEGER PRIMARY KEY,
    days     REAL NOT NULL,                -- the setting then
    sessions INTEGER NOT NULL,             -- forgotten
    memories INTEGER NOT NULL,             -- forgotten, turns among them
    erased   INTEGER NOT NULL              -- forgotten before, and erased now
) STRICT;
