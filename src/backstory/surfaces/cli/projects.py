"""`backstory projects`: which there are, and what a person says about them: this folder is that one, these
two are one, these sessions belong elsewhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict

import click

from backstory import errors, paths
from backstory.model import Project, ProjectOverview
from backstory.store import forgetting, moving, sessions
from backstory.store import projects as stored
from backstory.store.file.connection import Connection, transaction
from backstory.store.forgetting import Conditions
from backstory.surfaces.cli import common, forget, output, pausing
from backstory.surfaces.cli.common import json_option, named, store, typed

LONGEST_NAME = 100
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
PROJECT = "its name, the beginning of its id, or a folder of it"


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def projects(context: click.Context, as_json: bool) -> None:
    """List projects, and say what belongs to which.

    A repository is known by its root commits and its remote, so it keeps its memory when it is moved or
    cloned. Everything else can be said here. PROJECT is a name, the beginning of an id, or a folder."""
    if context.invoked_subcommand is None:
        _list(as_json)


@projects.command("list")
@json_option
def listing(as_json: bool) -> None:
    """List the projects, the latest used first."""
    _list(as_json)


def _list(as_json: bool) -> None:
    from backstory.surfaces.cli import terminal

    with store() as (db, now):
        place = paths.place(".")
        found, may_be, here = stored.overview(db), stored.claimed(db, place), stored.at(db, place)
        none = "" if found else common.nothing(db, "No projects yet. They appear with the first session.")
    if as_json:
        return output.as_json([asdict(one) for one in found])
    if not found:
        raise errors.NotFound(none)
    rows = [
        {
            "project": output.one_line(one.name, 30) + (" *" if here and one.id == here.id else ""),
            "id": one.id,
            "sessions": f"{one.sessions:,}",
            "memories": f"{one.turns + one.memories:,}",  # as `backstory sessions` counts them
            "size": output.size(one.bytes) if one.bytes > 100_000 else f"{one.bytes / 1000:.1f} kB",
            "last used": output.lately(one.last_used, now),
            "folders": _paths(one, place.root if here and one.id == here.id else ""),
        }
        for one in found
    ]
    right = {"sessions", "memories", "size"}
    terminal.table(terminal.console(), rows, right, ("size", "sessions", "last used"), last=20)
    if here:
        click.echo("* this folder", err=True)
    for one in may_be[:3]:
        click.echo(common.may_be_this(one, here), err=True)
    return None


def _paths(one: ProjectOverview, here: str) -> str:
    """What tells folders apart stands at their ends."""
    folders = list(dict.fromkeys([*([here] if here else []), *one.paths]))
    home = os.path.expanduser("~")
    shown = []
    for path in folders[:3]:
        short = f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path
        shown.append(("" if os.path.isdir(path) else "gone: ") + output.one_line(short, 80))
    more = [f"and {len(folders) - 3} more"] if len(folders) > 3 else []
    paused = ["paused"] if one.paused_at else []
    return ", ".join([*paused, *shown, *more]) or "-"


@projects.command()
@click.argument("source", metavar="PROJECT")
@click.argument("target", metavar="INTO")
@yes_option
@json_option
def merge(source: str, target: str, yes: bool, as_json: bool) -> None:
    """Make PROJECT a part of INTO, with its sessions, memories, trees, documents and folders.

    Ids stay as they are. A tree whose name is taken there gets a number. To take them apart again, split."""
    with store() as (db, _):
        one, other = named(db, source), named(db, target)
        if one.id == other.id:
            raise errors.BadInput("both are the same project; `backstory projects` lists the others")
        becomes = f"will be part of {output.visible(other.name)} ({other.id})"
        told = f"{output.visible(one.name)} ({one.id}) {becomes}: {_counts(db, one)}."
        common.ask(yes, told, "Go on?", "merged")
        with common.busy("merging"), transaction(db):
            moving.merge(db, one.id, other.id, said_by="user")
        pausing.refresh(common.folder(), db)
    said = f"{output.visible(one.name)} ({one.id}) is part of {output.visible(other.name)} ({other.id}) now"
    output.answer(as_json, {"merged": one.id, "into": other.id}, said)


@projects.command()
@click.argument("chosen", metavar="[SESSION]...", nargs=-1)
@click.option("--to", "target", metavar="PROJECT", help=f"Where they go: {PROJECT}.")
@click.option("--new", "name", metavar="NAME", help="Where they go: to a new project of this name.")
@click.option("--under", metavar="DIR", help="The sessions that worked in this folder or below it.")
@yes_option
@json_option
def split(
    chosen: tuple[str, ...], target: str | None, name: str | None, under: str | None, yes: bool, as_json: bool
) -> None:
    """Move sessions to another project, with what was made in them: by their ids, or by the folder."""
    if (target is None) == (name is None):
        raise errors.BadInput("say where they go: --to PROJECT, or --new NAME")
    if not chosen and under is None:
        raise errors.BadInput(
            "say which sessions: their ids, or --under DIR; `backstory sessions` lists them"
        )
    with store() as (db, now):
        ids = [common.session_id(db, one) for one in chosen]
        if under is not None:
            ids += sessions.under(db, os.path.abspath(under))
        ids = list(dict.fromkeys(ids))
        if not ids:
            raise errors.NotFound(f"No session worked in {under}; `backstory sessions` lists what there is.")
        other = named(db, target) if target else None
        called = output.visible(other.name if other else name or "")
        count = output.number_of(len(ids), "session", "sessions")
        common.ask(yes, f"{count}, with turns and memories, will be of {called}.", "Go on?", "moved")
        with transaction(db):
            root = os.path.abspath(under) if under else ""
            to = other.id if other else stored.create(db, _name(name or ""), root, now)
            moving.move_sessions(db, ids, to)
            if under is not None:
                stored.attach_below(db, os.path.abspath(under), to)
        pausing.refresh(common.folder(), db)
    output.answer(as_json, {"moved": ids, "to": to}, f"{count} moved to {called} ({to})")


@projects.command()
@click.argument("project", metavar="PROJECT")
@click.argument("name", metavar="NAME")
@json_option
def rename(project: str, name: str, as_json: bool) -> None:
    """Give a project another name. That is for people: what belongs to it stays."""
    with store() as (db, _):
        one = named(db, project)
        with transaction(db):
            stored.rename(db, one.id, new := _name(name))
    output.answer(as_json, {"id": one.id, "name": new}, f"{one.id} is called {output.visible(new)} now")


@projects.command()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(exists=True, file_okay=False))
@click.option("--to", "target", metavar="PROJECT", help=f"Which project it is: {PROJECT}.")
@yes_option
@json_option
def attach(folder: str, target: str | None, yes: bool, as_json: bool) -> None:
    """Say that a folder is a project: one that was moved without git, a copy, a fork, a shallow clone.

    Without --to it is the one with the same remote, or with the same name whose folder is gone. From then on
    every session in the folder starts with the memory of that project and adds to it. What the folder itself
    has gathered stays where it is: merge."""
    place = paths.place(folder)
    with store() as (db, now):
        one = named(db, target) if target else _claimed(db, place)
        now_of, about = stored.at(db, place), stored.overview(db)
        if now_of and now_of.id == one.id:
            said = f"{output.visible(place.root)} is {output.visible(one.name)} already"
            return output.answer(as_json, {"attached": place.root, "to": one.id}, said)
        told = (
            f"{output.visible(place.root)} will see and add to the memory of {output.visible(one.name)}"
            f" ({one.id}, {output.visible(one.root)}). Do that only for a folder whose files you trust:"
            " what they say can ask the model for that memory."
        )
        common.ask(yes, told, "Attach it?", "attached")
        with transaction(db):
            stored.attach(db, place, one.id, now, said_by="user")
        pausing.refresh(common.folder(), db)
    alone = [row for row in about if now_of and row.id == now_of.id and row.paths == (place.root,)]
    left = (
        f"; what it had is in {alone[0].id}: backstory projects merge {alone[0].id} {one.id}" if alone else ""
    )
    said = f"{output.visible(place.root)} is {output.visible(one.name)} from now on{left}"
    return output.answer(as_json, {"attached": place.root, "to": one.id}, said)


@projects.command()
@click.argument("project", metavar="PROJECT")
@click.option("--everywhere", is_flag=True, help="Also out of backups, at once.")
@click.option("--dry-run", is_flag=True, help="Only show what it would be.")
@yes_option
@json_option
def delete(project: str, everywhere: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Erase a project for good: its sessions, memories, trees and documents, and that there was one.

    It shows first what there is, and asks. What is in the folder itself stays as it is."""
    from backstory.surfaces import erasing

    home = common.folder()
    with store() as (db, now):
        one = named(db, project)
        wanted = Conditions(project_id=one.id)
        if not yes and not as_json:
            click.echo(f"{output.visible(one.name)} ({one.id}) of {output.visible(one.root) or 'no folder'}")
        how = {"yes": yes, "dry_run": dry_run, "everywhere": everywhere, "as_json": as_json}
        if not forgetting.preview(db, wanted, hard=True).is_empty or everywhere or dry_run:
            forget.erase_all(db, home, now, wanted, **how)
        else:
            common.ask(yes, "It is empty, and will be deleted.", "Go on?", "deleted")
        if not dry_run:
            erasing.erase_project(home, db, one.id, now)
            pausing.refresh(home, db)
            said = f"{output.visible(one.name)} ({one.id}) is deleted"
            click.echo(said, err=as_json)


