-- The foundation: whose memories, from which session, and the memories themselves.
-- Times are INTEGER milliseconds since 1970, UTC.

CREATE TABLE projects (
    number      INTEGER PRIMARY KEY,       -- the high bits of every memories.row of this project
    id          TEXT NOT NULL UNIQUE,
    identity    TEXT NOT NULL UNIQUE,      -- git common directory, or the real path outside git
    name        TEXT NOT NULL,             -- for people; not unique
    root        TEXT NOT NULL,
    last_memory INTEGER NOT NULL DEFAULT 0, -- low bits of the newest memories.row; never reused
    created_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    id            TEXT PRIMARY KEY,        -- Claude Code's session_id
    project_id    TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    cwd           TEXT,
    user_prompt   TEXT,                    -- the first thing the user asked for
    branch        TEXT,                    -- git's state when the session started
    head          TEXT,
    status        TEXT NOT NULL DEFAULT 'active'
                  CHECK (status IN ('active', 'completed', 'interrupted', 'failed')),
    started_at    INTEGER NOT NULL,
    last_event_at INTEGER NOT NULL DEFAULT 0,
    opened_at     INTEGER NOT NULL DEFAULT 0, -- the latest start or prompt: what an end must be newer than
    ended_at      INTEGER,
    summary       TEXT
) STRICT;

CREATE INDEX sessions_by_project ON sessions (project_id, started_at);
CREATE INDEX sessions_active ON sessions (last_event_at) WHERE status = 'active';

-- What the user said, in the user's words.
CREATE TABLE prompts (
    id         INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    prompt     TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX prompts_by_session ON prompts (session_id, created_at);

-- Every event ever stored, by key, so that draining one twice stores it once.
CREATE TABLE events (
    key        TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    session_id TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE memories (
    row           INTEGER PRIMARY KEY,     -- project number << 32 | counter: one project is one range
    id            TEXT NOT NULL UNIQUE,    -- what people and models see
    project_id    TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    session_id    TEXT REFERENCES sessions (id) ON DELETE SET NULL,
    kind          TEXT NOT NULL
                  CHECK (kind IN ('tool', 'decision', 'bugfix', 'feature', 'refactor', 'discovery',
                                  'preference', 'summary', 'note')),
    sector        TEXT NOT NULL
                  CHECK (sector IN ('episodic', 'semantic', 'procedural', 'emotional', 'reflective')),
    tier          TEXT NOT NULL CHECK (tier IN ('session', 'project', 'global')),
    title         TEXT,
    content       TEXT NOT NULL,
    tags          TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tags)),
    concepts      TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(concepts)),
    files         TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(files)),
    importance    REAL NOT NULL DEFAULT 0.5 CHECK (importance BETWEEN 0 AND 1),
    salience      REAL NOT NULL CHECK (salience BETWEEN 0 AND 1),  -- as of last_accessed; decays when read
    access_count  INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    last_accessed INTEGER NOT NULL,
    valid_from    INTEGER,
    valid_until   INTEGER,                 -- set when something newer replaced it
    deleted_at    INTEGER,                 -- soft delete
    is_deleted    INTEGER GENERATED ALWAYS AS (deleted_at IS NOT NULL) VIRTUAL,
    content_hash  TEXT                     -- of notes and observations; a trace may well repeat
) STRICT;

CREATE INDEX memories_by_session ON memories (session_id, created_at);
CREATE INDEX memories_by_hash ON memories (content_hash) WHERE content_hash IS NOT NULL;

-- Which session did what with which memory.
CREATE TABLE session_memories (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    memory_id  TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    usage_type TEXT NOT NULL CHECK (usage_type IN ('created', 'recalled', 'updated', 'reinforced')),
    created_at INTEGER NOT NULL,           -- the latest time, where it happened more than once
    PRIMARY KEY (session_id, memory_id, usage_type)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_memories_by_memory ON session_memories (memory_id);

-- The keyword index keeps no text of its own; these triggers keep it in step with memories.
CREATE VIRTUAL TABLE memories_fts USING fts5 (
    title, content, tags, files,
    content = 'memories', content_rowid = 'row',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER memories_indexed AFTER INSERT ON memories BEGIN
    INSERT INTO memories_fts (rowid, title, content, tags, files)
    VALUES (new.row, new.title, new.content, new.tags, new.files);
END;

CREATE TRIGGER memories_unindexed AFTER DELETE ON memories BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, title, content, tags, files)
    VALUES ('delete', old.row, old.title, old.content, old.tags, old.files);
END;

CREATE TRIGGER memories_reindexed AFTER UPDATE OF title, content, tags, files ON memories BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, title, content, tags, files)
    VALUES ('delete', old.row, old.title, old.content, old.tags, old.files);
    INSERT INTO memories_fts (rowid, title, content, tags, files)
    VALUES (new.row, new.title, new.content, new.tags, new.files);
END;
