"""Markers and bodies of AUTO-MANAGED sections, as bytes."""

from __future__ import annotations

from backstory.claude_md.write.sections import parse

END = b"<!-- END AUTO-MANAGED -->\n"
MANUAL = b"<!-- MANUAL -->\n## Custom Notes\nMine.\n<!-- END MANUAL -->\n"
VIEWS = [("ab12cd34", "ab12cd34 root:api: 2026-01-31T12:00:00Z\nThe API speaks JSON.")]


def opening(name: str) -> bytes:
    return b"<!-- AUTO-MANAGED: %s -->\n" % name.encode()


def section(name: str, body: bytes = b"text\n") -> bytes:
    return opening(name) + body + END


def names(text: bytes) -> list[str]:
    """Of the sound sections, in order."""
    return [found.name for found in parse(text).sections]


FILE = (
    b"# Project: api\n\n"
    + section("project-description", b"An API.\n")
    + b"\n"
    + section("build-commands", b"## Build Commands\n\n```sh\nmake\n```\n")
    + b"\n"
    + MANUAL
)
