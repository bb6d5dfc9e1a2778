-- A project is known by what its repository carries with it, not by where it lies: it may move and be cloned.

ALTER TABLE projects ADD COLUMN roots TEXT NOT NULL DEFAULT '';  -- its root commits, sorted, with commas; '': none are known
ALTER TABLE projects ADD COLUMN remote TEXT NOT NULL DEFAULT ''; -- where it is pushed to, as paths.normal_remote has it
ALTER TABLE projects ADD COLUMN paused_at INTEGER;               -- since then nothing of it is stored
CREATE INDEX projects_by_roots ON projects (roots) WHERE roots <> '';
CREATE INDEX projects_by_remote ON projects (remote) WHERE remote <> '';

-- Where projects lie, or lay: to look here is quick, to look into a repository is not.
CREATE TABLE checkouts (
    path       TEXT PRIMARY KEY,           -- git common directory, or the real path outside git
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    root       TEXT NOT NULL,              -- the folder that people know
    mark       TEXT,                       -- what paths.Place.mark was when its history was last looked at; null: never
    said_by    TEXT NOT NULL DEFAULT 'rule' CHECK (said_by IN ('rule', 'user')), -- a user's word stands whatever git says
    seen_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX checkouts_by_project ON checkouts (project_id, seen_at);

INSERT INTO checkouts (path, project_id, root, seen_at)
SELECT p.identity, p.id, p.root, coalesce((SELECT max(s.last_event_at) FROM sessions s WHERE s.project_id = p.id), p.created_at)
FROM projects p WHERE p.id <> 'global';
UPDATE projects SET identity = id; -- it says nothing any more, but must be there and unique
