-- Synthesis: what waits to be observed, what a session came to, and what that cost.
-- Times are INTEGER milliseconds since 1970, UTC, also in the columns that the specification calls epoch.

-- What BACKSTORY_SYNTHESIZER said where the session ran: it holds for the session, whoever starts the worker.
ALTER TABLE sessions ADD COLUMN synthesizer TEXT;

-- What happened in a session and has not been looked at yet. Rows that were are kept for some days: rules that
-- need no model look at a session as a whole.
CREATE TABLE observation_queue (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id         TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    tool_name          TEXT NOT NULL,      -- a tool's name, or PROMPT, COMPACT, CHECKPOINT, FINALIZE
    tool_input         TEXT NOT NULL CHECK (json_valid(tool_input)),
    tool_output        TEXT NOT NULL CHECK (json_valid(tool_output)),
    size               INTEGER NOT NULL,   -- characters of both
    memory_id          TEXT,               -- the trace or prompt that keeps it, where one does
    created_at_epoch   INTEGER NOT NULL,
    processed_at_epoch INTEGER,            -- set when it was observed, or skipped
    processed_by       TEXT CHECK (processed_by IN ('claude', 'local')),
    skipped            TEXT,               -- the reason
    attempts           INTEGER NOT NULL DEFAULT 0, -- begun, and not given back
    waits              INTEGER NOT NULL DEFAULT 0, -- how often in a row the model was away
    not_before         INTEGER NOT NULL DEFAULT 0, -- when it may be tried again
    trouble            TEXT,               -- what went wrong the last time
    away_since         INTEGER,            -- when the model was first found away
    lease              TEXT,               -- of the claim that has it, or had it last
    leased_until       INTEGER NOT NULL DEFAULT 0  -- a worker has it until then
) STRICT;

CREATE INDEX observation_queue_waiting
ON observation_queue (session_id, created_at_epoch, id, size, tool_name, not_before, leased_until)
WHERE processed_at_epoch IS NULL;
CREATE INDEX observation_queue_by_session ON observation_queue (session_id, created_at_epoch, id);
CREATE INDEX observation_queue_by_memory ON observation_queue (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX observation_queue_done ON observation_queue (processed_at_epoch) WHERE processed_at_epoch IS NOT NULL;

CREATE TABLE session_summaries (
    id               INTEGER PRIMARY KEY,
    session_id       TEXT NOT NULL UNIQUE REFERENCES sessions (id) ON DELETE CASCADE,
    project_id       TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    request          TEXT NOT NULL,
    investigated     TEXT NOT NULL,
    learned          TEXT NOT NULL,
    completed        TEXT NOT NULL,
    next_steps       TEXT NOT NULL,
    files_read       TEXT NOT NULL CHECK (json_valid(files_read)),   -- from the tool uses, not from a model
    files_edited     TEXT NOT NULL CHECK (json_valid(files_edited)),
    notes            TEXT NOT NULL,
    summary          TEXT NOT NULL,        -- the eight as one text
    made_by          TEXT NOT NULL CHECK (made_by IN ('claude', 'local')),
    memory_id        TEXT,                 -- the memory that search finds it by
    created_at_epoch INTEGER NOT NULL,
    updated_at_epoch INTEGER NOT NULL
) STRICT;

CREATE INDEX session_summaries_by_memory ON session_summaries (memory_id);
CREATE INDEX session_summaries_by_project ON session_summaries (project_id, updated_at_epoch);

-- Every call of a model, also the failed ones: they cost as well.
CREATE TABLE spend (
    id                 INTEGER PRIMARY KEY,
    session_id         TEXT REFERENCES sessions (id) ON DELETE SET NULL, -- which session it was about
    model              TEXT NOT NULL,
    requests           INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    usd                REAL NOT NULL,
    created_at         INTEGER NOT NULL
) STRICT;

CREATE INDEX spend_by_time ON spend (created_at);
CREATE INDEX spend_by_session ON spend (session_id) WHERE session_id IS NOT NULL;

-- What stands for longer than a day's work; the brief reads it at the start of every session.
CREATE INDEX memories_standing ON memories (project_id, kind, created_at)
WHERE kind NOT IN ('tool', 'prompt');
