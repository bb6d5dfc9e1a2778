"""The commands: what each is for, as `--help` lists them, and in which module it is.

A module is imported where a command of it is run, so that none waits for what the others load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import click

GROUPS = {
    "Remember": {
        "add": ("memories", "Remember a note."),
        "forget": ("forget", "Take memories out of every answer; it can be undone."),
        "restore": ("life", "Bring back what was forgotten, superseded or archived."),
        "supersede": ("life", "Say that memory NEW replaces memory OLD."),
        "erase": ("forget", "Remove memories for good."),
        "redact": ("redact", "Redact secrets that are stored already, of all projects."),
        "backfill": ("backfill", "Remember the sessions of which Claude Code has transcripts."),
    },
    "Look": {
        "search": ("memories", "Find memories by what they say and mean, or one by its id."),
        "list": ("memories", "List memories of this project, newest first."),
        "show": ("memories", "Show one memory or turn whole."),
        "timeline": ("memories", "Show what happened around a memory, turn by turn."),
        "sessions": ("sessions", "List sessions, or tell one of them turn by turn."),
        "open": ("memories", "List what the last session left open."),
        "status": ("status", "Show how it is: memory, capture, CLAUDE.md; and what to do."),
        "stats": ("stats", "Count what was captured, told, asked and spent."),
        "why": ("stats", "Show where a memory comes from, and who was told of it."),
        "spend": ("spend", "Show what the model that writes memories cost."),
    },
    "Projects": {
        "projects": ("projects", "List projects, and say what belongs to which."),
        "pause": ("projects", "Keep nothing of what happens in a project, until `resume`."),
        "resume": ("projects", "Keep again what happens in a project."),
    },
    "CLAUDE.md": {
        "init": ("claude_md", "Write a CLAUDE.md for a project, and track what changes."),
        "sync": ("claude_md", "Bring CLAUDE.md up to date with what changed."),
        "claude-md": ("claude_md", "Parts of CLAUDE.md that backstory keeps true."),
    },
    "Trees and documents": {
        "docmem": ("docmem", "Trees of text that a model writes, edits and looks at."),
        "docs": ("docs", "Documents kept for reference."),
    },
    "Care": {
        "install": ("install", "Register the plugin with Claude Code."),
        "uninstall": ("install", "Remove the plugin from Claude Code."),
        "doctor": ("doctor", "Check every part, and say what to do where one fails."),
        "config": ("config", "List the settings, tell one, set one or unset one."),
        "backup": ("backup", "Make, list and restore backups."),
        "export": ("exchange", "Write what is remembered to a file, as JSON Lines."),
        "import": ("exchange", "Take in what `backstory export` wrote, or other memories."),
    },
}
# They are called by Claude Code or by scripts, or do what happens by itself.
RARE = {
    "deemphasize": ("life", "Make a memory less present."),
    "help": ("groups", "Tell of a command, or list the commands."),
    "mcp": ("main", "Serve the MCP tools, over stdio; Claude Code starts this."),
    "prune": ("life", "Archive traces of old sessions that nobody came back to."),
    "reindex": ("life", "Make the vectors that are missing, for all projects."),
    "reinforce": ("life", "Make a memory more present."),
    "slash": ("slash", "What a slash command of the plugin runs."),
    "statusline": ("main", "Print a line for Claude Code's status line."),
    "worker": ("worker_status", "Make memories of what was captured, here and now."),
}
EVERY = {name: about for commands in (*GROUPS.values(), RARE) for name, about in commands.items()}
MORE = "`backstory help --all` lists the rarely used ones as well, `backstory COMMAND --help` tells of one."


class Late(Mapping[str, click.Command]):
    """Every command by its name."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"backstory.surfaces.cli.{EVERY[name][0]}")
        return next(
            one for one in vars(module).values() if isinstance(one, click.Command) and one.name == name
        )

    def __iter__(self) -> Iterator[str]:
        return iter(EVERY)

    def __len__(self) -> int:
        return len(EVERY)


class Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise BrokenPipeError from error  # without its number, which click would exit with 1 for

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        is_all = ctx.meta.get("all commands", False)
        wide = max(map(len, EVERY))
        for title, commands in [*GROUPS.items(), *([("Rarely used", RARE)] if is_all else [])]:
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{wide}}", about) for name, (_, about) in commands.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not ctx.meta.get("all commands", False):
            formatter.write_paragraph()
            formatter.write_text(MORE)


@click.command("help")
@click.argument("names", nargs=-1, metavar="[COMMAND]...")
@click.option("--all", "is_all", is_flag=True, help="List every command.")
@click.pass_context
def help_command(context: click.Context, names: tuple[str, ...], is_all: bool) -> None:
    """Tell of a command, or list the commands."""
    at = context.find_root()
    at.meta["all commands"] = is_all
    for name in names:
        group = at.command
        found = group.get_command(at, name) if isinstance(group, click.Group) else None
        if found is None:
            raise click.UsageError(
                f"there is no command {' '.join(names)}; `backstory help --all` lists them"
            )
        at = click.Context(found, info_name=name, parent=at)
    click.echo(at.get_help())
