-- Recall: what search needs to know of a memory, its vector, its relations, and documents.
-- The kinds gain `prompt` (what the user said, as something that can be found), so memories is built anew;
-- session_memories goes with it, because dropping a table deletes what refers to it.

ALTER TABLE sessions ADD COLUMN number INTEGER;   -- a short name for its thread, in memories.thread
UPDATE sessions SET number = rowid;
CREATE UNIQUE INDEX sessions_by_number ON sessions (number);

DROP TRIGGER memories_indexed;
DROP TRIGGER memories_unindexed;
DROP TRIGGER memories_reindexed;
DROP TABLE memories_fts;
DROP INDEX memories_by_session;
DROP INDEX memories_by_hash;
DROP INDEX session_memories_by_memory;
ALTER TABLE memories RENAME TO memories_1;
ALTER TABLE session_memories RENAME TO session_memories_1;

CREATE TABLE memories (
    row           INTEGER PRIMARY KEY,     -- project number << 32 | counter: one project is one range
    id            TEXT NOT NULL UNIQUE,    -- what people and models see
    project_id    TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    session_id    TEXT REFERENCES sessions (id) ON DELETE SET NULL,
    kind          TEXT NOT NULL
                  CHECK (kind IN ('tool', 'prompt', 'decision', 'bugfix', 'feature', 'refactor', 'discovery',
                                  'preference', 'summary', 'note')),
    sector        TEXT NOT NULL
                  CHECK (sector IN ('episodic', 'semantic', 'procedural', 'emotional', 'reflective')),
    tier          TEXT NOT NULL CHECK (tier IN ('session', 'project', 'global')),
    title         TEXT,
    content       TEXT NOT NULL,
    tags          TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tags)),
    concepts      TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(concepts)),
    files         TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(files)),
    hashes        TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(hashes)),  -- git's blob id of each file, or null
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

INSERT INTO memories (row, id, project_id, session_id, kind, sector, tier, title, content, tags, concepts,
                      files, importance, salience, access_count, created_at, updated_at, last_accessed,
                      valid_from, valid_until, deleted_at, content_hash, simhash, thread, author, words, question,
                      terms)
SELECT row, id, project_id, session_id, kind, sector, tier, title, content, tags, concepts,
       files, importance, salience, access_count, created_at, updated_at, last_accessed,
       valid_from, valid_until, deleted_at, content_hash, iif(content_hash IS NULL, NULL, simhash(content)),
       iif(kind = 'tool', NULL, (SELECT number FROM sessions WHERE sessions.id = session_id)),
       iif(kind = 'tool', NULL, author_of(content)), count_words(bare(content)), is_question(bare(content)),
       line_terms(content, kind, created_at)
FROM memories_1;

CREATE TABLE session_memories (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    memory_id  TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    usage_type TEXT NOT NULL CHECK (usage_type IN ('created', 'recalled', 'updated', 'reinforced')),
    created_at INTEGER NOT NULL,           -- the latest time, where it happened more than once
    PRIMARY KEY (session_id, memory_id, usage_type)
) STRICT, WITHOUT ROWID;

INSERT INTO session_memories SELECT * FROM session_memories_1;
DROP TABLE session_memories_1;
DROP TABLE memories_1;

CREATE INDEX session_memories_by_memory ON session_memories (memory_id);
CREATE INDEX memories_by_session ON memories (session_id, created_at);
CREATE INDEX memories_by_time ON memories (project_id, created_at);
CREATE INDEX memories_by_sector ON memories (sector);
CREATE INDEX memories_said ON memories (row, author) WHERE author IS NOT NULL;
CREATE INDEX memories_fading ON memories (last_accessed) WHERE kind = 'tool' AND tier = 'session';
CREATE INDEX memories_by_hash ON memories (content_hash) WHERE content_hash IS NOT NULL;
-- All that search keeps in RAM, apart from the texts: a million of these load in a second.
CREATE INDEX memories_as_lines ON memories (row, thread, words, question, deleted_at, valid_until);
-- Two simhashes within 3 bits of each other share at least one of four bands.
CREATE INDEX memories_band_1 ON memories (simhash & 65535) WHERE simhash IS NOT NULL;
CREATE INDEX memories_band_2 ON memories (simhash >> 16 & 65535) WHERE simhash IS NOT NULL;
CREATE INDEX memories_band_3 ON memories (simhash >> 32 & 65535) WHERE simhash IS NOT NULL;
CREATE INDEX memories_band_4 ON memories (simhash >> 48 & 65535) WHERE simhash IS NOT NULL;

