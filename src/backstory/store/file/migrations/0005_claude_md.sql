-- CLAUDE.md: which files have sections of ours, and what we wrote there last.

-- A CLAUDE.md or AGENTS.md that `backstory init` or a section write made ours.
CREATE TABLE claude_files (
    path       TEXT PRIMARY KEY,         -- absolute; each worktree has its own
    project    INTEGER NOT NULL REFERENCES projects (number) ON DELETE CASCADE,
    place      TEXT NOT NULL,            -- the same from the top of the work tree: `CLAUDE.md`, `api/CLAUDE.md`
    template   TEXT NOT NULL CHECK (template IN ('root', 'subtree')),
    synced_at  INTEGER,                  -- when what we compute was last compared with the project
    head       TEXT,                     -- git's commit then
    gone       TEXT NOT NULL DEFAULT '[]' -- JSON: files that were gone then; a folder's time tells not which one went
) STRICT;

CREATE INDEX claude_files_by_project ON claude_files (project, place);

-- What we wrote last into a section: the base of a three-way merge.
CREATE TABLE claude_sections (
    path       TEXT NOT NULL REFERENCES claude_files (path) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    written    TEXT NOT NULL DEFAULT '', -- empty: nothing yet, the section was a person's when we came
    author     TEXT NOT NULL CHECK (author IN ('program', 'model')), -- a model's prose is not computed anew
    written_at INTEGER NOT NULL,
    offered    TEXT,                     -- what we would have written, had nobody edited the section
    offered_by TEXT CHECK (offered_by IN ('program', 'model')),
    offered_at INTEGER,
    refused    TEXT,                     -- the digest of an offer that somebody turned down: it is not made again
    behind     TEXT,                     -- JSON: files that changed since a model wrote it, until it has looked at them
    PRIMARY KEY (path, name)
) STRICT, WITHOUT ROWID;

-- The digest of every text we ever wrote into a section of a project. Another branch may have an older one; that is
-- still ours, and no edit. Noted before the file is written, so that a kill leaves no text of ours that looks edited.
CREATE TABLE claude_texts (
    project INTEGER NOT NULL REFERENCES projects (number) ON DELETE CASCADE,
    place   TEXT NOT NULL,
    name    TEXT NOT NULL,
    digest  TEXT NOT NULL,
    author  TEXT NOT NULL CHECK (author IN ('program', 'model')),
    at      INTEGER NOT NULL,
    PRIMARY KEY (project, place, name, digest)
) STRICT, WITHOUT ROWID;
