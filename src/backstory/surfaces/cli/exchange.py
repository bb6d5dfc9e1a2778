"""`backstory export` and `backstory import`: what is remembered, as a file, and back."""

from __future__ import annotations

import hashlib
import io
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import IO, TYPE_CHECKING, Any

import click

from backstory import errors, paths
from backstory.clients import claude_code
from backstory.store import exchange, projects
from backstory.store.exchange import Chosen
from backstory.store.file.backup import MAGIC
from backstory.store.file.connection import Connection
from backstory.surfaces.cli.common import (
    FOLDER,
    bar,
    moment,
    new_path,
    prints,
    refresh_views,
    standard_input,
    store,
    typed,
)
from backstory.surfaces.shapes import Reply, Shown, counted, done, number_of, one_line, plain
from backstory.whole_file import whole_file

if TYPE_CHECKING:
    from backstory.intake.imports import Import
    from backstory.store.exchange import Merge

WORDS = {
    "project": ("project", "projects"),
    "checkout": ("folder", "folders"),
    "session": ("session", "sessions"),
    "memory": ("memory", "memories"),
    "archived": ("archived trace", "archived traces"),
    "relation": ("relation", "relations"),
    "document": ("document", "documents"),
    "node": ("tree node", "tree nodes"),
}
CLAUDE_MEM = "~/.claude-mem/claude-mem.db"
SHOWN = 10


@click.command()
@click.argument("file", required=False, default="-")
@click.option(
    "--project",
    metavar="DIR",
    type=FOLDER,
    help="Only the project of this folder.  [default: everything]",
)
@click.option("--since", metavar="WHEN", help="Only what came or changed after: 2026-11-15, today, 7d.")
@click.option("--without-turns", is_flag=True, help="Without what you asked and what was answered.")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@prints
def export(
    file: str, project: str | None, since: str | None, without_turns: bool, force: bool
) -> Reply | None:
    """Write what is remembered to a file, as JSON Lines.

    Without FILE, or with `-`, to standard output. It is all that there is, unless --project names the folder
    of one project. `backstory import FILE` takes it in again, here or on another machine. What is computed
    (vectors, the keyword index) is not in it. The file is for you alone: it says all that your sessions
    said."""
    if file == "-" and sys.stdout.isatty():
        raise errors.BadInput("an export is no text for a terminal; name a file: backstory export FILE")
    with store() as (db, now):
        here = projects.at(db, paths.place(project)) if project else None
        if project and here is None:
            raise errors.NotFound(
                f"nothing is remembered of {project}; `backstory sessions` shows what there is"
            )
        at = moment(typed([since]), now) if since else None
        chosen = Chosen(here.id if here else None, at, not without_turns)
        with _target(file, force) as target, bar("exporting", exchange.total(db)) as step:
            counts = _write(db, chosen, target, step)
    if file == "-":
        return None
    every = counted(*((counts[name], *WORDS[name]) for name in WORDS))
    sentence = f"Exported to {file}: {every or 'nothing is remembered yet'}"
    return done(sentence, file=os.path.abspath(file), counts=counts)


def _write(db: Connection, chosen: Chosen, target: IO[bytes], step: Callable[[int], None]) -> Counter[str]:
    from backstory.intake.imports import header, trailer

    counts: Counter[str] = Counter()
    digest = hashlib.sha256()

    def put(line: dict[str, Any]) -> None:
        raw = exchange.encode(line)
        digest.update(raw)
        target.write(raw)

    put(header(chosen, f"backstory {version('backstory')}"))
    for line in exchange.export(db, chosen):
        put(line)
        counts[line["type"]] += 1
        step(1)
    put(trailer(counts, digest.hexdigest()))
    return counts


@contextmanager
def _target(file: str, force: bool) -> Iterator[IO[bytes]]:
    """Where the lines go: a file for its owner alone."""
    if file == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(new_path(file, force), replaces=force, mode=0o600) as made:
        yield made


