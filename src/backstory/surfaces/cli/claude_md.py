"""`backstory init`, `sync` and `claude-md status`: a CLAUDE.md that says what is true of its project."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from backstory import config, dirty, errors, log, paths
from backstory.model import now_ms
from backstory.store import projects
from backstory.surfaces.cli import pausing
from backstory.surfaces.cli.common import busy, folder, is_script, prints, project_option, store, tell, typed
from backstory.surfaces.cli.request import request
from backstory.surfaces.cli.sections import claude_md as group
from backstory.surfaces.shapes import Reply, Shown, one_line, plain

if TYPE_CHECKING:
    from backstory.claude_md.init import Choices, Planned
    from backstory.claude_md.learn import Learned
    from backstory.claude_md.sync import Prepared, Trouble
    from backstory.claude_md.write.compose import Known
    from backstory.model import Survey
    from backstory.store.file.connection import Connection
    from backstory.surfaces.cli.wizard import Wishes

CHOICES = ("merge", "migrate", "backup", "cancel")
ROLES = "install, build, run, test, one, check, lint, format, generate, migrate"
LOOKING = "looking at files"
NOBODY_TO_ASK = (
    "{why}; --yes writes CLAUDE.md (to one that is there, sections are added),"
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
    "--subtree",
    "subtrees",
    multiple=True,
    metavar="PATH",
    help="A folder that gets one too, in place of those that are proposed; repeatable.",
)
@click.option("--no-subtrees", is_flag=True, help="Only the one at the top.")
@click.option(
    "--off", multiple=True, metavar="NAME", help="A section to leave out, now and later; repeatable."
)
@click.option(
    "--section",
    "wanted",
    multiple=True,
    metavar="NAME",
    help="A section to write though it is off, was removed, or your own text covers it; repeatable.",
)
@click.option(
    "--command",
    "commands",
    multiple=True,
    metavar="ROLE=COMMAND",
    help="Your command for a role, as in 'test=make check', in place of what is found; `none` says that there"
    f" is none, `.` takes what is found again. Repeatable, also for one role. The roles: {ROLES}.",
)
@offline_option
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@click.option(
    "--yes",
    is_flag=True,
    help="Do not ask: merge, and all folders that are proposed, but those with a CLAUDE.md written by hand.",
)
@project_option
@prints
def init(
    existing: str | None,
    subtrees: tuple[str, ...],
    no_subtrees: bool,
    off: tuple[str, ...],
    wanted: tuple[str, ...],
    commands: tuple[str, ...],
    offline: bool,
    dry_run: bool,
    yes: bool,
    project: str,
) -> Reply:
    """Write a CLAUDE.md for a project, and track what changes.

    It looks at the files and at git, and shows what it found and what it would write. At a terminal you can
    switch sections off, correct commands and choose folders before you say yes; both are kept as comments in
    the file. What your own text says already is left out. Where there is an AGENTS.md, the sections go there,
    and CLAUDE.md imports it. Safe to repeat: only what is missing is added.
    """
    from backstory.claude_md import init as claude_md
    from backstory.claude_md.learn import LATE, learn
    from backstory.surfaces.cli import claude_md_output as shown
    from backstory.surfaces.cli import wizard

    root = _root(project)
    may_ask = _may_ask() and not (yes or dry_run)
    if not (yes or existing or dry_run or may_ask):
        why = "--json asks nobody" if is_script() else "nobody is here to ask"
        raise errors.BadInput(NOBODY_TO_ASK.format(why=why))
    if subtrees and no_subtrees:
        raise errors.BadInput("--subtree names a folder and --no-subtrees says none; leave one of them out")
    choices = _choices(off, wanted, commands)
    folders = list(dict.fromkeys(_subtree(root, path) for path in subtrees))
    _decided(root, folders, existing, may_ask=False)  # who cancels need not wait
    advice = None if offline or dry_run else _practices(root)
    with _asking():
        with busy(LOOKING):
            known = learn(root, practices=advice)
        limits = [] if known.project.whole else ["There are more files than were looked at."]
        limits += [f"The project {LATE}; what was not read by then is left out."] if known.is_cut else []
        if may_ask:
            tell(shown.known(known), *limits)
        by_hand: list[str] = []
        if not (folders or no_subtrees):
            folders, by_hand = _proposed(root, known, may_ask)
        existing = _decided(root, folders, existing, may_ask)
        had, wishes = _had(root), wizard.Wishes(tuple(folders), existing, choices)

        def plan(wishes: Wishes) -> list[Planned]:
            return claude_md.plan(root, known, wishes.folders, wishes.existing, had, wishes.choices)

        planned = wizard.talk(root, known, wishes, plan) if may_ask else plan(wishes)
    kept: dict[str, str] = {}
    offered: list[tuple[str, str]] = []
    if not dry_run:
        with store() as (db, now):
            kept, offered = claude_md.carry_out(db, folder(), root, planned, now=now)

    # Nobody who stops reading keeps it from being written, so all is said after that.
    def reply() -> Iterator[Shown]:
        if not may_ask:
            (top,) = (one for one in planned if not one.folder and one.action != "import")
            yield shown.known(known, top.settings)
            yield from shown.planned(planned, root, by_hand)
        if dry_run:
            yield from shown.texts(planned, root)
            yield f"\n{shown.NOTHING_WRITTEN}"
        else:
            yield from shown.done(planned, root, kept, offered, existing, config.on_stop(os.environ))

    nothing = "gets none: there is nothing left that it would say."
    without = [] if may_ask else sorted({*folders} - {one.folder for one in planned})
    notes = [*([] if may_ask else limits), *(f"{one_line(path)} {nothing}" for path in without)]
    if advice and known.practices is None:
        notes.append(f"best-practices left out: {one_line(advice.trouble, 160)}")
    return Reply(_value(root, known, planned, by_hand, not dry_run), reply(), notes)


def _proposed(root: str, known: Learned, may_ask: bool) -> tuple[list[str], list[str]]:
    """The folders that get a CLAUDE.md of their own; and those that have one written by hand, which stays
    unless somebody asks for more."""
    from backstory.claude_md.init import hand_written, proposed
    from backstory.surfaces.cli import wizard

    places, reasons = proposed(known), known.survey.subtree_reasons
    by_hand = [path for path in places if hand_written(root, path)]
    if may_ask:
        return wizard.choose(places, reasons, by_hand), by_hand
    return [path for path in places if path not in by_hand], by_hand


def _choices(off: tuple[str, ...], wanted: tuple[str, ...], commands: tuple[str, ...]) -> Choices:
    """What options say about the sections."""
    from backstory.claude_md.init import Choices
    from backstory.claude_md.write import settings

    if both := sorted({*off} & {*wanted}):
        raise errors.BadInput(
            f"--off and --section both name {typed(both)[:300]}; leave it out of one of them"
        )
    lines: dict[str, tuple[str, ...] | None] = {}
    for given in commands:
        role, line = settings.command(typed([given]))
        said = settings.meant(line)
        lines[role] = (*(lines.get(role) or ()), *said) if said else said
    return Choices(
        frozenset((None, settings.section_name(typed([name]))) for name in off),
        frozenset((None, settings.section_name(typed([name]))) for name in wanted),
        lines,
    )


def _decided(root: str, folders: list[str], existing: str | None, may_ask: bool) -> str | None:
    """What becomes of files that are there and have nothing of ours."""
    from backstory.claude_md.init import CANCELLED, undecided
    from backstory.surfaces.cli import wizard

    found = undecided(root, folders)
    if found and may_ask and not existing:
        existing = wizard.decide(found, root)
    if found and existing == "cancel":
        raise errors.NotFound(CANCELLED)
    return existing


def _had(root: str) -> dict[str, frozenset[str]]:
    """The sections that files of this project had before. A store that is not there is not made for that."""
    from backstory.claude_md.init import recorded
    from backstory.store.file.connection import connect

    path = paths.database(folder())
    if not os.path.exists(path):
        return {}
    try:
        with closing(connect(path, hurry=5.0)) as db:  # a store of an older backstory stays as it is
            return recorded(db, root)
    except errors.StoreError:  # whoever opens it to write can mend it
        return {}


@click.command()
@click.option(
    "--all", "everything", is_flag=True, help="Every section of every managed file, whatever changed."
)
@offline_option
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@project_option
@prints
def sync(everything: bool, offline: bool, yes: bool, dry_run: bool, project: str) -> Reply:
    """Bring CLAUDE.md up to date with what changed.

    What changed is known from Claude Code's edits and from git. Sections that a model wrote are
    left to it. What a person edited stays: it is merged with what changed, or a new text is offered.
    """
    from backstory.claude_md import sync as claude_md
    from backstory.surfaces.cli import claude_md_output as shown

    root = _initialised(project)
    practices = None if offline or not everything else _practices(root)
    with claude_md.alone(folder(), root):
        with store() as (db, now), busy(LOOKING):
            prepared = claude_md.prepare(db, root, everything=everything, now=now, practices=practices)
        tell(*shown.prepared(prepared))
        if dry_run:
            return Reply(_synced(prepared, None, []), [shown.NOTHING_WRITTEN])
        is_news = any(change.outcome == "written" for change in prepared.changes)
        if is_news and not yes and not (_may_ask() and _agreed()):
            nothing = shown.NOTHING_WRITTEN if _may_ask() else "Nothing was written; --yes writes it."
            no = shown.complaint(prepared, prepared.troubles, nothing)
            return Reply(_synced(prepared, None, []), no=no)
        with store() as (db, now):  # nobody keeps the store open while a person thinks
            outcomes, refused = claude_md.carry_out(db, folder(), prepared, now=now)
    troubles = [*prepared.troubles, *refused]
    no = shown.complaint(prepared, troubles)
    return Reply(
        _synced(prepared, outcomes, refused), shown.synced(prepared, outcomes, bool(troubles)), no=no
    )


@click.command()
@project_option
@prints
def status(project: str) -> Reply:
    """Show how far CLAUDE.md is behind: changed files, sections edited by hand, stale references."""
    from backstory.claude_md import status as claude_md
    from backstory.surfaces.cli import claude_md_output as shown

    root = _initialised(project)
    on_stop = config.on_stop(os.environ)
    with store() as (db, now), busy(LOOKING):
        found = claude_md.status(db, root)
        behind = _behind(db, root, now)
        here = projects.at(db, paths.place(root))
        paused = pausing.sentence(db, here.id if here else "")
    to_write = [{"file": path, "section": name} for path, name in behind]
    value = {**shown.value_of_status(found, on_stop), "to_write": to_write}
    return Reply(value, shown.status(found, behind, on_stop, now), [f"backstory: {paused}"] if paused else [])


def _behind(db: Connection, root: str, now: int) -> list[tuple[str, str]]:
    """File and section of what a sync would write, also where no change is known: with a file that was
    restored, or after an upgrade."""
    from backstory.claude_md import sync as claude_md

    try:
        prepared = claude_md.prepare(db, root, everything=False, now=now)
    except errors.NotFound:  # no file has sections, or there is nothing to say
        return []
    return [
        (prepared.told(change.path), change.name)
        for change in prepared.changes
        if change.outcome == "written"
    ]


group.add_command(status)
group.add_command(request)


def background(root: str) -> None:
    """What `claude_md.on_stop = auto` does after a turn, in a process that nobody sees."""
    if os.environ.get("BACKSTORY_WORKER") == "1":
        return
    from backstory.claude_md.sync import sync
    from backstory.clients import claude_code
    from backstory.surfaces import prose_note
    from backstory.surfaces.asking import is_name
    from backstory.surfaces.opened import open_drained

    session_id = claude_code.session_id(os.environ)
    try:
        now = now_ms()
        with open_drained(folder(), now=now) as db:
            ask = partial(prose_note.put, folder(), session_id, root) if is_name(session_id) else None
            sync(db, folder(), root, now=now, ask=ask)
    except errors.BackstoryError as error:
        log.write("warning", f"CLAUDE.md was not brought up to date: {error}")


def _may_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and not is_script()


def _agreed() -> bool:
    with _asking():
        return click.confirm("Write this?", err=True)


@contextmanager
def _asking() -> Iterator[None]:
    """Who leaves instead of an answer is told that nothing has happened."""
    from backstory.surfaces.cli.claude_md_output import NOTHING_WRITTEN

    try:
        yield
    except (click.Abort, KeyboardInterrupt):
        click.echo(f"\n{NOTHING_WRITTEN}", err=True)
        raise


def _initialised(project: str) -> str:
    """The initialised project that a folder is in."""
    from backstory.claude_md.sync import root_of

    if (root := dirty.root_of(project)) is not None:
        return root
    _root(project)  # where there cannot be one, nobody is told to make one
    with store() as (db, _):
        return root_of(db, project)


def _root(project: str) -> str:
    """The initialised project that a folder is in, or else the top of its work tree; outside git, the
    folder."""
    homes = {"/", os.path.realpath(os.path.expanduser("~"))}
    root = dirty.root_of(project)
    if root is None or root in homes:
        root = paths.checkout(project)
    if root in homes:
        raise errors.BadInput(
            f"{paths.text(root)} is no project; go to the folder of one, or name it with --project"
        )
    return root


def _subtree(root: str, given: str) -> str:
    """A folder as seen from the root."""
    path = os.path.realpath(os.path.join(root, given))
    inside = os.path.relpath(path, root)
    is_below = os.path.isdir(path) and path.startswith(root.rstrip("/") + "/")
    if not is_below or not dirty.FOLDERS.isdisjoint(inside.split("/")):
        raise errors.BadInput(
            f"{typed([given])[:300]} is no folder in {paths.text(root)}; give its path from there"
        )
    return inside


class _Advice:
    """What the documentation advises for a project, and why that cannot be had."""

    def __init__(self, url: str, root: str) -> None:
        self.url = url
        self.root = root
        self.trouble = "nothing on the page suits this project"

    def __call__(self, survey: Survey) -> str | None:
        from backstory.claude_md.read.practices import practices

        has_git = paths.place(self.root).head is not None
        return practices(self.url, self._page, folder(), survey, now_ms(), has_git=has_git)

    def _page(self, url: str) -> str:
        from backstory.claude_md.read.practices import HOSTS
        from backstory.recall.documents import fetch

        if sys.stderr.isatty():
            click.echo(f"fetching {url}", err=True)
        try:
            return fetch.page(url, hosts=HOSTS)
        except errors.BackstoryError as error:
            self.trouble = str(error)
            raise


def _practices(root: str) -> _Advice | None:
    """None where nobody wants them."""
    url = config.setting("claude_md.practices_url", os.environ).strip()
    return _Advice(url, root) if url else None


def _value(
    root: str, known: Known, planned: list[Planned], by_hand: list[str], is_written: bool
) -> dict[str, Any]:
    from backstory.claude_md.init import COVERED, OFF, REMOVED
    from backstory.claude_md.read.patterns import shape
    from backstory.claude_md.write.sections import cleaned, redacted

    found = {
        "survey": known.survey,
        "patterns": shape(known.patterns),
        "pattern_list": known.patterns,
        "insights": known.insights,
    }
    return {
        "root": paths.text(root),
        **_redacted(plain(found)),
        "files": [
            {
                "path": paths.text(os.path.relpath(one.path, root)),
                "action": one.action,
                "sections": list(one.texts),
                "text": {name: cleaned(text) for name, text in one.texts.items()},
                "removed": one.left_for(REMOVED),
                "off": one.left_for(OFF),
                "covered": {name: redacted(one.left_out[name].how) for name in one.left_for(COVERED)},
                "commands": one.settings.commands,
            }
            for one in planned
        ],
        "by_hand": [paths.text(path) for path in by_hand],
        "written": is_written,
    }


def _redacted(value: Any) -> Any:
    """The same, with every text in it redacted."""
    from backstory.claude_md.write.sections import redacted

    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {name: _redacted(part) for name, part in value.items()}
    return [_redacted(part) for part in value] if isinstance(value, list) else value


def _synced(
    prepared: Prepared, outcomes: dict[str, dict[str, str]] | None, refused: list[Trouble]
) -> dict[str, Any]:
    """What became of the sections; without outcomes, what would become of them."""
    told = prepared.told
    if outcomes is None:
        outcomes = {path: {} for path in prepared.files}
        for change in prepared.changes:
            would = "would be written" if change.outcome == "written" else change.outcome
            outcomes[change.path][change.name] = would
    return {
        "root": paths.text(prepared.root),
        "files": [{"path": told(path), "sections": sections} for path, sections in outcomes.items()],
        "dirty": list(dict.fromkeys(told(line) for line in prepared.lines)),
        "outside": [told(path) for path in prepared.outside],
        "prose": [
            {"file": told(one.path), "section": one.name, "because": list(one.because)}
            for one in prepared.prose
        ],
        "waiting": [{"file": told(path), "section": name} for path, name in prepared.waiting],
        "lacking": [{"file": told(path), "section": name} for path, name in prepared.lacking],
        "problems": [
            {"file": told(one.path), "line": one.line, "said": one.said}
            for one in (*prepared.troubles, *refused)
        ],
    }
