"""Commands for the life of a memory: each parses, calls one function, prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import click

from backstory import paths
from backstory.memory import salience
from backstory.store import documents, life, memories, nodes, projects, turns
from backstory.store.file.connection import Connection, transaction
from backstory.surfaces.cli import output
from backstory.surfaces.cli.common import busy, json_option, memory_id, project_and_json, store


@click.command()
@click.argument("anchor", metavar="ID")
@click.option(
    "--before",
    default=5,
    show_default=True,
    help="How many turns, or memories outside any, before it: 0 to 50.",
)
@click.option(
    "--after",
    default=5,
    show_default=True,
    help="How many turns, or memories outside any, after it: 0 to 50.",
)
@project_and_json
def timeline(anchor: str, before: int, after: int, project: str, as_json: bool) -> None:
    """Show what happened around a memory, turn by turn."""
    from backstory.recall import timeline as recall
    from backstory.surfaces.cli import terminal

    with store() as (db, now):
        found = recall.timeline(
            db, life.living(db, memory_id(db, anchor, project, anywhere=True)), before, after, now
        )
        told = turns.by_ids(db, [entry.id for entry in found.entries if entry.kind == "turn"])
    if as_json:
        output.as_json(asdict(found))
    else:
        terminal.timeline(found, told, paths.place(project).root)


@click.command()
@click.argument("memory", metavar="ID")
@click.option("--amount", type=float, default=salience.REINFORCED, help="How much, up to 1.")
@project_and_json
def reinforce(memory: str, amount: float, project: str, as_json: bool) -> None:
    """Make a memory more present. By 0.1 of what is missing to 1, unless said otherwise."""
    with _changing(memory, project, as_json, "reinforced") as (db, known, now):
        life.reinforce(db, known, amount, None, now)


@click.command()
@click.argument("memory", metavar="ID")
@click.option("--amount", type=float, default=salience.DEEMPHASIZED, help="How much, up to 1.")
@project_and_json
def deemphasize(memory: str, amount: float, project: str, as_json: bool) -> None:
    """Make a memory less present. By 0.2, unless said otherwise."""
    with _changing(memory, project, as_json, "de-emphasized") as (db, known, now):
        life.deemphasize(db, known, amount, None, now)


@click.command()
@click.argument("memory", metavar="ID")
@project_and_json
def restore(memory: str, project: str, as_json: bool) -> None:
    """Bring back what was forgotten, superseded or archived."""
    with _changing(memory, project, as_json, "restored", of_any=True) as (db, known, now):
        life.restore(db, known, None, now)


@click.command()
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@project_and_json
def supersede(old: str, new: str, project: str, as_json: bool) -> None:
    """Say that memory NEW replaces memory OLD. OLD stays, but is left out of answers."""
    with store() as (db, now):
        old_id, new_id = memory_id(db, old, project), memory_id(db, new, project)
        with transaction(db):
            life.supersede(db, life.known(db, old_id), life.known(db, new_id), None, now, said_by="user")
    said = f"Memory {old_id} superseded by {new_id}"
    output.answer(as_json, {"superseded": old_id, "by": new_id}, said)


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say how many there are.")
@json_option
def prune(dry_run: bool, as_json: bool) -> None:
    """Archive traces of old sessions that nobody came back to. `backstory restore ID` brings one back."""
    with store() as (db, now), busy("looking for what faded"):
        done = len(life.faded(db, now, limit=None)) if dry_run else life.prune(db, now)
    said = f"{output.number_of(done, 'trace', 'traces')} {'would be archived' if dry_run else 'archived'}"
    output.answer(as_json, {"archived": 0 if dry_run else done, "faded": done}, said)


@click.command()
@json_option
def reindex(as_json: bool) -> None:
    """Make the vectors that are missing, for all projects.

    That is needed after a change of embedder, or to have the first search quick after a backfill."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from backstory.recall.index import Index
    from backstory.surfaces.cli import terminal

    index, made = Index.configured(), 0
    index.load()
    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with store() as (db, _), Progress(*bar, **terminal.progress()) as shown:
        for project in projects.every(db):
            for source in (memories, documents, nodes):
                corpus = index.corpus(db, source, project)
                missing = len(corpus.without_vector())
                task = shown.add_task(output.visible(project.name), total=missing, visible=missing > 0)
                index.fill(db, corpus, progress=lambda done, _, task=task: shown.update(task, completed=done))  # type: ignore[misc]
                made += missing
        model = index.embedder.id
    said = f"{output.number_of(made, 'vector', 'vectors')} made by {model}"
    output.answer(as_json, {"made": made, "model": model}, said)


@contextmanager
def _changing(
    prefix: str, project: str, as_json: bool, done: str, *, of_any: bool = False
) -> Iterator[tuple[Connection, str, int]]:
    """One memory that is there (`of_any`: or was forgotten or archived), for one change; then it is said what
    it is worth now."""
    with store() as (db, now):
        known = memory_id(db, prefix, project)
        with transaction(db):
            if not of_any:
                life.living(db, known)
            yield db, known, now
        memory = memories.get(db, known, now)
    assert memory is not None  # noqa: S101  it was changed a line ago
    said = f"Memory {done}: {known} (salience: {memory.salience:.2f})"
    output.answer(as_json, {"done": done, **asdict(memory)}, said)


COMMANDS = (timeline, reinforce, deemphasize, restore, supersede, prune, reindex)
