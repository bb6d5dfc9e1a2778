-- What a model was told: the brief, what came with a prompt, a file, a failure or a subagent's task, and what it asked for.

CREATE TABLE tellings (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- what people name it by
    session_id TEXT NOT NULL,              -- of no row: a session is told something before its first event is stored
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    at         INTEGER NOT NULL,
    moment     TEXT NOT NULL CHECK (moment IN ('start', 'compact', 'prompt', 'file', 'failure', 'subagent', 'search')),
    about      TEXT NOT NULL,              -- what it came with: the first words of a prompt, a file, a test, a query; '' for a brief
    reason     TEXT NOT NULL CHECK (json_valid(reason)), -- why it was told: the figures that decided it
    tokens     INTEGER NOT NULL,           -- about, as gist.tokens counts
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

-- Which turns edited a file: what is told when it is touched again. Triggers keep it in step with memories.files.
CREATE TABLE edited_files (
    path TEXT NOT NULL,                    -- from the project's root
    turn INTEGER NOT NULL,                 -- memories.row, whose high bits are the project's number
    PRIMARY KEY (path, turn)
) STRICT, WITHOUT ROWID;

CREATE INDEX edited_files_by_turn ON edited_files (turn);
CREATE INDEX turns_by_time ON turns (started_at);
-- Turns in which a check passed that had failed; they are few.
CREATE INDEX turns_mending ON turns (started_at) WHERE record ->> 'passed' IS NOT NULL;

INSERT OR IGNORE INTO edited_files (path, turn)
SELECT f.value, m.row FROM memories m, json_each(m.files) f WHERE m.kind = 'turn';

CREATE TRIGGER edited_files_added AFTER INSERT ON memories WHEN new.kind = 'turn' BEGIN
    INSERT OR IGNORE INTO edited_files (path, turn) SELECT value, new.row FROM json_each(new.files);
END;

CREATE TRIGGER edited_files_changed AFTER UPDATE OF row, files ON memories
WHEN new.kind = 'turn' AND (new.row <> old.row OR new.files <> old.files) BEGIN
    DELETE FROM edited_files WHERE turn = old.row;
    INSERT OR IGNORE INTO edited_files (path, turn) SELECT value, new.row FROM json_each(new.files);
END;

CREATE TRIGGER edited_files_removed AFTER DELETE ON memories WHEN old.kind = 'turn' BEGIN
    DELETE FROM edited_files WHERE turn = old.row;
END;

-- When nothing was to be kept, of a project or of all: a hook that is paused leaves nothing behind, and what the client
-- wrote down meanwhile must not be read later. projects.paused_at says that it is so now.
CREATE TABLE pauses (
    id         INTEGER PRIMARY KEY,
    project_id TEXT REFERENCES projects (id) ON DELETE CASCADE, -- NULL: all of them
    first_at   INTEGER NOT NULL,
    last_at    INTEGER                     -- NULL: it goes on
) STRICT;

CREATE INDEX pauses_by_project ON pauses (project_id, first_at);
