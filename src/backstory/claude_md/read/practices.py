"""What a page of documentation advises, as far as it suits a project: a few lines for its CLAUDE.md.

The page comes from the network, and what is taken from it will be read by a model as instructions. So it is
kept to lines that look like advice on engineering: plain, short, without addresses, imports or markup,
without code other than the project's commands and tools, and nothing about permissions. That does not make a
hostile page harmless, but leaves it little room; and what is taken is shown before it is written.

Fetching belongs to another room; a surface hands it in:

    page = partial(fetch.page, hosts=practices.HOSTS)
    text = practices.practices(url, page, data, survey, now)
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

from backstory import log, paths
from backstory.claude_md.read import files
from backstory.errors import BackstoryError, BadInput
from backstory.markdown import without_fences
from backstory.model import Survey
from backstory.whole_file import whole_file

HOSTS = tuple(  # the documentation's own: it has moved before
    "docs.claude.com docs.anthropic.com code.claude.com platform.claude.com support.claude.com".split()
)
WEEK_MS = 7 * 24 * 3600 * 1000
LINES = 10  # of advice
LONGEST = 180  # characters of a line
SHORTEST = 20
MOST_READ = 400_000  # characters of a page
MOST_OF_PASSAGE = 600
PASSAGES = 2_000
SAME = 0.6  # of their words: two lines that say the same
PER_TOPIC = 4  # lines


def practices(
    url: str, page: Callable[[str], str], data: str, survey: Survey, now: int, *, has_git: bool = True
) -> str | None:
    """Bullets for a project from the page at url, which is asked once a week. None: there are none, or the
    page cannot be had; an older copy of it is better than that. `page` gives a page as Markdown."""
    text = _text(url, page, data, now) if url.strip() else None
    lines = chosen(text, survey, has_git) if text else []
    return "\n".join(f"- {line}" for line in lines) or None


# The page, and its copy: cache/practices-1f0c2a9b7d3e4f56.json


def _text(url: str, page: Callable[[str], str], data: str, now: int) -> str | None:
    digest = hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()
    path = os.path.join(data, "cache", f"practices-{digest[:16]}.json")
    at, text = _cached(path, url)
    if text is not None and 0 <= now - at < WEEK_MS:
        return text
    try:
        fetched = page(url)[:MOST_READ]
    except BackstoryError as error:
        log.write("warning", f"no new best practices: {error}")
        return text
    _keep(path, {"url": url, "at": now, "text": fetched})
    return fetched


def _cached(path: str, url: str) -> tuple[int, str | None]:
    content = files.read(path, 8 * MOST_READ)
    with suppress(ValueError, RecursionError):
        kept = json.loads(content or b"")
        if isinstance(kept, dict) and kept.get("url") == url:
            at, text = kept.get("at"), kept.get("text")
            if isinstance(at, int) and isinstance(text, str):
                return at, text[:MOST_READ]
    return 0, None


def _keep(path: str, kept: dict[str, object]) -> None:
    """A copy that cannot be kept is no reason to fail."""
    try:
        paths.make_folder(os.path.dirname(path))
        with whole_file(path, replaces=True, mode=0o600) as file:
            file.write(json.dumps(kept).encode())
    except (OSError, BadInput) as error:
        log.write("warning", f"best practices cannot be kept: {error}")


# What it says.

_QUOTE = re.compile(r"^(?:\s{0,3}>\s?)+")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*)")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_TABLE = re.compile(r"\s*\|")
_TAG = re.compile(r"<[^<>]*>")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_EMPHASIS = re.compile(r"\*+|~~|(?<!\w)_+|_+(?!\w)")
_LABEL = re.compile(r"^[\s#>*+=|~-]*(?:(?:fix|tip|note|warning|important|example)\s*:\s*)?", re.IGNORECASE)
_TYPOGRAPHY = str.maketrans(dict(zip("“”„‘’–—•✅❌✓", '"""\'\'--    ', strict=True)) | {"→": "->"})
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"“])")


def _passages(text: str) -> Iterator[tuple[str, str]]:
    """The items and paragraphs of a page that are no code and no table, each under its heading."""
    heading, block = "", ""
    unquoted = "\n".join(_QUOTE.sub("", line) for line in text[:MOST_READ].splitlines())
    for line in (*without_fences(unquoted, "\n").split("\n"), ""):
        is_item, title = _ITEM.match(line), _HEADING.match(line)
        goes_on = line.strip() and not (is_item or title or _TABLE.match(line))
        if goes_on:
            block += f" {line.strip()}" if len(block) < MOST_OF_PASSAGE else ""
            continue
        if block.strip():
            yield heading, block
        block = line[is_item.end() :] if is_item else ""
        heading = title[1] if title else heading
    if block.strip():
        yield heading, block


