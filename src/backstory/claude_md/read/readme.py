"""The first sentences of a README that say something."""

from __future__ import annotations

import re

from backstory.claude_md.read.files import ProjectFiles
from backstory.markdown import without_fences

NAMES = ("README.md", "README.rst", "README.markdown", "README.txt", "README", "Readme.md", "readme.md")
# How it begins; badges, tables and directives do not.
PROSE = re.compile(r"(?:\*\*|[*_`\"'(])?\[?[`*]?[^\W_]")
OTHER = re.compile(r"\d+[.)]\s|\[[^\]]*\]:")  # items of a list, addresses of links
LINK = re.compile(r"\[([^\[\]]{0,200})\](?:\([^()\s]{0,500}\)|\[[^\[\]]{0,200}\])")
RST_LINK = re.compile(r"`([^`<\n]{1,200}?)(?: <[^>\n]{0,500}>)?`__?")
# What the tool that made a project left for its author to replace.
PLACEHOLDER = re.compile(
    r"This README would normally document|Everything you need to build a Svelte project"
    r"|This template (?:provides a minimal setup|should help get you started)"
    r"|(?:This is a .{0,80} project|This project was) (?:bootstrapped|generated|created) with"
    r"|To make it easy for you to get started with GitLab|A new Flutter project",
    re.IGNORECASE,
)


def first_paragraph(project: ProjectFiles) -> str:
    there = {file.path for file in project.files if "/" not in file.path}
    texts = ((name, text) for name in NAMES if name in there and (text := project.text(name)))
    name, text = next(texts, ("", ""))
    text = text[:20_000]
    if not name.endswith(".rst"):  # there `~~~` is below a heading
        text = without_fences(text, "\n")
    lines = [line.strip() for line in text.splitlines()]
    paragraph: list[str] = []
    for line, below in zip(lines, [*lines[1:], ""], strict=False):
        if paragraph and line:
            paragraph.append(line)
        elif paragraph:
            break
        elif not _underlines(below) and PROSE.match(line) and not OTHER.match(line):
            says_more_than_links = len(LINK.sub("", line)) > 20 or not LINK.search(line)
            paragraph += [line] if says_more_than_links else []
    said = RST_LINK.sub(r"\1", LINK.sub(r"\1", " ".join(paragraph))).replace("**", "")
    return "" if PLACEHOLDER.match(said) else said


def _underlines(line: str) -> bool:
    return len(line) > 2 and not line.strip("=-~^*+#")
