"""`backstory projects`: which there are, and what a person says about them: this folder is that one, these
two are one, these sessions belong elsewhere."""

from __future__ import annotations

import os

import click

from backstory import errors, paths
from backstory.model import Project, ProjectOverview
from backstory.store import forgetting, moving, sessions
from backstory.store import projects as stored
from backstory.store.file.connection import Connection, transaction
from backstory.store.forgetting import Conditions
from backstory.surfaces.cli import common, forget, pausing
from backstory.surfaces.cli.common import named, prints, store, typed
from backstory.surfaces.shapes import (
    Column,
    Line,
    Reply,
    counted,
    done,
    lately,
    listing,
    number_of,
    one_line,
    plain,
    size,
)

LONGEST_NAME = 100
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
PROJECT = "its name, the beginning of its id, or a folder of it"


@click.group(invoke_without_command=True)
@click.pass_context
@prints
def projects(context: click.Context) -> Reply | None:
    """List projects, and say what belongs to which.

    A repository is known by its root commits and its remote, so it keeps its memory when it is moved or
    cloned. Everything else can be said here. PROJECT is a name, the beginning of an id, or a folder."""
    return None if context.invoked_subcommand else _list()


@projects.command("list")
@prints
def list_projects() -> Reply:
    """List the projects, the latest used first."""
    return _list()


def _list() -> Reply:
    with store() as (db, now):
        place = paths.place(".")
        every, may_be, here = stored.overview(db), stored.claimed(db, place), stored.at(db, place)
        none = "" if every else common.nothing(db, "No projects yet. They appear with the first session.")
    here_id = here.id if here else ""
    columns = (
        Column("project", lambda one: one_line(one.name, 30) + (" *" if one.id == here_id else "")),
        Column("id"),
        Column("sessions", right=True, gives_way=4),
        Column("turns", right=True, gives_way=2),
        Column("memories", right=True),
        Column("size", lambda one: _size(one.bytes), right=True, gives_way=1),
        Column("last used", lambda one: lately(one.last_used, now), gives_way=3),
        Column("folders", lambda one: _folders(one, place.root if one.id == here_id else ""), least=20),
    )
    notes = [common.may_be_this(one, here) for one in may_be[:3]] if every else []
    legend = [Line((("* this folder", "dim"),))] if here else []
    return listing(every, columns, *legend, none=none, notes=notes)


def _size(of_bytes: int) -> str:
    return size(of_bytes) if of_bytes > 100_000 else f"{of_bytes / 1000:.1f} kB"


def _folders(one: ProjectOverview, here: str) -> str:
    """What tells folders apart stands at their ends."""
    folders = list(dict.fromkeys([*([here] if here else []), *one.paths]))
    home = os.path.expanduser("~")
    shown = []
    for path in folders[:3]:
        short = f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path
        shown.append(("" if os.path.isdir(path) else "gone: ") + one_line(short, 80))
    more = [f"and {len(folders) - 3} more"] if len(folders) > 3 else []
    return ", ".join([*(["paused"] if one.paused_at else []), *shown, *more])


@projects.command()
@click.argument("source", metavar="PROJECT")
@click.argument("target", metavar="INTO")
@yes_option
@prints
def merge(source: str, target: str, yes: bool) -> Reply:
    """Make PROJECT a part of INTO, with its sessions, memories, trees, documents and folders.

    Ids stay as they are. A tree whose name is taken there gets a number. To take them apart again, split."""
    with store() as (db, _):
        one, other = named(db, source), named(db, target)
        if one.id == other.id:
            raise errors.BadInput("both are the same project; `backstory projects` lists the others")
        becomes = f"will be part of {other.name} ({other.id})"
        common.ask(yes, f"{one.name} ({one.id}) {becomes}: {_counts(db, one)}.", "Go on?", "merged")
        with common.busy("merging"), transaction(db):
            moving.merge(db, one.id, other.id, said_by="user")
        pausing.refresh(common.folder(), db)
    sentence = f"{one.name} ({one.id}) is part of {other.name} ({other.id}) now"
    return done(sentence, merged=one.id, into=other.id)


@projects.command()
@click.argument("chosen", metavar="[SESSION]...", nargs=-1)
@click.option("--to", "target", metavar="PROJECT", help=f"Where they go: {PROJECT}.")
@click.option("--new", "name", metavar="NAME", help="Where they go: to a new project of this name.")
@click.option("--under", metavar="DIR", help="The sessions that worked in this folder or below it.")
@yes_option
@prints
def split(
    chosen: tuple[str, ...], target: str | None, name: str | None, under: str | None, yes: bool
) -> Reply:
    """Move sessions to another project, with what was made in them: by their ids, or by the folder."""
    if (target is None) == (name is None):
        raise errors.BadInput("say where they go: --to PROJECT, or --new NAME")
    if not chosen and under is None:
        raise errors.BadInput(
            "say which sessions: their ids, or --under DIR; `backstory sessions` lists them"
        )
    root = os.path.abspath(under) if under is not None else ""
    with store() as (db, now):
        ids = [common.session_id(db, one) for one in chosen]
        ids = list(dict.fromkeys([*ids, *(sessions.under(db, root) if root else [])]))
        if not ids:
            raise errors.NotFound(f"No session worked in {under}; `backstory sessions` lists what there is.")
        other = named(db, target) if target else None
        called = other.name if other else name or ""
        count = number_of(len(ids), "session", "sessions")
        common.ask(yes, f"{count}, with turns and memories, will be of {called}.", "Go on?", "moved")
        with transaction(db):
            to = other.id if other else stored.create(db, _name(called), root, now)
            moving.move_sessions(db, ids, to)
            if root:
                stored.attach_below(db, root, to)
        pausing.refresh(common.folder(), db)
    return done(f"{count} moved to {called} ({to})", moved=ids, to=to)


