"""The list of commands as `--help` shows it: by what they are for, and without those that hardly anybody
types."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

GROUPS = {
    "Remember": "add forget restore supersede erase redact backfill",
    "Look": "search list show timeline sessions open status stats why spend",
    "Projects": "projects pause resume",
    "CLAUDE.md": "init sync claude-md",
    "Trees and documents": "docmem docs",
    "Care": "install uninstall doctor config backup export import",
}
# They are called by Claude Code or by scripts, or do what happens by itself.
RARE = "deemphasize help mcp prune reindex reinforce slash statusline worker"
LATE = ("doctor", "status")  # they load much, so the module of that name is imported where one is run
MORE = "`backstory help --all` lists the rarely used ones as well, `backstory COMMAND --help` tells of one."


class Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise BrokenPipeError from error  # without its number, which click would exit with 1 for

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in LATE and cmd_name not in self.commands:
            module = import_module(f"backstory.surfaces.cli.{cmd_name}")
            self.add_command(getattr(module, cmd_name))
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        every = {*self.commands, *LATE}
        return [name for names in (*GROUPS.values(), RARE) for name in names.split() if name in every]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        is_all = ctx.meta.get("all commands", False)
        for title, names in {**GROUPS, **({"Rarely used": RARE} if is_all else {})}.items():
            known = [(name, one) for name in names.split() if (one := self.get_command(ctx, name))]
            wide = max(map(len, self.list_commands(ctx)))
            rows = [
                (f"{name:<{wide}}", command.get_short_help_str(formatter.width - wide - 6))
                for name, command in known
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

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
