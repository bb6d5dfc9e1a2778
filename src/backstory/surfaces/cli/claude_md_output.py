"""What `backstory init`, `sync` and `claude-md status` have to say about a project and its CLAUDE.md."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from backstory import paths
from backstory.claude_md.init import COVERED, OFF, REMOVED, Planned, draft
from backstory.claude_md.learn import UNCORRECTED
from backstory.claude_md.read.commands.roles import COMMAND_ROLES
from backstory.claude_md.status import FileStatus, Status
from backstory.claude_md.sync import Prepared, Trouble
from backstory.claude_md.write.compose import Known
from backstory.claude_md.write.sections import redacted
from backstory.claude_md.write.settings import Settings
from backstory.surfaces.cli.sections import coloured, difference, in_backticks, table, value_of
from backstory.surfaces.shapes import WHOLE, WRAP, Facts, Line, Shown, lately, number_of, one_line, plain

MOST_LISTED = 20
MOST_PATTERNS = 12
ACTIONS = {
    "create": "is made",
    "merge": "gets sections at its end",
    "migrate": "is made anew, with the old text as its manual part",
    "backup": "is made anew; the old one is kept beside it",
    "add": "gets the sections that are missing",
    "adjust": "is changed as you asked",
    "keep": "stays as it is",
    "import": "gets a first line that imports AGENTS.md",
}
NOTHING_WRITTEN = "Nothing was written."
EDITED = "since a person edited it"
BY_A_MODEL = (
    "A program finds only what files state; in Claude Code, /backstory:memory-init has the code read and adds"
    " what else a newcomer needs."
)
LOOKED_AT = "/backstory:memory-sync has it looked at."
AFTER_A_TURN = {
    "agent": "After a turn that edits files, Claude is asked once to update it;"
    " `backstory config claude_md.on_stop auto` asks it only where text that it wrote is behind.",
    "auto": "After a turn that edits files, what can be computed is renewed in the background, and Claude is"
    " asked once where text that it wrote is behind; `backstory config claude_md.on_stop off` stops that.",
    "off": "Nothing more happens by itself; `backstory config claude_md.on_stop auto` renews it after a turn"
    " that edits files.",
}


# --- init ---------------------------------------------------------------------------------------------------


def known(found: Known, chosen: Settings = UNCORRECTED) -> Facts:
    """What was found out about a project; commands as somebody has corrected them."""
    survey = found.survey
    commands = chosen.corrected(survey.commands)
    rows: list[tuple[str, str]] = [
        ("project", survey.name),
        ("about", survey.description),
        ("languages", ", ".join(f"{name} {share:.0%}" for name, share in survey.languages)),
        ("frameworks", ", ".join(survey.frameworks)),
        ("packages", ", ".join(survey.managers)),
    ]
    for role in COMMAND_ROLES:
        rows.append((role, ", ".join(one.line for one in commands if one.role == role)))
    rows.append(("workspaces", _some(survey.workspaces)))
    shown = [pattern for pattern in found.patterns if pattern.type != "architecture"]  # in no section
    for pattern in shown[:MOST_PATTERNS]:
        value = f"{pattern.subject}: {pattern.value}" if pattern.subject else pattern.value
        rows.append((pattern.type, f"{value} ({pattern.confidence:.0%} of {pattern.cases:,})"))
    if found.insights:
        rows.append(("hot files", _some([path for path, _ in found.insights.hot])))
        rows += [("commits", habit) for habit in found.insights.habits]
        rows += [("decided", decision) for _, _, decision in found.insights.decisions[:3]]
    rows += [("practice", line.removeprefix("- ")) for line in (found.practices or "").splitlines()]
    return Facts([(name, redacted(value)) for name, value in rows])


def planned(plan: Iterable[Planned], root: str, by_hand: Iterable[str]) -> Iterator[Shown]:
    """What happens to each file. However narrow a terminal, all of it is shown."""
    yield ""
    for one in plan:
        sections = f": {', '.join(one.texts)}" if one.texts else ""
        yield _of_file(file_name(one.path, root), f"{ACTIONS[one.action]}{sections}")
        for reason in _left_out(one):
            yield Line(("", (f"  {reason}", "dim")), WRAP, 4)
    for folder in by_hand:
        note = f"stays as a person wrote it; --subtree {shlex.quote(folder)} adds sections"
        yield _of_file(one_line(folder), note, "dim")


def _of_file(name: str, sentence: str, style: str = "") -> Line:
    return Line(("", (name, "cyan"), (f"  {sentence}", style)), WRAP, 2)


def _left_out(one: Planned) -> Iterator[str]:
    """What is not written that could be, and why."""
    if removed := one.left_for(REMOVED):
        back = "where its two markers are put back, init fills it"
        yield f"left out, since somebody removed it: {', '.join(removed)}; {back}"
    if off := one.left_for(OFF):
        yield f"left out, since it is switched off: {', '.join(off)}"
    if covered := one.left_for(COVERED):
        each = ", ".join(f"{name} ({redacted(one.left_out[name].how)})" for name in covered)
        yield f"left out, since your text covers it: {each}; --section NAME adds it all the same"
    if one.taken_out:
        yield f"taken out: {', '.join(one.taken_out)}"
    if one.staying:
        stays = "its text is not the program's, so take it out by hand"
        yield f"switched off, but {', '.join(one.staying)} stays: {stays}"
    for role, lines in one.settings.commands.items():
        yield f"your command to {role}: {', '.join(lines) or 'none'}"


def texts(plan: Iterable[Planned], root: str) -> Iterator[Shown]:
    """The text of new files, and what changes in those that are there."""
    for one in plan:
        old, new = (text.decode(errors="replace").rstrip("\n") for text in draft(one))
        name = file_name(one.path, root)
        if old == new:
            continue
        yield ""
        if old.strip() and one.action != "backup":
            yield from coloured(difference(old, new, name, name))
        else:
            yield Line(((f"{name}:", "bold"),))
            yield Line((new,), WHOLE)


def done(
    plan: Sequence[Planned],
    root: str,
    kept: Mapping[str, str],
    offered: Iterable[tuple[str, str]],
    existing: str | None,
    on_stop: str,
) -> Iterator[str]:
    """What was written, and what happens from now on."""
    ours = [file_name(one.path, root) for one in plan if one.action in ("add", "keep")]
    if ours and existing in ("migrate", "backup"):
        have = f"{', '.join(ours)} {'has' if len(ours) == 1 else 'have'} sections of backstory's already"
        yield f"\n{have}: what was missing was added, instead of {existing}."
    written = []
    for one in plan:
        if one.action != "keep":
            number = f" ({number_of(len(one.texts), 'section', 'sections')})" if one.texts else ""
            beside = f", the old one is {file_name(kept[one.path], root)}" if one.path in kept else ""
            written.append(f"{file_name(one.path, root)}{number}{beside}")
    yield f"\nWritten: {'; '.join(written)}" if written else "\nNothing had to be written."
    for path, section in offered:
        name = file_name(path, root)
        yield f"{section} in {name} stays, {EDITED}; {_diff(name, section)} shows the new text."
    if written:
        yield BY_A_MODEL
    yield "Changes are tracked from now on; `backstory claude-md status` shows what is pending."
    yield AFTER_A_TURN[on_stop]


def file_name(path: str, root: str) -> str:
    return one_line(paths.text(os.path.relpath(path, root)))


# --- sync ---------------------------------------------------------------------------------------------------


def prepared(found: Prepared) -> Iterator[Shown]:
    """What changed in the project, and what changes in CLAUDE.md for it."""
    changed = list(dict.fromkeys(found.told(path) for path in (*found.lines, *found.outside)))
    if changed:
        yield f"{_changed(len(changed))}: {_some(changed)}"
    for change in found.changes:
        if change.outcome in ("written", "offered"):
            name = f"{found.told(change.path)}: {change.name}"
            suffix = f" (offered, {EDITED})" if change.outcome == "offered" else ""
            new = change.new if change.merged is None else change.merged
            yield from coloured(difference(change.old, new, name, name + suffix))


def synced(found: Prepared, outcomes: Mapping[str, Mapping[str, str]], is_troubled: bool) -> Iterator[Shown]:
    named: dict[str, list[str]] = {}
    for path, names in outcomes.items():
        for name, outcome in names.items():
            how = f" ({_diff(found.told(path), name)} shows it)" if outcome == "offered" else ""
            named.setdefault(outcome, []).append(f"{name} in {found.told(path)}{how}")
    for outcome, how in (
        ("written", "Written"),
        ("offered", f"Offered, {EDITED}"),
        ("kept", "Left as a person wants it"),
        ("skipped", "Left to the model, which wrote it meanwhile"),
    ):
        if outcome in named:
            yield f"{how}: {', '.join(named[outcome])}"
    for one in found.prose:
        how = ", and what it is about changed" if one.because else ""
        why = f" ({_some(one.because)})" if one.because else ""
        yield f"Written by Claude{how}: {one.name} in {found.told(one.path)}{why}"
    if found.prose:
        yield LOOKED_AT
    if found.waiting:
        waits = number_of(len(found.waiting), "offer waits", "offers wait")
        yield f"{waits}: {', '.join(_diff(found.told(path), name) for path, name in found.waiting)}"
    if found.lacking:
        more = ", ".join(f"{name} to {found.told(path)}" for path, name in found.lacking)
        yield f"`backstory sync --all` would add {more}."
    if not (is_troubled or {"written", "offered", "skipped"} & named.keys() or found.prose or found.waiting):
        yield f"Up to date: {_some([found.told(path) for path in found.files])}"


def _diff(file: str, section: str) -> str:
    return in_backticks("diff", section, file if "/" in file else None)


def complaint(found: Prepared, troubles: Iterable[Trouble], *more: str) -> str:
    """What keeps files from being brought up to date, in one line."""
    each = []
    for one in troubles:
        line = f":{one.line}" if one.line else ""
        name = found.told(one.path)
        each.append(one.said if name in one.said else f"{name}{line} {one.said}")
    return "; ".join((*each, *more))


# --- status -------------------------------------------------------------------------------------------------


def summary(found: Status | None, now: int) -> str:
    """In one line."""
    if found is None:
        return "not kept by backstory; `backstory init` sets that up"
    changed = len(found.pending) + len(found.outside)
    states = [section for file in found.files if file.state for section in file.state.sections]
    edited, stale = sum(one.is_edited for one in states), sum(len(file.stale) for file in found.files)
    parts = [
        number_of(len(found.files), "file", "files"),
        f"{_changed(changed)} since" if changed else "up to date",
        f"last sync {_last_sync(found, now)}",
        f"{number_of(edited, 'section', 'sections')} edited by hand" if edited else "",
        number_of(stale, "stale reference", "stale references") if stale else "",
    ]
    return ", ".join(filter(None, parts))


def _changed(files: int) -> str:
    return f"{number_of(files, 'file', 'files')} changed"


def _last_sync(found: Status, now: int) -> str:
    return lately(found.synced_at, now) if found.synced_at else "never"


def status(found: Status, behind: Sequence[tuple[str, str]], on_stop: str, now: int) -> Iterator[Shown]:
    outside = [f"{paths.text(path)} (outside of Claude Code)" for path in found.outside]
    changed = [*map(paths.text, found.pending), *outside]
    yield Facts(
        [
            ("pending", _changed(len(changed)) if changed else "nothing"),
            ("to write", ", ".join(f"{name} of {one_line(path)}" for path, name in behind) or "nothing"),
            ("last sync", _last_sync(found, now)),
            ("on stop", on_stop),
        ]
    )
    for path in changed[:MOST_LISTED]:
        yield f"  {one_line(path)}"
    if len(changed) > MOST_LISTED:
        yield f"  and {len(changed) - MOST_LISTED:,} more"
    for file in found.files:
        yield ""
        yield from _file(file, found.root)
    if behind or changed:
        yield "\n`backstory sync` brings CLAUDE.md up to date."
    states = [one for file in found.files if file.state for one in file.state.sections]
    if any(one.offered is not None for one in states):
        yield f"\nOffered: {in_backticks('diff', 'NAME', None)} shows it, then `accept` or `keep`."
    if any(one.behind for one in states):
        yield f"\nBehind: what Claude wrote this about has changed. {LOOKED_AT}"


def _file(file: FileStatus, root: str) -> Iterator[Shown]:
    name = file_name(file.path, root)
    if file.state is None:
        gone = "  is gone, or cannot be read; `backstory init` makes it, or says why"
        yield Line(((name, "bold"), (gone, "yellow")), WHOLE)
        return
    lines = number_of(file.state.lines, "line", "lines")
    tokens = number_of(file.state.tokens, "token", "tokens")
    yield Line(((name, "bold"), (f"  {lines}, {tokens}", "dim")))
    yield from table(file.state)
    wrong = [f"{one.section} names {one_line(one.reference)}, which is not there" for one in file.stale]
    begins = "begins like a setting of backstory's and is none; it stays as it is"
    wrong += [f"line {line}: {begins}" for line in file.misread]
    wrong += [f"line {problem.line}: {problem.said}" for problem in file.state.problems]
    for sentence in wrong:
        yield Line(("", (sentence, "yellow")), WRAP, 2)


def value_of_status(found: Status, on_stop: str) -> dict[str, Any]:
    gone = {"lines": 0, "tokens": 0, "sections": [], "problems": []}
    return {
        "root": paths.text(found.root),
        "pending": [paths.text(path) for path in found.pending],
        "outside": [paths.text(path) for path in found.outside],
        "synced_at": found.synced_at,
        "on_stop": on_stop,
        "files": [
            {
                **(value_of(file.state) if file.state else gone),
                "file": paths.text(os.path.relpath(file.path, found.root)),
                "there": file.state is not None,
                "template": file.template,
                "synced_at": file.synced_at,
                **plain({name: getattr(file, name) for name in ("unknown", "misread", "stale")}),
            }
            for file in found.files
        ],
    }


def _some(things: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(one_line(paths.text(thing)) for thing in things[:most])
    return shown + (f" and {len(things) - most:,} more" if len(things) > most else "")
