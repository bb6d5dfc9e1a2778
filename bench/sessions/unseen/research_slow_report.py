"""Why a report is slow, looked into and not touched: query plans, two ways out, and the one that is taken."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, read, say, turn

ROOT = "/home/dev/parkmeter"

SCHEMA = """
CREATE TABLE parkings (
    id INTEGER PRIMARY KEY,
    meter INTEGER NOT NULL,
    started_at TEXT NOT NULL,  -- 2026-02-01 08:15:00
    minutes INTEGER NOT NULL,
    cents INTEGER NOT NULL
);
CREATE INDEX parkings_started_at ON parkings (started_at);
"""
REPORT = '''
"""Takings of one day, printed for the town hall every morning."""

import sqlite3
import sys

DAY = """
SELECT meter, count(*), sum(cents) FROM parkings
WHERE date(started_at) = ?
GROUP BY meter ORDER BY meter
"""


def day(db, date):
    return db.execute(DAY, (date,)).fetchall()


if __name__ == "__main__":
    for row in day(sqlite3.connect(sys.argv[1]), sys.argv[2]):
        print(*row, sep="\\t")
'''
SEED = '''
"""A database like the real one: seed.py FILE ROWS"""

import random
import sqlite3
import sys
from datetime import datetime, timedelta

db = sqlite3.connect(sys.argv[1])
db.executescript(open("schema.sql").read())
dice = random.Random(4)
at = datetime(2024, 1, 1)
rows = []
for _ in range(int(sys.argv[2])):
    at += timedelta(seconds=dice.randrange(180))
    rows.append((dice.randrange(4000), str(at), dice.randrange(10, 240), dice.randrange(50, 900)))
db.executemany("INSERT INTO parkings (meter, started_at, minutes, cents) VALUES (?, ?, ?, ?)", rows)
db.commit()
'''
PLAN = 'sqlite3 /tmp/big.db "EXPLAIN QUERY PLAN SELECT meter, count(*), sum(cents) FROM parkings WHERE {} GROUP BY meter"'

SCENARIO = Scenario(
    project="parkmeter",
    began="2026-03-31T15:02:00",
    git=False,
    files={
        "schema.sql": SCHEMA,
        "report.py": REPORT,
        "tools/seed.py": SEED,
        "NOTES": "cron: 05:30 report.py /srv/meters.db yesterday | mail townhall\n",
    },
    turns=(
        turn(
            """
The morning report (report.py) takes over four minutes on the production box by now and the people at the town
hall are complaining. There IS an index on started_at, I made it myself last year, so I'm puzzled. Could you look
into why? Only look please, don't change anything in here, there is a release going on.
""",
            bash("ls && cat NOTES"),
            read(f"{ROOT}/report.py"),
            read(f"{ROOT}/schema.sql"),
            bash("grep -rn started_at ."),
            bash(
                "python tools/seed.py /tmp/big.db 400000 && ls -l /tmp/big.db | awk '{print $5}'",
                "Make a big database elsewhere",
            ),
            bash("time python report.py /tmp/big.db 2024-06-01 | tail -2"),
            bash("sqlite3 /tmp/big.db 'EXPLAIN ANALYZE SELECT 1'"),
            bash(PLAN.format("date(started_at) = '2024-06-01'")),
            bash(PLAN.format("started_at >= '2024-06-01' AND started_at < '2024-06-02'")),
            bash(
                "cp /tmp/big.db /tmp/expr.db && sqlite3 /tmp/expr.db 'CREATE INDEX parkings_day ON parkings (date(started_at))' && ls -l /tmp/*.db | awk '{print $5, $9}'"
                " && sqlite3 /tmp/expr.db \"EXPLAIN QUERY PLAN SELECT sum(cents) FROM parkings WHERE date(started_at) = '2024-06-01'\"",
                "Try an index on the expression, in a copy",
            ),
            bash("rm /tmp/big.db /tmp/expr.db"),
            say(
                """The index is fine, but the report cannot use it: `WHERE date(started_at) = ?` wraps the column in a function, and SQLite only
uses an index on the bare column when the query has the bare column. So every morning it scans the whole table, and the table grows.

There are two ways out:

1. Ask for a range, `started_at >= :day AND started_at < :next_day`. The plan then says SEARCH instead of SCAN, with the index you have.
2. Add an index on the expression `date(started_at)`. The query can stay as it is, but every insert has one more index to keep, and the file grows by a good quarter.

I changed nothing; the big database I measured on is deleted again. Which one would you prefer?"""
            ),
        ),
        turn(
            "Ah, of course. We always had this kind of trouble with dates. Would Postgres be any smarter here?",
            say(
                "No, Postgres behaves the same way here: a plain index does not serve `date(started_at)` there either. "
                "Do you want me to write the range version down as a patch for later?"
            ),
        ),
        turn(
            "No patch needed. We'll go with the range, not with a second index, because 4,000 meters insert all day long "
            "and I don't want to slow those down. I'll do it myself once the release is out on the 14th.",
            say(
                "Sounds good: the range in report.py after the 14th, and no index on the expression. Watch out that the upper bound is the next day and "
                "exclusive, otherwise 23:59:30 gets lost."
            ),
        ),
    ),
)
