"""Our line in Claude Code's status line: `install` offers it, `uninstall` takes it out."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping

from backstory import paths
from backstory.clients import claude_code, claude_settings
from backstory.surfaces.cli.common import sure
from backstory.whole_file import whole_file

OFFERED = "`backstory install --statusline` shows a line in Claude Code's status line"
ANOTHER = "your status line is left as it is; `backstory statusline` prints ours"


def offer(env: Mapping[str, str], wanted: bool | None, may_ask: bool) -> list[str]:
    """Put ours into the user's settings where they have none and want it. What to tell."""
    path = settings_path(env)
    if wanted is False or path is None:
        return []
    try:
        return _offer(path, wanted, may_ask)
    except (OSError, ValueError) as error:  # the plugin is registered all the same
        return [f"{path} cannot be read ({error}); mend it, then: backstory install --statusline"]


def _offer(path: str, wanted: bool | None, may_ask: bool) -> list[str]:
    text = read_settings(path)
    there = claude_settings.status_line(text)
    command = f"{shlex.quote(sys.executable)} -E -P -m backstory statusline"
    if there is not None and not is_ours(there):
        return [ANOTHER] if wanted else []
    if there is not None:
        if there.get("command") == command:
            return []
        text = claude_settings.without_status_line(text)  # of a backstory that was installed elsewhere
    elif not wanted:
        if not may_ask:
            return [OFFERED]
        if not sure(f"Show backstory in Claude Code's status line (in {path})?"):
            return []
    _write(path, claude_settings.with_status_line(text, command))
    return [f"Claude Code's status line shows backstory (in {path})"]


def take_out(env: Mapping[str, str]) -> list[str]:
    path = settings_path(env)
    if path is None:
        return []
    try:
        text = read_settings(path)
        there = claude_settings.status_line(text)
        if there is None or not is_ours(there):
            return []
        _write(path, claude_settings.without_status_line(text))
    except (OSError, ValueError) as error:
        return [f"{path} cannot be read ({error}); if it names `backstory statusline`, take that out"]
    return ["status line removed from Claude Code's settings"]


def is_ours(line: Mapping[str, object]) -> bool:
    return bool(re.search(r"(^|[ /])backstory['\"]? statusline$", str(line.get("command", "")).strip()))


def settings_path(env: Mapping[str, str]) -> str | None:
    """The file itself, also where the settings are a link to it."""
    at = claude_code.config_folder(env)
    return os.path.realpath(claude_settings.settings_file(at)) if at else None


def read_settings(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _write(path: str, text: str) -> None:
    """The settings of a client that may be reading them: whole or not at all."""
    paths.make_folder(os.path.dirname(path))
    with whole_file(path, replaces=True, mode=None if os.path.exists(path) else 0o600) as file:
        file.write(text.encode())