-- What the user said becomes something that can be found.
INSERT INTO memories (row, id, project_id, session_id, kind, sector, tier, content, importance, salience,
                      created_at, updated_at, last_accessed, thread, author, words, question, terms)
SELECT (p.number << 32) | (p.last_memory + row_number() OVER (PARTITION BY p.number ORDER BY q.created_at, q.id)),
       'mem_' || lower(hex(randomblob(6))), p.id, s.id, 'prompt', 'episodic', 'session', substr(q.prompt, 1, 4000),
       0.3, 0.3, q.created_at, q.created_at, q.created_at, s.number, 'user',
       count_words(substr(q.prompt, 1, 4000)), is_question(substr(q.prompt, 1, 4000)),
       line_terms(substr(q.prompt, 1, 4000), 'prompt', q.created_at)
FROM prompts q JOIN sessions s ON s.id = q.session_id JOIN projects p ON p.id = s.project_id
WHERE count_words(substr(q.prompt, 1, 4000)) >= 3;
INSERT INTO session_memories (session_id, memory_id, usage_type, created_at)
SELECT session_id, id, 'created', created_at FROM memories WHERE kind = 'prompt' AND session_id IS NOT NULL;
UPDATE projects SET last_memory = max(last_memory, coalesce(
    (SELECT max(m.row) & 4294967295 FROM memories m WHERE m.project_id = projects.id), 0));

-- The keyword index keeps no text of its own; these triggers keep it in step with memories.
CREATE VIRTUAL TABLE memories_fts USING fts5 (
    title, content, tags, files, terms,
    content = 'memories', content_rowid = 'row',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO memories_fts (memories_fts) VALUES ('rebuild');

CREATE VIRTUAL TABLE memories_terms USING fts5vocab (memories_fts, row);

CREATE TRIGGER memories_indexed AFTER INSERT ON memories BEGIN
    INSERT INTO memories_fts (rowid, title, content, tags, files, terms)
    VALUES (new.row, new.title, new.content, new.tags, new.files, new.terms);
END;

CREATE TRIGGER memories_unindexed AFTER DELETE ON memories BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, title, content, tags, files, terms)
    VALUES ('delete', old.row, old.title, old.content, old.tags, old.files, old.terms);
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;

CREATE TRIGGER memories_reindexed AFTER UPDATE OF title, content, tags, files, terms ON memories BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, title, content, tags, files, terms)
    VALUES ('delete', old.row, old.title, old.content, old.tags, old.files, old.terms);
    INSERT INTO memories_fts (rowid, title, content, tags, files, terms)
    VALUES (new.row, new.title, new.content, new.tags, new.files, new.terms);
END;

CREATE TRIGGER memories_rewritten AFTER UPDATE OF title, content ON memories BEGIN
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;

CREATE TRIGGER memories_changed AFTER UPDATE OF thread, deleted_at, valid_until ON memories BEGIN
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;

-- Which of the rows that a process holds in RAM it must read again: those after the last seq it has seen.
CREATE TABLE line_changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    row INTEGER NOT NULL UNIQUE
) STRICT;

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
    archived_at INTEGER NOT NULL,
    memory      TEXT NOT NULL CHECK (json_valid(memory))  -- the row as it was
) STRICT, WITHOUT ROWID;

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
    row         INTEGER PRIMARY KEY,       -- from the same numbers as memories.row, so one table holds all vectors
    document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    thread      INTEGER NOT NULL,          -- the document's number
    heading     TEXT NOT NULL,             -- the path of headings above it
    content     TEXT NOT NULL,
    words       INTEGER NOT NULL,
    terms       TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX document_chunks_by_document ON document_chunks (document_id, row);
CREATE INDEX document_chunks_as_lines ON document_chunks (row, thread, words);

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

-- Vectors may come later than the row they belong to, and are made anew when the model changes.
CREATE TABLE models (
    number    INTEGER PRIMARY KEY,
    id        TEXT NOT NULL,               -- names the model and where it came from
    dimension INTEGER NOT NULL,
    UNIQUE (id, dimension)
) STRICT;

CREATE TABLE vectors (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT, -- a process reads those after the last it has seen
    row    INTEGER NOT NULL UNIQUE,        -- of a memory or a chunk
    model  INTEGER NOT NULL REFERENCES models (number),
    vector BLOB NOT NULL                   -- int8, as many as the model has dimensions; only the direction counts
) STRICT;
