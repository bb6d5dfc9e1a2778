"""`recollect init`, `sync` and `status`: a CLAUDE.md that says what is true of its project."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from recollect import config, errors, log, paths
from recollect.surfaces.cli.common import folder, json_option, project_option, store, sure, typed

if TYPE_CHECKING:
    from recollect.claude_md.compose import Known
    from recollect.claude_md.init import Clean, Planned, Practices, Progress
    from recollect.claude_md.sync import Prepared, Trouble

CHOICES = ("merge", "migrate", "backup", "cancel")
LARGE = 1_000  # files; fewer are read before anyone could look at a bar
NOBODY_TO_ASK = (
    "nobody is here to ask; --yes writes CLAUDE.md (to one that is there, sections are added),"
    " --existing says what becomes of that, --dry-run only shows what would be written"
)

offline_option = click.option("--offline", is_flag=True, help="Fetch nothing: no best practices.")


@click.command()
@click.option(
    "--existing",
    type=click.Choice(CHOICES),
    help="What becomes of a CLAUDE.md that is there: it gets sections (merge), or is the manual part of a new"
    " one (migrate), or is kept beside a new one (backup), or all stays as it is (cancel).",
)
@click.option(
    "--subtree", "subtrees", multiple=True, metavar="PATH", help="A folder that gets one too; repeatable."
)
@click.option("--no-subtrees", is_flag=True, help="Only the one at the top.")
@offline_option
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@click.option("--yes", is_flag=True, help="Do not ask: merge, and all folders that are proposed.")
@project_option
@json_option
def init(
    existing: str | None,
    subtrees: tuple[str, ...],
    no_subtrees: bool,
    offline: bool,
    dry_run: bool,
    yes: bool,
    project: str,
    as_json: bool,
) -> None:
    """Find out about a project, write its CLAUDE.md, and track what changes from now on.

    It looks at the files and at git, and shows what it found. Where there is an AGENTS.md, the sections
    go there, and CLAUDE.md imports it. Safe to repeat: only what is missing is added.
    """
    from recollect.claude_md import init as claude_md
    from recollect.surfaces.cli import claude_md_output as shown

    root = _root(project)
    may_ask = _is_terminal() and not (yes or dry_run)
    if not (yes or existing or dry_run or may_ask):
        raise errors.BadInput(NOBODY_TO_ASK)
    if subtrees and no_subtrees:
        raise errors.BadInput("--subtree names a folder and --no-subtrees says none; leave one of them out")
    folders = [_subtree(root, path) for path in subtrees]
    _decided(root, folders, existing, may_ask=False)  # who cancels need not wait
    practices = None if offline or dry_run else _practices(root)
    with _progress() as progress:
        known = claude_md.learn(root, practices=practices, progress=progress)
    if not as_json:
        shown.known(known)
    if not (folders or no_subtrees):
        folders = list(known.survey.subtrees[: claude_md.MOST_SUBTREES])
        folders = shown.choose(folders) if may_ask else folders
    existing = _decided(root, folders, existing, may_ask)
    planned = claude_md.plan(root, known, folders, existing, _clean())
    if not as_json:
        shown.planned(planned, root)
    if not dry_run:
        if may_ask and any(one.action != "keep" for one in planned) and not sure("Write this?"):
            raise errors.NotFound("Nothing was written.")
        with store() as (db, now):
            claude_md.carry_out(db, folder(), root, planned, clean=_clean(), now=now)
    if as_json:
        _print(_as_json(root, known, planned, not dry_run))
    else:
        shown.done(dry_run)


def _decided(root: str, folders: list[str], existing: str | None, may_ask: bool) -> str | None:
    """What becomes of files that are there and have nothing of ours."""
    from recollect.claude_md.init import undecided
    from recollect.surfaces.cli import claude_md_output as shown

    found = undecided(root, folders)
    if found and may_ask and not existing:
        existing = shown.decide([os.path.relpath(path, root) for path in found])
    if found and existing == "cancel":
        raise errors.NotFound("Cancelled; nothing was written.")
    return existing


@click.command()
@click.option(
    "--all", "everything", is_flag=True, help="Every section of every managed file, whatever changed."
)
@offline_option
@click.option("--yes", is_flag=True, help="Write without asking.")
@project_option
@json_option
def sync(everything: bool, offline: bool, yes: bool, project: str, as_json: bool) -> None:
    """Bring CLAUDE.md up to date with what changed.

    What changed is known from Claude Code's edits and from git. Sections that a model wrote are
    left to it, and those that a person edited are offered a new text instead.
    """
    from recollect.claude_md import sync as claude_md
    from recollect.surfaces.cli import claude_md_output as shown

    root = claude_md.root_of(project)
    practices = None if offline or not everything else _practices(root)
    may_ask = _is_terminal()
    with claude_md.turn(folder(), root):
        with store() as (db, now), _progress() as progress:
            prepared = claude_md.prepare(
                db,
                root,
                everything=everything,
                clean=_clean(),
                now=now,
                practices=practices,
                progress=progress,
            )
        news = [change for change in prepared.changes if change.outcome == "written"]
        if not as_json:
            shown.prepared(prepared)
        if news and not yes and not (may_ask and sure("Write this?")):
            if as_json:
                _print(_synced(prepared, {}, [], is_written=False))
            raise errors.NotFound(f"Nothing was written{'.' if may_ask else '; --yes writes it.'}")
        with store() as (db, now):  # nobody keeps the store open while a person thinks
            outcomes, troubles = claude_md.carry_out(db, folder(), prepared, clean=_clean(), now=now)
    if as_json:
        _print(_synced(prepared, outcomes, troubles, is_written=True))
    else:
        shown.synced(prepared, outcomes)
    if troubles:
        raise errors.NotFound("; ".join(trouble.said for trouble in troubles))


@click.command()
@project_option
@json_option
def status(project: str, as_json: bool) -> None:
    """Show how far CLAUDE.md is behind: changed files, sections edited by hand, stale references."""
    from recollect.claude_md import status as claude_md
    from recollect.claude_md.sync import root_of
    from recollect.surfaces.cli import claude_md_output as shown

    root = root_of(project)
    on_stop = config.on_stop(os.environ)
    with store() as (db, now):
        found = claude_md.status(db, root)
    if as_json:
        _print(shown.plain_status(found, on_stop))
    else:
        shown.status(found, on_stop, now)


COMMANDS = (init, sync, status)


def background(root: str) -> None:
    """What `claude_md.on_stop = auto` does after a turn, in a process that nobody sees."""
    if os.environ.get("RECOLLECT_WORKER") == "1":
        return
    try:
        from recollect.claude_md.sync import sync
        from recollect.intake.drain import open_store

        now = int(time.time() * 1000)
        with open_store(folder(), now=now) as db:
            sync(db, folder(), root, clean=_clean(), now=now)
    except errors.RecollectError as error:
        log.write("warning", f"CLAUDE.md was not brought up to date: {error}")
    except Exception:  # noqa: BLE001  nobody is there to see it
        log.crash("sync")


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _root(project: str) -> str:
    """The top of the work tree that a folder is in; outside git, the folder."""
    root = paths.checkout(project)
    homes = {"/", os.path.realpath(os.path.expanduser("~"))}
    if root in homes:
        raise errors.BadInput(
            f"{paths.text(root)} is no project; go to the folder of one, or name it with --project"
        )
    return root


def _subtree(root: str, given: str) -> str:
    """A folder as seen from the root."""
    path = os.path.realpath(os.path.join(root, given))
    if not os.path.isdir(path) or not path.startswith(root.rstrip("/") + "/"):
        raise errors.BadInput(
            f"{typed([given])[:300]} is no folder in {paths.text(root)}; give its path from there"
        )
    return os.path.relpath(path, root)


def _clean() -> Clean:
    from recollect.capture.event import clean

    return partial(clean, limit=sys.maxsize)


def _practices(root: str) -> Practices | None:
    """What the documentation advises for a project like this; None where nobody wants that."""
    url = config.setting("claude_md.practices_url", os.environ).strip()
    if not url:
        return None
    from recollect.claude_md.practices import HOSTS, practices
    from recollect.model import Survey
    from recollect.recall.documents import fetch

    def advice(survey: Survey) -> str | None:
        page = partial(fetch.page, hosts=HOSTS)
        has_git = paths.place(root).head is not None
        return practices(url, page, folder(), survey, int(time.time() * 1000), has_git=has_git)

    return advice


@contextmanager
def _progress() -> Iterator[Progress]:
    from rich.progress import BarColumn, Progress, TextColumn

    from recollect.surfaces.cli import output

    bar = (TextColumn("looking at files"), BarColumn(), TextColumn("{task.completed:,.0f}"))
    with Progress(*bar, **output.progress()) as shown:
        task = shown.add_task("", total=None, visible=False)

        def progress(files: int) -> None:
            shown.update(task, completed=files, visible=files >= LARGE)

        yield progress


def _print(value: Any) -> None:
    from recollect.surfaces.cli import output

    output.as_json(value)


def _as_json(root: str, known: Known, planned: list[Planned], is_written: bool) -> dict[str, Any]:
    from recollect.claude_md.patterns import shape

    return {
        "root": paths.text(root),
        "survey": asdict(known.survey),
        "patterns": shape(known.patterns),
        "pattern_list": [asdict(pattern) for pattern in known.patterns],
        "insights": asdict(known.insights) if known.insights else None,
        "files": [
            {
                "path": paths.text(os.path.relpath(one.path, root)),
                "action": one.action,
                "sections": list(one.texts),
            }
            for one in planned
        ],
        "written": is_written,
    }


def _synced(
    prepared: Prepared, outcomes: dict[str, dict[str, str]], refused: list[Trouble], is_written: bool
) -> dict[str, Any]:
    told = prepared.told
    if not is_written:
        outcomes = {path: {} for path in prepared.files}
        for change in prepared.changes:
            outcomes[change.path][change.name] = change.outcome
    return {
        "root": paths.text(prepared.root),
        "files": [{"path": told(path), "sections": sections} for path, sections in outcomes.items()],
        "dirty": list(dict.fromkeys(told(line) for line in prepared.lines)),
        "outside": [told(path) for path in prepared.outside],
        "prose": [
            {"file": told(one.path), "section": one.name, "because": list(one.because)}
            for one in prepared.prose
        ],
        "problems": [
            {"file": told(one.path), "line": one.line, "said": one.said}
            for one in (*prepared.troubles, *refused)
        ],
        "written": is_written,
    }
