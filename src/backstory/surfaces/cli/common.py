"""What several commands share: their options, the store, and names typed by hand."""

from __future__ import annotations

import io
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from typing import Any

import click

from backstory import errors, paths
from backstory.model import Project, now_ms
from backstory.store import memories, projects, sessions
from backstory.store.file import backup, disk, older
from backstory.store.file.connection import Connection
from backstory.store.open import open_store
from backstory.surfaces import shapes
from backstory.surfaces.cli import output
from backstory.surfaces.shapes import Raw, Reply, Shown

BUSY_AFTER = 1.0  # seconds
FILL_SECONDS = 1.0  # what a search at the terminal may spend on making vectors first

_FOR_A_SCRIPT = "backstory --json"


def prints(command: Callable[..., Reply | None]) -> Callable[..., None]:
    """A command with `--json`, which returns what there is to say; None where all is printed."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
    @wraps(command)
    def run(*args: object, as_json: bool, **given: object) -> None:
        click.get_current_context().meta[_FOR_A_SCRIPT] = as_json
        reply = command(*args, **given)
        if reply is not None:
            show(reply)

    return run


def show(reply: Reply) -> None:
    if is_script():
        click.echo(shapes.to_json(reply.value))
    else:
        tell(*reply.shown)
    for note in reply.notes:
        click.echo(output.visible(note), err=True)
    if reply.no:
        raise errors.NotFound(reply.no)


def is_script() -> bool:
    """Whether a script reads this, which is asked nothing and gets one JSON."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_FOR_A_SCRIPT))


def tell(*shown: Shown) -> None:
    """To a person, at once. What is asked next is about it; a script gets the reply alone."""
    if is_script():
        return
    if sys.stdout.isatty():
        from backstory.surfaces.cli import terminal

        terminal.tell(shown)
        return
    for one in shown:
        if isinstance(one, Raw):
            click.echo(one.text.encode("utf-8", "replace"), nl=False)
        else:
            click.echo("".join(f"{line}\n" for line in output.plain_lines(one)), nl=False)


