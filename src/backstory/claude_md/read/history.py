"""What a project's commits say about it: pure, from what `git log` prints to insights.

Only what is strong is said. A commit of many files (a new formatter, a moved folder) says nothing about which
of them belong together, and what a bot commits is nobody's decision. Messages and names were written by
anybody: what is taken from them is one printable line each, and bounded.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice

from backstory.claude_md.read.documents import is_to_be_told
from backstory.claude_md.read.files import VENDORED
from backstory.claude_md.read.languages import MADE_NAME, MINIFIED
from backstory.model import Insights

HOT, TOGETHER, DECISIONS = 10, 8, 8  # how many of each are told
LEAST = 3  # commits that make a file hot
OFTEN = 8  # commits that make two files belong together
CONFIDENCE = 0.85  # of the commits of either file
LARGE = 30  # files; a commit of more is about something else
RECENT = 300  # commits that say how messages are written nowadays
FEW, STRONG = 10, 0.8  # a habit: so many cases at least, and so many of them agree
USUAL = 0.1  # of the commits, for a type to be told
LONGEST = 200  # characters of a decision
MOST_READ = 4_000  # characters of a message


@dataclass(frozen=True, slots=True)
class Commit:
    short: str  # hash
    date: str
    author: str
    email: str
    subject: str
    body: str
    files: tuple[tuple[str, str, str], ...]  # what happened (A, M, D, R ...), the path, the path before


def insights(commits: Sequence[Commit], is_written: Callable[[str], bool]) -> Insights:
    """Of commits, newest first. `is_written` tells whether there is such a file now, and people write it."""
    people = [commit for commit in commits if not _BOT.search(f"{commit.author}\n{commit.email}")]
    is_counted = lru_cache(None)(is_written)
    changes = list(_changes(people))
    counts = Counter(path for changed in changes for path in changed)
    often = sorted((path for path in counts if counts[path] >= LEAST), key=lambda path: (-counts[path], path))
    return Insights(
        hot=tuple((path, counts[path]) for path in islice(filter(is_counted, often), HOT)),
        together=tuple(islice(_together(changes, counts, is_counted), TOGETHER)),
        decisions=tuple(islice(_decisions(people, is_counted), DECISIONS)),
        habits=tuple(_habits(people[:RECENT])),
    )


# What git prints.

_HASH = re.compile(rb"[0-9a-f]{40,64}")
_STATUS = re.compile(rb"[A-Z]\d{0,3}")


def parse(out: bytes, prefix: str = "") -> Iterator[Commit]:
    """The commits in an answer of `git log -z --name-status` whose fields are divided by NUL, which neither a
    message nor a path can hold. Paths lose their prefix."""
    tokens = iter(out.split(b"\0"))
    head: list[str] = []
    files: list[tuple[str, str, str]] = []
    for token in tokens:
        status = token.removeprefix(b"\n")
        if _HASH.fullmatch(status):
            if head:
                yield _commit(head, files)
            head, files = [next(tokens, b"").decode("utf-8", "replace") for _ in range(6)], []
        elif _STATUS.fullmatch(status):
            before = os.fsdecode(next(tokens, b"")).removeprefix(prefix)
            path = os.fsdecode(next(tokens, b"")).removeprefix(prefix) if status[:1] in b"RC" else before
            files.append((chr(status[0]), path, before))
    if head:
        yield _commit(head, files)


def _commit(head: list[str], files: list[tuple[str, str, str]]) -> Commit:
    short, date, author, email, subject, body = head
    return Commit(short, date, author, email, subject[:MOST_READ], body[:MOST_READ], tuple(files))


_BOT = re.compile(
    r"\[bot\]|\b(?:dependabot|renovate|greenkeeper|pre-commit-ci|github-actions|snyk|imgbot|allcontributors"
    r"|weblate|mergify|semantic-release|release-please)\b",
    re.IGNORECASE,
)


# Files.

# What changes with everything, or was not written: locks, change logs, versions, and our own files.
_NOISE = re.compile(
    r"""(?:.*\.lock | package-lock\.json | npm-shrinkwrap\.json | pnpm-lock\.yaml | go\.sum | bun\.lockb
    | (?:CHANGE(?:LOG|S)|HISTORY|NEWS|RELEASE(?:S|[-_]?NOTES)|AUTHORS|CONTRIBUTORS)(?:\.\w+)?
    | _?VERSION(?:\.\w+)? | .*\.snap | .*\.min\.css | .*\.map | CLAUDE(?:\.local)?\.md | AGENTS\.md)""",
    re.IGNORECASE | re.VERBOSE,
)
_NOISY_FOLDERS = frozenset(
    (*(os.fsdecode(name) for name in VENDORED), "vendor", "dist", ".claude", ".changeset")
)


def _is_noise(path: str) -> bool:
    *folders, name = path.split("/")
    is_made = MADE_NAME.search(name) or MINIFIED.search(name)
    noisy = _NOISE.fullmatch(name) or is_made or not _NOISY_FOLDERS.isdisjoint(folders)
    return bool(noisy) or not path.isprintable()


def _changes(commits: Iterable[Commit]) -> Iterator[list[str]]:
    """The files that each commit changed, by the names that they have now."""
    now: dict[str, str] = {}
    for commit in commits:
        found = {now.get(path, path) for _, path, _ in commit.files}
        for status, path, before in commit.files:
            if status == "R":
                now[before] = now.get(path, path)
            if status in "AR":
                now.pop(path, None)  # whatever had this name before that was another file
        if len(found) <= LARGE:
            yield sorted(path for path in found if not _is_noise(path))


def _together(
    changes: Iterable[list[str]], counts: Counter[str], is_counted: Callable[[str], bool]
) -> Iterator[tuple[str, str, int]]:
    """Pairs of files, of which each seldom changes without the other; those that do so most often first."""
    pairs = Counter(
        pair
        for changed in changes
        for pair in combinations([path for path in changed if counts[path] >= LEAST], 2)
    )
    strong = []
    for (one, other), count in pairs.items():
        confidence = count / max(counts[one], counts[other])
        if count >= OFTEN and confidence >= CONFIDENCE:
            strong.append((-count * confidence, one, other, count))
    for _, one, other, count in sorted(strong):
        if is_counted(one) and is_counted(other):
            yield one, other, count


# Decisions.

_PREFIX = re.compile(r"(?P<type>[A-Za-z]{2,20})(?:\((?P<scope>[\w./, -]{1,40})\))?(?P<breaking>!)?:\s+(?=\S)")
_TYPES = frozenset("feat fix docs style refactor perf test tests build ci chore revert deps wip".split())
_NEVER = frozenset("docs style test tests ci deps fix".split())
_TRIVIAL = re.compile(
    r"\b(?:typos?|unused|dead|stray|leftover|redundant|duplicated?|unneeded|unnecessary|whitespace|spelling"
    r"|lint\w*|flaky|bump\w*|docs?|docstrings?|readme|examples?|comments?|links?|urls?|warnings?|tests?|crash\w*"
    r"|upstream)\b|^\W*(?:release|version|merge|prepare|fix|fixe[sd]|adds?|added|updates?|updated|improves?)\b",
    re.IGNORECASE,
)
# One way to write a line in place of another: names as code has them, and its smallest words.
_CODE = re.compile(
    r"[()\"{}=]|\b[a-z]+[A-Z]|\b(?:var|let|const|if|else|for|while|self|cls|none|null|undefined|correct|proper"
    r"|wrong|bad|deprecated)\b"
)
_SWAPS = re.compile(
    r"""(?:^|[:;,]\ |\band\ )
      (?:use|take|keep|make|run|build|call|store|write|read|rely|ship)[sd]?\ (?:\S+\ ){1,10}?
      (?:instead\ of|rather\ than|by\ default)\b
    | \breplac(?:e|es|ed|ing)\ (?:\S+\ ){1,4}?(?:with|by)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_DECIDES = re.compile(
    r"""\b(?: in\ favou?r\ of | decided?\ (?:to|on|against) | standardi[sz]e\ on
    | mov(?:e|es|ed|ing)\ (?:away\ from|off|(?:\S+\ ){0,2}?from\ (?:\S+\ ){1,4}?to) )\b
    | ^(?: (?:prefer|choose)s?\ (?:\S+\ ){1,4}?(?:to|over|instead\ of|rather\ than)\b
    | (?:switch|migrate)(?:e?[sd])?\ (?!statement\b|case\b)(?:\S+\ ){0,4}?(?:to|from|off|over)\ (?!version)
    | (?:convert|port)(?:s|ed)?\ (?:(?:the\ )?(?:whole\ |entire\ )?
      (?:project|codebase|library|everything|build)\ )?to\b
    | adopt(?:s|ed)?\ (?!by\b)\S+ | deprecate[sd]?\ (?!warn)\S+ | stop(?:s|ped)?\ \w+ing
    | drop(?:s|ped)?\ (?:the\ )?(?:support|compatibility|\S+\ (?:v|<=?\ ?)?\d)
    | requires?d?\ \S+\ (?:v|>=?\ ?)?\d | (?:forbid|disallow)s? | abandon(?:s|ed)? )""",
    re.IGNORECASE | re.VERBOSE,
)
_STATED = re.compile(
    r"^(?:decision|breaking[ -]change)s?:[ \t]*(\S(?:.|\n(?!\n))*)", re.IGNORECASE | re.MULTILINE
)
_SENTENCE = re.compile(r"[^.!?]+(?:[.!?](?!\s)[^.!?]*)*[.!?]?")
_AMID = re.compile(
    r"(?:[*#-]|(?:so|and|but|however|also|this|that|it|i|we'd|note)\b)", re.IGNORECASE
)  # of a longer thought
_REVERT = re.compile(r'(?:Revert|Undo):?\s+"(.+)"', re.IGNORECASE)


