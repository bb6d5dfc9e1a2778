"""The status line in Claude Code's settings: what it is given, and how ours gets in and out of the file.

The settings are the user's, and a person may have ordered and indented them. So the text is changed and not
what it means written anew; a change counts only where everything else means what it meant.
"""

from __future__ import annotations

import json
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KEY = "statusLine"


def settings_file(config: str) -> str:
    return os.path.join(config, "settings.json")


def project_settings_files(root: str) -> list[str]:
    """Where a project may have settings of its own, which add to the user's."""
    return [os.path.join(root, ".claude", name) for name in ("settings.json", "settings.local.json")]


def asked_about(payload: object) -> tuple[str, str]:
    """The session and the folder that a status line is for; "" where the client does not say."""
    if not isinstance(payload, dict):
        return "", ""
    work = payload.get("workspace")
    places = [work.get("project_dir"), work.get("current_dir")] if isinstance(work, dict) else []
    folder = next((at for at in (*places, payload.get("cwd")) if isinstance(at, str) and at), "")
    session = payload.get("session_id")
    return session if isinstance(session, str) else "", folder


def enables(text: str, plugin: str) -> bool:
    """Whether settings have a plugin of this name enabled, of whatever marketplace."""
    listed = _object(text).get("enabledPlugins")
    named = listed.items() if isinstance(listed, dict) else ()
    return any(name.startswith(f"{plugin}@") and is_on is not False for name, is_on in named)


def status_line(text: str) -> Mapping[str, object] | None:
    """The status line that settings have. ValueError where they are no settings."""
    found = _object(text).get(KEY)
    return found if isinstance(found, dict) else None if found is None else {"command": str(found)}


def with_status_line(text: str, command: str) -> str:
    """The settings with a status line, which have none."""
    before = _object(text)
    line = {"type": "command", "command": command}
    member = f"{json.dumps(KEY)}: {json.dumps(line, ensure_ascii=False)}"
    end = text.rfind("}")
    if end < 0:
        return f"{{\n  {member}\n}}\n"
    inside = text[:end].rstrip()
    indent = re.search(r"\n([ \t]+)\S", inside)
    comma = "" if inside.endswith("{") else ","
    proposed = f"{inside}{comma}\n{indent[1] if indent else '  '}{member}\n{text[end:]}"
    return _chosen([proposed], {**before, KEY: line})


def without_status_line(text: str) -> str:
    before = _object(text)
    return _chosen(
        _without(text, before.get(KEY)), {name: value for name, value in before.items() if name != KEY}
    )


def _without(text: str, line: object) -> Iterator[str]:
    member = f"{json.dumps(KEY)}: {json.dumps(line, ensure_ascii=False)}"
    at = text.find(member)
    if at >= 0:
        before, after = text[:at].rstrip(), text[at + len(member) :]
        if before.endswith(","):
            yield before[:-1] + after
        yield text[:at] + after.lstrip().removeprefix(",").lstrip()


def _chosen(proposed: Iterator[str] | list[str], wanted: Mapping[str, object]) -> str:
    for text in proposed:
        try:
            if list(_object(text).items()) == list(wanted.items()):
                return text
        except ValueError:
            continue
    return json.dumps(wanted, ensure_ascii=False, indent=2) + "\n"


def _object(text: str) -> dict[str, object]:
    found = json.loads(text) if text.strip() else {}
    if not isinstance(found, dict):
        raise ValueError("settings are an object")
    return found
