"""`backstory redact`: what the table of secrets knows now, applied to what was stored before it did."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

import click

from backstory import errors, locks, paths
from backstory.safety.redact import redact as redact_text
from backstory.store import projects, redaction
from backstory.store.file.connection import Connection
from backstory.store.file.swap import BESIDE
from backstory.store.redaction import Finding
from backstory.surfaces.cli import output
from backstory.surfaces.cli.common import folder, json_option, store

SHOWN = 10  # of each sort
UNFINISHED = "redacting"  # in the data folder: texts were redacted, but their old bytes may still be there
WORDS = {
    "memories": ("memory", "memories"),
    "archived_memories": ("archived memory", "archived memories"),
    "turns": ("turn", "turns"),
    "turn_pieces": ("turn", "turns"),
    "prompts": ("prompt", "prompts"),
    "sessions": ("session", "sessions"),
    "session_summaries": ("session summary", "session summaries"),
    "observation_queue": ("item in the queue", "items in the queue"),
    "docmem_nodes": ("tree node", "tree nodes"),
    "docmem_views": ("live view", "live views"),
    "documents": ("document", "documents"),
    "document_chunks": ("document", "documents"),
    "events": ("event id", "event ids"),
    "claude_sections": ("section of CLAUDE.md", "sections of CLAUDE.md"),
}
# Of the data folder: the program, what holds no text of a session, and settings, which are yours.
SKIPPED = ("plugin", "cache", "servers", "quiet", "config.toml", os.path.join("spool", "tmp"))
REWRITTEN = tuple(
    os.path.join(*place, "") for place in (("spool", "failed"), ("spool", "new"), ("outbox",), ("logs",))
)


@dataclass(frozen=True, slots=True)
class Left:
    """What holds a secret and is not changed, and what to do about it."""

    path: str
    why: str
    then: str


@click.command()
@click.option("--yes", is_flag=True, help="Redact it. Without this, nothing is changed.")
@click.option(
    "--except",
    "spared",
    multiple=True,
    metavar="ID",
    help="Leave this as it is, if it is no secret; may be given more than once.",
)
@json_option
def redact(yes: bool, spared: tuple[str, ...], as_json: bool) -> None:
    """Redact secrets in all that is stored already, of all projects. First look what that would change.

    For a secret that was stored before backstory knew its shape. Backups are not changed; those with
    something to redact are named."""
    home = folder()
    known = Known()
    with store() as (db, now):
        with _progress("looking") as shown:
            every = redaction.look(db, known, shown)
        found = [one for one in every if one.id not in spared]
        files = sorted(path for path in _files(home) if _is_rewritten(home, path) and known.changes(path))
        if yes:
            open(os.path.join(home, UNFINISHED), "w").close()
            with _progress("redacting") as shown:
                trees = redaction.rewrite(db, found, known, now, shown)
            _refresh(db, home, trees, now)
            for path in files:
                (_blot if os.sep + "logs" + os.sep in path[len(home) :] else _rewrite)(path, known)
            is_gone = redaction.compact(db)
            if is_gone:
                os.unlink(os.path.join(home, UNFINISHED))
        left = [*_places(found), *_left(db, home, known)]
    unfinished = os.path.exists(os.path.join(home, UNFINISHED))
    found = [one for one in found if not one.is_place]
    if as_json:
        output.as_json(
            {
                "redacted": yes,
                "found": [{"what": what, **_plain(one)} for what, same in _sorts(found) for one in same],
                "files": files,
                "left": [asdict(one) for one in left],
                "unfinished": unfinished,
            }
        )
    else:
        _tell(found, files, left, yes)
    if unfinished:
        reason = "another process was reading the store" if yes else "an earlier redaction was not finished"
        raise errors.NotFound(
            f"{reason}, so the old text may still be in the file; `backstory redact --yes` clears it away"
        )


class Known:
    """The table, for texts of which most come again: in the next backup, if not before."""

    def __init__(self) -> None:
        self._harmless: set[int] = set()

    def __call__(self, text: str) -> str:
        mark = hash(text)
        if mark in self._harmless:
            return text
        redacted = redact_text(text)
        if redacted == text:
            self._harmless.add(mark)
        return redacted

    def changes(self, path: str) -> bool:
        try:
            text = _read(path)
        except OSError:
            return False
        return any(self(line) != line for line in text.split("\n")) or redact_text(text) != text


# --- files --------------------------------------------------------------------------------------------------


def _files(home: str) -> Iterator[str]:
    """Every plain file of the data folder that may hold text, but for the database itself."""
    database = paths.database(home)
    ours = {database, *(database + end for end in BESIDE)}
    for place, inner, names in os.walk(home):
        inner[:] = [name for name in inner if not _is_skipped(home, os.path.join(place, name))]
        for path in (os.path.join(place, name) for name in names):
            is_plain = os.path.isfile(path) and not os.path.islink(path)
            if is_plain and path not in ours and not path.endswith(".lock") and not _is_skipped(home, path):
                yield path


def _is_skipped(home: str, path: str) -> bool:
    return os.path.relpath(path, home) in SKIPPED


def _is_rewritten(home: str, path: str) -> bool:
    return os.path.relpath(path, home).startswith(REWRITTEN)


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read().decode("utf-8", "surrogateescape")


def _rewrite(path: str, known: Callable[[str], str]) -> None:
    """Replace a file by its redacted text. One that was taken away meanwhile needs nothing any more."""
    with suppress(FileNotFoundError):
        text = _read(path)
        try:
            json.loads(text)
        except ValueError:
            text = known(text)
        else:
            text = redaction.redacted_json(text, known).rstrip("\n") + "\n"
        made = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}")
        handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(handle, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
        os.utime(made, ns=(os.stat(path).st_atime_ns, os.stat(path).st_mtime_ns))
        os.replace(made, path)


def _blot(path: str, known: Callable[[str], str]) -> None:
    """Redact the lines of a log where they stand, each as long as it was: others add lines meanwhile."""
    lock = locks.take(paths.log_file(folder()) + ".lock", "another process rotates the log; try again")
    try:
        with open(path, "r+b") as file:
            at = 0
            for line in file.read().splitlines(keepends=True):
                text = line.rstrip(b"\n").decode("utf-8", "surrogateescape")
                redacted = known(text).encode("utf-8", "surrogateescape")
                size = len(line.rstrip(b"\n"))
                if len(redacted) > size:
                    redacted = redacted[: redacted.index(b"[redacted:")][:size].ljust(size, b"*")
                if redacted != line.rstrip(b"\n"):
                    os.pwrite(file.fileno(), redacted.ljust(size), at)
                at += len(line)
    finally:
        os.close(lock)


def _left(db: Connection, home: str, known: Known) -> Iterator[Left]:
    """The files that hold a secret and are not changed."""
    rm = "delete it, after `backstory backup now` made a new one"
    for path in sorted(_files(home)):
        if _is_rewritten(home, path) or path.endswith(BESIDE):
            continue
        with open(path, "rb") as file:
            is_database = file.read(16) == b"SQLite format 3\0"
        if not is_database and not path.endswith(".db"):
            if known.changes(path):
                yield Left(path, "holds a secret", "delete it")
            continue
        try:
            if rows := redaction.look_into(path, known):
                why = f"{output.number_of(rows, 'row', 'rows')} with a secret"
                yield Left(path, why, rm if "backups" in path else "delete it")
        except errors.Damaged as error:
            why = str(error).removeprefix(f"{path} ")
            yield Left(path, why, "delete it, if you do not need it")
    for path in redaction.claude_files(db):
        if known.changes(path):
            yield Left(path, "holds a secret", "edit it; it is yours, and so is what git keeps of it")


def _places(found: Sequence[Finding]) -> Iterator[Left]:
    names = dict.fromkeys(one.excerpt for one in found if one.is_place)
    for name in names:
        yield Left(name, "is the name of a folder or a branch, which is stored as it is", "rename it")


# --- what is printed ----------------------------------------------------------------------------------------


def _sorts(found: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    """What there is of each sort. A turn or a document, which are several rows each, once."""
    sorts: dict[str, dict[object, Finding]] = {}
    turns = {one.id for one in found if one.table in ("turns", "turn_pieces")}
    for one in found:
        is_turn = one.table == "memories" and one.id in turns
        table = "turns" if is_turn else one.table
        word = WORDS.get(table, (table, table))[0]
        which = one.id if word in ("turn", "document") else one.key
        same = sorts.setdefault(word, {})
        if is_turn or which not in same:  # of a turn, the memory is what people read
            same[which] = one
    return [(word, list(same.values())) for word, same in sorts.items()]


def _plain(one: Finding) -> dict[str, object]:
    return {"id": one.id, "kinds": list(one.kinds), "excerpt": one.excerpt}


def _tell(found: Sequence[Finding], files: Sequence[str], left: Sequence[Left], done: bool) -> None:
    many = dict(WORDS.values())
    would = "Redacted" if done else "To be redacted"
    for word, same in _sorts(found):
        kinds = Counter(kind for one in same for kind in one.kinds)
        told = ", ".join(f"{kind} {number:,}" for kind, number in kinds.most_common())
        click.echo(f"{would}: {output.number_of(len(same), word, many.get(word, word))} ({told})")
        for one in same[:SHOWN]:
            click.echo(f"  {output.visible(one.id)}  {output.one_line(one.excerpt, 160)}")
        if len(same) > SHOWN:
            click.echo(f"  and {len(same) - SHOWN:,} more; --json lists all")
    for path in files:
        click.echo(f"{would}: {output.visible(path)}")
    for file in left:
        click.echo(f"Not changed: {output.visible(file.path)}: {output.visible(file.why)}; {file.then}")
    if not found and not files:
        click.echo("Nothing that is stored needs to be redacted.")
    elif not done:
        click.echo(
            "Nothing was changed. `backstory redact --yes` redacts it; `--except ID` leaves one as it is."
        )


def _refresh(db: Connection, home: str, trees: set[tuple[int, str]], now: int) -> None:
    """Let the views of running servers follow, in CLAUDE.md and for their models."""
    from backstory.surfaces import view_files

    for project in projects.every(db):
        roots = [root for number, root in trees if number == project.number]
        try:
            if roots:
                view_files.refresh(db, home, project, roots, now)
        except (errors.BackstoryError, OSError) as error:
            click.echo(f"backstory: a view could not be refreshed: {output.visible(str(error))}", err=True)


class _progress:
    """A bar on stderr, for a person at a terminal."""

    def __init__(self, what: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from backstory.surfaces.cli import terminal

        bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._shown = Progress(*bar, **terminal.progress())
        self._task = self._shown.add_task(what, total=None)

    def __enter__(self) -> Callable[[int, int], None]:
        self._shown.start()
        return lambda done, total: self._shown.update(self._task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        self._shown.stop()
