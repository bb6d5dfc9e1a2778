"""What kinds of memory there are, and what follows from the kind alone."""

OBSERVATIONS = ("decision", "bugfix", "feature", "refactor", "discovery", "preference")
KINDS = ("tool", "turn", *OBSERVATIONS, "summary", "note")
SOURCES = ("user", "assistant", "tool", "web", "repository", "model", "session")
TIERS = ("session", "project", "global")
SECTORS = ("episodic", "semantic", "procedural", "emotional", "reflective")

IMPORTANCE = dict.fromkeys(OBSERVATIONS, 0.6) | {"decision": 0.7, "summary": 0.7, "note": 0.5}
SAID_BY = {"claude": "model", "local": "rule"}  # by synthesizer: who says that a memory replaces another
