-- What a model was told: the brief, what came with a prompt, a file, a failure or a subagent's task, and what it asked for.

CREATE TABLE tellings (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- what people name it by
    session_id TEXT NOT NULL,              -- of no row: a session is told something before its first event is stored
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    at         INTEGER NOT NULL,
    moment     TEXT NOT NULL CHECK (moment IN ('start', 'compact', 'prompt', 'file', 'failure', 'subagent', 'search')),
    about      TEXT NOT NULL,              -- what it came with: the first words of a prompt, a file, a test, a query; '' for a brief
    reason     TEXT NOT NULL CHECK (json_valid(reason)), -- why it was told: the figures that decided it
    tokens     INTEGER NOT NULL,           -- about, as model.tokens counts
    text       TEXT NOT NULL               -- as it was told; '' once a memory in it was erased
) STRICT;

CREATE INDEX tellings_by_session ON tellings (session_id, at);
CREATE INDEX tellings_by_project ON tellings (project_id, at);

CREATE TABLE told_memories (
    telling_id INTEGER NOT NULL REFERENCES tellings (id) ON DELETE CASCADE,
    memory_id  TEXT NOT NULL, -- no reference: what is archived may still be erased, and its text with it
    PRIMARY KEY (telling_id, memory_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX told_memories_by_memory ON told_memories (memory_id);

-- When nothing was to be kept, of a project or of all: a hook that is paused leaves nothing behind, and what the client
-- wrote down meanwhile must not be read later. projects.paused_at says that it is so now.
CREATE TABLE pauses (
    id         INTEGER PRIMARY KEY,
    project_id TEXT REFERENCES projects (id) ON DELETE CASCADE, -- NULL: all of them
    first_at   INTEGER NOT NULL,
    last_at    INTEGER                     -- NULL: it goes on
) STRICT;

CREATE INDEX pauses_by_project ON pauses (project_id, first_at);
