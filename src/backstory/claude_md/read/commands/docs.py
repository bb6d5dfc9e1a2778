"""The commands in the documentation for developers: blocks of code, and what is quoted in a sentence."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from backstory.claude_md.read.commands.lines import Script
from backstory.claude_md.read.manifests.folder import Folder

# In the order of how surely they speak to developers.
FOR_DEVELOPERS = re.compile(
    r"(contributing|develop\w*|hacking|building|testing|setup)([._-]\w+)*", re.IGNORECASE
)
FOR_ALL = re.compile(r"(readme|install\w*)", re.IGNORECASE)
ENDINGS = ("", "md", "markdown", "rst", "txt", "adoc")
PLACES = (
    "",
    "docs",
    "doc",
    ".github",
    "docs/contributing",
    "docs/development",
    "docs/developers",
    "docs/dev",
)
MOST_FILES, MOST_BLOCKS = 20, 600
FIRST_GROUP, FIRST_QUOTED = 1_000_000, 2_000_000  # of scripts; those of CI are below
FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*([^`\n]*)")
HEADING = re.compile(r"#{1,6}[ \t]+(.{1,200})")
UNDERLINE = re.compile(r"([=\-~^\"'#*+])\1{2,}[ \t]*")
DIRECTIVE = re.compile(r"([ \t]*)\.\. (?:code-block|code|sourcecode|prompt)::[ \t]*(\S*)")
SHELLS = frozenset(
    "sh bash shell zsh console shell-session terminal text shellscript commandline cmd".split()
)
PROMPT = re.compile(r"(?:\([\w.-]{1,30}\)[ \t]*)?(?:[\w.~/@:-]{0,40}[$%❯]|>)[ \t]+(?=\S)")
FOLDER = re.compile(r"^#[ \t]*([\w.-]{1,60})/[ \t]*$", re.MULTILINE)  # a comment that says where
QUOTED = re.compile(r"(?<!`)`([^`\n]{3,120})`(?!`)")


OTHER_REPOSITORY = re.compile(
    r"\b(?:in|inside|from)[ \t]+(?:the|your)[ \t]+[`*_\"']{0,3}([\w./-]{1,80}?)[`*_\"']{0,3}[ \t]+"
    r"(?:repo|repository|checkout)\b",
    re.IGNORECASE,
)
NO_NAMES = frozenset(
    "this our same root main git cloned local project whole source github forked new top-level upstream"
    " current base".split()
)


def scripts(root: Folder, names: frozenset[str]) -> Iterator[Script]:
    """`names` are those of the project."""
    group = FIRST_GROUP
    left = MOST_BLOCKS
    for path, for_developers in files(root):
        text = root.text(path)
        for about, block, is_quoted in _blocks(text, path.endswith(".rst")):
            if is_quoted and (not for_developers or " " not in block):
                continue
            if _is_elsewhere(about, names):
                continue
            group += 1
            left -= 1
            if left < 0:
                return
            block = _without_others(block, names)  # noqa: PLW2901
            yield Script(
                FOLDER.sub(_changed, block), path, "", (about,), group + (FIRST_QUOTED if is_quoted else 0)
            )


def _is_elsewhere(text: str, names: frozenset[str]) -> bool:
    """Whether a heading or a comment is about another repository: "In the keeper repo"."""
    found = OTHER_REPOSITORY.search(text[:300]) if names else None
    name = found[1].lower().rpartition("/")[2] if found else ""
    plain = {re.sub(r"[-_.]", "", each.rpartition("/")[2]) for each in names}
    return bool(name) and name not in NO_NAMES and re.sub(r"[-_.]", "", name) not in plain


def _without_others(block: str, names: frozenset[str]) -> str:
    """Without what a comment says is typed in another repository, up to the next that says where."""
    kept = []
    is_elsewhere = False
    for line in block.splitlines():
        if line.startswith("#") and OTHER_REPOSITORY.search(line[:300]):
            is_elsewhere = _is_elsewhere(line, names)
        if not is_elsewhere:
            kept.append(line)
    return "\n".join(kept)


def _changed(folder: re.Match[str]) -> str:
    return f"cd {folder[1]}"


def files(root: Folder) -> list[tuple[str, bool]]:
    """(path, whether it is for developers) of what is read, those for developers first."""
    found = []
    for place in PLACES:
        for path in root.inside(place):
            name, _, ending = path.rpartition("/")[2].partition(".")
            if "." in ending:
                continue  # README.de.md
            if ending.lower() in ENDINGS and FOR_DEVELOPERS.fullmatch(name):
                found.append((path, True))
            elif ending.lower() in ENDINGS and FOR_ALL.fullmatch(name) and place in ("", ".github"):
                found.append((path, False))
    return sorted(found, key=lambda file: not file[1])[:MOST_FILES]


def _blocks(text: str, is_rst: bool) -> Iterator[tuple[str, str, bool]]:
    """(heading, script, whether it is only quoted in a sentence)"""
    heading = before = ""
    lines = deque(text.splitlines())
    while lines:
        line = lines.popleft()
        if fence := FENCE.match(line):
            block = []
            while lines and not (inner := lines.popleft()).strip(" \t>").startswith(fence[1]):
                block.append(inner)
            language = re.split(r"[\s{},:=]+", fence[2].strip().strip("{}").lower() or "sh")[0]
            if language in SHELLS and (script := _script(block)):
                yield heading, script, False
        elif found := HEADING.match(line):
            heading = found[1]
        elif UNDERLINE.fullmatch(line) and before.strip():
            heading = before.strip()[:200]
        elif is_rst and ((found := DIRECTIVE.match(line)) or line.rstrip().endswith("::")):
            language = found[2].lower() if found else ""
            block = _indented(lines)
            if (language in SHELLS or not language) and (script := _script(block)):
                yield heading, script, False
        else:
            for quoted in QUOTED.findall(line) if len(line) < 5_000 else ():
                yield heading, quoted, True
        before = line


def _indented(lines: deque[str]) -> list[str]:
    """The lines of a block that is indented; those behind it are left."""
    block: list[str] = []
    while lines and (not lines[0].strip() or lines[0][0].isspace()):
        line = lines.popleft()
        if not line.strip().startswith(":"):
            block.append(line)
    return block


def _script(block: list[str]) -> str:
    """What one types: what follows a prompt, if there is any prompt, else all of it."""
    lines = [line.strip() for line in block]
    prompts = [PROMPT.match(line) for line in lines]
    if not any(prompts):
        return "\n".join(lines)
    typed: list[str] = []
    goes_on = False
    for line, prompt in zip(lines, prompts, strict=True):
        if prompt or goes_on:
            typed.append(line[prompt.end() :] if prompt else line)
        goes_on = bool(prompt or goes_on) and line.endswith("\\")
    return "\n".join(typed)