class _Folder(click.ParamType[str]):
    """A folder; or that of a project, also where it is gone: by its name, or the beginning of its id."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if os.path.isdir(value):
            return str(value)
        with open_store(folder(), now=now_ms(), drain=lambda db: None) as db:
            try:
                found = named(db, value)
            except errors.NotFound:
                self.fail(f"{output.visible(value)} is no folder, and no project is called so", param, ctx)
        if not found.root:
            self.fail(
                f"{found.id} has no folder; `backstory projects attach DIR --to {found.id}`", param, ctx
            )
        return found.root


FOLDER = _Folder()
project_option = click.option(
    "--project",
    default=".",
    metavar="DIR",
    type=FOLDER,
    help="The project: a folder, a name, the beginning of an id.  [default: the current folder]",
)


def typed(given: Iterable[str]) -> str:
    """What was typed, as text: signs that are not UTF-8 cannot be stored, so they cannot be found either."""
    return os.fsencode(" ".join(given)).decode("utf-8", "backslashreplace")


def new_path(given: str, force: bool) -> str:
    """Where to write a file that was named. Another one is replaced only by `force`, never its link."""
    path = os.path.realpath(given) if force else os.path.abspath(given)
    if os.path.lexists(path):
        if not force:
            raise errors.BadInput(f"{path} is there already; --force replaces it, or name another file")
        if not os.path.isfile(path):
            raise errors.BadInput(f"{path} is no file; name one")
    return path


def standard_input() -> io.BufferedReader:
    """Its bytes; none where it was closed."""
    plain = getattr(sys.stdin, "buffer", None)
    raw = plain or io.BytesIO(sys.stdin.read().encode() if sys.stdin else b"")
    return raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)


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


def memory_id(db: Connection, prefix: str, project: str, *, anywhere: bool = False) -> str:
    """A memory of this project, or a global one. Whoever means another project's must say so, unless it is
    only looked at (`anywhere`)."""
    prefix = typed([prefix])
    here = projects.at(db, paths.place(project))
    scope = (here.id if here else None, projects.GLOBAL)
    found = memories.starting_with(db, prefix) or memories.starting_with(db, "mem_" + prefix)
    ours = [known for known, owner in found if owner in scope]
    if not ours and anywhere:
        ours = [known for known, _ in found]
    if not found and prefix and sessions.starting_with(db, prefix):
        raise errors.NotFound(f"{prefix} is a session: backstory sessions {prefix}")
    if not ours and found:
        roots = {one.id: one.root for one in projects.every(db)}
        raise errors.NotFound(f"{found[0][0]} is of another project; add --project {roots[found[0][1]]}")
    return only("memory", prefix, ours, "backstory search")


def named(db: Connection, given: str) -> Project:
    """The project that a person means."""
    name = typed([given])
    every = [one for one in projects.every(db) if one.id != projects.GLOBAL]
    found = [one for one in every if one.id == name] or [one for one in every if one.name == name]
    if not found and len(name) > 2:
        found = [one for one in every if one.id.startswith((name, f"prj_{name}"))]
    if not found and os.path.isdir(given):
        here = projects.at(db, paths.place(given))
        found = [here] if here else []
    if not found:  # a folder that is not there any more
        path = os.path.abspath(given)
        found = [projects.by_id(db, one.id) for one in projects.overview(db) if path in one.paths]
    if len(found) > 1:
        ids = ", ".join(f"{one.id} ({output.visible(one.root)})" for one in found[:5])
        raise errors.BadInput(f"more than one project is called {output.visible(name)}: {ids}; give the id")
    if not found:
        missing = (
            f"{paths.text(path)} is no project yet" if os.path.isdir(given) else f"There is no project {name}"
        )
        raise errors.NotFound(f"{output.visible(missing)}; `backstory projects` lists them.")
    return found[0]


def session_id(db: Connection, prefix: str, *, forgotten: bool = False) -> str:
    prefix = typed([prefix])
    found = [session.id for session in sessions.starting_with(db, prefix, forgotten=forgotten)]
    return only("session", prefix, found, "backstory sessions")


def moment(given: str, now: int, is_end: bool = False) -> int:
    """A time as people type it: 2026-11-15, 2026-11-15T14:30, today, or how long ago, 90m, 12h, 7d, 4w. Until
    a day means to its end."""
    given = given.strip()
    ago = re.fullmatch(r"(\d{1,6})([mhdwy])(?: ago)?", given)
    if given in ("today", "yesterday"):
        given = datetime.fromtimestamp(now / 1000 - 86_400 * (given == "yesterday")).strftime("%Y-%m-%d")
    elif ago:
        return (
            now
            - int(ago[1]) * {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}[ago[2]] * 1000
        )
    try:
        whole_day = is_end and re.fullmatch(r"\d{4}-\d\d-\d\d", given)
        return int(datetime.fromisoformat(given).timestamp() * 1000) + (86_400_000 - 1 if whole_day else 0)
    except (ValueError, OverflowError) as error:
        raise errors.BadInput(f"{given!r} is no time; write 2026-11-15, or 7d for seven days ago") from error


@contextmanager
def store() -> Iterator[tuple[Connection, int]]:
    from backstory.surfaces.opened import ANSWER_SECONDS, backlog, open_drained

    now = now_ms()
    progress = _progress if sys.stderr.isatty() else None
    opened = open_drained(folder(), now=now, seconds=ANSWER_SECONDS, progress=progress)
    if left := backlog(folder()):
        click.echo(f"{chr(10) if progress else ''}backstory: {left}", err=True)
    if opened.recovered:
        click.echo(f"backstory: {opened.recovered.sentence()}", err=True)
    with opened as db:
        yield db, now


def lost(db: Connection, home: str) -> tuple[str, str] | None:
    """A store without memories, beside a backup with some, has most likely lost its file: what there is, and
    how to get it back."""
    if memories.count(db) or (found := backup.with_memories(home)) is None or older.wrote(found.path):
        return None
    name = "latest" if found.name == backup.listed(home)[0].name else found.name
    made, large = shapes.when(found.at), shapes.size(found.size)
    there = f"the store is empty, but there is a backup of {made} with {large}"
    return there, f"`backstory backup restore {name}` brings it back"


def nothing(db: Connection, sentence: str, project: str = ".") -> str:
    """What to say where nothing was found."""
    gone = lost(db, folder())
    if gone:
        return f"{sentence} But {gone[0].replace(', but', ', and')}; {gone[1]}."
    place = paths.place(project)
    here = projects.at(db, place)
    for may_be in projects.claimed(db, place)[:1]:
        return f"{sentence} {may_be_this(may_be, here)}"
    if here is None and projects.overview(db):
        return (
            f"{sentence} This folder is no project yet; `backstory projects` lists those there are,"
            " `backstory search --everywhere` looks into all of them."
        )
    return sentence


def may_be_this(other: Project, here: Project | None) -> str:
    """What to do about a project that this folder may be, too."""
    how = f"merge {other.id} {here.id}" if here else f"attach --to {other.id}"
    return (
        f"If this folder is {output.visible(other.name)} ({output.visible(other.root)}):"
        f" backstory projects {how}"
    )


def _progress(stored: int, total: int) -> None:
    if total >= 1_000:  # fewer are stored before anyone could read this
        click.echo(f"\rstoring what was captured: {stored:,} of {total:,}", err=True, nl=stored == total)


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """What takes more than a second says what it does; what is quicker says nothing."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn

    from backstory.surfaces.cli import terminal

    shown = Progress(SpinnerColumn(), TextColumn("{task.description}"), **terminal.progress())
    shown.add_task(doing, total=None)
    later = threading.Timer(BUSY_AFTER, shown.start)
    later.start()
    try:
        yield
    finally:
        later.cancel()
        later.join()
        if shown.live.is_started:
            shown.stop()


