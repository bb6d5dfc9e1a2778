-- What a model's section rests on: it is behind when a program would state other facts in its place.

ALTER TABLE claude_sections ADD COLUMN facts TEXT; -- JSON: the facts when its text was written or last found true; NULL: not known
ALTER TABLE claude_sections ADD COLUMN asked TEXT; -- the digest of the facts because of which a model was asked to see to it
