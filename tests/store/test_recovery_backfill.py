"""What a damaged database lost since its backup comes back from transcripts, and nothing twice."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backstory.model import now_ms
from backstory.store import turns
from backstory.store.file import backup, recovery
from backstory.store.file.connection import connect
from backstory.surfaces.opened import open_drained
from tests.conftest import Run
from tests.helpers.backups import PAGE, database, path_of, root_page, spoil
from tests.helpers.chaos import assert_sound
from tests.helpers.transcripts import Log, worked

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_worker")]

HOUR = 3_600_000
QUERIES = {
    "prompts": "SELECT session_id, prompt FROM prompts",
    "memories": "SELECT session_id, id, kind, content, times FROM memories WHERE kind IN ('tool', 'turn')",
    "pieces": "SELECT m.id, p.text FROM turn_pieces p JOIN memories m ON m.row = p.turn",
}


def captured(data: Path, log: Log) -> None:
    log.spool(data)
    with open_drained(str(data), now=now_ms()):
        pass


@pytest.fixture
def lived(home: Path, data: Path, project: str) -> dict[str, list[Any]]:
    """What the store has of sessions before the backup, of one that goes on after it, and of those since."""
    folder = home / ".claude" / "projects"
    now = now_ms()
    for number in range(4):
        log = worked(f"before-{number}", project, now - 9 * HOUR + number * 60_000, gitBranch="").end()
        captured(data, log)
        log.write(folder)
    log = (
        Log("both", project, now - 8 * HOUR, gitBranch="")
        .prompt("begin with the tern")
        .edit(f"{project}/tern.py")
        .say("It is begun.")
    )
    captured(data, log)
    backup.make(str(data), now - 7 * HOUR)
    log.at = now - 7 * HOUR
    log.prompt("now the walrus").edit(f"{project}/walrus.py").say(f"Both are there. {'words ' * 900}")
    captured(data, log.end())
    log.write(folder)
    for number in range(12):
        log = worked(f"after-{number}", project, now - 7 * HOUR + (number + 1) * 60_000, gitBranch="").end()
        captured(data, log)
        log.write(folder)
    return of_sessions(data)


def of_sessions(data: Path) -> dict[str, list[Any]]:
    """What was said and done, without times: a hook runs a little after what it tells of."""
    with closing(connect(path_of(data))) as db:
        ids = [row["id"] for row in db.execute("SELECT id FROM sessions ORDER BY id")]
        told = {session_id: turns.of_session(db, session_id) for session_id in ids}
        return {
            "turns": [(name, one.state, one.record()) for name, several in told.items() for one in several],
            **{name: sorted(map(tuple, db.execute(query))) for name, query in QUERIES.items()},
        }


def differing(before: list[Any], after: list[Any]) -> tuple[list[Any], list[Any]]:
    """Lost, and there twice or anew."""
    return list((Counter(before) - Counter(after)).elements()), list(
        (Counter(after) - Counter(before)).elements()
    )


def garbage(data: Path) -> None:
    database(data).write_bytes(b"garbage" * 1000)


def leaf_of(text: str) -> Callable[[Path], None]:
    return lambda data: spoil(data, database(data).read_bytes().index(text.encode()) // PAGE + 1)


def root_of(table: str) -> Callable[[Path], None]:
    return lambda data: spoil(data, root_page(data, table))


DAMAGE: dict[str, Callable[[Path], None]] = {
    "everything": garbage,
    "some traces": leaf_of("Guard the after-5 parser"),
    "some turns": leaf_of('{"prompts": [["mend the after-5 parser'),
    "memories": root_of("memories"),
    "turns": root_of("turns"),
    "sessions": root_of("sessions"),
    "prompts": root_of("prompts"),
    "pieces": root_of("turn_pieces"),
    "the ledger": root_of("events"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_lost_since_the_backup_is_offered_by_backfill_and_comes_back(
    damage: str, lived: dict[str, list[Any]], data: Path, run: Run
) -> None:
    DAMAGE[damage](data)
    done = recovery.verify(str(data), now_ms())
    assert done is not None
    offered = re.search(r"`backstory (backfill --since \S+)`", recovery.notice(str(data)) or "")
    assert offered is not None

    ran = run(*shlex.split(offered[1]))

    assert ran.code == 0, ran.err
    after = of_sessions(data)
    assert {name: differing(lived[name], after[name]) for name in lived} == dict.fromkeys(lived, ([], []))
    assert_sound(data)
