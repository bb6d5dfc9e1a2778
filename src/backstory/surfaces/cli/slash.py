"""What the plugin's slash commands run: `/backstory:remember`, `recall`, `forget`, `open`, `why`, `pause` and
`resume`.

Claude Code pastes what a user typed behind a command into the shell as it stands, so it is not handed over
there: the hook has taken the prompt down a moment before, and it is read from the store. Nothing that was
typed or pasted is ever part of a command line.

What is printed goes to the model, so what is remembered stands in a fence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import click

from backstory import paths
from backstory.clients import claude_code
from backstory.errors import BadInput, NotFound
from backstory.memory.turn import OWN_COMMAND
from backstory.model import Hit
from backstory.safety import fence
from backstory.store import memories, projects, sessions, tellings
from backstory.store.file.connection import Connection, transaction
from backstory.surfaces.cli import output, pausing, stats
from backstory.surfaces.cli.common import FILL_SECONDS, folder, store
from backstory.surfaces.noting import note_search
from backstory.surfaces.shapes import when

SHOWN = 5
SHOWN_OF_HIT = 700  # characters
NOTHING_OPEN = "Nothing is known to be open in this folder, on its branch."
ALL_PAUSED = "Everything is paused. The user can end that in a terminal with `backstory resume --all`."
RECENT_MS = 120_000  # so long before the command its prompt was sent, at most


def remember(db: Connection, cwd: str, session: str, typed: str, now: int) -> str:
    from backstory.intake.note import keep

    kept = keep(db, cwd, typed, now=now, session_id=session, source="user")
    with transaction(db):
        sessions.cut_own_commands(db, session, typed)
    return str(kept)


def recall(db: Connection, cwd: str, session: str, typed: str, now: int) -> str:
    hits = _search(db, cwd, session, typed, now)
    if not hits:
        return "No memories found."
    told = fence.fence("\n\n".join(map(_told, hits)), "backstory recall")
    note_search(db, cwd, session, stats.RECALL, typed, told, [hit.memory.id for hit in hits], now)
    return told


def forget(db: Connection, cwd: str, session: str, typed: str, now: int) -> str:
    ids = re.findall(r"\bmem_[0-9a-z]{12}\b", typed)
    if ids:
        found = [memory for one in ids if (memory := memories.get(db, one, now))]
        lines = [f"{one.id}  {one.kind}  {output.one_line(one.title or one.content)}" for one in found]
    else:
        lines = [output.one_line(_told(hit)) for hit in _search(db, cwd, session, typed, now)]
    if not lines:
        return "Nothing fits; nothing was forgotten."
    told = fence.fence("\n".join(lines), "backstory forget")
    return (
        "Nothing is forgotten yet. These fit:\n"
        f"{told}\n"
        "Show them to the user and ask which to forget. For each one the user confirms, and no other, call"
        " memory_delete with its id and without `hard`."
    )


def opened(db: Connection, cwd: str, session: str, typed: str, now: int) -> str:
    from backstory.recall.brief import left_open

    lines = left_open(db, cwd, session)
    if not lines:
        return NOTHING_OPEN
    return fence.fence("\n".join(line.text for line in lines), "backstory open")


def why(db: Connection, cwd: str, session: str, typed: str, now: int) -> str:
    if typed:
        try:
            _, lines = stats.explained(db, typed.split(maxsplit=1)[0], cwd, now)
        except (BadInput, NotFound) as error:
            return output.visible(str(error))
        return fence.fence(output.visible("\n".join(lines)), "backstory why")
    found = tellings.since(db, 0, session_id=session)
    if not found:
        return "Nothing was told in this session."
    return fence.fence(output.visible("\n".join(stats.session_lines(found))), "backstory why")


def pause(db: Connection, cwd: str, session: str, typed: str, now: int) -> str:
    if any(paused is None for paused, *_ in projects.paused(db)):
        return ALL_PAUSED
    place = paths.place(cwd)
    with transaction(db):
        project_id = projects.ensure(db, place, now)
    pausing.pause(folder(), db, project_id, now)
    return (
        f"{output.visible(place.name)} is paused: nothing that happens is kept until `/backstory:resume`, or"
        " `backstory resume` in a terminal."
    )


def resume(db: Connection, cwd: str, session: str, typed: str, now: int) -> str:
    if any(paused is None for paused, *_ in projects.paused(db)):
        return ALL_PAUSED
    place = paths.place(cwd)
    with transaction(db):
        project_id = projects.ensure(db, place, now)
    pausing.resume(folder(), db, project_id, now)
    if session:  # the hook dropped this prompt, but will keep the answer to it
        with transaction(db):
            sessions.start(db, session, project_id, cwd, place, now)
            sessions.keep_prompt(db, session, f"{OWN_COMMAND}resume", now)
    return f"{output.visible(place.name)} is kept again."


ACTIONS: dict[str, Callable[[Connection, str, str, str, int], str]] = {
    "remember": remember,
    "recall": recall,
    "forget": forget,
    "open": opened,
    "why": why,
    "pause": pause,
    "resume": resume,
}
INSTEAD = {"remember": "memory_add", "recall": "memory_search", "forget": "memory_search"}


@click.command(hidden=True)
@click.argument("name", type=click.Choice(list(ACTIONS)))
def slash(name: str) -> None:
    """What a slash command of the plugin runs, in the session that it was typed in."""
    session = claude_code.session_id(os.environ)
    cwd = claude_code.project_folder(os.environ)
    with store() as (db, now):
        here = projects.at(db, paths.place(cwd))
        paused = pausing.sentence(db, here.id if here else "") if name in INSTEAD else None
        typed = None if paused else _typed(db, session, name, now)
        typed = typed or "" if name not in INSTEAD else typed
        if typed is None:
            reason = paused or "what the user typed did not arrive"
            return click.echo(f"Not done: {output.visible(reason)}. {_instead(name, bool(paused))}")
        if name in INSTEAD and not typed:
            return click.echo(f"Not done: nothing was typed behind /backstory:{name}. Ask the user for it.")
        return click.echo(ACTIONS[name](db, cwd, session, typed, now))


def _instead(name: str, is_paused: bool) -> str:
    if name == "remember" and is_paused:
        return "`backstory add` in a terminal keeps a note all the same."
    return f"Use {INSTEAD[name]} with what the user typed."


def _typed(db: Connection, session: str, name: str, now: int) -> str | None:
    """What stands behind the command in the prompt that it came with."""
    said = sorted([*sessions.prompts(db, session), *sessions.own_commands(db, session)])
    for at, prompt in reversed(said[-3:]):
        command, _, rest = prompt.strip().partition(" ")
        command, line, more = command.partition("\n")
        if command.rpartition(":")[2].lstrip("/") == name and now - at < RECENT_MS:
            return f"{more} {rest}".strip() if line else rest.strip()
    return None


def _search(db: Connection, cwd: str, session: str, query: str, now: int) -> list[Hit]:
    from backstory.recall.answer import answer
    from backstory.recall.index import Index

    found = answer(
        Index.configured(),
        db,
        cwd,
        query,
        now=now,
        limit=SHOWN,
        asking=session,
        patience=FILL_SECONDS,
        room=(SHOWN_OF_HIT, SHOWN_OF_HIT),
    )
    return list(found.hits)


def _told(hit: Hit) -> str:
    memory = hit.memory
    text = str(hit.excerpt) if hit.excerpt else memory.content[:SHOWN_OF_HIT]
    asked = f" {hit.asked}" if memory.kind == "turn" and hit.asked else ""
    body = "\n  ".join(text.strip().splitlines())
    return f"{memory.id}  {when(memory.created_at)}  {memory.kind}{asked}\n  {body}"