@click.command("import")
@click.argument("file", required=False)
@click.option(
    "--claude-mem", is_flag=True, help="FILE is a database of claude-mem.  [default: the one in your home]"
)
@click.option(
    "--memory-md",
    is_flag=True,
    help="FILE is a folder with Claude Code's MEMORY.md.  [default: this project's]",
)
@click.option("--dry-run", is_flag=True, help="Only check it, and say what would come of it.")
@click.option(
    "--attach/--no-attach",
    default=None,
    help="Whether folders and repositories that the file names are its projects' here.  [default: only where"
    " nothing is remembered yet]",
)
@click.option(
    "--project",
    default=".",
    metavar="DIR",
    type=FOLDER,
    help="With --memory-md: whose notes these are.  [default: the current folder]",
)
@prints
def import_(
    file: str | None, claude_mem: bool, memory_md: bool, dry_run: bool, attach: bool | None, project: str
) -> Reply:
    """Take in what `backstory export` wrote, or other memories.

    `-` reads standard input. The whole file is checked first; if a line is wrong, it is named and nothing is
    imported. What is here already stays, unless the file has it newer. --dry-run shows what would come of it.

    `backstory import --claude-mem` takes in the database of claude-mem, `backstory import --memory-md` what
    Claude Code noted about this project in its MEMORY.md.

    Import only files that you trust: what they say is told to your agent as your memory."""
    if claude_mem and memory_md:
        raise errors.BadInput(
            "--claude-mem and --memory-md are two different things; import one, then the other"
        )
    if memory_md:
        return _memory_md(file, project, dry_run)
    if file is None and not claude_mem:
        raise errors.BadInput("name the file to import: backstory import FILE")
    path = os.path.expanduser(CLAUDE_MEM) if file is None else file
    with _source(path) as source:
        is_database = source.peek(16).startswith(MAGIC)
        if claude_mem and not is_database:
            raise errors.BadInput(f"{path} is no SQLite database; name claude-mem's claude-mem.db")
        with store() as (db, now):
            if is_database:
                imported = _claude_mem(db, path, dry_run)
            else:
                imported = _lines(db, source, path, attach, dry_run)
            if not dry_run:
                for project_id, root_id in imported.merge.trees_changed:
                    refresh_views(db, projects.by_id(db, project_id), [root_id], now)
    return _reply(imported, path, dry_run, is_foreign=is_database)


@contextmanager
def _source(path: str) -> Iterator[io.BufferedReader]:
    if path == "-":
        yield standard_input()
        return
    try:
        source = open(path, "rb")  # noqa: SIM115  closed below
    except OSError as error:
        raise errors.NotFound(f"{path} cannot be read ({error.strerror}); name a file to import") from error
    with source:
        yield source


def _lines(db: Connection, source: IO[bytes], path: str, attach: bool | None, dry_run: bool) -> Import:
    from backstory.intake.imports import import_lines, read_lines

    named = "standard input" if path == "-" else path
    size = os.path.getsize(path) if os.path.isfile(path) else None
    problems: list[str] = []
    with bar("checking" if dry_run else "importing", size) as step:
        lines = read_lines(source, problems, step)
        return import_lines(db, lines, attach=attach, dry_run=dry_run, problems=problems, named=named)


def _claude_mem(db: Connection, path: str, dry_run: bool) -> Import:
    from backstory.intake import claude_mem
    from backstory.intake.imports import import_lines
    from backstory.store.claude_mem import opened

    with opened(os.path.abspath(path)) as foreign, bar("importing", None):
        return import_lines(db, claude_mem.lines(foreign), attach=False, dry_run=dry_run, named=path)


