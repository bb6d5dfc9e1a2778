-- Everything the store keeps. Numbers go on from the twelve steps of before: a store of before is known by its
-- number, and a backstory of before refuses this one.
-- Times are INTEGER milliseconds since 1970, UTC, also in the columns that the specification calls epoch.


-- Projects: whose memories. One is known by what its repository carries with it, not by where it lies: it may
-- move and be cloned.

CREATE TABLE projects (
    number      INTEGER PRIMARY KEY,       -- the high bits of every memories.row of this project
    id          TEXT NOT NULL UNIQUE,
    identity    TEXT NOT NULL UNIQUE,      -- says nothing any more, but must be there: its id
    name        TEXT NOT NULL,             -- for people; not unique
    root        TEXT NOT NULL,
    roots       TEXT NOT NULL DEFAULT '',  -- its root commits, sorted, with commas; '': none are known
    remote      TEXT NOT NULL DEFAULT '',  -- where it is pushed to, as paths.normal_remote has it
    last_memory INTEGER NOT NULL DEFAULT 0, -- low bits of the newest memories.row; never reused
    created_at  INTEGER NOT NULL,
    paused_at   INTEGER                    -- since then nothing of it is stored
) STRICT;

CREATE INDEX projects_by_roots ON projects (roots) WHERE roots <> '';
CREATE INDEX projects_by_remote ON projects (remote) WHERE remote <> '';

