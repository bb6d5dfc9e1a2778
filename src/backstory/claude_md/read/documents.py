"""The documents of a repository that tell how to work on it, as blocks of text: README, CONTRIBUTING, pages
about development. What is taken out of them is in readme.py, purposes.py and obligations.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from backstory.claude_md.read.files import ProjectFiles

LARGEST = 60_000  # characters of one document that are read
MOST = 16  # documents
TOGETHER = 200_000  # characters of all of them: what is hostile takes seconds for each document
DEPTH = 20  # blocks in each other

READMES = ("README.md", "README.rst", "README.markdown", "README.adoc", "README.txt", "README")
ELSEWHERE = (".github/README.md", "docs/README.md")
README = re.compile(r"readme(?:\.(?:md|rst|markdown|adoc|asciidoc|txt))?", re.IGNORECASE)
FOR_DEVELOPERS = re.compile(
    r"(?:(?:\.github|docs?|documentation|dev|contributing|\.gitlab|docs/(?:dev|development|developer"
    r"|contributing|source))/)?(?:contributing|contribute|contributors?[-_]guide"
    r"|develop(?:ment|ing|er|ers)?(?:[-_](?:guide|setup|notes))?|hacking|building|build|testing"
    r"|architecture|code[-_]?style"
    r"|style[-_]?guide|coding[-_](?:style|standards|guidelines)|ai[-_]?policy|ai[-_]?usage"
    r"|install(?:ation|ing)?"
    r"|getting[-_]started|structure|pull_request_template)"
    r"(?:\.(?:md|markdown|rst|adoc|asciidoc|txt))?",
    re.IGNORECASE,
)
TEMPLATE = re.compile(r"pull_request_template", re.IGNORECASE)
OBLIGING = re.compile(r"contribut|develop|hacking|style|polic|coding|template|usage", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Block:
    kind: str  # paragraph, item, row (of a table), code, html, quote
    text: str  # plain, but for backticks around code; the cells of a row are divided by tabs
    heading: str  # the nearest one above
    language: str = ""  # of code


@dataclass(frozen=True, slots=True)
class Document:
    path: str
    blocks: tuple[Block, ...]


def readme(project: ProjectFiles, most: int = LARGEST) -> Document | None:
    """The README at the top, or where GitHub looks for it next; as many characters of it."""
    others = (file.path for file in project.files if "/" not in file.path and README.fullmatch(file.path))
    files = {file.path for file in project.files}
    for path in (*READMES, *others, *ELSEWHERE):  # which may be a link, and then is no file of the list
        # A link may lead to what git ignores, and that is nobody's README.
        target = os.path.relpath(os.path.realpath(os.path.join(project.root, path)), project.root)
        if target not in files:
            continue
        if text := project.text(path):
            return Document(path, blocks(path, text[:most]))
    return None


@lru_cache(2)
def for_developers(project: ProjectFiles) -> tuple[Document, ...]:
    """The documents that tell how to work on a project: those about that, and then the README."""
    paths = [file.path for file in project.files if FOR_DEVELOPERS.fullmatch(file.path)]
    paths.sort(key=lambda path: ("contribut" not in path.lower(), path.count("/"), path))
    first = readme(project)
    found, left = list[Document](), TOGETHER
    for path in paths[:MOST]:
        text = (project.text(path) or "")[: min(LARGEST, left)]
        left -= len(text)
        found += [Document(path, blocks(path, text))] if text else []
    return (*found, *([first] if first else []))


# Reading.


@lru_cache(2)  # the README is read for what it says of the project, and with the other documents
def blocks(path: str, text: str) -> tuple[Block, ...]:
    if path.endswith(".rst"):
        return tuple(_plain_blocks(_from_rst(text)))
    if path.endswith((".adoc", ".asciidoc")):
        return tuple(_plain_blocks(_from_adoc(text)))
    return tuple(_markdown_blocks(text))


def _markdown_blocks(text: str) -> Iterator[Block]:
    from markdown_it import MarkdownIt  # loaded only where there is something to read

    heading, kinds, cells, in_heading = "", list[str](), list[str](), False
    for token in MarkdownIt("commonmark", {"maxNesting": DEPTH}).enable("table").parse(text):
        kind = token.type
        if kind == "heading_open":
            in_heading = True
        elif kind == "heading_close":
            in_heading = False
        elif kind in ("list_item_open", "blockquote_open"):
            kinds.append("item" if kind.startswith("list") else "quote")
        elif kind in ("list_item_close", "blockquote_close"):
            kinds.pop()
        elif kind == "tr_close":
            yield Block("row", "\t".join(cells), heading)
            cells = []
        elif kind in ("fence", "code_block"):
            yield Block("code", token.content, heading, token.info.split(" ")[0].strip("{}.").lower())
        elif kind == "html_block":
            yield Block("html", token.content, heading)
        elif kind == "inline":
            said = _inline(token.children or [])
            if in_heading:
                heading = said
            elif token.level and _in_table(token.level, kinds):
                cells.append(said)
            elif said:
                yield Block(
                    "quote" if "quote" in kinds else kinds[-1] if kinds else "paragraph", said, heading
                )


def _in_table(level: int, kinds: Sequence[str]) -> bool:
    """A cell lies four levels below what the table lies in (table, body, row, cell), a paragraph one."""
    lists = sum(2 if kind == "item" else 1 for kind in kinds)
    return level - lists >= 4


def _inline(children: Iterable[object]) -> str:
    """The words of a paragraph, without pictures and links' addresses; code keeps its backticks."""
    parts: list[str] = []
    for token in children:
        kind, content = getattr(token, "type", ""), getattr(token, "content", "")
        if kind == "text":
            parts.append(content)
        elif kind == "code_inline":
            parts.append(f"`{content}`" if "`" not in content else content)
        elif kind in ("softbreak", "hardbreak") or (kind == "html_inline" and content.startswith("<br")):
            parts.append(" ")
    return " ".join("".join(parts).split())