def _decisions(commits: Iterable[Commit], is_there: Callable[[str], bool]) -> Iterator[tuple[str, str, str]]:
    """Commits that chose between two ways, and say why; newest first, without those that were taken back, and
    those of which no file is left."""
    gone: set[str] = set()
    for commit in commits:
        if match := _REVERT.match(commit.subject):
            gone.add(match[1])
        elif commit.subject not in gone and (text := _decision(commit)):
            gone.add(commit.subject)  # the same once more is no second decision
            if any(is_there(path) for _, path, _ in commit.files):
                yield commit.date, commit.short, text


def _decision(commit: Commit) -> str | None:
    whole = _PULL.sub("", commit.subject.rstrip()).rstrip(". ")  # brackets would look like code
    match = _PREFIX.match(whole)
    subject = whole[match.end() :] if match else whole
    kind = match["type"].lower() if match else ""
    stated = _STATED.search(commit.body)
    reason = plain(stated[1] if stated else _because(commit.body), LONGEST)
    if kind in _NEVER or not is_to_be_told(reason) or not is_to_be_told(whole):
        return None
    if not stated:
        swaps = _SWAPS.search(subject) and not _CODE.search(subject)
        if not (swaps or _DECIDES.search(subject)) or _TRIVIAL.search(subject):
            return None
    text = f"{plain(whole, LONGEST)}: {reason}"
    return text if len(text) <= LONGEST and not text.endswith("…") else None


