"""The command line. A command parses, calls one function, prints; only `main` turns errors into exit codes.

0  done    1  the answer is no, or not found    2  wrong use    3  a fault of ours
"""

from __future__ import annotations

import io
import os
import sys
from dataclasses import asdict
from typing import Any

import click

from backstory import errors, log, paths
from backstory.clients import claude_code
from backstory.model import MODES
from backstory.store import life as lives
from backstory.store import memories, projects
from backstory.store import turns as stored_turns
from backstory.surfaces import shapes
from backstory.surfaces.cli import (
    backfill,
    backup,
    claude_md,
    common,
    docmem,
    docs,
    exchange,
    forget,
    life,
    output,
    redact,
    request,
    sections,
    sessions,
    slash,
    spend,
    stats,
    worker_status,
)
from backstory.surfaces.cli import projects as projects_command
from backstory.surfaces.cli.common import folder, json_option, project_and_json, store, typed
from backstory.surfaces.cli.groups import Commands, help_command

MOST_LISTED = 1_000


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="backstory", message="backstory %(version)s")
def cli() -> None:
    """A memory for Claude Code: what happened, kept and found again."""


@cli.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--mode", type=click.Choice(MODES), default="hybrid", show_default=True, help="How to look.")
@common.filter_options
@click.option("--superseded", is_flag=True, help="Also what something newer replaced.")
@click.option("--everywhere", is_flag=True, help="In all projects, not only in this one.")
@click.option("--explain", is_flag=True, help="Show what each score is made of.")
@click.option("--limit", default=10, show_default=True, help="How many, 1 to 100.")
@project_and_json
def search(
    query: tuple[str, ...],
    mode: str,
    limit: int,
    project: str,
    superseded: bool,
    everywhere: bool,
    explain: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    """Find memories by what they say and mean, or one by its id.

    A turn is shown with what was asked, what of it fits, and its commits; `backstory show ID` has it whole.
    Traces of single tool uses are found where nothing else fits, or with --kind tool or --sector episodic."""
    from backstory.recall.answer import answer
    from backstory.recall.index import Index
    from backstory.surfaces.cli import terminal

    with store() as (db, now):
        chosen = common.filters_from(db, now, filters)
        with common.busy("searching"):  # the first search makes vectors
            found = answer(
                Index.configured(),
                db,
                project,
                typed(query),
                now=now,
                mode=mode,
                limit=limit,
                filters=chosen,
                include_superseded=superseded,
                patience=common.FILL_SECONDS,
                everywhere=everywhere,
                room=shapes.ROOM_AS_JSON if as_json else terminal.ROOM,
            )
        sentence = "No memories found. Other words may do; `backstory sessions` lists what there is."
        none = "" if found.hits else common.nothing(db, sentence, project)
    if found.hits and not found.fits:
        click.echo("Nothing fits well; these are the nearest:", err=True)
    if as_json:
        output.as_json(found.hits)
    elif found.hits:
        terminal.hits(found.hits, paths.place(project).root, explain)
    if found.notice:
        click.echo(found.notice, err=True)
    if not found.hits:
        raise errors.NotFound(none)


@cli.command("list")
@common.filter_options
@click.option("--forgotten", is_flag=True, help="What was forgotten, for `backstory restore`.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, MOST_LISTED), help="How many.")
@project_and_json
def listing(forgotten: bool, limit: int, project: str, as_json: bool, **filters: Any) -> None:
    """List memories of this project, newest first.

    Your global ones are listed as well. A turn is one line: what was asked, and how it was answered. Traces
    of single tool uses are listed with --kind tool or --forgotten."""
    from backstory.surfaces.cli import terminal

    with store() as (db, now):
        ranges = projects.ranges(db, projects.at(db, paths.place(project)))
        chosen = common.filters_from(db, now, filters)
        # What was forgotten is little, and somebody chose it.
        of_tools = {"forgotten": forgotten, "traces": forgotten or chosen.kind == "tool"}
        every = memories.newest(db, ranges, chosen, **of_tools, limit=MOST_LISTED + 1, now=now)
        found = every[:limit]
        turns = stored_turns.by_ids(db, [memory.id for memory in found if memory.kind == "turn"])
        sentence = (
            "No memories. `backstory add` keeps a note; sessions bring the rest. --kind tool lists tool uses."
        )
        none = "" if found else common.nothing(db, sentence, project)
    if as_json:
        output.as_json([asdict(memory) for memory in found])
    else:
        terminal.memories(found, turns, paths.place(project).root)
    if len(every) > limit:
        total = len(every) if len(every) <= MOST_LISTED else f"more than {MOST_LISTED:,}"
        click.echo(f"{limit} of {total}; --limit shows more", err=True)
    if not found:
        raise errors.NotFound(none)


@cli.command()
@click.argument("memory_id", metavar="ID")
@project_and_json
def show(memory_id: str, project: str, as_json: bool) -> None:
    """Show one memory or turn whole.

    The beginning of its id is enough; `backstory search` and `backstory list` show ids."""
    from backstory.recall.answer import stale
    from backstory.surfaces.cli import terminal

    with store() as (db, now):
        known = common.memory_id(db, memory_id, project, anywhere=True)
        memory = memories.get(db, known, now)
        archived = lives.archived(db, known) or {}
        relations = lives.relations(db, known)
        turn = stored_turns.by_ids(db, [known]).get(known)
    if memory is None:
        return output.as_json(archived) if as_json else terminal.archived(archived)
    changed = stale(memory, paths.checkout(project))
    if as_json:
        named = ("source", "relation", "target")
        related = [dict(zip(named, one, strict=True)) for one in relations]
        output.as_json({**asdict(memory), "stale": list(changed), "relations": related})
    else:
        terminal.memory(memory, turn, changed, relations)


@cli.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--sector", type=common.SECTOR, help="What kind of memory it is.")
@click.option("--tag", "tags", multiple=True, help="A tag; may be given more than once.")
@click.option("--importance", type=float, help="From 0 to 1.  [default: 0.5]")
@click.option(
    "--global", "is_global", is_flag=True, help="For all your projects: it is about you, not about one."
)
@project_and_json
def add(text: tuple[str, ...], project: str, as_json: bool, **given: Any) -> None:
    """Remember a note. `-` reads it from standard input."""
    from backstory.intake.note import keep

    content = typed(text)
    if content == "-":
        content = sys.stdin.read() if sys.stdin else ""
    with store() as (db, now):
        kept = keep(db, project, content, now=now, source="user", **given)
    output.answer(as_json, {"created": kept.is_new, **asdict(kept.memory)}, str(kept))


@cli.command("open")
@project_and_json
def opened(project: str, as_json: bool) -> None:
    """List what the last session left open.

    A question, a failing check, files without a commit, next steps: of the last session on this branch, as
    the brief of the next one has them. `backstory show ID` tells the turn that left them."""
    from backstory.recall.brief import left_open

    with store() as (db, _):
        lines = left_open(db, project, claude_code.session_id(os.environ))
        none = "" if lines else common.nothing(db, slash.NOTHING_OPEN, project)
    if as_json:
        output.as_json([{"memory_id": line.memory_id, "text": line.text} for line in lines])
    for line in [] if as_json else lines:
        output.say(output.visible(line.text))
    if not lines:
        raise errors.NotFound(none)


@cli.command()
@click.option("--claude", metavar="PATH", help="The Claude Code to register with.  [default: from PATH]")
@click.option(
    "--synthesizer",
    type=click.Choice(["auto", "local"]),
    help="Who makes memories of what was captured: auto (a small model through your own Claude Code; it is"
    " sent prompts, answers and excerpts of tool uses) or local (rules; nothing is sent).",
)
@click.option(
    "--statusline/--no-statusline",
    default=None,
    help="Whether Claude Code's status line shows one of backstory. Another one is never replaced.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def install(
    claude: str | None, synthesizer: str | None, statusline: bool | None, yes: bool, as_json: bool
) -> None:
    """Register the plugin with Claude Code.

    Safe to repeat, and to run after an upgrade. It says first what would be sent to a model, and at a
    terminal lets you choose."""
    from backstory.surfaces.cli import install as plugin
    from backstory.surfaces.cli import status_line

    may_ask = not (yes or as_json) and sys.stderr.isatty() and bool(sys.stdin and sys.stdin.isatty())
    client = plugin.find_client(claude)
    done = plugin.settle_synthesizer(folder(), synthesizer, may_ask)
    done += plugin.install(folder(), client)
    done += status_line.offer(os.environ, statusline, may_ask)
    if offered := backfill.offer(folder()):
        done.append(offered)
    output.answer(as_json, done, output.wrapped("\n".join(done)))


@cli.command()
@click.option("--claude", metavar="PATH", help="The Claude Code to remove it from.  [default: from PATH]")
@json_option
def uninstall(claude: str | None, as_json: bool) -> None:
    """Remove the plugin from Claude Code. The memories stay."""
    from backstory.surfaces.cli import install as plugin

    done = plugin.uninstall(folder(), claude)
    output.answer(as_json, done, output.wrapped("\n".join(done)))


groups = (
    sessions.sessions,
    backup.backup,
    docmem.docmem,
    docs.docs,
    sections.claude_md,
    projects_command.projects,
)
commands = (
    *claude_md.COMMANDS,
    *life.COMMANDS,
    *exchange.COMMANDS,
    *forget.COMMANDS,
    *stats.COMMANDS,
    projects_command.pause,
    projects_command.resume,
    slash.slash,
    redact.redact,
    sessions.sessions,
    spend.spend,
    worker_status.worker,
    backfill.command,
    help_command,
)
for command in (*groups, *commands):
    cli.add_command(command)
sections.claude_md.add_command(claude_md.status)
sections.claude_md.add_command(request.request)


def _settings(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """What the shell's completion offers: names of settings, then the values of one that has a few."""
    from backstory.config import CHOICES
    from backstory.surfaces.cli.config import ABOUT

    name = context.params.get("name")
    if param.name == "value":
        offered = sorted(ABOUT) if name == "unset" else CHOICES.get(str(name), ())
    else:
        offered = [*sorted(ABOUT), "unset"]
    return [one for one in offered if one.startswith(begun)]


@cli.command(context_settings={"ignore_unknown_options": True})  # -1 is a value, if a wrong one
@click.argument("name", required=False, shell_complete=_settings)
@click.argument("value", required=False, shell_complete=_settings)
@json_option
def config(name: str | None, value: str | None, as_json: bool) -> None:
    """List the settings, tell one, set one or unset one.

    \b
      backstory config                        all of them, and where each value comes from
      backstory config spend.daily_usd        one value alone
      backstory config spend.daily_usd 0.5    set it
      backstory config unset spend.daily_usd  back to the default
      backstory config embedding.key -        read the value from standard input

    They are kept in config.toml in the data folder, of which nothing but the one line is changed. An
    environment variable such as BACKSTORY_SPEND_DAILY_USD wins over the file."""
    from backstory.surfaces.cli import config as settings

    if name == "unset":
        if value is None:
            raise errors.BadInput(
                "name the setting: backstory config unset NAME; `backstory config` lists all"
            )
        settings.unset(folder(), typed([value]), as_json)
    elif name is None:
        settings.tell_all(folder(), as_json)
    elif value is None:
        settings.tell(folder(), name, as_json)
    else:
        given = (sys.stdin.read().strip() if sys.stdin else "") if value == "-" else typed([value])
        settings.change(folder(), name, given, as_json)


@cli.command()
def statusline() -> None:
    """Print a line for Claude Code's status line.

    It reads what Claude Code tells on standard input. `backstory install` offers to put it into your
    settings; or do so yourself, in ~/.claude/settings.json:

    "statusLine": {"type": "command", "command": "backstory statusline"}"""
    from backstory.surfaces.statusline import main as line

    line()


@cli.group(invoke_without_command=True)
@click.pass_context
def mcp(context: click.Context) -> None:
    """Serve the MCP tools, over stdio; Claude Code starts this."""
    if context.invoked_subcommand is None:
        _serve("backstory")


@mcp.command("memory")
def mcp_memory() -> None:
    """Only the tools to search, add to and correct memories."""
    _serve("memory")


@mcp.command("docmem")
def mcp_docmem() -> None:
    """Only the tools to write and read trees of nodes, and to show them in CLAUDE.md."""
    _serve("docmem")


def _serve(server: str) -> None:
    from backstory.surfaces.mcp.start import serve

    serve(server)


def main() -> None:
    """Every error ends here, as one sentence and an exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # no locale is too small to print in
    # An empty or relative entry is the current folder, somebody's project, of which nothing is run.
    os.environ["PATH"] = paths.whole_entries(os.environ.get("PATH", ""))
    sys.exit(_run(cli))


def _run(command: click.Command) -> int:  # noqa: PLR0911  one line an error
    try:
        command(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    except (errors.NotFound, errors.ClientError, errors.EmbedderAway) as error:
        return _complain(error, 1)
    except errors.BadInput as error:
        return _complain(error, 2)
    except errors.BackstoryError as error:
        return _complain(common.unusable(error.__cause__) or error, 3)
    except BrokenPipeError:
        _silence()  # the reader has had enough
        return 0
    except OSError as error:
        _silence()
        if isinstance(error, FileNotFoundError) and not error.filename:
            return _complain("the current folder is gone; go to one that exists", 2)
        return _complain(common.unusable(error) or error, 3)
    except Exception as error:  # noqa: BLE001  the edge of the program
        if what_to_do := common.unusable(error):
            return _complain(what_to_do, 3)
        log.crash("cli")
        return _complain(f"{type(error).__name__}: {error} (a fault of backstory; the log has more)", 3)
    return 0


def _silence() -> None:
    """Python flushes at the end; what could not be printed before must not fail there again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _complain(message: object, code: int) -> int:
    click.echo(f"backstory: {output.visible(str(message))}", err=True)
    return code
