"""`backstory status`: how it is, of everything: memory, capture, what was told, CLAUDE.md, trees; and what to
do where something is wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

from backstory import config, dirty, errors, paths
from backstory.capture import spool
from backstory.claude_md import status as claude_md
from backstory.clients import claude_code, claude_settings
from backstory.model import ProjectOverview
from backstory.recall.brief import left_open
from backstory.store import projects, sessions, spend, tellings
from backstory.store.file.connection import Connection
from backstory.surfaces.cli import claude_md_output, output, pausing, terminal, worker_status
from backstory.surfaces.cli.worker_status import Chosen, Queue
from backstory.synthesis.runner import midnight


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
    claude_md: claude_md.Status | None
    model_trouble: str | None
    open: int  # things that earlier sessions left open, as the brief counts them


def look(db: Connection, home: str, project: str, env: Mapping[str, str], now: int) -> Status:
    place = paths.place(project)
    known = projects.id_at(db, place)
    overview = projects.overview(db)
    here = next((one for one in overview if one.id == known), None)
    root = dirty.root_of(project)
    failures = spool.failures(paths.spool(home))
    queue, synthesizer = worker_status.look(db, now), worker_status.synthesizer(env)
    capture = Capture(
        plugin=_is_enabled(env),
        last_event=sessions.last_event(db),
        waiting=len(spool.waiting(paths.spool(home))),
        failed=len(failures),
        last_failure=failures[-1][1] if failures else "",
        paused=pausing.told(db, known or ""),
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
        claude_md=claude_md.status(db, root) if root else None,
        model_trouble=worker_status.model_trouble(queue, synthesizer, now),
        open=len(left_open(db, project, claude_code.session_id(env))),
    )


def _is_enabled(env: Mapping[str, str]) -> bool | None:
    """Asked of the settings: to ask the client itself takes a second."""
    at = claude_code.config_folder(env)
    try:
        with open(claude_settings.settings_file(at or ""), encoding="utf-8") as file:
            return claude_settings.enables(file.read(), "backstory")
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return None


def to_do(found: Status) -> list[str]:
    """A line for each thing that is wrong, with what to do; the worst first."""
    capture, lines = found.capture, []
    if capture.failed:
        what = output.number_of(capture.failed, "event", "events")
        lines.append(f"{what} could not be stored ({capture.last_failure}): backstory doctor")
    if capture.plugin is False and capture.last_event is None:
        lines.append("nothing is captured, the plugin is not registered with Claude Code: backstory install")
    if capture.paused:
        lines.append(capture.paused)
    waiting = [reason for state, reason, *_ in found.queue.troubles if state == "waiting"]
    if waiting:
        lines.append(f"memories could not be made yet ({waiting[0]}): backstory worker")
    elif found.model_trouble:
        lines.append(f"the model failed, {found.model_trouble}; backstory doctor says more")
    if found.claude_md and (found.claude_md.pending or found.claude_md.outside):
        lines.append("CLAUDE.md is behind: backstory sync")
    return lines


def plain(found: Status) -> dict[str, Any]:
    texts, tokens = found.told
    here = found.project
    return {
        "root": paths.text(found.root),
        "memory": asdict(here) if here else None,
        "projects": found.all_projects,
        "open": found.open,
        "capture": asdict(found.capture),
        "synthesis": {
            **asdict(found.synthesizer),
            **found.queue.plain,
            "spent_today": found.spent_today,
            "daily_usd": found.cap,
        },
        "told_today": {"texts": texts, "tokens": tokens},
        "claude_md": claude_md_output.plain_status(found.claude_md, _on_stop()) if found.claude_md else None,
        "trees": here.trees if here else 0,
        "to_do": to_do(found),
    }


def _on_stop() -> str:
    try:
        return config.on_stop(os.environ)
    except errors.BadInput as error:
        return str(error)


def show(found: Status, now: int) -> None:
    out = terminal.console()
    trees = found.project.trees if found.project else 0
    terminal.facts(
        out,
        [
            ("memory", _memory(found, now)),
            ("open", _open(found.open)),
            ("capture", _capture(found.capture, now)),
            ("synthesis", _synthesis(found)),
            ("told today", _told(found.told)),
            ("CLAUDE.md", _claude_md(found, now)),
            ("trees", output.number_of(trees, "tree", "trees") if trees else "none"),
        ],
    )
    for line in to_do(found):
        said = Text(output.one_line(line, 300), style="yellow")
        terminal.hanging(out, Text("to do: ", style="yellow"), said, indent=7)


def _memory(found: Status, now: int) -> str:
    here = found.project
    elsewhere = f"; {output.number_of(found.all_projects, 'project', 'projects')} in all"
    if here is None or not (here.sessions or here.memories):
        return f"nothing of this folder yet{elsewhere if found.all_projects else ''}"
    parts = [
        output.number_of(here.sessions, "session", "sessions"),
        output.number_of(here.turns, "turn", "turns"),
        output.number_of(here.memories, "memory", "memories"),
    ]
    if here.documents:
        parts.append(output.number_of(here.documents, "document", "documents"))
    return f"{', '.join(parts)}, the newest {output.lately(here.last_used, now)}{elsewhere}"


def _open(number: int) -> str:
    """Only where there is something: a new project has nothing, and nothing to learn from that."""
    things = output.number_of(number, "thing", "things")
    return f"{things} left by the last session; /backstory:open in Claude Code lists them" if number else ""


def _capture(seen: Capture, now: int) -> str:
    plugin = {
        True: "plugin enabled",
        False: "plugin not in Claude Code's settings",
        None: "Claude Code's settings cannot be read",
    }[seen.plugin]
    last = f"last event {output.lately(seen.last_event, now)}" if seen.last_event else "no event yet"
    parts = [plugin, last, f"{seen.waiting:,} waiting", f"{seen.failed:,} failed"]
    return ", ".join([*parts, *(["paused here"] if seen.paused else [])])


def _synthesis(found: Status) -> str:
    who = str(found.synthesizer).removeprefix("synthesizer ")
    is_paid = found.synthesizer.uses == "claude"
    cost = f"; ${found.spent_today:.2f} of ${found.cap:.2f} today" if is_paid else ""
    runs = f"worker {found.capture.worker} runs" if found.capture.worker else "no worker runs"
    return f"{who}{cost}; {runs}, {worker_status.waiting_told(found.queue)}"


def _told(told: tuple[int, int]) -> str:
    texts, tokens = told
    if not texts:
        return "nothing"
    return f"{output.number_of(texts, 'text', 'texts')}, {output.number_of(tokens, 'token', 'tokens')}"


def _claude_md(found: Status, now: int) -> str:
    seen = found.claude_md
    if seen is None:
        return "not kept by backstory; `backstory init` sets that up"
    changed = len(seen.pending) + len(seen.outside)
    behind = f"{output.number_of(changed, 'file', 'files')} changed since" if changed else "up to date"
    last = f"the last sync {output.lately(seen.synced_at, now)}" if seen.synced_at else "never synced"
    edited = sum(one.is_edited for file in seen.files if file.state for one in file.state.sections)
    stale = sum(len(file.stale) for file in seen.files)
    parts = [output.number_of(len(seen.files), "file", "files"), behind, last]
    parts += [f"{output.number_of(edited, 'section', 'sections')} edited by hand"] if edited else []
    parts += [f"{output.number_of(stale, 'stale reference', 'stale references')}"] if stale else []
    return ", ".join(parts)