@contextmanager
def bar(doing: str, total: int | None, *, of_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    """Progress for a person at a terminal; what is yielded takes how much more is done."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    from backstory.surfaces.cli import terminal

    amount = DownloadColumn() if of_bytes else TaskProgressColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
    with Progress(*columns, **terminal.progress()) as shown:
        task = shown.add_task(doing, total=total)
        yield lambda done: shown.advance(task, done)


def refresh_views(db: Connection, project: Project, roots: Sequence[str], now: int) -> None:
    """Let the views of running servers follow. The edit is done; what keeps a view from it is only said."""
    from backstory.surfaces import view_files

    try:
        view_files.refresh(db, folder(), project, roots, now)
    except (errors.BackstoryError, OSError) as error:
        click.echo(f"backstory: a view could not be refreshed: {output.visible(str(error))}", err=True)


def ask(yes: bool, told: str | None, question: str, done: str) -> None:
    """Say what will happen, if that was not shown before, and go on only if a person agrees."""
    if yes:
        return
    if told:
        click.echo(output.visible(told), err=True)
    if not (sys.stdin and sys.stdin.isatty()):
        raise errors.NotFound(f"Nothing was {done}: nobody is there to ask; --yes does it without asking.")
    if not sure(question):
        raise errors.NotFound(f"Nothing was {done}; --yes does it without asking.")


def sure(question: str) -> bool:
    try:
        return click.confirm(question, err=True)
    except click.Abort:  # nobody there to ask
        click.echo(err=True)
        return False


def unusable(error: BaseException | None) -> str | None:
    """What to do, where a disk or a folder that cannot be used is what an error comes from."""
    home = paths.data_folder(os.environ)
    return disk.unusable(error, home) if home else None


def folder() -> str:
    found = paths.data_folder(os.environ)
    if found is None:
        home = os.environ.get("BACKSTORY_HOME")
        reason = (
            f"BACKSTORY_HOME is {home!r}, which is no absolute path" if home else "there is no data folder"
        )
        raise errors.BadInput(f"{reason}; set HOME or BACKSTORY_HOME to an absolute path")
    return os.path.abspath(found)
