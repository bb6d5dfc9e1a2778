"""Which store for a queue? Read, ask around, measure, decide; nothing is changed."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, agent, bash, read, say, turn, write

ROOT = "/home/dev/mailroom"

QUEUE = '''
"""Mails that wait to be sent, a JSON file each."""

import json
import os
import uuid


class FileQueue:
    def __init__(self, folder):
        self.folder = folder

    def put(self, mail):
        name = os.path.join(self.folder, f"{uuid.uuid4()}.json")
        with open(name, "w") as file:
            json.dump(mail, file)
            file.flush()
            os.fsync(file.fileno())

    def take(self):
        for name in sorted(os.listdir(self.folder)):
            path = os.path.join(self.folder, name)
            with open(path) as file:
                mail = json.load(file)
            os.unlink(path)
            return mail
        return None
'''
SENDER = """
import smtplib

from mailroom.queue import FileQueue


def run(folder, host):
    queue = FileQueue(folder)
    with smtplib.SMTP(host) as server:
        while mail := queue.take():
            server.sendmail(mail["from"], mail["to"], mail["body"])
"""
BENCH = """
import json, os, sqlite3, sys, tempfile, time

sys.path.insert(0, os.getcwd())
from mailroom.queue import FileQueue

N = 300
mail = {"from": "a@example.org", "to": "b@example.org", "body": "x" * 800}

with tempfile.TemporaryDirectory() as folder:
    queue = FileQueue(folder)
    start = time.perf_counter()
    for _ in range(N):
        queue.put(mail)
    put = time.perf_counter() - start
    start = time.perf_counter()
    while queue.take():
        pass
    print(f"files   put {put / N * 1e3:.2f} ms   take {(time.perf_counter() - start) / N * 1e3:.2f} ms")

for mode, sync in (("DELETE", "FULL"), ("WAL", "NORMAL")):
    with tempfile.TemporaryDirectory() as folder:
        db = sqlite3.connect(os.path.join(folder, "q.db"), isolation_level=None)
        db.execute(f"PRAGMA journal_mode={mode}")
        db.execute(f"PRAGMA synchronous={sync}")
        db.execute("CREATE TABLE mails (id INTEGER PRIMARY KEY, body TEXT)")
        start = time.perf_counter()
        for _ in range(N):
            db.execute("INSERT INTO mails (body) VALUES (?)", (json.dumps(mail),))
        put = time.perf_counter() - start
        start = time.perf_counter()
        while row := db.execute("SELECT id, body FROM mails ORDER BY id LIMIT 1").fetchone():
            db.execute("DELETE FROM mails WHERE id = ?", (row[0],))
        took = time.perf_counter() - start
        db.close()
        print(f"{mode:7} put {put / N * 1e3:.2f} ms   take {took / N * 1e3:.2f} ms")
"""

SCENARIO = Scenario(
    project="mailroom",
    began="2026-03-12T08:30:00",
    first_commit="mailroom",
    files={
        "mailroom/__init__.py": "",
        "mailroom/queue.py": QUEUE,
        "mailroom/sender.py": SENDER,
        "docs/operations.md": "# Operations\n\nOne sender a host. If the sender dies between `take` and `sendmail`, "
        "the mail is lost; restart and ask the caller to send again.\n",
        ".gitignore": "__pycache__/\nscratch/\n",
    },
    subagent=(
        bash("grep -rn 'queue' --include=*.py --include=*.md ."),
        read(f"{ROOT}/mailroom/sender.py"),
        read(f"{ROOT}/docs/operations.md"),
        say(
            "The queue is used in one place, mailroom/sender.py: `run` takes a mail and then sends it. `FileQueue.take` "
            "deletes the file before the mail is sent, so a crash in between loses it; docs/operations.md says so. "
            "Nothing else depends on the files being files."
        ),
    ),
    turns=(
        turn(
            """
We're thinking about replacing the file based queue, either redis or sqlite, or maybe we keep the files. Two senders
per host should be possible in future. Look into it please: what does the current one guarantee, what would
it cost to change, and is speed an issue at all? Don't change any code yet, I just want to know.
""",
            read(f"{ROOT}/mailroom/queue.py"),
            agent(
                "Find who uses the queue",
                "Find every place that uses the queue and what it relies on. Report only.",
            ),
            bash("python -c 'import redis'", "Is the redis client installed?"),
            bash("which redis-server || echo none here", "Is there a redis server?"),
            write(f"{ROOT}/scratch/bench.py", BENCH.lstrip()),
            bash("python scratch/bench.py", "Measure files against SQLite"),
            bash("python -c 'import sqlite3; print(sqlite3.sqlite_version)'", "RETURNING needs 3.35"),
            bash("rm -r scratch && git status --short", "Tidy up"),
            say(
                """Here is what I found.

**What we have.** One JSON file a mail, written with fsync. `take()` reads the first file, deletes it and returns the
mail, and `sender.py` sends it afterwards. So a crash between the two loses the mail (docs/operations.md admits
it), and two senders on one host can both read the same file before either deletes it: the mail goes out twice or
one of them dies with FileNotFoundError. Files are also taken in the order of random UUIDs, not in the order they came.

**Speed** is not an issue. Every variant needs about a millisecond or less for a mail on this machine, SQLite in WAL
mode with synchronous=NORMAL being the fastest at putting, and SMTP takes far longer than that.

**Cost.** SQLite: about 40 lines in queue.py, no new dependency, and `UPDATE ... RETURNING` gives an atomic claim, so two
senders and redelivery after a crash come with it. Redis: a server to run and a client library, and we'd have to turn
on its AOF to be as safe as today.

I'd go with SQLite if you want two senders. Nothing was changed; the benchmark script is deleted again."""
            ),
        ),
        turn(
            "hm ok. could several hosts share the sqlite file over nfs?",
            say(
                "No. SQLite's locking isn't reliable on NFS and WAL needs shared memory, so it doesn't work across hosts at "
                "all. For several hosts on one queue you'd need Redis or Postgres. With one queue a host, as today, it "
                "doesn't matter."
            ),
        ),
        turn(
            "we won't need that. alright: sqlite it is, in WAL mode, one db per host, and mails get claimed before "
            "sending and deleted after. I'll do it next week, you can stop here",
            say(
                "Noted: SQLite in WAL mode, one database a host, claim before sending and delete after. When you start, "
                "remember that mails still lying in the folder need to be moved over once."
            ),
        ),
    ),
)