-- Where projects lie, or lay: to look here is quick, to look into a repository is not.
CREATE TABLE checkouts (
    path       TEXT PRIMARY KEY,           -- git common directory, or the real path outside git
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    root       TEXT NOT NULL,              -- the folder that people know
    mark       TEXT,                       -- paths.Place.mark when its history was last looked at; null: never
    said_by    TEXT NOT NULL DEFAULT 'rule' -- a user's word stands whatever git says
               CHECK (said_by IN ('rule', 'user')),
    seen_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX checkouts_by_project ON checkouts (project_id, seen_at);

-- When nothing was to be kept, of a project or of all: a hook that is paused leaves nothing behind, and what the
-- client wrote down meanwhile must not be read later. projects.paused_at says that it is so now.
CREATE TABLE pauses (
    id         INTEGER PRIMARY KEY,
    project_id TEXT REFERENCES projects (id) ON DELETE CASCADE, -- NULL: all of them
    first_at   INTEGER NOT NULL,
    last_at    INTEGER                     -- NULL: it goes on
) STRICT;

CREATE INDEX pauses_by_project ON pauses (project_id, first_at);


-- Sessions: what the client told of them, and what was read of its transcripts.

CREATE TABLE sessions (
    id            TEXT PRIMARY KEY,        -- Claude Code's session_id
    number        INTEGER,                 -- a short name for its thread, in memories.thread
    project_id    TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    cwd           TEXT,
    user_prompt   TEXT,                    -- the first thing the user asked for
    branch        TEXT,                    -- git's state when the session started
    head          TEXT,
    status        TEXT NOT NULL DEFAULT 'active'
                  CHECK (status IN ('active', 'completed', 'interrupted', 'failed')),
    attended      INTEGER NOT NULL DEFAULT 1 CHECK (attended IN (0, 1)), -- 0: nobody was there
    synthesizer   TEXT,                    -- BACKSTORY_SYNTHESIZER where it ran, whoever starts the worker
    started_at    INTEGER NOT NULL,
    last_event_at INTEGER NOT NULL DEFAULT 0,
    opened_at     INTEGER NOT NULL DEFAULT 0, -- the latest start or prompt: what an end must be newer than
    ended_at      INTEGER,
    summary       TEXT
) STRICT;

CREATE INDEX sessions_by_project ON sessions (project_id, started_at);
CREATE INDEX sessions_active ON sessions (last_event_at) WHERE status = 'active';
CREATE UNIQUE INDEX sessions_by_number ON sessions (number);
CREATE INDEX sessions_by_attended ON sessions (project_id, attended, started_at);

-- What the user said, in the user's words.
CREATE TABLE prompts (
    id           INTEGER PRIMARY KEY,
    session_id   TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn         TEXT REFERENCES memories (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    prompt       TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    forgotten_at INTEGER
) STRICT;

CREATE INDEX prompts_by_session ON prompts (session_id, created_at);
CREATE INDEX prompts_by_turn ON prompts (turn) WHERE turn IS NOT NULL;
CREATE INDEX prompts_forgotten ON prompts (forgotten_at) WHERE forgotten_at IS NOT NULL;

-- Every event ever stored, by key, so that draining one twice stores it once.
CREATE TABLE events (
    key        TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    session_id TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What `backstory backfill` has read of the transcripts that Claude Code keeps.
CREATE TABLE transcripts (
    path        TEXT PRIMARY KEY,
    size        INTEGER NOT NULL,          -- when it was read to its end; another one is read again. -1: begun
    modified_ns INTEGER NOT NULL,
    session_id  TEXT NOT NULL,
    read_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX transcripts_by_session ON transcripts (session_id, size);

-- Entries that became events. A forked session begins with those of its parent, under the same uuids.
CREATE TABLE transcript_entries (
    uuid    INTEGER PRIMARY KEY,           -- 60 bits of a digest of it
    session INTEGER NOT NULL               -- the same of the session's id
) STRICT;


-- Memories: what is kept of a session, how memories relate, and the turns they come from.

CREATE TABLE memories (
    row           INTEGER PRIMARY KEY,     -- project number << 32 | counter: one project is one range
    id            TEXT NOT NULL UNIQUE,    -- what people and models see
    project_id    TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    session_id    TEXT REFERENCES sessions (id) ON DELETE SET NULL,
    -- Of a trace, the turn that it is of: written once, when the event is stored. The turn itself is stored with
    -- the last event of the batch, so the reference holds at the end of the transaction.
    turn          TEXT REFERENCES memories (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
                  CHECK (turn IS NULL OR kind = 'tool'),
    kind          TEXT NOT NULL
                  CHECK (kind IN ('tool', 'turn', 'decision', 'bugfix', 'feature', 'refactor', 'discovery',
                                  'preference', 'summary', 'note')),
    sector        TEXT NOT NULL
                  CHECK (sector IN ('episodic', 'semantic', 'procedural', 'emotional', 'reflective')),
    tier          TEXT NOT NULL CHECK (tier IN ('session', 'project', 'global')),
    source        TEXT NOT NULL DEFAULT 'assistant' -- where its words come from: see memory/kinds.py
                  CHECK (source IN ('user', 'assistant', 'tool', 'web', 'repository', 'model', 'session')),
    action        TEXT                     -- of a trace, in our own words: see clients/canonical.py
                  CHECK (action IN ('read', 'edit', 'write', 'shell', 'search', 'web', 'ask', 'plan', 'agent',
                                    'mcp', 'other')),
    times         INTEGER NOT NULL DEFAULT 1, -- a trace that came again in its session is counted
    title         TEXT,
    content       TEXT NOT NULL,
    tags          TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tags)),
    concepts      TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(concepts)),
    files         TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(files)),
    hashes        TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(hashes)), -- git's blob id of each file, or null
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
    content_hash  TEXT,                    -- of notes and observations; a trace may well repeat
    simhash       INTEGER,                 -- of the same, for near duplicates
    thread        INTEGER,                 -- its session's number; traces are in no thread
    author        TEXT,                    -- who said it, where somebody did
    words         INTEGER NOT NULL DEFAULT 0,
    question      INTEGER NOT NULL DEFAULT 0, -- 1: it asks, so the answer follows it
    terms         TEXT NOT NULL DEFAULT ''  -- parts of identifiers, bigrams of Chinese: see memory/terms.py
) STRICT;