def _plain_blocks(text: str) -> Iterator[Block]:
    """Paragraphs, items and indented code of a text whose headings begin with `# `."""
    heading = ""
    for part in re.split(r"\n[ \t]*\n", text):
        lines = [line.rstrip() for line in part.strip("\n").splitlines()]
        if not lines:
            continue
        if lines[0].startswith("# "):
            heading = lines.pop(0).lstrip("# ")
        if not lines:
            continue
        if lines[0].startswith(("    ", "\t")):
            yield Block("code", "\n".join(line.strip() for line in lines), heading)
            continue
        items = re.split(r"(?m)^[ \t]*(?:[-*+]|\d+[.)]|#\.)[ \t]+", "\n".join(lines))
        if " ".join(items[0].split()):
            yield Block("paragraph", " ".join(items[0].split()), heading)
        for item in items[1:]:
            yield Block("item", " ".join(item.split()), heading)


_RST_TITLE = re.compile(
    r"^(?:([=\-~^\"'`#*+:.])\1{2,}\n)?(\S[^\n]*)\n([=\-~^\"'`#*+:.])\3{2,}[ \t]*$", re.MULTILINE
)
_RST_LINK = re.compile(r"`([^`<\n]{1,200}?)(?:\s*<[^>\n]{0,500}>)?`__?")
_RST_CODE = re.compile(r"[ \t]*\.\. (?:code-block|code|sourcecode|prompt|console)::")
_RST_OTHER = re.compile(
    r"^\.\.[ ](?!(?:code-block|code|sourcecode|prompt|console)::)[^\n]*(?:\n[ \t]+[^\n]*|\n[ \t]*(?=\n))*",
    re.MULTILINE,
)


def _from_rst(text: str) -> str:
    text = "\n".join(_with_code_indented(_RST_OTHER.sub("", text)))
    text = _RST_TITLE.sub(lambda found: f"\n# {found[2]}\n\n", text)
    text = _RST_LINK.sub(r"\1", text).replace("``", "`")
    text = re.sub(r":[a-z:]{1,40}:`([^`<\n]{1,200})(?: <[^>\n]{0,500}>)?`", r"`\1`", text)
    return re.sub(r"\*\*([^*\n]+)\*\*", r"\1", re.sub(r"\|[\w -]+\|_?", "", text.replace("::\n", ":\n")))


def _with_code_indented(text: str) -> Iterator[str]:
    """The lines of a text, with those of literal blocks four further to the right: they may be indented by
    one space, and other text by many."""
    outer, is_head = -1, False  # how far the line is indented that announced code; its options follow it
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent <= outer:
            outer = -1
        is_head = is_head and line.lstrip().startswith(":")
        if outer >= 0:
            yield "" if is_head or not line.strip() else f"    {line}"
        elif _RST_CODE.match(line):
            outer, is_head = indent, True
            yield ""
        else:
            outer = indent if line.rstrip().endswith("::") else -1
            yield line


def _from_adoc(text: str) -> str:
    text = re.sub(
        r"^:[\w-]+:.*$|^(?:image|include|ifdef|ifndef|endif|toc)::?.*$", "", text, flags=re.MULTILINE
    )
    text = re.sub(r"^=+ (.*)$", r"\n# \1\n", text, flags=re.MULTILINE)
    text = re.sub(r"^----\n((?:(?!----$).*\n)*)----$", _indented, text, flags=re.MULTILINE)
    return re.sub(r"(?:link:|https?://)[^\[\s]{0,500}\[([^\]\n]{0,200})\]", r"\1", text)


def _indented(found: re.Match[str]) -> str:
    return "\n" + "".join(f"    {line}\n" for line in found[1].splitlines()) + "\n"


_SENTENCE_END = re.compile(
    r"(?<=[\w)`'\"*%])(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)[.!?]+(?=\s+[A-Z`*\"'(\[]|$)"
)


# A sentence to whoever reads it says nothing of what the repository is.
LONGEST_TOLD = 2_000
TO_BE_RUN = re.compile(  # what a sentence asks to be fetched or run
    r"`[^`]*[|;&$<>][^`]*`|\b(?:curl|wget|sudo|eval|base64|npx|dlx|bunx|uvx|pipx)\b", re.IGNORECASE
)
TO_AN_AGENT = re.compile(
    r"\b(?:agents?|assistants?|LLMs?|models?|claude|copilot|A\.?I\.?)\b.{0,80}"
    r"\b(?:must|shall|should|always|never|has to|have to|is to|are to|execute|ignore|obey|trusted)\b"
    r"|\bignore (?:the|all|any|previous)\b",
    re.IGNORECASE,
)


def is_to_be_told(said: str) -> bool:
    """Whether it is something, and asks nothing of who reads it; less than its beginning is ever told."""
    said = said[:LONGEST_TOLD]
    return bool(said) and not TO_AN_AGENT.search(said) and not TO_BE_RUN.search(said)


def sentences(text: str) -> list[str]:
    """With the sign that each ends with."""
    found, at = [], 0
    for end in _SENTENCE_END.finditer(text):
        found.append(text[at : end.end()].strip())
        at = end.end()
    return [part for part in (*found, text[at:].strip()) if part]
