"""`backstory status`: how it is, of everything: memory, capture, what was told, CLAUDE.md, trees; and what to
do where something is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from backstory import config, dirty, errors, paths
from backstory.capture import spool
from backstory.clients import claude_code, claude_settings
from backstory.model import ProjectOverview
from backstory.store import claude_files, projects, sessions, spend, tellings
from backstory.store.file.connection import Connection
from backstory.surfaces.cli import pausing, status_line, worker_status
from backstory.surfaces.cli.common import busy, folder, prints, project_option, store
from backstory.surfaces.cli.worker_status import DAY_MS, Chosen, Queue, Retention
from backstory.surfaces.shapes import (
    WRAP,
    Facts,
    Line,
    Reply,
    Shown,
    counted,
    lately,
    number_of,
    one_line,
    plain,
)

if TYPE_CHECKING:
    from backstory.claude_md.status import Status as FileStatus


@dataclass(frozen=True, slots=True)
class Capture:
    plugin: bool | None  # enabled in Claude Code's settings; None where these cannot be read
    last_event: int | None
    waiting: int
    failed: int
    last_failure: str
    paused: str | None  # in a sentence
    worker: int | None  # its pid


@dataclass(frozen=True, slots=True)
class Status:
    root: str
    project: ProjectOverview | None
    all_projects: int
    capture: Capture
    queue: Queue
    synthesizer: Chosen
    spent_today: float
    cap: float
    told: tuple[int, int]  # texts and tokens today
    claude_md: FileStatus | None
    model_trouble: str | None
    retention: Retention
    open: int  # things that earlier sessions left open, as the brief counts them


def look(db: Connection, home: str, project: str, env: Mapping[str, str], now: int) -> Status:
    from backstory.claude_md.status import status as of_files
    from backstory.recall.brief import left_open
    from backstory.synthesis.runner import midnight

    place = paths.place(project)
    known = projects.id_at(db, place)
    overview = projects.overview(db)
    here = next((project for project in overview if project.id == known), None)
    try:
        root = dirty.adopt(project, partial(claude_files.get, db))
    except errors.BackstoryError:  # the folder cannot be written
        root = None
    failures = spool.failures(paths.spool(home))
    queue, synthesizer = worker_status.look(db, now), worker_status.synthesizer(env)
    capture = Capture(
        plugin=_is_enabled(env, place.root),
        last_event=sessions.last_event(db),
        waiting=len(spool.waiting(paths.spool(home))),
        failed=len(failures),
        last_failure=failures[-1][1] if failures else "",
        paused=pausing.sentence(db, known or ""),
        worker=worker_status.running(home),
    )
    return Status(
        root=place.root,
        project=here,
        all_projects=len(overview),
        capture=capture,
        queue=queue,
        synthesizer=synthesizer,
        spent_today=spend.since(db, midnight(now)),
        cap=config.number("spend.daily_usd", env),
        told=tellings.total(db, since=midnight(now)),
        claude_md=of_files(db, root) if root else None,
        model_trouble=worker_status.model_trouble(queue, synthesizer, now),
        retention=worker_status.retention(db),
        open=len(left_open(db, project, claude_code.session_id(env))),
    )


def _is_enabled(env: Mapping[str, str], root: str) -> bool | None:
    """Asked of the settings: to ask the client itself takes a second."""
    path = status_line.settings_path(env)
    if path is None:
        return None
    files = [path, *claude_settings.project_settings_files(root)]
    try:
        return any(claude_settings.enables(status_line.read_settings(file), "backstory") for file in files)
    except (OSError, ValueError):
        return None


def to_do(status: Status, now: int) -> list[str]:
    """A line for each thing that is wrong, with what to do; the worst first."""
    capture, lines = status.capture, []
    if capture.failed:
        what = number_of(capture.failed, "event", "events")
        lines.append(f"{what} could not be stored ({capture.last_failure}): backstory doctor")
    if capture.plugin is False:
        lines.append("nothing is captured, the plugin is not registered with Claude Code: backstory install")
    if capture.paused:
        lines.append(capture.paused)
    queue, who = status.queue, status.synthesizer
    waiting = [reason for state, reason, *_ in queue.troubles if state == "waiting"]
    if who.setting == "claude" and who.uses is None:
        lines.append(f"no memories are made, {who.why}; or: backstory config synthesizer auto")
    elif waiting:
        lines.append(f"memories could not be made yet ({waiting[0]}): backstory worker")
    elif status.model_trouble:
        lines.append(f"the model failed, {status.model_trouble}: backstory worker --status")
    elif queue.due and queue.since is not None and now - queue.since > DAY_MS:
        lines.append("memories are more than a day late: backstory worker")
    if who.uses == "claude" and 0 < status.cap <= status.spent_today:
        lines.append("the model's cap of the day is reached, rules observe until midnight: backstory spend")
    if status.claude_md and (status.claude_md.pending or status.claude_md.outside):
        lines.append("CLAUDE.md is behind: backstory sync")
    return lines


@click.command("status")
@project_option
@prints
def status(project: str) -> Reply:
    """Show how it is: memory, capture, CLAUDE.md; and what to do.

    `backstory claude-md status` has more about CLAUDE.md, `backstory worker --status` about what waits,
    `backstory doctor` tries every part out."""
    from backstory.surfaces.cli.claude_md_output import value_of_status

    with store() as (db, now), busy("looking"):
        seen = look(db, folder(), project, os.environ, now)
    here, texts_and_tokens = seen.project, zip(("texts", "tokens"), seen.told, strict=True)
    value = {
        "root": paths.text(seen.root),
        "memory": here,
        "projects": seen.all_projects,
        "open": seen.open,
        "capture": seen.capture,
        "synthesis": {
            **plain(seen.synthesizer),
            **plain(seen.queue),
            "spent_today": seen.spent_today,
            "daily_usd": seen.cap,
        },
        "told_today": dict(texts_and_tokens),
        "claude_md": value_of_status(seen.claude_md, _on_stop()) if seen.claude_md else None,
        "trees": here.trees if here else 0,
        "retention": seen.retention,
        "to_do": to_do(seen, now),
    }
    return Reply(value, _lines(seen, now))


def _on_stop() -> str:
    try:
        return config.on_stop(os.environ)
    except errors.BadInput as error:
        return str(error)


def _lines(status: Status, now: int) -> Iterator[Shown]:
    from backstory.surfaces.cli.claude_md_output import summary

    trees, (texts, tokens) = status.project.trees if status.project else 0, status.told
    told = counted((texts, "text", "texts"), (tokens, "token", "tokens"))
    yield Facts(
        [
            ("memory", _memory(status, now)),
            ("open", _open(status.open)),
            ("capture", _capture(status.capture, now)),
            ("synthesis", _synthesis(status)),
            (
                "retention",
                worker_status.retention_told(status.retention, now),
            ),
            ("told today", told + ", in all projects" * (status.all_projects > 1) if told else "nothing"),
            ("CLAUDE.md", summary(status.claude_md, now)),
            ("trees", number_of(trees, "tree", "trees") if trees else "none"),
        ]
    )
    for line in to_do(status, now):
        yield Line((("to do: ", "yellow"), (one_line(line, 300), "yellow")), WRAP, 7)


def _memory(status: Status, now: int) -> str:
    here = status.project
    elsewhere = f"; {number_of(status.all_projects, 'project', 'projects')} in all"
    if here is None or not (here.sessions or here.turns or here.memories):
        return f"nothing of this folder yet{elsewhere if status.all_projects else ''}"
    parts = [
        number_of(here.sessions, "session", "sessions"),
        number_of(here.turns, "turn", "turns"),
        number_of(here.memories, "memory", "memories"),
        *([number_of(here.documents, "document", "documents")] if here.documents else []),
    ]
    return f"{', '.join(parts)}, the newest {lately(here.last_used, now)}{elsewhere}"


def _open(number: int) -> str:
    """Only where there is something: a new project has nothing, and nothing to learn from that."""
    things = number_of(number, "thing", "things")
    lists = f"`backstory open` lists {'it' if number == 1 else 'them'}"
    return f"{things} left by the last session; {lists}" if number else ""


def _capture(seen: Capture, now: int) -> str:
    plugin = {
        True: "plugin enabled",
        False: "plugin not in Claude Code's settings",
        None: "Claude Code's settings cannot be read",
    }[seen.plugin]
    last = f"last event {lately(seen.last_event, now)}" if seen.last_event else "no event yet"
    parts = [plugin, last, f"{seen.waiting:,} waiting", f"{seen.failed:,} failed"]
    return ", ".join([*parts, *(["paused here"] if seen.paused else [])])


def _synthesis(status: Status) -> str:
    who = str(status.synthesizer).removeprefix("synthesizer ")
    is_paid = status.synthesizer.uses == "claude"
    cost = f"; ${status.spent_today:.2f} of ${status.cap:.2f} today" if is_paid else ""
    runs = f"worker {status.capture.worker} runs" if status.capture.worker else "no worker runs"
    return f"{who}{cost}; {runs}, {worker_status.waiting_told(status.queue)}"
