-- Docmem: trees of nodes, and which of them running servers show in CLAUDE.md.

-- A node of a tree. Read depth-first, a tree is a document; what a summary covers stays below it.
CREATE TABLE docmem_nodes (
    row           INTEGER PRIMARY KEY,      -- from the same numbers as memories.row, so one table holds all vectors
    project       INTEGER NOT NULL REFERENCES projects (number) ON DELETE CASCADE,
    id            TEXT NOT NULL,            -- random; of a root it may be chosen, so two projects may have the same
    parent_id     TEXT,                     -- null for a root
    root_id       TEXT NOT NULL,            -- of its tree; no node ever leaves it
    text          TEXT NOT NULL,
    order_value   REAL NOT NULL,            -- among its siblings; a new one fits between any two
    token_count   INTEGER NOT NULL,         -- characters / 4, rounded up
    context_type  TEXT NOT NULL CHECK (length(context_type) <= 24),
    context_name  TEXT NOT NULL CHECK (length(context_name) <= 24),
    context_value TEXT NOT NULL CHECK (length(context_value) <= 24),
    readonly      INTEGER NOT NULL DEFAULT 0 CHECK (readonly IN (0, 1)),
    hash          TEXT NOT NULL,            -- of place, context and text: who changes a node says which one was meant
    size          INTEGER NOT NULL DEFAULT 1, -- nodes of its subtree, itself included
    words         INTEGER NOT NULL,
    terms         TEXT NOT NULL DEFAULT '',
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    UNIQUE (project, id),
    FOREIGN KEY (project, parent_id) REFERENCES docmem_nodes (project, id)
) STRICT;

CREATE INDEX docmem_nodes_by_place ON docmem_nodes (project, parent_id, order_value);
CREATE INDEX docmem_nodes_by_tree ON docmem_nodes (project, root_id);
CREATE INDEX docmem_nodes_as_lines ON docmem_nodes (row, words);

CREATE VIRTUAL TABLE docmem_nodes_fts USING fts5 (
    context_type, context_name, context_value, text, terms,
    content = 'docmem_nodes', content_rowid = 'row',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE VIRTUAL TABLE docmem_nodes_terms USING fts5vocab (docmem_nodes_fts, row);

CREATE TRIGGER docmem_nodes_indexed AFTER INSERT ON docmem_nodes BEGIN
    INSERT INTO docmem_nodes_fts (rowid, context_type, context_name, context_value, text, terms)
    VALUES (new.row, new.context_type, new.context_name, new.context_value, new.text, new.terms);
END;

CREATE TRIGGER docmem_nodes_unindexed AFTER DELETE ON docmem_nodes BEGIN
    INSERT INTO docmem_nodes_fts (docmem_nodes_fts, rowid, context_type, context_name, context_value, text, terms)
    VALUES ('delete', old.row, old.context_type, old.context_name, old.context_value, old.text, old.terms);
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;

CREATE TRIGGER docmem_nodes_reindexed
AFTER UPDATE OF context_type, context_name, context_value, text, terms ON docmem_nodes BEGIN
    INSERT INTO docmem_nodes_fts (docmem_nodes_fts, rowid, context_type, context_name, context_value, text, terms)
    VALUES ('delete', old.row, old.context_type, old.context_name, old.context_value, old.text, old.terms);
    INSERT INTO docmem_nodes_fts (rowid, context_type, context_name, context_value, text, terms)
    VALUES (new.row, new.context_type, new.context_name, new.context_value, new.text, new.terms);
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;

-- The servers that show views. One is alive as long as it holds its lock, so these rows may be of dead ones.
CREATE TABLE docmem_servers (
    id         TEXT PRIMARY KEY,
    project    INTEGER NOT NULL REFERENCES projects (number) ON DELETE CASCADE,
    folder     TEXT NOT NULL,               -- whose CLAUDE.md it writes
    session_id TEXT NOT NULL,               -- of the Claude Code that started it; '' where it did not say
    started_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What each of them shows. The list lives in the server; this is its mirror, for other servers and the hook.
CREATE TABLE docmem_views (
    touched   INTEGER PRIMARY KEY AUTOINCREMENT, -- the order in CLAUDE.md: most recently touched last
    server_id TEXT NOT NULL REFERENCES docmem_servers (id) ON DELETE CASCADE,
    node_id   TEXT NOT NULL,
    shown     TEXT NOT NULL CHECK (json_valid(shown)),   -- [[node, block, stamp], ...], or why it is gone
    seen      TEXT NOT NULL CHECK (json_valid(seen)),    -- [[node, stamp], ...] as the model last saw it; '?': who knows
    offered   TEXT CHECK (offered IS NULL OR json_valid(offered)), -- the same of what waits for the next prompt
    UNIQUE (server_id, node_id)
) STRICT;