all_option = click.option("--all", "is_all", is_flag=True, help="Every project, also new ones.")


@click.command()
@click.option("--project", metavar="PROJECT", help=f"Which one: {PROJECT}.  [default: this folder]")
@all_option
@json_option
def pause(project: str | None, is_all: bool, as_json: bool) -> None:
    """Keep nothing of what happens in a project, until `resume`.

    Hooks drop what Claude Code hands them, and `backstory backfill` leaves that time out. What is known
    stays, and is found; `backstory add` still keeps a note. --all ends with `resume --all`, which also
    resumes projects that were paused on their own."""
    home = common.folder()
    with store() as (db, now):
        if not is_all and os.path.isdir(project or "."):  # it may be new
            with transaction(db):
                stored.ensure(db, paths.place(project or "."), now)
        one = _paused_one(db, project, is_all)
        pausing.pause(home, db, one.id if one else None, now)
    name = output.visible(one.name) if one else "everything"
    end = "backstory resume" + ("" if one else " --all")
    said = f"{name} is paused: nothing that happens is kept until `{end}`"
    output.answer(as_json, {"id": one.id if one else None, "paused": True}, said)


@click.command()
@click.option("--project", metavar="PROJECT", help=f"Which one: {PROJECT}.  [default: this folder]")
@click.option(
    "--all", "is_all", is_flag=True, help="Everything, also projects that were paused on their own."
)
@json_option
def resume(project: str | None, is_all: bool, as_json: bool) -> None:
    """Keep again what happens in a project.

    After `pause --all` nothing is kept anywhere until `resume --all`, which resumes everything: also projects
    that were paused on their own."""
    home = common.folder()
    with store() as (db, now):
        one = _paused_one(db, project, is_all)
        pausing.resume(home, db, one.id if one else None, now)
        left = pausing.sentence(db, one.id) if one else None
    said = f"{output.visible(one.name) if one else 'everything'} is kept again"
    output.answer(as_json, {"id": one.id if one else None, "paused": bool(left)}, left or said)