def _because(body: str) -> str:
    """The sentence of a message that says why."""
    for paragraph in re.split(r"\n\s*\n", body):
        for sentence in _SENTENCE.findall(" ".join(paragraph.split())):
            text = str(sentence).strip()
            if re.search(r"\b(?:because|since|so that|to avoid)\b", text) and not _AMID.match(text):
                return text
    return ""


def plain(text: str, most: int) -> str:
    """Text as one printable line, cut at a word."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text[:10_000]).split())
    if len(line) <= most:
        return line
    start = line[: most - 1]
    return (start.rpartition(" ")[0] or start).rstrip(" ,;:-") + "…"


# Habits.

_AREA = re.compile(r"([A-Za-z0-9_.*-]+(?:/[A-Za-z0-9_.*-]+)*)(?:, ?[\w./*-]+)*: +\S")
_TICKET = re.compile(r"\b([A-Z][A-Z0-9]{1,9})-\d+\b")
_PULL = re.compile(r"\(#\d+\)$")
_SIGNED = re.compile(r"^Signed-off-by:", re.MULTILINE)


def _habits(commits: Sequence[Commit]) -> Iterator[str]:
    """What nearly all messages have that somebody has to know; a sentence each."""
    commits = [commit for commit in commits if not _REVERT.match(commit.subject)]
    subjects = [commit.subject for commit in commits]
    matches = [_PREFIX.match(subject) for subject in subjects]
    typed = [match for match in matches if match and match["type"].lower() in _TYPES]
    areas = [match for match in map(_AREA.match, subjects) if match and match[1].lower() not in _TYPES]
    if _agree(len(typed), len(subjects)):
        yield from _conventional(typed)
    elif _agree(len(areas), len(subjects)):
        area = Counter(match[1] for match in areas).most_common(1)[0][0]
        yield f"Subjects begin with the part they change, as in `{area[:40]}: ...`."
    yield from _references(commits)


def _conventional(typed: Sequence[re.Match[str]]) -> Iterator[str]:
    types = Counter(match["type"].lower() for match in typed)
    usual = sorted(name for name, count in types.items() if count >= USUAL * len(typed))
    scopes = Counter(match["scope"] for match in typed if match["scope"])
    scoped = sum(scopes.values()) * 2 >= len(typed)
    form = "type(scope): subject" if scoped else "type: subject"
    types_said = f"; most often {_quoted(usual)}" if usual else ""
    yield f"Messages follow Conventional Commits, `{form}`{types_said}."


def _references(commits: Sequence[Commit]) -> Iterator[str]:
    messages = [f"{commit.subject}\n{commit.body}" for commit in commits]
    keys = Counter(match[1] for message in messages if (match := _TICKET.search(message)))
    if keys and _agree(keys.total(), len(commits)):
        yield f"Messages name the ticket, as in `{keys.most_common(1)[0][0]}-123`."
    if _agree(sum(bool(_SIGNED.search(message)) for message in messages), len(commits)):
        yield "Commits are signed off (`git commit -s`)."


def _agree(count: int, cases: int) -> bool:
    return cases >= FEW and count >= STRONG * cases


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
