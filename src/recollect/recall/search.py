"""Finding memories by their words.

Every word that carries meaning may match, and BM25 decides: a query quoted as one phrase finds nothing.
"""

from __future__ import annotations

import re
from sqlite3 import Connection

from recollect import paths
from recollect.errors import BadInput
from recollect.model import SECTORS, Hit
from recollect.store import memories, projects, sessions

DEFAULT_LIMIT = 10
MAX_LIMIT = 100
MAX_QUERY = 2_000

STOPWORDS = frozenset(
    "a about an and any are as at be been but by can could did do does for from had has have how i if in into"
    " is it its me my no not of on or our should so some that the their them then there these they this to us"
    " was we were what when where which who why will with would you your".split()
)


def search(
    db: Connection,
    cwd: str,
    query: str,
    *,
    now: int,
    sector: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> list[Hit]:
    """The memories of this folder's project that fit the query best. A memory's id finds that memory."""
    check(query, sector, limit)
    project = projects.at(db, paths.place(cwd))
    if project is None:
        return []
    memory = memories.living(db, query.strip(), project.id, now)
    found = [(memory, 1.0)] if memory else []
    if not found:
        found = memories.by_words(
            db, match_expression(query), project_number=project.number, sector=sector, limit=limit, now=now
        )
    best = max((score for _, score in found), default=1.0)
    known = sessions.by_ids(db, sorted({memory.session_id for memory, _ in found if memory.session_id}))
    return [Hit(memory, score / best, known.get(memory.session_id or "")) for memory, score in found]


def check(query: str, sector: str | None, limit: int) -> None:
    if not words(query):
        raise BadInput("the query has no words; ask for something like 'database migration'")
    if len(query) > MAX_QUERY:
        raise BadInput(f"the query is longer than {MAX_QUERY} characters; a sentence is enough")
    if sector is not None and sector not in SECTORS:
        raise BadInput(f"there is no sector {sector[:40]!r}; it is one of {', '.join(SECTORS)}")
    if not 1 <= limit <= MAX_LIMIT:
        raise BadInput(f"limit is {limit}; it must be between 1 and {MAX_LIMIT}")


def words(query: str) -> list[str]:
    return re.findall(r"\w+", query)


def match_expression(query: str) -> str:
    """The FTS5 expression for a query: any of its words, without those that every text has."""
    found = list(dict.fromkeys(word.lower() for word in words(query)))
    telling = [word for word in found if word not in STOPWORDS]
    return " OR ".join(f'"{word}"' for word in telling or found)