def _paused_one(db: Connection, project: str | None, is_all: bool) -> Project | None:
    if is_all and project:
        raise errors.BadInput("--project and --all contradict each other; give one of them")
    return None if is_all else named(db, project or ".")


def _claimed(db: Connection, place: paths.Place) -> Project:
    found = stored.claimed(db, place)
    if len(found) == 1:
        return found[0]
    ids = ", ".join(one.id for one in found)
    why = f"it may be any of {ids}" if found else "no project has its remote, or had its name and is gone"
    raise errors.BadInput(f"{why}; say which one this folder is: --to PROJECT")


def _name(name: str) -> str:
    name = " ".join(typed([name]).split())
    if not name or len(name) > LONGEST_NAME:
        raise errors.BadInput(f"a name has 1 to {LONGEST_NAME} characters")
    return name


def _counts(db: Connection, one: Project) -> str:
    (about,) = (row for row in stored.overview(db) if row.id == one.id)
    names: Sequence[tuple[str, str]] = (
        ("sessions", "session"),
        ("turns", "turn"),
        ("memories", "memory"),
        ("traces", "trace"),
        ("documents", "document"),
        ("trees", "tree"),
    )
    counted = [
        output.number_of(count, single, many) for many, single in names if (count := getattr(about, many))
    ]
    return ", ".join(counted) or "nothing is in it"
