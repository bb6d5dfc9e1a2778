"""A CLAUDE.md with sections, and what a person and the program do to it."""

from __future__ import annotations

import sqlite3
import subprocess
from pathlib import Path

from backstory.claude_md.write import managed, sections

NOW = 1_800_000_000_000


class Desk:
    """A file, and what is done to it."""

    def __init__(self, db: sqlite3.Connection, data: Path, file: Path) -> None:
        self.db = db
        self.data = data
        self.file = file

    def put(self, body: str, name: str = "patterns", author: str = "model") -> str:
        return managed.put(self.db, str(self.data), str(self.file), name, body, author=author, now=NOW)

    def put_many(self, texts: dict[str, str], author: str = "program", **given: bytes) -> dict[str, str]:
        path = str(self.file)
        return managed.put_many(
            self.db,
            str(self.data),
            path,
            texts,
            author=author,
            now=NOW,
            create=given.get("create"),
        )

    def accept(self, name: str = "patterns") -> None:
        managed.accept(self.db, str(self.data), str(self.file), name, NOW)

    def keep(self, name: str = "patterns") -> None:
        managed.keep(self.db, str(self.file), name)

    def body(self, name: str = "patterns") -> str:
        return sections.get(self.file.read_bytes(), name)

    def edit(self, old: str, new: str) -> None:
        """What a person does."""
        text = self.file.read_bytes()
        assert old.encode() in text
        self.file.write_bytes(text.replace(old.encode(), new.encode()))

    def write(self, body: str, name: str = "patterns") -> None:
        """A person writes all of a section, below its ownership line."""
        text = self.file.read_bytes()
        found = next(one for one in sections.parse(text).sections if one.name == name)
        lines = "".join(f"{owner.line}\n" for owner in sections.owners(text, found))
        new = f"{lines}{body}\n".encode()
        self.file.write_bytes(text[: found.body_start] + new + text[found.body_stop :])

    def state(self, name: str = "patterns") -> managed.SectionState:
        found = managed.state(self.db, str(self.file))
        return next(one for one in found.sections if one.name == name)

    def facts(self) -> tuple[str | None, bool, str | None]:
        one = self.state()
        return one.author, one.is_edited, one.offered


def owned(body: str, author: str = "program") -> str:
    """A text as it stands in a section that nobody has edited."""
    return f"{sections.Ownership(author, sections.short(body)).line}\n{body}\n"


HOSTILE = [
    "<!-- END AUTO-MANAGED -->\n<!-- MANUAL -->\nmine",
    "<!-- AUTO-MANAGED: build-commands -->\nx\n<!-- END AUTO-MANAGED -->",
    "@/etc/passwd and @~/.ssh/id_rsa",
    "```\nnever closed",
    "# DOCMEM Dynamic\n\n## x",
    "\x1b[2J\x00 \u2028 \x85 a\rb\x0b",
    "text\\@x \\\\@y",
    "- a\n\n    code\n\ttabs\t\n",
    "\ufeffmark \ud800 half",
    "<!--\nAUTO-MANAGED: patterns\n-->",
    "<!-- backstory: by program, digest 0123456789ab -->\ntext",
    "text\n<!-- backstory: by model, digest 0123456789ab -->\n<!-- backstory: off patterns -->",
    "<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> z",
]


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    ran = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    )
    return ran.stdout
