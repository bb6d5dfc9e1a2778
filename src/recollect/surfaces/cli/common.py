"""What several commands share: their options, the store, and names typed by hand."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from sqlite3 import Connection

import click

from recollect import errors, paths
from recollect.model import SECTORS

SECTOR = click.Choice(SECTORS)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
project_option = click.option(
    "--project",
    default=".",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="The project to look at.  [default: the current folder]",
)


def typed(given: Iterable[str]) -> str:
    """What was typed, as text: signs that are not UTF-8 cannot be stored, so they cannot be found either."""
    return os.fsencode(" ".join(given)).decode("utf-8", "backslashreplace")


def only(what: str, prefix: str, found: Sequence[str], listing: str) -> str:
    """The one id that begins like this."""
    if prefix in found:
        return prefix
    if not found or not prefix:
        raise errors.NotFound(f"There is no {what} {prefix}; `{listing}` shows ids.")
    if len(found) > 1:
        raise errors.BadInput(
            f"more than one {what} starts with {prefix}: {', '.join(found)}; give more of the id"
        )
    return found[0]


def memory_id(db: Connection, prefix: str) -> str:
    from recollect.store import memories

    prefix = typed([prefix])
    found = memories.starting_with(db, prefix) or memories.starting_with(db, "mem_" + prefix)
    return only("memory", prefix, found, "recollect search")


def session_id(db: Connection, prefix: str) -> str:
    from recollect.store import sessions

    prefix = typed([prefix])
    found = [session.id for session in sessions.starting_with(db, prefix)]
    return only("session", prefix, found, "recollect sessions")


def moment(given: str, now: int) -> int:
    """A time as people type it: 2026-11-15, 2026-11-15T14:30, or how long ago, 90m, 12h, 7d, 4w."""
    ago = re.fullmatch(r"(\d{1,6})([mhdw])", given.strip())
    if ago:
        return now - int(ago[1]) * {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}[ago[2]] * 1000
    try:
        return int(datetime.fromisoformat(given.strip()).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise errors.BadInput(f"{given!r} is no time; write 2026-11-15, or 7d for seven days ago") from error


@contextmanager
def store() -> Iterator[tuple[Connection, int]]:
    from recollect.intake.drain import open_store

    now = int(time.time() * 1000)
    with open_store(folder(), now=now, progress=_progress if sys.stderr.isatty() else None) as db:
        yield db, now


def _progress(stored: int, total: int) -> None:
    if total >= 1_000:  # fewer are stored before anyone could read this
        click.echo(f"\rstoring what was captured: {stored:,} of {total:,}", err=True, nl=stored == total)


def folder() -> str:
    found = paths.data_folder(os.environ)
    if found is None:
        raise errors.BadInput("there is no data folder; set HOME, or RECOLLECT_HOME to where it should be")
    return os.path.abspath(found)
