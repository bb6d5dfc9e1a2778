"""`backstory forget` and `backstory erase`: single memories by id, or all that fits some conditions."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from backstory import errors, paths
from backstory.memory.kinds import KINDS
from backstory.store import forgetting, life, memories, nodes, projects, sessions
from backstory.store.file import backup
from backstory.store.file.connection import Connection
from backstory.store.forgetting import Conditions, Forgetting, Preview
from backstory.surfaces.cli.common import (
    FOLDER,
    ask,
    busy,
    folder,
    memory_id,
    moment,
    prints,
    refresh_views,
    session_id,
    store,
    tell,
    typed,
)
from backstory.surfaces.shapes import (
    Column,
    Line,
    Reply,
    Shown,
    counted,
    done,
    listing,
    number_of,
    one_line,
    plain,
    when,
)

if TYPE_CHECKING:
    from backstory.surfaces.erasing import Finished

SHOWN = 10
LAST = "last"
NOTHING_FITS = "Nothing fits; nothing was {done}. `backstory list` shows what there is."

OPTIONS = (
    click.argument("ids", metavar="[ID]...", nargs=-1),
    click.option("--session", "session", metavar="ID", help="All that this session left, and itself."),
    click.option(
        "--project",
        metavar="DIR",
        type=FOLDER,
        help="Only of this project; alone: all of it.  [default: the current folder]",
    ),
    click.option("--all-projects", is_flag=True, help="Of every project, and what is global."),
    click.option("--before", metavar="WHEN", help="Only from before: 2026-11-15, today, or 7d, 12h ago."),
    click.option(
        "--match",
        metavar="TEXT",
        help="Only with this text in the title or content, or anywhere in a turn: letter by letter, but for"
        " upper and lower case; no pattern. - reads it from standard input.",
    ),
    click.option("--kind", type=click.Choice(KINDS), help="Only this kind of memory."),
    click.option("--dry-run", is_flag=True, help="Only show what it would be."),
    click.option("--yes", is_flag=True, help="Do not ask."),
)


def _conditions(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.command()
@_conditions
@click.option(
    "--undo",
    metavar="[NUMBER]",
    is_flag=False,
    flag_value=LAST,
    help="Bring back what the last forgetting hid, or that of this number.",
)
@click.option("--list", "is_list", is_flag=True, help="List what can be undone.")
@prints
def forget(
    ids: tuple[str, ...], yes: bool, dry_run: bool, undo: str | None, is_list: bool, **given: Any
) -> Reply:
    """Take memories out of every answer; it can be undone.

    Single ones by ID, or all that fits every condition given. Conditions (--session, --project, --before,
    --match, --kind) show first what it would be, and ask. What was forgotten stays in the store: `backstory
    forget --undo` brings it back whole. `backstory erase` removes for good."""
    if undo is not None or is_list:
        if ids or any(given.values()) or (undo is not None and is_list):
            raise errors.BadInput("--undo and --list go with no id and no condition; give one of them alone")
        return _list() if undo is None else _undo(undo)
    with store() as (db, now):
        wanted = _wanted(db, now, ids, given, hard=False)
        if ids and not dry_run:
            return _forget(db, now, wanted)
        with busy("looking"):
            preview = forgetting.preview(db, wanted, shown=SHOWN)
        if dry_run or preview.is_empty:
            return _would(preview, "forget", "forgotten")
        tell(*_preview(preview, "forget"))
        ask(yes, None, "Forget this? It can be undone.", "forgotten")
        with busy("forgetting"):
            forgotten = forgetting.forget(db, wanted, now)
    if forgotten is None:
        raise errors.NotFound("Nothing fits any more; another process was faster.")
    sentence = f"Forgotten: {_counts(forgotten)}. To bring it back: backstory forget --undo {forgotten.id}"
    return Reply({**_of_preview(preview), "forgotten": True, **_of_forgetting(forgotten)}, [sentence])


@click.command()
@_conditions
@click.option("--everywhere", is_flag=True, help="Also out of backups, at once.")
@prints
def erase(ids: tuple[str, ...], yes: bool, dry_run: bool, everywhere: bool, **given: Any) -> Reply:
    """Remove memories for good.

    Single ones by ID, or all that fits every condition given. It shows first what it would be, and asks.
    Nothing of the text is left in the store, nor in the files beside it. Backups lose it as newer ones take
    their place, or with --everywhere at once. A whole project (--project alone) is erased with its documents
    and trees. Without any condition, it finishes what was interrupted."""
    from backstory.surfaces import erasing

    home = folder()
    with store() as (db, now):
        if not ids and not any(given.values()) and erasing.is_unfinished(home):
            with busy("finishing"):
                return _erased(home, None, erasing.finish(home, db, now))
        wanted = _wanted(db, now, ids, given, hard=True)
        return erase_all(db, home, now, wanted, yes=yes, dry_run=dry_run, everywhere=everywhere)


def erase_all(
    db: Connection, home: str, now: int, wanted: Conditions, *, yes: bool, dry_run: bool, everywhere: bool
) -> Reply:
    """Show what fits, ask, erase it, and say what became of it."""
    from backstory.intake.drain import drain
    from backstory.surfaces import erasing

    drain(db, paths.spool(home), now=now)  # what still waits in the spool holds the text as well
    with busy("looking"):
        preview = forgetting.preview(db, wanted, hard=True, shown=SHOWN)
    if dry_run or (preview.is_empty and not everywhere and not erasing.is_unfinished(home)):
        return _would(preview, "erase", "erased")
    tell(*_preview(preview, "erase"))
    if preview.is_empty:
        tell("Nothing in the store fits; backups are looked at.")
    ask(yes, None, "Erase this for good? It cannot be undone.", "erased")
    trees = _trees(db, wanted)
    with busy("erasing"):
        preview, finished = erasing.erase(home, db, wanted, now, everywhere=everywhere)
    for project, roots in trees:
        refresh_views(db, project, roots, now)
    return _erased(home, preview, finished)


# --- what is wanted -----------------------------------------------------------------------------------------


def _wanted(
    db: Connection, now: int, ids: tuple[str, ...], given: dict[str, Any], *, hard: bool
) -> Conditions:
    if ids:
        if others := [name for name, value in given.items() if value and name != "project"]:
            named = ", ".join(f"--{name.replace('_', '-')}" for name in others)
            raise errors.BadInput(f"an ID goes with no condition ({named}); give ids, or conditions")
        return Conditions(ids=tuple(memory_id(db, one, given["project"] or ".") for one in ids))
    command = "erase" if hard else "forget"
    if not any(value for name, value in given.items() if name != "all_projects"):
        raise errors.BadInput(
            f"say what to {command}: an ID, or --session, --project, --before, --match or --kind"
            f" (`backstory {command} --help`)"
        )
    if given["all_projects"] and given["project"]:
        raise errors.BadInput("--project and --all-projects contradict each other; give one of them")
    match = typed([given["match"]]) if given["match"] is not None else None
    if match == "-":
        match = (sys.stdin.read() if sys.stdin else "").strip("\n")
    if match is not None and not match.strip():
        raise errors.BadInput("--match has no text to look for; give a word or more")
    session = session_id(db, given["session"], forgotten=hard) if given["session"] else None
    before = moment(given["before"], now) if given["before"] else None
    return Conditions(
        project_id=_project(db, given["project"], given["all_projects"], session),
        session_id=session,
        before=before,
        match=match,
        kind=given["kind"],
    )


def _project(db: Connection, given: str | None, is_all: bool, session: str | None) -> str | None:
    """The one whose memories are meant: a session is enough to say that."""
    if is_all or (session and not given):
        return None
    here = projects.at(db, paths.place(given or "."))
    if here is None:
        raise errors.NotFound(
            f"nothing is stored of {given or 'this folder'};"
            " --project DIR or --all-projects says where to look"
        )
    if session:
        owner = sessions.project_of(db, session)
        if owner != here.id:
            root = projects.root_of(db, owner) if owner else "?"
            raise errors.BadInput(f"session {session} is of another project ({root}); leave --project out")
        return None
    return here.id


def _trees(db: Connection, wanted: Conditions) -> list[tuple[Any, list[str]]]:
    if not wanted.is_whole_project or wanted.project_id is None:
        return []
    project = projects.by_id(db, wanted.project_id)
    return [(project, [root.id for root in nodes.roots(db, project.number)])]


# --- forgetting by id, and undoing --------------------------------------------------------------------------


def _forget(db: Connection, now: int, wanted: Conditions) -> Reply:
    for one in wanted.ids:
        life.living(db, one)
    forgetting.forget(db, wanted, now)
    forgotten = [memory for one in wanted.ids if (memory := memories.get(db, one, now))]
    values = [{"done": "forgotten", **plain(memory)} for memory in forgotten]
    sentences = [f"Memory forgotten: {memory.id} (salience: {memory.salience:.2f})" for memory in forgotten]
    return Reply(values[0] if len(values) == 1 else values, sentences)


def _list() -> Reply:
    with store() as (db, _):
        forgettings = forgetting.listed(db)
        names = {project.id: project.name for project in projects.every(db)}
    columns = (
        Column("number", lambda one: one.id, right=True),
        Column("forgotten", lambda one: when(one.at), gives_way=1),
        Column("what", _counts),
        Column("which", lambda one: _which(one.conditions, names), least=20),
    )
    reply = listing(forgettings, columns, none="Nothing was forgotten that could be undone.")
    return replace(reply, value=[_of_forgetting(one) for one in forgettings])


def _undo(number: str) -> Reply:
    if number != LAST and not number.isdecimal():
        raise errors.BadInput(f"{number!r} is no number; `backstory forget --list` shows them")
    with store() as (db, now), busy("bringing back"):
        undone = forgetting.undo(db, now, None if number == LAST else int(number))
    return done(f"Brought back: {_counts(undone)}", undone=True, **_of_forgetting(undone))


def _which(wanted: Conditions, names: dict[str, str]) -> str:
    if wanted.is_retention:
        return f"retention, of before {when(wanted.before or 0)}"
    parts = list(wanted.ids[:3]) + [f"and {len(wanted.ids) - 3} more"] * (len(wanted.ids) > 3)
    parts += [f"project {names.get(wanted.project_id, wanted.project_id)}"] if wanted.project_id else []
    parts += [f"session {wanted.session_id}"] if wanted.session_id else []
    parts += [f"before {when(wanted.before)}"] if wanted.before else []
    parts += [f"with {wanted.match!r}"] if wanted.match else []
    parts += [f"of kind {wanted.kind}"] if wanted.kind else []
    return ", ".join(parts) or "all projects"


def _of_forgetting(one: Forgetting) -> dict[str, Any]:
    value = plain(one)
    value["conditions"] = {name: part for name, part in value["conditions"].items() if part}
    del value["erasing"]
    return dict(value)


# --- what is said -------------------------------------------------------------------------------------------


def _counts(of: Forgetting | Preview) -> str:
    other = "other " if of.turns else ""
    counts = counted(
        (of.sessions, "session", "sessions"),
        (of.turns, "turn", "turns"),
        (of.memories, f"{other}memory", f"{other}memories"),
    )
    return counts or "nothing but what waits"


def _would(preview: Preview, verb: str, past: str) -> Reply:
    """What it would be; nothing was done."""
    no = NOTHING_FITS.format(done=past) if preview.is_empty else ""
    return Reply({**_of_preview(preview), past: False}, _preview(preview, verb), no=no)


def _of_preview(preview: Preview) -> dict[str, Any]:
    names = ("id", "kind", "created_at", "text")
    lines = [dict(zip(names, line, strict=True)) for line in preview.lines]
    return {**plain(preview), "lines": lines, "memories": preview.memories}


def _preview(preview: Preview, verb: str) -> Iterator[Shown]:
    if preview.is_empty:
        return
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in preview.kinds.items())
    yield f"To {verb}: {_counts(preview)}{f' ({kinds})' if kinds else ''}"
    for what, number in (
        ("archived traces", preview.archived),
        ("documents", preview.documents),
        ("trees", preview.trees),
        ("texts told to a model", preview.tellings),
    ):
        if number:
            yield f"To {verb}: {_many(number, what)}"
    for memory, kind, at, text in preview.lines:
        yield Line((f"  {memory}  {when(at)}  {kind:<10} {one_line(text, 100)}",))
    if (more := preview.turns + preview.memories - len(preview.lines)) > 0:
        yield f"  and {more:,} more"
    for what, number in preview.stays.items():
        hint = "; --all-projects covers that" if what.endswith("with the text") else ""
        yield f"Stays: {_many(number, what)}{hint}"


def _many(number: int, what: str) -> str:
    if number == 1:
        what = re.sub(r"\b(trace|document|tree|node|text)s\b", r"\1", what.replace("memories", "memory"))
    return f"{number:,} {what}"


def _erased(home: str, preview: Preview | None, finished: Finished) -> Reply:
    """`preview`: of what was erased now; None: only what had begun was finished."""
    rotating = [one for one in finished.holding if one.reason == "daily"]
    last = backup.last_day(home, rotating, finished.at) if rotating else None
    value = {
        "erased": True,
        "sessions": preview.sessions if preview else 0,
        "turns": preview.turns if preview else 0,
        "memories": preview.memories if preview else finished.memories,
        "holding": [one.path for one in finished.holding],
        "held_until": last,
        "rewritten": finished.changed,
        "left": [{"path": path, "why": why} for path, why in finished.left],
        "unfinished": not finished.is_clean,
    }
    no = (
        "another process was reading the store: old text may be left in the file; `backstory erase` clears it"
    )
    counts = _counts(preview) if preview else number_of(finished.memories, "memory", "memories")
    return Reply(value, _what_became(finished, counts, last), no="" if finished.is_clean else no)


def _what_became(finished: Finished, counts: str, last: int | None) -> Iterator[Shown]:
    yield f"Erased: {counts}"
    for path in finished.changed:
        yield f"Backup without it: {path}"
    for one in finished.holding:
        stays = {"daily": "", "set aside": " (set aside: yours to delete)"}
        until = stays.get(one.reason, " (until newer ones of its kind are made, or you delete it)")
        yield f"Still holds it: {one.path}{until}"
    if last:
        yield f"With a backup every day, the last daily one is removed on {when(last)[:10]}."
    if finished.holding:
        yield "To take it out of backups now: the same command with --everywhere"
    for path, why in finished.left:
        yield f"Left: {path}: {why}"