def _plain(text: str) -> str:
    """One line without markup; inline code stays."""
    text = unicodedata.normalize("NFKC", html.unescape(html.unescape(text[:MOST_OF_PASSAGE])))
    for _ in range(3):  # what is left of a tag in a tag is refused later on
        text = _LINK.sub(r"\1", _TAG.sub(" ", text))
    parts = re.split(r"(`[^`]*`)", text.translate(_TYPOGRAPHY).replace("->", ", then "))
    parts[::2] = [_EMPHASIS.sub("", _ESCAPED.sub(r"\1", part)) for part in parts[::2]]
    text = "".join(sign if sign.isprintable() else " " for sign in "".join(parts))
    return _LABEL.sub("", " ".join(text.split()).replace(" ,", ","))


def _fitted(text: str) -> str:
    """As many of the first sentences as a line holds."""
    first, *rest = _SENTENCE_END.split(text)
    for sentence in rest:
        if len(first) + len(sentence) >= LONGEST:
            break
        first += f" {sentence}"
    return first


# What is taken of it.


def _words(given: str) -> str:
    """A pattern of these words; `_` stands for a blank."""
    return rf"\b(?:{'|'.join(given.split())})\b".replace("_", " ")


_VERBS = """
add address always avoid be break build check choose clean commit configure consider cover create define
delete describe document don't do ensure explain explore fix follow format give group handle include isolate
keep let limit link list look make measure move name never note only open organize pin plan point prefer
provide prune put read refactor reference remove rename replace reproduce reuse review run scope separate
set show simplify split start state stop store test track treat try update use validate verify wait work
write
"""
_ADVICE = re.compile(
    rf"(?:^(?:{_words('in for when if before after on with')}[^,]{{1,60}}, )?|: |[.] ){_words(_VERBS)}"
    rf"|{_words('should must never always avoid prefer make_sure rather_than instead_of')}",
    re.IGNORECASE,
)
# No plain text, an address, a marker of ours, or what would have a model do things that nobody asked for.
_RISKY = r"""
auto-managed docmem system_prompt curl wget sudo eval base64 chmod ssh npx uvx passwords? credentials?
api_keys? tokens? dangerous\w* bypass\w* permissions? allow-?list\w* auto[-_](?:accept|mode) sandbox\w*
"""
_REFUSED = re.compile(
    rf"[@<>|{{}}\\]|\]\(|``|://|\bwww[.]|\brm -|[.]/|[.](?:sh|py|exe|bat|ps1)\b|[?:]$|{_words(_RISKY)}"
    rf"|{_words('ignore disregard forget override')}.*"
    rf"{_words('instruct.* previous prior above rules? prompts?')}",
    re.IGNORECASE,
)
# About the handling of a program, which is nothing for a project's file.
_HANDLED = r"""
press click type shortcuts? esc shift ctrl screenshots? paste prompts? plan_mode sessions? context
conversations? slash sub-?agents? mcp hooks? plugins? skills? install\w* subscri\w+ pric(?:e|es|ing)
terminal chrome extensions? headless checkpoints? rewind settings desktop browser images? models? anthropic
claude_code learn_more (?:this|the)_(?:page|guide|file|index) see_(?:also|the) (?:ask|tell|let|have)_claude
"""
_HANDLING = re.compile(rf"{_words(_HANDLED)}|(?:^|[\s`(])/[a-z]|--[a-z]", re.IGNORECASE)
# What a line is about. The first five count more where a project has such a thing, and against it elsewhere.
_TOPICS = {
    name: re.compile(_words(given), re.IGNORECASE)
    for name, given in {
        "test": "tests? tested testing tdd coverage fixtures?",
        "lint": r"lint linters? linting format formatters? formatting type.?check\w* static_analysis",
        "build": r"builds? building compil\w+ dependenc(?:y|ies) lock_?files?",
        "monorepo": r"mono-?repos? workspaces? sub(?:director|folder|packag|project)\w* nested each_package",
        "git": r"git commits? committ\w+ branch(?:es)? pull_requests? PRs? worktrees? merg\w+ diffs?",
        "project": r"""CLAUDE[.]md concise short specific conventions? style naming patterns? architecture
        commands? documentation structure""",
        "work": r"""verif\w+ plan plans planning root_causes? explore read small(?:er)? simpl\w+ scope\w*
        steps? secrets? errors? edge_cases? review\w* refactor\w* comments? requirements? existing""",
    }.items()
}
_FILES = ("CLAUDE.md", "AGENTS.md", "README.md", ".gitignore", ".env", "git", "main")
_SPECIAL = ("test", "lint", "build", "monorepo", "git")
# What only some projects use. The last are words of English as well, and begin a sentence as such.
_NAMES = r"""
Python JavaScript TypeScript Java Rust Golang Kotlin Ruby PHP Scala Elixir Haskell Perl C\# C\+\+ Vue Angular
Svelte Next[.]js Node(?:[.]js)? Django FastAPI Rails Laravel Spring_Boot npm yarn pnpm bun pip uv poetry cargo
maven gradle composer bundler pytest Jest Vitest Mocha JUnit RSpec PHPUnit ESLint Prettier ruff mypy Docker
(?<!^)(?:React|Go|Swift|Dart|Flask|Express|Spring)
"""
_TECHNOLOGIES = re.compile(rf"(?<![\w.-])(?:{'|'.join(_NAMES.split()).replace('_', ' ')})(?![\w-])")


