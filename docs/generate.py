"""Writes docs/reference/ (commands, settings and MCP tools, as the code has them), the man page, and what the
MCP servers tell of themselves before the mcp package is there to say it (surfaces/mcp/listing.py).

`make docs` runs it before it builds the site. The pages are committed, so that they can be read without a
build, and a test compares them with what this makes. `man -l docs/backstory.1` shows the man page; the wheel
carries it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mcp.server.mcpserver import MCPServer
from mcp.types import Tool
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from backstory import config
from backstory.surfaces.cli.config import ABOUT
from backstory.surfaces.cli.groups import GROUPS, RARE
from backstory.surfaces.cli.main import cli
from backstory.surfaces.mcp import listing, memory
from backstory.surfaces.mcp.server import ToolServer, server

REFERENCE = Path(__file__).resolve().parent / "reference"
MAN_PAGE = REFERENCE.parent / "backstory.1"
MADE = "<!-- Made by docs/generate.py from the code; `make docs` writes it again. -->\n"
EVERYWHERE = ("--project", "--json")  # said once, at the top of the page

COMMANDS = f"""# Commands

{MADE}
`backstory COMMAND --help` shows the same at the terminal.

- Exit codes: 0 done, 1 the answer is no or not found, 2 wrong use, 3 a fault of backstory, 130 after Ctrl-C.
- `--project DIR` names the project to look at; without it, the one of the current folder.
- `--json` prints data for scripts. Times are milliseconds since 1970, UTC.
- The beginning of an id is enough.
- `backstory help --all` lists every command, `man backstory` has this page, and
  [shells complete](../install.md#completion) names and options.
"""
SETTINGS = f"""# Settings

{MADE}
`backstory config` lists the settings and where each value comes from. `backstory config spend.daily_usd 0.5`
sets one in `config.toml`, which lies in the [data folder](../data.md). An environment variable wins over the
file.

| setting | variable | default | what it does |
|---|---|---|---|
"""
TOOLS = f"""# MCP tools

{MADE}
Claude Code starts one MCP server, `backstory mcp`, and calls its tools
`mcp__plugin_backstory_memory__memory_search` and so on. `backstory mcp memory` and `backstory mcp docmem`
have the tools of one chapter each, for other clients. A parameter with `?` may be left out. What the tools
return from memory is fenced as data.

In a project without a tree Claude Code is told of `docmem_create`, `docmem_list` and `docmem_import` only,
and of the rest as soon as there is one.
"""
TITLES = {listing.MEMORY: "Memories and documents", listing.DOCMEM: "Trees"}


def pages() -> dict[str, str]:
    """The text of each page, by its file name."""
    return {"commands.md": commands(), "settings.md": settings(), "tools.md": tools()}


def commands() -> str:
    parts = [COMMANDS]
    for path, command in _walk(cli, "backstory"):
        context = click.Context(command, info_name=path)
        if not isinstance(command, click.Group) or command.params:
            parts.append(_command(path, command, context))
        elif path != "backstory":
            parts.append(f"## {path}\n\n{_prose(command.help)}\n")
    return "\n".join(parts)


def _walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Commands of their own first, then the groups, each with its commands."""
    yield path, command
    if isinstance(command, click.Group):
        inside = sorted(command.commands.items(), key=lambda item: (isinstance(item[1], click.Group), item))
        for name, child in inside:
            yield from _walk(child, f"{path} {name}")


def _command(path: str, command: click.Command, context: click.Context) -> str:
    level = "#" * min(path.count(" ") + 1, 3)
    arguments = [piece for param in command.params for piece in param.get_usage_pieces(context)]
    lines = [f"{level} {path}", "", f"`{' '.join([path, *arguments])}`", "", _prose(command.help), ""]
    common = []
    for param in command.params:
        if param.opts[0] in EVERYWHERE:
            common.append(f"`{param.opts[0]}`")
        elif isinstance(param, click.Option) and (record := param.get_help_record(context)):
            lines.append(f"- `{record[0]}`: {_prose(record[1])}")
    if common:
        lines.append(f"- also {' and '.join(common)}")
    return "\n".join(lines).rstrip() + "\n"


AS_IT_IS = "\b\n"  # how click marks a paragraph whose lines stay


def _paragraphs(text: str | None) -> list[str]:
    parts = inspect.cleandoc(text or "").split("\n\n")
    return [part if part.startswith(AS_IT_IS) else " ".join(part.split()) for part in parts]


def _prose(text: str | None) -> str:
    return "\n\n".join(
        f"```\n{inspect.cleandoc(part.removeprefix(AS_IT_IS))}\n```" if part.startswith(AS_IT_IS) else part
        for part in _paragraphs(text)
    )


def settings() -> str:
    defaults: dict[str, str | float] = {**config.DEFAULTS, **config.NUMBERS}
    rows = []
    for name, default in sorted(defaults.items()):
        shown = f"`{default}`" if default != "" else ""
        rows.append(f"| `{name}` | `{config.variable_of(name)}` | {shown} | {ABOUT[name]} |")
    return SETTINGS + "\n".join(rows) + "\n"


def tools() -> str:
    parts, listed = [TOOLS], told_by_servers()
    for name, title in TITLES.items():
        parts.append(f"## {title} (`backstory mcp {name}`)\n")
        for tool in listing.tools(listed, name):
            schema = tool["inputSchema"]
            parts.append(f"### {tool['name']}\n\n{tool['description']}\n")
            lines = [_parameter(schema, parameter) for parameter in schema["properties"]]
            parts.extend(["\n".join(lines) + "\n"] if lines else [])
    return "\n".join(parts)


def told_by_servers() -> dict[str, Any]:
    """What `listing.json` holds."""
    servers = {name: server(name) for name in (listing.BOTH, listing.MEMORY, listing.DOCMEM)}
    known = {tool.name: tool for tool in _listed(servers[listing.BOTH])}
    notes = memory.tools()[memory.memory_search]
    other = ToolServer(listing.MEMORY, "", {memory.memory_search_everywhere: notes})
    known[listing.EVERYWHERE] = _listed(other)[0]
    return {
        "version": servers[listing.BOTH].version,
        "protocol_versions": list(HANDSHAKE_PROTOCOL_VERSIONS),
        "servers": {
            name: {"instructions": one.instructions, "tools": [tool.name for tool in _listed(one)]}
            for name, one in servers.items()
        },
        "tools": {name: _plain(tool) for name, tool in known.items()},
    }


def _listed(one: MCPServer) -> list[Tool]:
    return asyncio.run(MCPServer.list_tools(one))


def _plain(tool: Tool) -> dict[str, Any]:
    """As it is sent, without what tells a model nothing: titles, and null for what may be left out."""
    plain = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
    schema = plain["inputSchema"]
    schema.pop("title", None)
    for about in schema["properties"].values():
        about.pop("title", None)
        kinds = [kind for kind in about.get("anyOf", ()) if kind != {"type": "null"}]
        if len(kinds) == 1:
            del about["anyOf"]
            about.update(kinds[0])
        if about.get("default", ...) is None:
            del about["default"]
    return plain


def _parameter(schema: dict[str, Any], name: str) -> str:
    optional = "" if name in schema.get("required", ()) else "?"
    about = schema["properties"][name].get("description", "")
    values = [
        value
        for part in [schema["properties"][name], *schema["properties"][name].get("anyOf", ())]
        for value in part.get("enum", ())
    ]
    one_of = f" One of {', '.join(f'`{value}`' for value in values)}." if values else ""
    said = f"{about.rstrip('.')}." if about else ""
    return f"- `{name}{optional}`: {said}{one_of}".rstrip(": ").replace("  ", " ")


# The man page


EXIT_CODES = {
    "0": "done",
    "1": "the answer is no, or not found",
    "2": "wrong use",
    "3": "a fault of backstory; the log has more",
    "130": "ended with Ctrl-C",
}
FILES = {
    "~/.local/share/backstory": "the data folder; BACKSTORY_HOME or XDG_DATA_HOME name another",
    "~/.local/share/backstory/backstory.db": "all that is remembered",
    "~/.local/share/backstory/config.toml": "the settings",
    "~/.local/share/backstory/logs": "what went wrong",
}


def man_page() -> str:
    """In roff, with the macros of man(7)."""
    lines = ['.\\" Made by docs/generate.py from the code.', '.TH BACKSTORY 1 "" backstory "User Commands"']
    lines += [".SH NAME", r"backstory \- a memory for Claude Code", ".SH SYNOPSIS", ".B backstory"]
    lines += [".I COMMAND", "[OPTIONS] [ARGUMENTS]", ".SH DESCRIPTION", *_roff(cli.help)]
    for title, names in {**GROUPS, "Rarely used": RARE}.items():
        lines.append(f".SH {title.upper()}")
        for name in names:
            for path, command in _walk(cli.commands[name], name):
                lines += _man_command(path, command)
    lines += [".SH SETTINGS", *_roff("`backstory config NAME VALUE` sets one.")]
    for name in sorted(ABOUT):
        default = {**config.DEFAULTS, **config.NUMBERS}[name]
        is_by_default = f" By default {default}." if default != "" else ""
        lines += _tagged(name, f"{ABOUT[name]}.{is_by_default} The variable is {config.variable_of(name)}.")
    for title, table in (("FILES", FILES), ("EXIT STATUS", EXIT_CODES)):
        lines.append(f".SH {title}")
        for name, about in table.items():
            lines += _tagged(name, about)
    return "\n".join(lines) + "\n"


def _man_command(path: str, command: click.Command) -> list[str]:
    context = click.Context(command, info_name=path)
    arguments = [piece for param in command.params for piece in param.get_usage_pieces(context)]
    lines = [f".SS {_escaped(' '.join([path, *arguments]))}", *_roff(command.help)]
    for param in command.params:
        if isinstance(param, click.Option) and (record := param.get_help_record(context)):
            lines += _tagged(record[0], " ".join(record[1].split()))
    return lines


def _tagged(name: str, about: str) -> list[str]:
    return [".TP", f".B {_escaped(name)}", _escaped(about)]


def _roff(text: str | None) -> list[str]:
    lines: list[str] = []
    for part in _paragraphs(text):
        if part.startswith(AS_IT_IS):
            rows = part.removeprefix(AS_IT_IS).splitlines()
            lines += [".PP", ".nf", *map(_escaped, rows), ".fi"]
        else:
            lines += [".PP", _escaped(part)]
    return lines[1:] if lines[:1] == [".PP"] else lines


def _escaped(text: str) -> str:
    """What roff would take for its own, made plain; what is in backticks is bold."""
    plain = text.replace("\\", r"\e").replace("-", r"\-")
    plain = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", plain)
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain


def main() -> None:
    os.makedirs(REFERENCE, exist_ok=True)
    MAN_PAGE.write_text(man_page(), encoding="utf-8")
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    told = json.dumps(told_by_servers(), indent=1, ensure_ascii=False)
    Path(listing.FILE).write_text(told + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