@projects.command()
@click.argument("project", metavar="PROJECT")
@click.argument("name", metavar="NAME")
@prints
def rename(project: str, name: str) -> Reply:
    """Give a project another name. That is for people: what belongs to it stays."""
    with store() as (db, _):
        one = named(db, project)
        with transaction(db):
            stored.rename(db, one.id, new := _name(name))
    return done(f"{one.id} is called {new} now", id=one.id, name=new)


@projects.command()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(exists=True, file_okay=False))
@click.option("--to", "target", metavar="PROJECT", help=f"Which project it is: {PROJECT}.")
@yes_option
@prints
def attach(folder: str, target: str | None, yes: bool) -> Reply:
    """Say that a folder is a project: one that was moved without git, a copy, a fork, a shallow clone.

    Without --to it is the one with the same remote, or with the same name whose folder is gone. From then on
    every session in the folder starts with the memory of that project and adds to it. What the folder itself
    has gathered stays where it is: merge."""
    place = paths.place(folder)
    with store() as (db, now):
        one = named(db, target) if target else _claimed(db, place)
        previous, about = stored.at(db, place), stored.overview(db)
        if previous and previous.id == one.id:
            return done(f"{place.root} is {one.name} already", attached=place.root, to=one.id)
        warning = (
            f"{place.root} will see and add to the memory of {one.name} ({one.id}, {one.root}). Do that only"
            " for a folder whose files you trust: what they say can ask the model for that memory."
        )
        common.ask(yes, warning, "Attach it?", "attached")
        with transaction(db):
            stored.attach(db, place, one.id, now, said_by="user")
        pausing.refresh(common.folder(), db)
    sentence = f"{place.root} is {one.name} from now on"
    if previous and any(row.id == previous.id and row.paths == (place.root,) for row in about):
        sentence += f"; what it had is in {previous.id}: backstory projects merge {previous.id} {one.id}"
    return done(sentence, attached=place.root, to=one.id)


@projects.command()
@click.argument("project", metavar="PROJECT")
@click.option("--everywhere", is_flag=True, help="Also out of backups, at once.")
@click.option("--dry-run", is_flag=True, help="Only show what it would be.")
@yes_option
@prints
def delete(project: str, everywhere: bool, dry_run: bool, yes: bool) -> Reply:
    """Erase a project for good: its sessions, memories, trees and documents, and that there was one.

    It shows first what there is, and asks. What is in the folder itself stays as it is."""
    from backstory.surfaces import erasing

    home = common.folder()
    with store() as (db, now):
        one = named(db, project)
        wanted = Conditions(project_id=one.id)
        if not yes:
            common.tell(f"{one.name} ({one.id}) of {one.root or 'no folder'}")
        erased = Reply({"erased": True})
        if not forgetting.preview(db, wanted, hard=True).is_empty or everywhere or dry_run:
            erased = forget.erase_all(db, home, now, wanted, yes=yes, dry_run=dry_run, everywhere=everywhere)
            if dry_run or erased.no:
                return erased
        else:
            common.ask(yes, "It is empty, and will be deleted.", "Go on?", "deleted")
        erasing.erase_project(home, db, one.id, now)
        pausing.refresh(home, db)
    value = {**plain(erased.value), "deleted": one.id}
    return Reply(value, [*erased.shown, f"{one.name} ({one.id}) is deleted"])


all_option = click.option("--all", "is_all", is_flag=True, help="Every project, also new ones.")


@click.command()
@click.option("--project", metavar="PROJECT", help=f"Which one: {PROJECT}.  [default: this folder]")
@all_option
@prints
def pause(project: str | None, is_all: bool) -> Reply:
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
    name, end = (one.name, "") if one else ("everything", " --all")
    sentence = f"{name} is paused: nothing that happens is kept until `backstory resume{end}`"
    return done(sentence, id=one.id if one else None, paused=True)


@click.command()
@click.option("--project", metavar="PROJECT", help=f"Which one: {PROJECT}.  [default: this folder]")
@click.option(
    "--all", "is_all", is_flag=True, help="Everything, also projects that were paused on their own."
)
@prints
def resume(project: str | None, is_all: bool) -> Reply:
    """Keep again what happens in a project.

    After `pause --all` nothing is kept anywhere until `resume --all`, which resumes everything: also projects
    that were paused on their own."""
    home = common.folder()
    with store() as (db, now):
        one = _paused_one(db, project, is_all)
        pausing.resume(home, db, one.id if one else None, now)
        left = pausing.sentence(db, one.id) if one else None
    sentence = left or f"{one.name if one else 'everything'} is kept again"
    return done(sentence, id=one.id if one else None, paused=bool(left))


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
    counts = counted(
        (about.sessions, "session", "sessions"),
        (about.turns, "turn", "turns"),
        (about.memories, "memory", "memories"),
        (about.traces, "trace", "traces"),
        (about.documents, "document", "documents"),
        (about.trees, "tree", "trees"),
    )
    return counts or "nothing is in it"
