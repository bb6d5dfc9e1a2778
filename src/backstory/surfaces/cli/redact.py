"""`backstory redact`: the present table of secrets, applied to what was stored before."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

import click

from backstory import errors, paths
from backstory.safety import redact as table
from backstory.store import claude_files, nodes, projects, redaction
from backstory.store.file import older
from backstory.store.file.connection import Connection
from backstory.store.file.swap import BESIDE
from backstory.store.redaction import Finding, Redact
from backstory.surfaces.cli.common import busy, folder, prints, refresh_views, store
from backstory.surfaces.shapes import WRAP, Line, Reply, Shown, number_of, one_line

SHOWN = 10  # of each table
SEVERAL = ("turns", "documents")  # whose rows are shown as one
PRINTED = ("what", "id", "kinds", "excerpt")
# Of the data folder: the program, settings, what holds no text of a session, and what the next drain redacts.
SKIPPED = {"plugin", "config.toml", "cache", "servers", "quiet", "spool/new", "spool/tmp"}
REWRITTEN = ("logs/", "outbox/", "spool/failed/")

Left = tuple[str, str, str]  # what holds a secret and is not changed, why, and what to do


@click.command()
@click.option("--yes", is_flag=True, help="Redact it. Without this, nothing is changed.")
@click.option(
    "--except",
    "spared",
    multiple=True,
    metavar="ID",
    help="Leave this as it is, if it is no secret; the beginning of an id will do; may be given again.",
)
@prints
def redact(yes: bool, spared: tuple[str, ...]) -> Reply:
    """Redact secrets that are stored already, of all projects.

    For a secret that was stored before backstory knew its shape. Without --yes it only shows what would
    change: what is redacted cannot be brought back. Backups are not changed; those with something to redact
    are named."""
    from backstory.surfaces import erasing

    home, redact_text = folder(), _remembering()
    is_unfinished = erasing.is_unfinished(home)
    with store() as (db, now):
        with busy("looking for secrets"):
            findings = _without(list(redaction.find(db, redact_text)), spared)
        if yes:
            if findings:
                erasing.mark(home)
            with busy("redacting"):
                redaction.rewrite(db, findings, redact_text)
                for project in projects.every(db):
                    refresh_views(db, project, [root.id for root in nodes.roots(db, project.number)], now)
                is_unfinished = not erasing.compact(home, db)
        files = list(_redact_files(home, redact_text, yes))
        with busy("looking into backups"):
            left = list(_left(db, home, redact_text, () if yes else files))
    names = dict.fromkeys(finding.excerpt for finding in findings if finding.is_name)
    left += [(name, "is a name or an id, stored as it is", "rename the folder or branch") for name in names]
    texts = [finding for finding in findings if not finding.is_name]
    rows = [*{(row.what, row.id if row.what in SEVERAL else row.key): row for row in texts}.values()]
    value = {
        "redacted": yes,
        "found": [{name: getattr(row, name) for name in PRINTED} for row in rows],
        "files": files,
        "left": [dict(zip(("path", "why", "then"), entry, strict=True)) for entry in left],
        "unfinished": is_unfinished,
    }
    return Reply(value, _shown(rows, files, left, yes), no=_unfinished(yes) if is_unfinished else "")


def _unfinished(yes: bool) -> str:
    reason = "another process was reading the store"
    if not yes:
        reason = "an earlier redaction or erasing was not finished"
    clears = f"`backstory {'redact --yes' if yes else 'erase'}` clears it"
    return f"{reason}: old text may be left in the file; {clears}"


def _without(findings: list[Finding], spared: tuple[str, ...]) -> list[Finding]:
    for start in spared:
        if not start or not any(finding.id.startswith(start) for finding in findings):
            raise errors.BadInput(f"nothing to redact has the id {start!r}; nothing was changed")
    return [finding for finding in findings if not finding.id.startswith(spared)]


def _remembering() -> Redact:
    """The table, for texts of which most come again, in the next backup if not before."""
    harmless: set[int] = set()

    def redact_text(text: str) -> str:
        if hash(text) in harmless:
            return text
        redacted = table.redact(text)
        if redacted == text:
            harmless.add(hash(text))
        return redacted

    return redact_text


def _files(home: str) -> Iterator[tuple[str, str]]:
    """(path, path from the data folder) of every file that may hold text, but for the database itself."""
    for place, folders, names in os.walk(home):
        inside = os.path.relpath(place, home) + "/" if place != home else ""
        folders[:] = sorted(name for name in folders if inside + name not in SKIPPED)
        for name in sorted(names):
            path = os.path.join(place, name)
            is_plain = os.path.isfile(path) and not os.path.islink(path)
            is_ours = path == paths.database(home) or name.endswith((".lock", *BESIDE))
            if is_plain and not is_ours and inside + name not in SKIPPED:
                yield path, inside + name


def _redact_files(home: str, redact_text: Redact, yes: bool) -> Iterator[str]:
    """The files with a secret among those that are rewritten."""
    for path, inside in _files(home):
        if inside.startswith(REWRITTEN) and (content := _redacted_file(path, redact_text)) is not None:
            if yes:
                _write(home, path, content)
            yield path


def _write(home: str, path: str, content: bytes) -> None:
    """Put a new file in the place of whatever is there: a link would lead elsewhere."""
    beside = os.path.join(home, "redacting.tmp")
    with suppress(FileNotFoundError):
        os.unlink(beside)  # a kill left it
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    os.replace(beside, path)


def _redacted_file(path: str, redact_text: Redact) -> bytes | None:
    """None: there is nothing to redact in it, or it is not there."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    redacted = redact_text(redaction.redacted(text, redact_text))  # also in what JSON says twice
    return None if redacted == text else redacted.encode("utf-8", "surrogateescape")