def _memory_md(folder: str | None, project: str, dry_run: bool) -> Reply:
    from backstory.intake.memory_md import take_in

    chosen = folder or _claude_memory(project)
    with store() as (db, now):
        taken = take_in(db, chosen, project, now=now, dry_run=dry_run)
    begun, files = "Would import" if dry_run else "Imported", number_of(taken.files, "file", "files")
    notes = f"{number_of(taken.new, 'new note', 'new notes')}, {taken.known:,} known already"
    sentences = [f"{begun} {files} of {chosen}: {notes}", *(f"Not read: {why}" for why in taken.skipped)]
    return Reply({"dry_run": dry_run, "folder": chosen, **plain(taken)}, sentences)


def _claude_memory(project: str) -> str:
    config = claude_code.config_folder(os.environ)
    if config is None:
        raise errors.NotFound(
            f"{claude_code.CONFIG_DIR}, or HOME where that is not set, is no absolute path, so where Claude"
            " Code keeps its notes is not known; name the folder: backstory import --memory-md FOLDER"
        )
    started_in = dict.fromkeys((os.path.abspath(project), os.path.realpath(project), paths.checkout(project)))
    usual = [claude_code.memory_folder(config, place) for place in started_in]
    return next(filter(os.path.isdir, usual), usual[0])


def _reply(imported: Import, path: str, dry_run: bool, *, is_foreign: bool) -> Reply:
    merge = imported.merge
    owners = [
        {"id": one, "name": name, "is": merge.matched[one], "memories": merge.memories[one]}
        for one, name in merge.names.items()
    ]
    value = {
        "dry_run": dry_run,
        "counts": imported.counts,
        "projects": owners,
        "attached": merge.attached,
        "not_attached": merge.unattached,
        "of_other_projects": merge.taken,
        "trees_left": merge.trees_left,
        "redacted": imported.redacted,
    }
    begun = f"{'Would be imported' if dry_run else 'Imported'} from {path}:"
    return Reply(value, [begun, *_counts(imported), *_owners(merge), *_left(imported, is_foreign, dry_run)])


def _counts(imported: Import) -> Iterator[Shown]:
    for name, counts in imported.counts.items():
        each = [f"{counts[what]:,} {what}" for what in ("new", "changed", "known", "left") if what in counts]
        yield f"  {WORDS[name][1] + ':':<17}{', '.join(each)}"


def _owners(merge: Merge) -> Iterator[Shown]:
    for one in [one for one in merge.names if merge.memories[one]][:SHOWN]:
        number = number_of(merge.memories[one], "memory", "memories")
        is_global = one == projects.GLOBAL
        where = "told in every project" if is_global else f"this project is {merge.matched[one]}"
        yield f"  {number} of {one_line(merge.names[one], 60)}: {where}"
    yield from _folders("Attached, so that its memories are told there", merge.attached)
    yield from _folders("Not attached: another project has it here", merge.taken)
    yield from _folders("Not attached, as a file may name any folder", merge.unattached)
    if merge.unattached:
        yield "  If it is your own: import it with --attach, or backstory projects attach DIR --to PROJECT"


def _left(imported: Import, is_foreign: bool, dry_run: bool) -> Iterator[Shown]:
    """What was not taken in as it stands in the file, and what to do about that."""
    if is_foreign and exchange.NEW in imported.merge.matched.values():
        yield (
            "claude-mem does not say where its projects lie. To have one told in its folder:"
            " backstory projects attach DIR --to PROJECT, or backstory projects merge"
        )
    for root in imported.merge.trees_left:
        yield f"Left as it is here: the tree {root}; both have nodes that the other has not"
    if imported.redacted:
        lines = number_of(imported.redacted, "line", "lines")
        yield f"Something private or secret was left out of {lines}"
    if dry_run:
        yield "Nothing was changed."


def _folders(what: str, folders: list[str]) -> Iterator[Shown]:
    for folder in folders[:SHOWN]:
        yield f"{what}: {folder}"
    if len(folders) > SHOWN:
        yield f"  and {len(folders) - SHOWN:,} more; --json lists all"