CREATE INDEX memories_by_session ON memories (session_id, created_at);
CREATE INDEX memories_by_turn ON memories (turn) WHERE turn IS NOT NULL;
CREATE INDEX memories_by_time ON memories (project_id, created_at);
CREATE INDEX memories_by_sector ON memories (sector);
CREATE INDEX memories_said ON memories (row, author) WHERE author IS NOT NULL;
CREATE INDEX memories_fading ON memories (last_accessed) WHERE kind = 'tool' AND tier = 'session';
CREATE INDEX memories_by_hash ON memories (content_hash) WHERE content_hash IS NOT NULL;
-- Two simhashes within 3 bits of each other share at least one of four bands.
CREATE INDEX memories_band_1 ON memories (simhash & 65535) WHERE simhash IS NOT NULL;
CREATE INDEX memories_band_2 ON memories (simhash >> 16 & 65535) WHERE simhash IS NOT NULL;
CREATE INDEX memories_band_3 ON memories (simhash >> 32 & 65535) WHERE simhash IS NOT NULL;
CREATE INDEX memories_band_4 ON memories (simhash >> 48 & 65535) WHERE simhash IS NOT NULL;
-- What stands for longer than a day's work; the brief reads it at the start of every session.
CREATE INDEX memories_standing ON memories (project_id, kind, created_at) WHERE kind <> 'tool';
-- All that search keeps in RAM, apart from the texts: a million of these load in a second.
CREATE INDEX memories_as_lines ON memories (row, kind, thread, words, question, deleted_at, valid_until);
CREATE INDEX memories_forgotten ON memories (deleted_at) WHERE deleted_at IS NOT NULL;

