-- What `backstory backfill` has read of the transcripts that Claude Code keeps.

CREATE TABLE transcripts (
    path        TEXT PRIMARY KEY,
    size        INTEGER NOT NULL,          -- as it was when it was read to its end; another one is read again. -1: it was begun
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
