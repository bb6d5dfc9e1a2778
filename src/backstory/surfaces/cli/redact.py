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
from backstory.store import claude_files, projects, redaction
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
# Of the data folder: the program, settings, what holds no text of a session, and what the next drain redacts.
SKIPPED = {"plugin", "config.toml", "cache", "servers", "quiet", "spool/new", "spool/tmp"}
REWRITTEN = ("logs/", "outbox/", "spool/failed/")


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
    home, known = folder(), Known()
    marker = os.path.join(home, UNFINISHED)
    with store() as (db, now):
        with _progress("looking") as shown:
            found = [one for one in redaction.look(db, known, shown) if one.id not in spared]
        files = [path for path in _files(home) if _is_rewritten(home, path) and _changes(home, path, known)]
        if yes:
            os.close(os.open(marker, os.O_WRONLY | os.O_CREAT, 0o600))
            with _progress("redacting") as shown:
                trees = redaction.rewrite(db, found, known, now, shown)
            _refresh(db, home, trees, now)
            for path in files:
                with suppress(FileNotFoundError):  # it was told, or rotated away
                    _rewrite(home, path, known)
            if redaction.compact(db):
                os.unlink(marker)
        left = [*_places(found), *_left(db, home, known)]
    unfinished = os.path.exists(marker)
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


# --- files --------------------------------------------------------------------------------------------------


def _files(home: str) -> list[str]:
    """Every plain file of the data folder that may hold text, but for the database itself."""
    database = paths.database(home)
    ours = {database, *(database + end for end in BESIDE)}
    found = []
    for place, inner, names in os.walk(home):
        inner[:] = [name for name in inner if _inside(home, os.path.join(place, name)) not in SKIPPED]
        for path in (os.path.join(place, name) for name in names):
            is_plain = os.path.isfile(path) and not os.path.islink(path) and not path.endswith(".lock")
            if is_plain and path not in ours and _inside(home, path) not in SKIPPED:
                found.append(path)
    return sorted(found)


def _inside(home: str, path: str) -> str:
    return os.path.relpath(path, home)


def _is_rewritten(home: str, path: str) -> bool:
    return _inside(home, path).startswith(REWRITTEN)


def _changes(home: str, path: str, known: Known) -> bool:
    with open(path, "rb") as file:
        content = file.read()
    return _redacted(_inside(home, path), content, known) != content


def _redacted(name: str, content: bytes, known: Known) -> bytes:
    """What a file becomes. A line of a log stays as long as it was: others add lines meanwhile."""
    if name.startswith("logs/"):
        return b"\n".join(_blotted(line, known) for line in content.split(b"\n"))
    text = content.decode("utf-8", "surrogateescape")
    if name.startswith("outbox/"):
        return (redaction.redacted_json(text.rstrip("\n"), known) + "\n").encode()
    try:
        json.loads(text)
        text = redaction.redacted_json(text, known)
    except (ValueError, RecursionError):  # no JSON: that is why it is there
        pass
    return known(text).encode("utf-8", "surrogateescape")


def _blotted(line: bytes, known: Known) -> bytes:
    text = known(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    if len(text) > len(line):
        return text.partition(b"[redacted:")[0][: len(line)].ljust(len(line), b"*")
    return text.ljust(len(line))


def _rewrite(home: str, path: str, known: Known) -> None:
    name = _inside(home, path)
    lock = locks.take(paths.log_file(home) + ".lock", "another process rotates the log; try again")
    try:
        with open(path, "r+b") as file:
            content = _redacted(name, file.read(), known)
            if name.startswith("logs/"):
                os.pwrite(file.fileno(), content, 0)
                return
        made = os.path.join(home, f"{UNFINISHED}.tmp")
        with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
        os.replace(made, path)
    finally:
        os.close(lock)


def _left(db: Connection, home: str, known: Known) -> Iterator[Left]:
    """The files that hold a secret and are not changed."""
    for path in _files(home):
        if _is_rewritten(home, path) or path.endswith(BESIDE):
            continue
        is_backup = _inside(home, path).startswith("backups/")
        try:
            if path.endswith(".db"):
                with _progress(os.path.basename(path)) as shown:
                    rows = redaction.look_into(path, known, shown)
                if rows:
                    why = f"{output.number_of(rows, 'row', 'rows')} with a secret"
                    new = ", after `backstory backup now` made a new one" if is_backup else ""
                    yield Left(path, why, f"delete it{new}")
            elif _changes(home, path, known):
                yield Left(path, "holds a secret", "delete it")
        except (errors.Damaged, OSError) as error:
            why = str(error).removeprefix(f"{path} ")
            yield Left(path, why, "look at it, and delete it if you do not need it")
    for project in projects.every(db):
        for managed in claude_files.listed(db, project.number):
            with suppress(OSError):  # a branch or a worktree that is away
                if _changes(home, managed.path, known):
                    yield Left(
                        managed.path, "holds a secret", "edit it: it is yours, as what git keeps of it"
                    )


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