-- Which session did what with which memory.
CREATE TABLE session_memories (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    memory_id  TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    usage_type TEXT NOT NULL CHECK (usage_type IN ('created', 'recalled', 'updated', 'reinforced')),
    created_at INTEGER NOT NULL,           -- the latest time, where it happened more than once
    PRIMARY KEY (session_id, memory_id, usage_type)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_memories_by_memory ON session_memories (memory_id);

-- How memories relate: source SUPERSEDES target.
CREATE TABLE memory_relationships (
    source_id         TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    target_id         TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    relationship_type TEXT NOT NULL
                      CHECK (relationship_type IN ('SUPERSEDES', 'CONTRADICTS', 'RELATED_TO', 'BUILDS_ON')),
    said_by           TEXT NOT NULL CHECK (said_by IN ('user', 'model', 'rule')),
    confidence        REAL NOT NULL DEFAULT 1 CHECK (confidence BETWEEN 0 AND 1),
    created_at        INTEGER NOT NULL,
    PRIMARY KEY (source_id, target_id, relationship_type)
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_relationships_by_target ON memory_relationships (target_id);

-- Traces of sessions long gone, out of search's way. Nothing is dropped: restoring brings one back.
CREATE TABLE archived_memories (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    session_id  TEXT REFERENCES sessions (id) ON DELETE SET NULL,
    turn        TEXT REFERENCES memories (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    archived_at INTEGER NOT NULL,
    memory      TEXT NOT NULL CHECK (json_valid(memory))  -- the rest of the row, as it was
) STRICT, WITHOUT ROWID;

CREATE INDEX archived_memories_by_session ON archived_memories (session_id);
CREATE INDEX archived_memories_by_turn ON archived_memories (turn) WHERE turn IS NOT NULL;

-- What was asked, answered and done, from a prompt to the assistant's last words. A turn is a memory, found by
-- its pieces.
CREATE TABLE turns (
    row          INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE ON UPDATE CASCADE,
    session_id   TEXT REFERENCES sessions (id) ON DELETE SET NULL,
    state        TEXT NOT NULL CHECK (state IN ('open', 'complete', 'interrupted')),
    started_at   INTEGER NOT NULL,
    ended_at     INTEGER NOT NULL,         -- its last event so far
    left_open_at INTEGER,                  -- forgotten then, while it was open: undoing that opens it again
    record       TEXT NOT NULL CHECK (json_valid(record)) -- see memory/turn.py
) STRICT;

CREATE INDEX turns_by_session ON turns (session_id, started_at);
CREATE INDEX turns_open ON turns (ended_at) WHERE state = 'open';
CREATE INDEX turns_by_time ON turns (started_at);
-- Turns in which a check passed that had failed; they are few.
CREATE INDEX turns_mending ON turns (started_at) WHERE record ->> 'passed' IS NOT NULL;

-- What a turn is found by, and shown of it: some lines of a prompt, of the answer, of a plan, or its facts.
CREATE TABLE turn_pieces (
    row    INTEGER PRIMARY KEY,            -- of the same numbers as memories.row: one table holds all vectors
    turn   INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE ON UPDATE CASCADE,
    thread INTEGER,                        -- its session's number
    part   INTEGER NOT NULL,               -- which part of the turn it is from: see memory/turn.py
    text   TEXT NOT NULL,
    words  INTEGER NOT NULL,
    terms  TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX turn_pieces_by_turn ON turn_pieces (turn, row);
CREATE INDEX turn_pieces_as_lines ON turn_pieces (row, turn, thread, part, words);

-- Which turns edited a file: what is told when it is touched again. Triggers keep it in step with
-- memories.files.
CREATE TABLE edited_files (
    path TEXT NOT NULL,                    -- from the project's root
    turn INTEGER NOT NULL                  -- its high bits are the project's number
         REFERENCES memories (row) ON DELETE CASCADE ON UPDATE CASCADE,
    PRIMARY KEY (path, turn)
) STRICT, WITHOUT ROWID;

CREATE INDEX edited_files_by_turn ON edited_files (turn);


-- Documents that were read, in chunks.

CREATE TABLE documents (
    number      INTEGER PRIMARY KEY,       -- a short name for its thread of chunks
    id          TEXT NOT NULL UNIQUE,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    title       TEXT,
    source_path TEXT,                      -- one of the two, or neither for text that was handed over
    source_url  TEXT,
    kind        TEXT NOT NULL CHECK (kind IN ('md', 'rst', 'txt', 'html')),
    checksum    TEXT NOT NULL,             -- of the text as it came; the same again is skipped
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;

CREATE INDEX documents_by_project ON documents (project_id, updated_at);

CREATE TABLE document_chunks (
    row         INTEGER PRIMARY KEY,       -- of the same numbers as memories.row: one table holds all vectors
    document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    thread      INTEGER NOT NULL,          -- the document's number
    heading     TEXT NOT NULL,             -- the path of headings above it
    content     TEXT NOT NULL,
    words       INTEGER NOT NULL,
    terms       TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX document_chunks_by_document ON document_chunks (document_id, row);
CREATE INDEX document_chunks_as_lines ON document_chunks (row, thread, words);


-- Docmem: trees of nodes, and which of them running servers show in CLAUDE.md.

-- A node of a tree. Read depth-first, a tree is a document; what a summary covers stays below it.
CREATE TABLE docmem_nodes (
    row           INTEGER PRIMARY KEY,     -- of the same numbers as memories.row: one table holds all vectors
    project       INTEGER NOT NULL REFERENCES projects (number) ON DELETE CASCADE,
    id            TEXT NOT NULL,           -- random; of a root it may be chosen: two projects may have the same
    parent_id     TEXT,                    -- null for a root
    root_id       TEXT NOT NULL,           -- of its tree; no node ever leaves it
    text          TEXT NOT NULL,
    order_value   REAL NOT NULL,           -- among its siblings; a new one fits between any two
    token_count   INTEGER NOT NULL,        -- characters / 4, rounded up
    context_type  TEXT NOT NULL CHECK (length(context_type) <= 24),
    context_name  TEXT NOT NULL CHECK (length(context_name) <= 24),
    context_value TEXT NOT NULL CHECK (length(context_value) <= 24),
    readonly      INTEGER NOT NULL DEFAULT 0 CHECK (readonly IN (0, 1)),
    hash          TEXT NOT NULL,           -- of place, context and text: who changes a node says which was meant
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

-- The servers that show views. One is alive as long as it holds its lock, so these rows may be of dead ones.
CREATE TABLE docmem_servers (
    id         TEXT PRIMARY KEY,
    project    INTEGER NOT NULL REFERENCES projects (number) ON DELETE CASCADE,
    folder     TEXT NOT NULL,              -- whose CLAUDE.md it writes
    session_id TEXT NOT NULL,              -- of the Claude Code that started it; '' where it did not say
    started_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What each of them shows. The list lives in the server; this is its mirror, for other servers and the hook.
CREATE TABLE docmem_views (
    touched   INTEGER PRIMARY KEY AUTOINCREMENT, -- the order in CLAUDE.md: most recently touched last
    server_id TEXT NOT NULL REFERENCES docmem_servers (id) ON DELETE CASCADE,
    node_id   TEXT NOT NULL,
    shown     TEXT NOT NULL CHECK (json_valid(shown)), -- [[node, block, stamp], ...], or why it is gone
    seen      TEXT NOT NULL CHECK (json_valid(seen)), -- [[node, stamp], ...] as last seen by the model; '?': unknown
    offered   TEXT CHECK (offered IS NULL OR json_valid(offered)), -- the same, waiting for the next prompt
    UNIQUE (server_id, node_id)
) STRICT;


-- Search: vectors, what a process must read again, and the keyword indexes. These keep no text of their own;
-- triggers keep all of it in step with the tables above.

-- Vectors may come later than the row they belong to, and are made anew when the model changes.
CREATE TABLE models (
    number    INTEGER PRIMARY KEY,
    id        TEXT NOT NULL,               -- names the model and where it came from
    dimension INTEGER NOT NULL,
    UNIQUE (id, dimension)
) STRICT;

CREATE TABLE vectors (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT, -- a process reads those after the last it has seen
    row    INTEGER NOT NULL UNIQUE,        -- of a memory, a piece of a turn, a chunk or a node
    model  INTEGER NOT NULL REFERENCES models (number),
    vector BLOB NOT NULL                   -- int8, one for each dimension of the model; only the direction counts
) STRICT;

-- Which of the rows that a process holds in RAM it must read again: those after the last seq it has seen.
CREATE TABLE line_changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    row INTEGER NOT NULL UNIQUE
) STRICT;

-- One keyword index for all that a search of memories looks at.
CREATE VIEW memory_lines AS
SELECT row, title, content, tags, files, terms FROM memories WHERE kind <> 'turn'
UNION ALL SELECT row, NULL, text, NULL, NULL, terms FROM turn_pieces;

CREATE VIRTUAL TABLE memories_fts USING fts5 (
    title, content, tags, files, terms,
    content = 'memory_lines', content_rowid = 'row',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE VIRTUAL TABLE memories_terms USING fts5vocab (memories_fts, row);

CREATE TRIGGER memories_indexed AFTER INSERT ON memories WHEN new.kind <> 'turn' BEGIN
    INSERT INTO memories_fts (rowid, title, content, tags, files, terms)
    VALUES (new.row, new.title, new.content, new.tags, new.files, new.terms);
END;

CREATE TRIGGER memories_unindexed AFTER DELETE ON memories WHEN old.kind <> 'turn' BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, title, content, tags, files, terms)
    VALUES ('delete', old.row, old.title, old.content, old.tags, old.files, old.terms);
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;

CREATE TRIGGER memories_reindexed AFTER UPDATE OF row, title, content, tags, files, terms ON memories
WHEN old.kind <> 'turn' BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, title, content, tags, files, terms)
    VALUES ('delete', old.row, old.title, old.content, old.tags, old.files, old.terms);
    INSERT INTO memories_fts (rowid, title, content, tags, files, terms)
    VALUES (new.row, new.title, new.content, new.tags, new.files, new.terms);
END;

CREATE TRIGGER memories_rewritten AFTER UPDATE OF title, content ON memories WHEN old.kind <> 'turn' BEGIN
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;

CREATE TRIGGER memories_changed AFTER UPDATE OF thread, deleted_at, valid_until ON memories BEGIN
    INSERT OR REPLACE INTO line_changes (row)
    SELECT old.row UNION ALL SELECT row FROM turn_pieces WHERE turn = old.row;
END;

CREATE TRIGGER turn_pieces_indexed AFTER INSERT ON turn_pieces BEGIN
    INSERT INTO memories_fts (rowid, content, terms) VALUES (new.row, new.text, new.terms);
END;

CREATE TRIGGER turn_pieces_unindexed AFTER DELETE ON turn_pieces BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, content, terms)
    VALUES ('delete', old.row, old.text, old.terms);
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;

CREATE TRIGGER turn_pieces_reindexed AFTER UPDATE OF row, text, terms ON turn_pieces BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, content, terms)
    VALUES ('delete', old.row, old.text, old.terms);
    INSERT INTO memories_fts (rowid, content, terms) VALUES (new.row, new.text, new.terms);
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;

CREATE TRIGGER edited_files_added AFTER INSERT ON memories WHEN new.kind = 'turn' BEGIN
    INSERT OR IGNORE INTO edited_files (path, turn) SELECT value, new.row FROM json_each(new.files);
END;

CREATE TRIGGER edited_files_changed AFTER UPDATE OF files ON memories
WHEN new.kind = 'turn' AND new.files <> old.files BEGIN
    DELETE FROM edited_files WHERE turn = old.row;
    INSERT OR IGNORE INTO edited_files (path, turn) SELECT value, new.row FROM json_each(new.files);
END;

CREATE VIRTUAL TABLE document_chunks_fts USING fts5 (
    heading, content, terms,
    content = 'document_chunks', content_rowid = 'row',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE VIRTUAL TABLE document_chunks_terms USING fts5vocab (document_chunks_fts, row);

CREATE TRIGGER document_chunks_indexed AFTER INSERT ON document_chunks BEGIN
    INSERT INTO document_chunks_fts (rowid, heading, content, terms)
    VALUES (new.row, new.heading, new.content, new.terms);
END;

CREATE TRIGGER document_chunks_unindexed AFTER DELETE ON document_chunks BEGIN
    INSERT INTO document_chunks_fts (document_chunks_fts, rowid, heading, content, terms)
    VALUES ('delete', old.row, old.heading, old.content, old.terms);
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;

CREATE TRIGGER document_chunks_reindexed AFTER UPDATE OF row, heading, content, terms ON document_chunks BEGIN
    INSERT INTO document_chunks_fts (document_chunks_fts, rowid, heading, content, terms)
    VALUES ('delete', old.row, old.heading, old.content, old.terms);
    INSERT INTO document_chunks_fts (rowid, heading, content, terms)
    VALUES (new.row, new.heading, new.content, new.terms);
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;

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
    INSERT INTO docmem_nodes_fts
        (docmem_nodes_fts, rowid, context_type, context_name, context_value, text, terms)
    VALUES ('delete', old.row, old.context_type, old.context_name, old.context_value, old.text, old.terms);
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;

CREATE TRIGGER docmem_nodes_reindexed
AFTER UPDATE OF row, context_type, context_name, context_value, text, terms ON docmem_nodes BEGIN
    INSERT INTO docmem_nodes_fts
        (docmem_nodes_fts, rowid, context_type, context_name, context_value, text, terms)
    VALUES ('delete', old.row, old.context_type, old.context_name, old.context_value, old.text, old.terms);
    INSERT INTO docmem_nodes_fts (rowid, context_type, context_name, context_value, text, terms)
    VALUES (new.row, new.context_type, new.context_name, new.context_value, new.text, new.terms);
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;


-- Synthesis: what waits to be observed, what a session came to, and what that cost.

-- What happened in a session and has not been looked at yet. Rows that were are kept for some days: rules
-- that need no model look at a session as a whole.
CREATE TABLE observation_queue (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id         TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn               TEXT REFERENCES memories (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    tool_name          TEXT NOT NULL,      -- a tool's name, or PROMPT, COMPACT, CHECKPOINT, FINALIZE
    action             TEXT                -- as memories.action
                       CHECK (action IN ('read', 'edit', 'write', 'shell', 'search', 'web', 'ask', 'plan',
                                         'agent', 'mcp', 'other')),
    tool_input         TEXT NOT NULL CHECK (json_valid(tool_input)),
    tool_output        TEXT NOT NULL CHECK (json_valid(tool_output)),
    size               INTEGER NOT NULL,   -- characters of both
    memory_id          TEXT                -- the trace that keeps it, where one does
                       REFERENCES memories (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    created_at_epoch   INTEGER NOT NULL,
    processed_at_epoch INTEGER,            -- set when it was observed, or skipped
    processed_by       TEXT CHECK (processed_by IN ('claude', 'local')),
    skipped            TEXT,               -- the reason
    forgotten_at       INTEGER,            -- when it was skipped for that
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
CREATE INDEX observation_queue_by_turn ON observation_queue (turn) WHERE turn IS NOT NULL;
CREATE INDEX observation_queue_by_memory ON observation_queue (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX observation_queue_done ON observation_queue (processed_at_epoch)
WHERE processed_at_epoch IS NOT NULL;
CREATE INDEX observation_queue_forgotten ON observation_queue (forgotten_at) WHERE forgotten_at IS NOT NULL;

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
    memory_id        TEXT                  -- the memory that search finds it by
                     REFERENCES memories (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
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


-- Tellings: what a model was told: the brief, what came with a prompt, a file or a failure, and what it
-- asked for.

CREATE TABLE tellings (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- what people name it by
    session_id TEXT NOT NULL,              -- of no row: it may be told something before its first event is stored
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    at         INTEGER NOT NULL,
    moment     TEXT NOT NULL
               CHECK (moment IN ('start', 'compact', 'prompt', 'file', 'failure', 'search')),
    about      TEXT NOT NULL,              -- first words of a prompt, a file, a test, a query; '' for a brief
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


-- Forgetting many memories at once: what each such forgetting hid, so that it can be undone whole; and what
-- was erased, so that no late event and no transcript brings it back.

CREATE TABLE forgettings (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- what people say to undo it; never used again
    at         INTEGER NOT NULL UNIQUE,    -- memories.deleted_at and forgotten_at of all that it hid, and no other
    said_by    TEXT NOT NULL CHECK (said_by IN ('user', 'retention')),
    conditions TEXT NOT NULL CHECK (json_valid(conditions)), -- store/forgetting.py, Conditions
    sessions   INTEGER NOT NULL,           -- how many it hid, for people
    turns      INTEGER NOT NULL,
    memories   INTEGER NOT NULL,           -- besides turns
    erasing    TEXT                        -- begun to be erased, also in backups; null: it can be undone
               CHECK (erasing IN ('store', 'everywhere'))
) STRICT;

-- What follows from such a moment, wherever it is set and taken away again.

-- The next prompt begins another turn, also where this one has not ended; brought back, the last one goes on.
CREATE TRIGGER turns_forgotten AFTER UPDATE OF deleted_at ON memories
WHEN new.kind = 'turn' AND old.deleted_at IS NULL AND new.deleted_at IS NOT NULL BEGIN
    UPDATE turns SET state = 'interrupted', left_open_at = new.deleted_at
    WHERE row = new.row AND state = 'open';
END;

CREATE TRIGGER turns_brought_back AFTER UPDATE OF deleted_at ON memories
WHEN new.kind = 'turn' AND old.deleted_at IS NOT NULL AND new.deleted_at IS NULL BEGIN
    UPDATE turns SET left_open_at = NULL, state = iif(state = 'interrupted' AND NOT EXISTS (SELECT 1
        FROM turns later WHERE later.session_id = turns.session_id AND later.started_at > turns.started_at),
        'open', state)
    WHERE row = new.row AND left_open_at IS NOT NULL;
END;

-- Nobody observes what was forgotten, nor looks back at it. What was not observed before waits again.
CREATE TRIGGER observation_queue_hidden AFTER UPDATE OF forgotten_at ON observation_queue
WHEN old.forgotten_at IS NULL AND new.forgotten_at IS NOT NULL AND new.skipped IS NULL BEGIN
    UPDATE observation_queue SET skipped = 'it was forgotten',
        processed_at_epoch = coalesce(processed_at_epoch, new.forgotten_at)
    WHERE id = new.id;
END;

CREATE TRIGGER observation_queue_brought_back AFTER UPDATE OF forgotten_at ON observation_queue
WHEN old.forgotten_at IS NOT NULL AND new.forgotten_at IS NULL AND new.skipped = 'it was forgotten' BEGIN
    UPDATE observation_queue SET skipped = NULL,
        processed_at_epoch = iif(processed_by IS NULL, NULL, processed_at_epoch)
    WHERE id = new.id;
END;

-- sessions.summary is that of session_summaries, unless its memory is forgotten or gone.
CREATE TRIGGER summaries_forgotten AFTER UPDATE OF deleted_at ON memories WHEN new.kind = 'summary' BEGIN
    UPDATE sessions SET summary = (SELECT y.summary FROM session_summaries y
        WHERE y.session_id = sessions.id AND new.deleted_at IS NULL)
    WHERE id = (SELECT session_id FROM session_summaries WHERE memory_id = new.id);
END;

CREATE TRIGGER summaries_removed AFTER DELETE ON session_summaries BEGIN
    UPDATE sessions SET summary = NULL WHERE id = old.session_id;
END;

-- sessions.user_prompt is the first that nobody forgot, and that ran no command of backstory's.
CREATE VIEW first_prompts AS
SELECT s.id AS session_id, (SELECT p.prompt FROM prompts p
    WHERE p.session_id = s.id AND p.forgotten_at IS NULL
    AND NOT ltrim(p.prompt, char(32, 9, 13, 10)) GLOB '/backstory:*'
    ORDER BY p.created_at, p.id LIMIT 1) AS prompt
FROM sessions s;

CREATE TRIGGER prompts_added AFTER INSERT ON prompts BEGIN
    UPDATE sessions SET user_prompt = (SELECT f.prompt FROM first_prompts f WHERE f.session_id = sessions.id)
    WHERE id = new.session_id;
END;

CREATE TRIGGER prompts_changed AFTER UPDATE OF prompt, forgotten_at ON prompts BEGIN
    UPDATE sessions SET user_prompt = (SELECT f.prompt FROM first_prompts f WHERE f.session_id = sessions.id)
    WHERE id = new.session_id;
END;

CREATE TRIGGER prompts_removed AFTER DELETE ON prompts BEGIN
    UPDATE sessions SET user_prompt = (SELECT f.prompt FROM first_prompts f WHERE f.session_id = sessions.id)
    WHERE id = old.session_id;
END;

-- A session is hidden by any of these, until it has a turn that nobody forgot.
CREATE TABLE forgotten_sessions (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    at         INTEGER NOT NULL,           -- forgettings.at
    PRIMARY KEY (session_id, at)
) STRICT, WITHOUT ROWID;

CREATE INDEX forgotten_sessions_by_time ON forgotten_sessions (at);

-- Times of a session of which nothing is stored any more, nor ever again. The ledger of events has the ids as
-- well.
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


-- CLAUDE.md: which files have sections of ours, and what we wrote there last.

-- A CLAUDE.md or AGENTS.md that `backstory init` or a section write made ours.
CREATE TABLE claude_files (
    path       TEXT PRIMARY KEY,           -- absolute; each worktree has its own
    project    INTEGER NOT NULL REFERENCES projects (number) ON DELETE CASCADE,
    place      TEXT NOT NULL,              -- from the top of the work tree: `CLAUDE.md`, `api/CLAUDE.md`
    template   TEXT NOT NULL CHECK (template IN ('root', 'subtree')),
    synced_at  INTEGER,                    -- when what we compute was last compared with the project
    head       TEXT,                       -- git's commit then
    gone       TEXT NOT NULL DEFAULT '[]'  -- JSON: files that were gone then; a folder's time tells not which
) STRICT;

CREATE INDEX claude_files_by_project ON claude_files (project, place);

-- What we wrote last into a section: the base of a three-way merge.
CREATE TABLE claude_sections (
    path       TEXT NOT NULL REFERENCES claude_files (path) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    written    TEXT NOT NULL DEFAULT '',   -- empty: nothing yet, the section was a person's when we came
    author     TEXT NOT NULL CHECK (author IN ('program', 'model')), -- a model's prose is not computed anew
    written_at INTEGER NOT NULL,
    offered    TEXT,                       -- what we would have written, had nobody edited the section
    offered_by TEXT CHECK (offered_by IN ('program', 'model')),
    offered_at INTEGER,
    refused    TEXT,                       -- digest of an offer that was turned down: it is not made again
    behind     TEXT,                       -- JSON: files changed since a model wrote it, until it looks at them
    facts      TEXT,                       -- JSON: the facts when it was written or last found true; NULL: not known
    asked      TEXT,                       -- digest of the facts because of which a model was asked to see to it
    PRIMARY KEY (path, name)
) STRICT, WITHOUT ROWID;

-- The digest of every text we ever wrote into a section of a project. Another branch may have an older one; that
-- is still ours, and no edit. Noted before the file is written, so that a kill leaves no text of ours that looks
-- edited.
CREATE TABLE claude_texts (
    project INTEGER NOT NULL REFERENCES projects (number) ON DELETE CASCADE,
    place   TEXT NOT NULL,
    name    TEXT NOT NULL,
    digest  TEXT NOT NULL,
    author  TEXT NOT NULL CHECK (author IN ('program', 'model')),
    at      INTEGER NOT NULL,
    PRIMARY KEY (project, place, name, digest)
) STRICT, WITHOUT ROWID;