def _left(db: Connection, home: str, redact_text: Redact, listed: Collection[str]) -> Iterator[Left]:
    """The other files with a secret. Among them may be a log that was rotated while it was rewritten."""
    of_before = older.files(home)
    for path, inside in _files(home):
        try:
            if path in of_before:
                yield path, older.NOT_TOUCHED, older.THEN
            elif not path.endswith(".db"):
                if path not in listed and _redacted_file(path, redact_text) is not None:
                    yield path, "holds a secret", "delete it"
            elif rows := redaction.count(path, redact_text):
                after = " after `backstory backup now`" if inside.startswith("backups/") else ""
                yield path, f"{number_of(rows, 'row', 'rows')} with a secret", f"delete it{after}"
        except (errors.Damaged, OSError) as error:
            yield path, str(error).removeprefix(f"{path} "), "delete it if you do not need it"
    for project in projects.every(db):
        for managed in claude_files.listed(db, project.number):
            with suppress(OSError):  # a branch or a worktree that is away
                if _redacted_file(managed.path, redact_text) is not None:
                    yield managed.path, "holds a secret", "edit it: it is yours, as what git keeps of it"


def _shown(rows: Sequence[Finding], files: Sequence[str], left: Sequence[Left], yes: bool) -> Iterator[Shown]:
    heading = "Redacted" if yes else "To be redacted"
    for what, number in Counter(row.what for row in rows).items():
        same = [row for row in rows if row.what == what]
        kinds = Counter(kind for row in same for kind in row.kinds)
        counts = ", ".join(f"{kind} {times:,}" for kind, times in kinds.most_common())
        yield f"{heading}: {number:,} in {what} ({counts})"
        for row in same[:SHOWN]:
            head = f"  {row.id}  "
            yield Line((head, one_line(row.excerpt, 160)), WRAP, len(head))
        if number > SHOWN:
            yield f"  and {number - SHOWN:,} more; --json lists all"
    for path in files:
        yield f"{heading}: {path}"
    for path, why, then in left:
        yield f"Not changed: {path}: {why}; {then}"
    if not rows and not files:
        yield "Nothing that is stored needs to be redacted."
    elif not yes:
        yield (
            "Nothing was changed. To redact it for good: backstory redact --yes"
            " (with --except ID for each that is no secret)"
        )
    else:
        yield "Whoever had it may still use it: replace the secret where it was issued."