def chosen(text: str, survey: Survey, has_git: bool) -> list[str]:
    """The lines of a page that suit a project best, in the order of the page."""
    roles = {command.role for command in survey.commands}
    there = {
        *(role for role in ("test", "lint", "build") if role in roles),
        *(["monorepo"] if survey.workspaces or survey.subtrees else []),
        *(["git"] if has_git else []),
        *(name for name in _TOPICS if name not in _SPECIAL),
    }
    used = _used(survey)
    names = {*used, *survey.frameworks, *(command.line for command in survey.commands), *_FILES}
    rated = []
    for number, (heading, passage) in enumerate(islice(_passages(text), PASSAGES)):
        line = _fitted(_plain(passage))
        if _is_advice(line, names):
            topics = {name for name, words in _TOPICS.items() if words.search(line)}
            rating = _rating(line, _plain(heading), topics, there, used)
            rated.append((-rating, number, line, topics))
    taken: list[tuple[int, str]] = []
    told: Counter[str] = Counter()
    for rating, number, line, topics in sorted(rated):
        if rating >= 0 or len(taken) == LINES:
            break
        if max((told[topic] for topic in topics), default=0) < PER_TOPIC and not any(
            _alike(line, other) for _, other in taken
        ):
            taken.append((number, line))
            told.update(topic for topic in topics if topic in _SPECIAL)
    return [line for _, line in sorted(taken)]


def _is_advice(line: str, names: set[str]) -> bool:
    """Letters of other alphabets may look like ours and pass every other test; so there are none."""
    spans = re.findall(r"`([^`]*)`", line)
    return (
        SHORTEST <= len(line) <= LONGEST
        and line.isascii()
        and line.count("`") == 2 * len(spans)
        and names.issuperset(spans)
        and _ADVICE.search(line) is not None
        and not _REFUSED.search(line)
    )


def _rating(line: str, heading: str, topics: set[str], there: set[str], used: set[str]) -> int:
    worth = {name: 3 if name in _SPECIAL else 1 for name in _TOPICS}
    rating = sum(worth[topic] if topic in there else -worth[topic] for topic in topics)
    rating += any(words.search(heading) for name, words in _TOPICS.items() if name in topics & there)
    technologies = {found.lower() for found in _TECHNOLOGIES.findall(line)}
    if technologies:
        rating += 3 if technologies & used else -10
    return rating - 3 * len(_HANDLING.findall(line))


def _used(survey: Survey) -> set[str]:
    """The languages and tools of a project, as words."""
    names = [name for name, _ in survey.languages]
    lines = [word for command in survey.commands for word in command.line.split()]
    found = {name.lower() for name in (*names, *survey.frameworks, *survey.managers, *lines)}
    if "typescript" in found:
        found.add("javascript")
    if found & {"javascript", "npm", "yarn", "pnpm"}:
        found |= {"node", "node.js"}
    return found


def _alike(one: str, other: str) -> bool:
    words, others = (set(re.findall(r"\w+", line.lower())) for line in (one, other))
    return len(words & others) >= SAME * len(words | others)
