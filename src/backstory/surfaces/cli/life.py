"""Commands for the life of a memory: each parses, calls one function, prints."""

from __future__ import annotations

from collections.abc import Callable

import click

from backstory.memory import salience
from backstory.store import documents, life, memories, nodes, projects
from backstory.store.file.connection import transaction
from backstory.surfaces.cli import output
from backstory.surfaces.cli.common import busy, memory_id, prints, project_option, store
from backstory.surfaces.shapes import Reply, changed, done, number_of, plain


@click.command()
@click.argument("memory", metavar="ID")
@click.option("--amount", type=float, default=salience.REINFORCED, help="How much, up to 1.")
@project_option
@prints
def reinforce(memory: str, amount: float, project: str) -> Reply:
    """Make a memory more present. By 0.1 of what is missing to 1, unless said otherwise."""
    return _changed(memory, project, "reinforced", life.reinforce, amount)


@click.command()
@click.argument("memory", metavar="ID")
@click.option("--amount", type=float, default=salience.DEEMPHASIZED, help="How much, up to 1.")
@project_option
@prints
def deemphasize(memory: str, amount: float, project: str) -> Reply:
    """Make a memory less present. By 0.2, unless said otherwise."""
    return _changed(memory, project, "de-emphasized", life.deemphasize, amount)


@click.command()
@click.argument("memory", metavar="ID")
@project_option
@prints
def restore(memory: str, project: str) -> Reply:
    """Bring back what was forgotten, superseded or archived."""
    return _changed(memory, project, "restored", life.restore, of_any=True)


@click.command()
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@project_option
@prints
def supersede(old: str, new: str, project: str) -> Reply:
    """Say that memory NEW replaces memory OLD. OLD stays, but is left out of answers."""
    with store() as (db, now):
        old_id, new_id = memory_id(db, old, project), memory_id(db, new, project)
        with transaction(db):
            life.supersede(db, life.known(db, old_id), life.known(db, new_id), None, now, said_by="user")
    return done(f"Memory {old_id} superseded by {new_id}", superseded=old_id, by=new_id)


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say how many there are.")
@prints
def prune(dry_run: bool) -> Reply:
    """Archive traces of old sessions that nobody came back to. `backstory restore ID` brings one back."""
    with store() as (db, now), busy("looking for what faded"):
        faded = len(life.faded(db, now, limit=None)) if dry_run else life.prune(db, now)
    sentence = f"{number_of(faded, 'trace', 'traces')} {'would be archived' if dry_run else 'archived'}"
    return done(sentence, archived=0 if dry_run else faded, faded=faded)


@click.command()
@prints
def reindex() -> Reply:
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
    return done(f"{number_of(made, 'vector', 'vectors')} made by {model}", made=made, model=model)


def _changed(
    prefix: str, project: str, what: str, change: Callable[..., object], *how: float, of_any: bool = False
) -> Reply:
    """One memory that is there (`of_any`: or was forgotten or archived), changed; and what it is worth."""
    with store() as (db, now):
        one = memory_id(db, prefix, project)
        with transaction(db):
            if not of_any:
                life.living(db, one)
            change(db, one, *how, None, now)
        memory = memories.get(db, one, now)
    assert memory is not None  # noqa: S101  it was changed a line ago
    return done(changed(what, memory), done=what, **plain(memory))
