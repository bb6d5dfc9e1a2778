-- Turns: what was asked, answered and done, from a prompt to the assistant's last words. A turn is a memory, found by
-- its pieces; a prompt is no memory of its own any more. Every memory says where its text came from.

-- `prompt` becomes `turn` among the kinds. To build memories anew for one word of a constraint would take minutes.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''tool'', ''prompt'',', '''tool'', ''turn'',')
WHERE type = 'table' AND name = 'memories';
PRAGMA writable_schema = RESET;

DROP TRIGGER memories_indexed;
DROP TRIGGER memories_unindexed;
DROP TRIGGER memories_reindexed;
DROP TRIGGER memories_rewritten;
DROP TRIGGER memories_changed;
DROP TABLE memories_terms;
DROP TABLE memories_fts;
DROP INDEX memories_standing;
DROP INDEX memories_as_lines;

UPDATE memories SET kind = 'turn', tier = 'project', importance = 0.6, salience = max(salience, 0.6), thread = NULL,
    author = NULL WHERE kind = 'prompt';

ALTER TABLE memories ADD COLUMN source TEXT NOT NULL DEFAULT 'assistant'
CHECK (source IN ('user', 'assistant', 'tool', 'web', 'repository', 'model', 'session')); -- where its words come from: see memory/kinds.py
ALTER TABLE memories ADD COLUMN times INTEGER NOT NULL DEFAULT 1; -- a trace that came again in its session is counted
ALTER TABLE sessions ADD COLUMN attended INTEGER NOT NULL DEFAULT 1 CHECK (attended IN (0, 1)); -- 0: nobody was there
CREATE INDEX sessions_by_attended ON sessions (project_id, attended, started_at);

UPDATE memories SET source = CASE
    WHEN action = 'web' THEN 'web' WHEN kind = 'tool' THEN 'tool' WHEN kind IN ('turn', 'summary') THEN 'session'
    WHEN kind = 'note' THEN 'assistant' ELSE 'model' END;
UPDATE archived_memories SET memory = json_set(memory, '$.kind', 'turn') WHERE memory ->> 'kind' = 'prompt';

CREATE TABLE turns (
    row        INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
    session_id TEXT REFERENCES sessions (id) ON DELETE SET NULL,
    state      TEXT NOT NULL CHECK (state IN ('open', 'complete', 'interrupted')),
    started_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL,             -- its last event so far
    record     TEXT NOT NULL CHECK (json_valid(record)) -- see memory/turn.py
) STRICT;

CREATE INDEX turns_by_session ON turns (session_id, started_at);
CREATE INDEX turns_open ON turns (ended_at) WHERE state = 'open';

INSERT INTO turns (row, session_id, state, started_at, ended_at, record)
SELECT row, session_id, 'complete', created_at, created_at, json_object('prompts', json_array(json_array(content, 'pasted')))
FROM memories WHERE kind = 'turn';

-- What a turn is found by, and shown of it: some lines of a prompt, of the answer, of a plan, or its facts.
CREATE TABLE turn_pieces (
    row    INTEGER PRIMARY KEY,              -- from the same numbers as memories.row, so one table holds all vectors
    turn   INTEGER NOT NULL,                 -- memories.row
    thread INTEGER,                          -- its session's number
    part   INTEGER NOT NULL,                 -- which part of the turn it is from: see memory/turn.py
    text   TEXT NOT NULL,
    words  INTEGER NOT NULL,
    terms  TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX turn_pieces_by_turn ON turn_pieces (turn, row);
CREATE INDEX turn_pieces_as_lines ON turn_pieces (row, turn, thread, part, words);

INSERT INTO turn_pieces (row, turn, thread, part, text, words, terms)
SELECT (p.number << 32) | (p.last_memory + row_number() OVER (PARTITION BY p.number ORDER BY m.row)),
       m.row, (SELECT number FROM sessions s WHERE s.id = m.session_id),
       iif(length(m.content) > 300, 3, 2), -- PROMPT or ASKED of memory/turn.py
       m.content, m.words, m.terms
FROM memories m JOIN projects p ON p.id = m.project_id WHERE m.kind = 'turn';
UPDATE projects SET last_memory = max(last_memory, coalesce(
    (SELECT max(t.row) & 4294967295 FROM turn_pieces t WHERE t.row >> 32 = projects.number), 0));
DELETE FROM vectors WHERE row IN (SELECT row FROM turns);
UPDATE memories SET content = 'asked: ' || replace(trim(content, char(10) || ' '), char(10), char(10) || '  ')
WHERE kind = 'turn';

CREATE INDEX memories_standing ON memories (project_id, kind, created_at) WHERE kind <> 'tool';
CREATE INDEX memories_as_lines ON memories (row, kind, thread, words, question, deleted_at, valid_until);

-- One keyword index for all that a search of memories looks at.
CREATE VIEW memory_lines AS
SELECT row, title, content, tags, files, terms FROM memories WHERE kind <> 'turn'
UNION ALL SELECT row, NULL, text, NULL, NULL, terms FROM turn_pieces;

CREATE VIRTUAL TABLE memories_fts USING fts5 (
    title, content, tags, files, terms,
    content = 'memory_lines', content_rowid = 'row',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO memories_fts (memories_fts) VALUES ('rebuild');

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

CREATE TRIGGER memories_taken_apart AFTER DELETE ON memories WHEN old.kind = 'turn' BEGIN
    DELETE FROM turn_pieces WHERE turn = old.row;
END;

CREATE TRIGGER memories_reindexed AFTER UPDATE OF title, content, tags, files, terms ON memories
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
    INSERT INTO memories_fts (memories_fts, rowid, content, terms) VALUES ('delete', old.row, old.text, old.terms);
    DELETE FROM vectors WHERE row = old.row;
    INSERT OR REPLACE INTO line_changes (row) VALUES (old.row);
END;
