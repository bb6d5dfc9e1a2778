"""`backstory forget` and `backstory erase`: single memories by id, or all that fits some conditions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from backstory import errors, paths
from backstory.memory.kinds import KINDS
from backstory.store import forgetting, life, memories, nodes, projects, sessions
from backstory.store.file import backup
from backstory.store.file.connection import Connection
from backstory.store.forgetting import Conditions, Forgetting, Preview
from backstory.surfaces.cli import output
from backstory.surfaces.cli.common import (
    FOLDER,
    ask,
    busy,
    folder,
    json_option,
    memory_id,
    moment,
    refresh_views,
    session_id,
    store,
    sure,
    typed,
)

SHOWN = 10
LAST = "last"

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
    json_option,
)


def _conditions(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.command()
@_conditions
@click.option("--hard", is_flag=True, help="With an ID: for good, as `backstory erase`.")
@click.option(
    "--undo",
    metavar="[NUMBER]",
    is_flag=False,
    flag_value=LAST,
    help="Bring back what the last forgetting hid, or that of this number.",
)
@click.option("--list", "is_list", is_flag=True, help="List what can be undone.")
def forget(
    ids: tuple[str, ...], yes: bool, dry_run: bool, hard: bool, undo: str | None, is_list: bool, **given: Any
) -> None:
    """Take memories out of every answer; it can be undone.

    Single ones by ID, or all that fits every condition given. Conditions (--session, --project, --before,
    --match, --kind) show first what it would be, and ask. What was forgotten stays in the store: `backstory
    forget --undo` brings it back whole. `backstory erase` removes for good."""
    as_json: bool = given.pop("as_json")
    is_chosen = bool(ids) or any(given.values())
    if (undo is not None or is_list) and (is_chosen or hard or (undo is not None and is_list)):
        raise errors.BadInput("--undo and --list go with no id and no condition; give one of them alone")
    if is_list:
        return _list(as_json)
    if undo is not None:
        return _undo(undo, as_json)
    if hard and (len(ids) != 1 or dry_run):
        raise errors.BadInput(
            "--hard takes one ID; `backstory erase` takes several, conditions and --dry-run"
        )
    with store() as (db, now):
        if ids and not dry_run:
            _no_conditions(given)
            known = [memory_id(db, one, given["project"] or ".") for one in ids]
            return _erase_one(db, now, known[0], yes, as_json) if hard else _forget(db, now, known, as_json)
        wanted = _wanted(db, now, ids, given, hard=False)
        with busy("looking"):
            seen = forgetting.preview(db, wanted, shown=SHOWN)
        if dry_run or seen.is_empty:
            _show(seen, as_json, "forget", {"forgotten": False})
            if seen.is_empty:
                raise errors.NotFound(
                    "Nothing fits; nothing was forgotten. `backstory list` shows what there is."
                )
            return
        if not as_json:
            _show(seen, False, "forget")
        ask(yes, None, "Forget this? It can be undone.", "forgotten")
        with busy("forgetting"):
            done = forgetting.forget(db, wanted, now)
    if done is None:
        raise errors.NotFound("Nothing fits any more; another process was faster.")
    said = f"Forgotten: {_counts(done)}. To bring it back: backstory forget --undo {done.id}"
    if as_json:
        _show(seen, True, "forget", {"forgotten": True, **_plain(done)})
    else:
        click.echo(said)


@click.command()
@_conditions
@click.option("--everywhere", is_flag=True, help="Also out of backups, at once.")
def erase(ids: tuple[str, ...], yes: bool, dry_run: bool, everywhere: bool, **given: Any) -> None:
    """Remove memories for good.

    Single ones by ID, or all that fits every condition given. It shows first what it would be, and asks.
    Nothing of the text is left in the store, nor in the files beside it. Backups lose it as newer ones take
    their place, or with --everywhere at once. A whole project (--project alone) is erased with its documents
    and trees. Without any condition, it finishes what was interrupted."""
    from backstory.surfaces import erasing

    as_json: bool = given.pop("as_json")
    home = folder()
    with store() as (db, now):
        if not ids and not any(given.values()) and erasing.is_unfinished(home):
            with busy("finishing"):
                done = erasing.finish(home, db, now)
            return _tell_erased(home, None, done, as_json)
        wanted = _wanted(db, now, ids, given, hard=True)
        erase_all(db, home, now, wanted, yes=yes, dry_run=dry_run, everywhere=everywhere, as_json=as_json)


def erase_all(
    db: Connection,
    home: str,
    now: int,
    wanted: Conditions,
    *,
    yes: bool,
    dry_run: bool,
    everywhere: bool,
    as_json: bool,
) -> None:
    """Show what fits, ask, erase it, and say what became of it."""
    from backstory.surfaces import erasing

    _drain_all(db, home, now)
    with busy("looking"):
        seen = forgetting.preview(db, wanted, hard=True, shown=SHOWN)
    nothing = seen.is_empty and not everywhere and not erasing.is_unfinished(home)
    if dry_run or nothing:
        _show(seen, as_json, "erase", {"erased": False})
        if nothing:
            raise errors.NotFound("Nothing fits; nothing was erased. `backstory list` shows what there is.")
        return
    if not as_json:
        _show(seen, False, "erase")
        if seen.is_empty:
            click.echo("Nothing in the store fits; backups are looked at.")
    ask(yes, None, "Erase this for good? It cannot be undone.", "erased")
    trees = _trees(db, wanted)
    with busy("erasing"):
        seen, done = erasing.erase(home, db, wanted, now, everywhere=everywhere)
    for project, roots in trees:
        refresh_views(db, project, roots, now)
    _tell_erased(home, seen, done, as_json)


# --- what is wanted -----------------------------------------------------------------------------------------


def _no_conditions(given: dict[str, Any]) -> None:
    others = [name for name, value in given.items() if value and name != "project"]
    if others:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in others)
        raise errors.BadInput(f"an ID goes with no condition ({named}); give ids, or conditions")


def _wanted(
    db: Connection, now: int, ids: tuple[str, ...], given: dict[str, Any], *, hard: bool
) -> Conditions:
    if ids:
        _no_conditions(given)
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


def _drain_all(db: Connection, home: str, now: int) -> None:
    """What still waits in the spool holds the text as well."""
    from backstory.intake.drain import drain

    drain(db, paths.spool(home), now=now)


def _trees(db: Connection, wanted: Conditions) -> list[tuple[Any, list[str]]]:
    if not wanted.is_whole_project or wanted.project_id is None:
        return []
    project = projects.by_id(db, wanted.project_id)
    return [(project, [root.id for root in nodes.roots(db, project.number)])]


# --- by id --------------------------------------------------------------------------------------------------


def _forget(db: Connection, now: int, known: list[str], as_json: bool) -> None:
    for one in known:
        life.living(db, one)
    forgetting.forget(db, Conditions(ids=tuple(known)), now)
    found = [memory for one in known if (memory := memories.get(db, one, now))]
    plain = [{"done": "forgotten", **asdict(memory)} for memory in found]
    said = [f"Memory forgotten: {memory.id} (salience: {memory.salience:.2f})" for memory in found]
    output.answer(as_json, plain[0] if len(plain) == 1 else plain, "\n".join(said))


def _erase_one(db: Connection, now: int, known: str, yes: bool, as_json: bool) -> None:
    from backstory.surfaces import erasing

    if not yes and not sure(f"Remove {known} for good?"):
        raise errors.NotFound("Nothing was removed; --yes removes it without asking.")
    _, done = erasing.erase(folder(), db, Conditions(ids=(known,)), now)
    output.answer(as_json, {"id": known, "done": "erased"}, f"Memory erased: {known}")
    _complain_of_bytes(done)


# --- undoing ------------------------------------------------------------------------------------------------


def _list(as_json: bool) -> None:
    with store() as (db, _):
        found = forgetting.listed(db)
        roots = {project.id: project.name for project in projects.every(db)}
    if as_json:
        output.as_json([_plain(one) for one in found])
        return
    for one in found:
        click.echo(f"{one.id:>4}  {output.when(one.at)}  {_counts(one)}: {_said(one, roots)}")
    if not found:
        raise errors.NotFound("Nothing was forgotten that could be undone.")


def _undo(number: str, as_json: bool) -> None:
    if number != LAST and not number.isdecimal():
        raise errors.BadInput(f"{number!r} is no number; `backstory forget --list` shows them")
    with store() as (db, now), busy("bringing back"):
        done = forgetting.undo(db, now, None if number == LAST else int(number))
    output.answer(as_json, {"undone": True, **_plain(done)}, f"Brought back: {_counts(done)}")


def _said(one: Forgetting, names: dict[str, str]) -> str:
    wanted = one.conditions
    if wanted.is_retention:
        return f"retention, of before {output.when(wanted.before or 0)}"
    parts = list(wanted.ids[:3]) + [f"and {len(wanted.ids) - 3} more"] * (len(wanted.ids) > 3)
    parts += [f"project {names.get(wanted.project_id, wanted.project_id)}"] if wanted.project_id else []
    parts += [f"session {wanted.session_id}"] if wanted.session_id else []
    parts += [f"before {output.when(wanted.before)}"] if wanted.before else []
    parts += [f"with {wanted.match!r}"] if wanted.match else []
    parts += [f"of kind {wanted.kind}"] if wanted.kind else []
    return output.one_line(", ".join(parts) or "all projects")


def _plain(one: Forgetting) -> dict[str, Any]:
    plain = asdict(one)
    plain["conditions"] = {name: value for name, value in plain["conditions"].items() if value}
    del plain["erasing"]
    return plain


# --- what is told -------------------------------------------------------------------------------------------


def _counts(of: Forgetting | Preview) -> str:
    parts = [
        output.number_of(of.sessions, "session", "sessions"),
        output.number_of(of.turns, "turn", "turns"),
        output.number_of(of.memories, "other memory", "other memories"),
    ]
    return ", ".join(part for part in parts if not part.startswith("0 ")) or "nothing but what waits"


def _show(seen: Preview, as_json: bool, verb: str, also: dict[str, Any] | None = None) -> None:
    if as_json:
        plain = asdict(seen)
        names = ("id", "kind", "created_at", "text")
        plain["lines"] = [dict(zip(names, line, strict=True)) for line in seen.lines]
        output.as_json({**plain, "memories": seen.memories, **(also or {})})
        return
    if seen.is_empty:
        return
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in seen.kinds.items())
    click.echo(f"To {verb}: {_counts(seen)}{f' ({kinds})' if kinds else ''}")
    for what, number in (
        ("archived traces", seen.archived),
        ("documents", seen.documents),
        ("trees", seen.trees),
        ("texts told to a model", seen.tellings),
    ):
        if number:
            click.echo(f"To {verb}: {_many(number, what)}")
    for memory, kind, at, text in seen.lines:
        click.echo(f"  {memory}  {output.when(at)}  {kind:<10} {output.one_line(text, 100)}")
    if (more := seen.turns + seen.memories - len(seen.lines)) > 0:
        click.echo(f"  and {more:,} more")
    for what, number in seen.stays.items():
        hint = "; --all-projects covers that" if what.endswith("with the text") else ""
        click.echo(f"Stays: {_many(number, what)}{hint}")


def _many(number: int, what: str) -> str:
    one = {
        "memories": "memory",
        "traces": "trace",
        "documents": "document",
        "trees": "tree",
        "nodes": "node",
        "texts": "text",
    }
    words = what.split() if number != 1 else [one.get(word, word) for word in what.split()]
    return f"{number:,} {' '.join(words)}"


def _tell_erased(home: str, seen: Preview | None, done: Any, as_json: bool) -> None:
    rotating = [one for one in done.holding if one.reason == "daily"]
    last = backup.last_day(home, rotating, done.at) if rotating else None
    if as_json:
        output.as_json(
            {
                "erased": True,
                "sessions": seen.sessions if seen else 0,
                "turns": seen.turns if seen else 0,
                "memories": seen.memories if seen else done.memories,
                "holding": [one.path for one in done.holding],
                "held_until": last,
                "rewritten": done.changed,
                "left": [{"path": path, "why": why} for path, why in done.left],
                "unfinished": not done.is_clean,
            }
        )
    else:
        click.echo(
            f"Erased: {_counts(seen) if seen else output.number_of(done.memories, 'memory', 'memories')}"
        )
        for path in done.changed:
            click.echo(f"Backup without it: {output.visible(path)}")
        for one in done.holding:
            stays = {"daily": "", "set aside": " (set aside: yours to delete)"}
            until = stays.get(one.reason, " (until newer ones of its kind are made, or you delete it)")
            click.echo(f"Still holds it: {output.visible(one.path)}{until}")
        if last:
            click.echo(f"With a backup every day, the last daily one is removed on {output.when(last)[:10]}.")
        if done.holding:
            click.echo("To take it out of backups now: the same command with --everywhere")
        for path, why in done.left:
            click.echo(f"Left: {output.visible(path)}: {output.visible(why)}")
    _complain_of_bytes(done)


def _complain_of_bytes(done: Any) -> None:
    if not done.is_clean:
        raise errors.NotFound(
            "another process was reading the store: old text may be left in the file;"
            " `backstory erase` clears it"
        )


COMMANDS = (forget, erase)
