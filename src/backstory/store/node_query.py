"""One read-only SELECT over the nodes of a project, written by a model.

It runs on a connection of its own, so nothing that it does to one lasts, and SQLite's authorizer decides what
it may touch: the view `nodes`, and some functions. The table below is read through another view, whose name
is a secret of this call: the authorizer tells who reads by name, and a CTE may be called `nodes` as well.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from secrets import token_hex

from backstory.errors import BadInput
from backstory.store.file.connection import is_busy, is_damage, tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from backstory.model import Project

    Value = str | int | float | bytes | None

ROWS = 20
SECONDS = 2.0
LONGEST_SQL = 10_000
LONGEST_VALUE = 500_000  # bytes; the longest text of a node is a little shorter
LONGEST_ANSWER = 400_000  # characters
LONGEST_PATTERN = 200  # bytes, of LIKE and GLOB
OFTEN = 50  # steps of SQLite's machine between two looks at the clock
SLOW = frozenset({"glob", "instr", "like", "replace"})  # with long texts a call takes long, and is one step
MOST_SLOW = 10  # calls of those in a query

COLUMNS = {
    name: f"strftime('%Y-%m-%dT%H:%M:%SZ', {name} / 1000, 'unixepoch')" if name.endswith("_at") else name
    for name in (
        "id parent_id root_id text order_value token_count created_at updated_at context_type context_name"
        " context_value readonly hash"
    ).split()
}

# None that reaches outside, makes something large of something small, or takes minutes within one step, as
# trim does with two long arguments. Of the SLOW ones there may be some.
FUNCTIONS = frozenset(
    "abs avg char coalesce count cume_dist date datetime dense_rank first_value glob group_concat ifnull iif"
    " instr julianday lag last_value lead length like lower max min nth_value ntile nullif percent_rank"
    " random rank replace round row_number strftime substr substring sum time total typeof unicode unixepoch"
    " upper".split()
)


def query(
    db: sqlite3.Connection, project: Project, sql: str, *, seconds: float = SECONDS
) -> tuple[list[str], list[tuple[Value, ...]], bool]:
    """The columns, the first rows, and whether there are more."""
    file = tuples(db).execute("PRAGMA database_list").fetchone()[2]
    refused: list[str] = []
    with closing(sqlite3.connect(file, isolation_level=None)) as own:
        try:
            _confine(own, project.number, refused, seconds)
            return _run(own, sql.encode("utf-8", "replace").decode())
        except (sqlite3.Error, sqlite3.Warning) as error:
            if is_damage(error) or is_busy(error):
                raise
            raise BadInput(_sentence(error, refused, seconds)) from error


def _confine(own: sqlite3.Connection, project: int, refused: list[str], seconds: float) -> None:
    tables = {name.lower() for (name,) in own.execute("SELECT name FROM sqlite_schema")}
    secret = f"nodes_{token_hex(8)}"
    columns = ", ".join(f"{made} AS {name}" for name, made in COLUMNS.items())
    own.execute(
        f"CREATE TEMP VIEW {secret} AS SELECT {columns} FROM docmem_nodes WHERE project = {project:d}"
    )
    own.execute(f"CREATE TEMP VIEW nodes AS SELECT * FROM {secret}")
    own.execute("PRAGMA query_only = ON")
    own.text_factory = lambda text: text.decode("utf-8", "replace")  # a CAST may make text of any bytes
    own.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, LONGEST_SQL)
    own.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    own.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LONGEST_PATTERN)
    own.set_authorizer(_authorizer(secret, tables, refused))
    deadline = time.monotonic() + seconds
    own.set_progress_handler(lambda: time.monotonic() > deadline, OFTEN)


def _authorizer(
    secret: str, tables: set[str], refused: list[str]
) -> Callable[[int, str | None, str | None, str | None, str | None], int]:
    """What is refused is noted."""
    slow = 0

    def may(action: int, first: str | None, second: str | None, _: str | None, reader: str | None) -> int:
        nonlocal slow
        name, what = (first or "").lower(), "anything but a SELECT over nodes"
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            # Of a table that is only counted SQLite does not say where it is, just as of a CTE.
            is_cte = second == "" and name not in tables and not name.startswith("sqlite_")
            if reader == secret or name in ("nodes", secret) or is_cte:
                return sqlite3.SQLITE_OK
            what = f"reading {first}"
        if action == sqlite3.SQLITE_FUNCTION:
            slow += second in SLOW
            if second in FUNCTIONS and slow <= 2 * MOST_SLOW:  # each is met twice, as _run explains first
                return sqlite3.SQLITE_OK
            many = f"more than {MOST_SLOW} calls of {', '.join(sorted(SLOW))}"
            what = many if second in FUNCTIONS else f"the function {second}"
        refused.append(what)
        return sqlite3.SQLITE_DENY

    return may


def _run(own: sqlite3.Connection, sql: str) -> tuple[list[str], list[tuple[Value, ...]], bool]:
    own.execute(f"EXPLAIN {sql}").close()  # the authorizer sees no EXPLAIN; of one there is none
    rows: list[tuple[Value, ...]] = []
    size = 0
    with closing(own.execute(sql)) as found:
        for row in found:
            if len(rows) == ROWS:
                return _names(found), rows, True
            rows.append(row)
            size += sum(len(value) for value in row if isinstance(value, str | bytes))
            if size > LONGEST_ANSWER:
                raise BadInput(
                    f"the answer is longer than {LONGEST_ANSWER:,} characters; ask for fewer rows, or for"
                    " substr(text, 1, 200)"
                )
        return _names(found), rows, False


def _names(found: sqlite3.Cursor) -> list[str]:
    return [column[0] for column in found.description]


def _sentence(error: Exception, refused: list[str], seconds: float) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        return f"the query took longer than {seconds:g} s; ask for less, with WHERE or LIMIT"
    if code == sqlite3.SQLITE_TOOBIG:
        return f"{error}; ask for less at a time, for instance substr(text, 1, 200)"
    if refused and refused[0].startswith("the function"):
        return f"{refused[0][:200]} is not available; there are {', '.join(sorted(FUNCTIONS))}"
    what = f"{refused[0][:200]} is refused" if refused else str(error)[:200].rstrip(".")
    return f"{what}; ask one SELECT over nodes, which has {', '.join(COLUMNS)}"
