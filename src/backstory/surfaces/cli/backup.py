"""`backstory backup`: copies of the store, and coming back from one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from backstory import errors, locks, paths
from backstory.model import now_ms
from backstory.store.file import backup as backups
from backstory.store.file import recovery
from backstory.store.file.backup import Backup
from backstory.store.file.disk import existing
from backstory.surfaces.cli.common import busy, folder, prints, sure
from backstory.surfaces.cli.output import visible
from backstory.surfaces.shapes import Column, Reply, Shown, Table, size, when

COLUMNS = (  # in a narrow terminal what the name tells as well gives way
    Column("backup", lambda one: one.name),
    Column("made", lambda one: when(one.at), gives_way=4),
    Column("reason", lambda one: one.reason.replace("-", " migration "), gives_way=1),
    Column("schema", right=True, gives_way=2),
    Column(
        "size",
        lambda one: "damaged" if one.schema is None else size(one.size),
        right=True,
        gives_way=3,
        style=lambda one: "red" if one.schema is None else "",
    ),
)


@click.group()
def backup() -> None:
    """Make, list and restore backups. One a day comes by itself, and one before the store is upgraded."""


@backup.command()
@prints
def now() -> Reply:
    """Make a backup now; the last five made so are kept, besides those that come by themselves.

    Who makes one has also seen what `backstory doctor` says about a recovery.
    """
    home = folder()
    with busy("making a backup"):
        recovery.verify(home, now_ms())  # a damaged database is no backup
        made = backups.make(home, now_ms(), "manual")
        removed = backups.prune(home)
    seen = recovery.notice(home)
    recovery.acknowledge(home)
    sentences = [f"Backup made: {made.path} ({size(made.size)})"]
    if removed:
        sentences.append(f"Removed, as newer ones are there: {', '.join(removed)}")
    return Reply({**_value(made), "removed": removed}, sentences, [seen] if seen else [])


@backup.command("list")
@prints
def list_backups() -> Reply:
    """List the backups, newest first, and what was set aside."""
    home = folder()
    with busy("looking at backups"):
        listed, aside = backups.listed(home), backups.set_aside(home)
    if not listed and (os.path.lexists(home) or not os.path.isdir(existing(home))):
        os.listdir(home)  # or it is said why not
    none = "There is no backup yet. `backstory backup now` makes one."
    shown: list[Shown] = [Table(listed, COLUMNS)] if listed else []
    shown += (f"set aside: {one.path} ({size(one.size)})" for one in aside)
    return Reply([_value(one) for one in (*listed, *aside)], shown, no="" if listed else none)


@backup.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@prints
def restore(name: str, yes: bool) -> Reply:
    """Put a backup in the place of the store: `latest`, the beginning of its name, or any file.

    The present store is set aside, not deleted. What it has and the backup has not is not in the store any
    more; `backstory backup restore FILE` with the file that was set aside takes it all back.
    """
    home = folder()
    path = _named(home, name)
    if not yes and not sure(f"Put {visible(path)} in the place of the store?"):
        raise errors.NotFound("Nothing was restored; --yes restores it without asking.")
    with _no_worker(home), busy("restoring"):
        had = os.path.exists(paths.database(home))
        try:
            aside = recovery.restore(home, path, now_ms())
        except errors.Damaged as error:
            what = str(error).rpartition("; ")[0]
            raise errors.Damaged(f"{what}; `backstory backup list` shows others") from error
    sentences = [f"Restored: {path}", *([f"What was there before is kept as {aside}"] if had else [])]
    return Reply({"restored": path, "set_aside": aside if had else None}, sentences)


def _named(home: str, name: str) -> str:
    found = backups.listed(home)
    if name == "latest" and found:
        return found[0].path
    fitting = [one for one in found if name and one.name.startswith((name, f"backstory-{name}"))]
    exact = [one for one in fitting if one.name == name]
    if not fitting and os.path.isfile(name):
        if not backups.is_store(name):
            raise errors.BadInput(f"{name} is no backup of backstory; `backstory backup list` shows them")
        return os.path.abspath(name)
    if not fitting:
        raise errors.NotFound(f"There is no backup {name}; `backstory backup list` shows what there is.")
    if len(fitting) > 1 and not exact:
        names = ", ".join(one.name for one in fitting)
        raise errors.BadInput(f"more than one backup starts with {name}: {names}; give more of the name")
    return (exact or fitting)[0].path


@contextmanager
def _no_worker(home: str) -> Iterator[None]:
    """A worker would go on with what is not in the store any more; none starts before this is done."""
    file = paths.worker_lock(home)
    handle = locks.try_to_take(file)
    if handle is None:
        pid = locks.pid_in(file)
        whose = f" (process {pid})" if pid else ""
        raise errors.NotFound(
            f"a worker is at work{whose}; it ends by itself when it is idle, or end it, and try again"
        )
    try:
        yield
    finally:
        os.close(handle)


def _value(one: Backup) -> dict[str, Any]:
    return {
        "name": one.name,
        "path": one.path,
        "made_at": one.at,
        "reason": one.reason,
        "schema": one.schema,
        "size": one.size,
    }
