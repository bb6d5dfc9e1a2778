"""What a shell command came to: commits, checks that failed or passed, files changed and put back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from backstory import shell
from backstory.shell import Command, Step, Word
from backstory.synthesis.rules.words import clean

SHOWN = 8_000  # characters of an output that are looked at, half from either end

_COMMITTED = re.compile(r"^\[[^\]\n]{1,200} [0-9a-f]{7,40}\] (.{1,500})$", re.M)
_GIT = re.compile(r"git(?:\s+-[cC]\s+\S+|\s+--?[\w-]+(?:=\S+)?){0,5}\s+([a-z-]+)\b")
_MESSAGE = re.compile(r"-[a-zA-Z]{0,6}?m|--message(?:=|$)")
_TRAILER = re.compile(r"(?:co-authored-by|signed-off-by|generated with|🤖)", re.I)

_TESTS = re.compile(
    r"(?:(?:uv|poetry|pdm|hatch|pipenv|rye)\s+run\s+|(?:npx|bunx|pnpm\s+exec|yarn\s+exec|bundle\s+exec)\s+)?"
    r"(?:\S{0,80}?python[\d.]{0,5}\s+(?:-m\s+)?)?"
    r"(?:\S{0,80}/)?(?:pytest|py\.test|unittest|nose2|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest"
    r"|(?:npm|pnpm|yarn|bun)\s+(?:--?\S+\s+){0,3}(?:run\s+)?(?:test|t)\b|node\s+(?:--?\S+\s+){0,4}--test"
    r"|go\s+test|cargo\s+(?:test|nextest)|deno\s+test|swift\s+test|dotnet\s+test|mix\s+test|rake\s+(?:test"
    r"|spec)|make\s+(?:-\S+\s+){0,3}(?:test|tests|check)\b|(?:mvn|mvnw|gradle"
    r"|gradlew)\s+(?:\S+\s+){0,4}(?:test|verify|check)\b|playwright\s+test|manage\.py\s+test)"
    r"|(?:(?:(?:ba|da|z|k)?sh|\S{0,80}?python[\d.]{0,5})\s+(?:-\w+\s+){0,3})?(?:\./)?(?:[\w.-]+/){0,4}"
    r"(?:run[-_]?)?tests?\.(?:sh|py|js|rb|pl)(?=\s|$)"
    r"|(?:\./|(?:bin|scripts?|tools|ci)/)(?:run[-_]?)?tests?(?=\s|$)",
)
# what only looks, asks or tidies: that it failed teaches nothing
_BORING = frozenset(
    "ls cat grep rg egrep find fd which type echo printf head tail sed awk wc test [ mkdir rm cp mv touch pwd"
    " cd git export source . sleep kill ps true false diff stat file du df tree jq sort uniq xargs less more"
    " man read pushd popd set unset chmod ln whoami date env printenv command tee gh open pip pip3 uv".split()
)
_LINT = re.compile(
    r"(?:(?:uv|poetry|pdm|hatch|pipenv|rye)\s+run\s+|(?:npx|bunx|pnpm\s+exec)\s+"
    r"|\S{0,80}?python[\d.]{0,5}\s+-m\s+)?"
    r"(?:ruff|flake8|eslint|prettier|black|isort|pylint|stylelint|shellcheck|golangci-lint|mypy|pyright|tsc"
    r"|gofmt)\b|(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:lint|format|fmt|type-?check)|cargo\s+(?:clippy|fmt)"
    r"|go\s+vet|make\s+(?:lint|format|fmt|type-?check)\b"
)
_ASSERTS = re.compile(r"\bassert\b|\b(?:sys\.|process\.)?exit\(|\bassert[._(]|\braise \w|\bthrow new\b")
_COUNTS = (  # (how many failed, how many passed) as runners say it
    (re.compile(r"\b(\d{1,6}) (?:failed|failing|failures?|errors?)\b"), True),
    (re.compile(r"^\W{0,4}fail (\d{1,6})$", re.M), True),
    (re.compile(r"\bfailures=(\d{1,6})|\berrors=(\d{1,6})"), True),
    (re.compile(r"\b(\d{1,6}) (?:passed|passing|examples)\b"), False),
    (re.compile(r"^\W{0,4}pass (\d{1,6})$", re.M), False),
)
_FAILED = re.compile(r"^(?:--- FAIL|FAIL\b|test result: FAILED|BUILD FAILED|FAILURES!|not ok )", re.M)
_PASSED = re.compile(r"^(?:ok\s+\S|PASS\b|test result: ok|BUILD SUCCESS|OK\b)", re.M)
_PASS_LINE = re.compile(r"^\s{0,8}(?:--- PASS\b|ok \d{1,6} |PASS: |[✔✓] |test \S{1,200} \.\.\. ok$)", re.M)
_NAMES = re.compile(
    r"^(?:FAILED|ERROR) ([^\s(]\S{0,299})"  # pytest
    r"|^\s{0,8}not ok \d{1,6} - (.{1,200})$"  # TAP
    r"|^\s{0,8}[✖✗×] (.{1,200}?)(?: \([\d.]{1,12}ms\))?$"
    r"|^\s{0,4}● (.{1,200})$"  # jest
    r"|^\s{0,8}--- FAIL: (\S{1,200})"  # go
    r"|^test (\S{1,200}) \.\.\. FAILED$"  # cargo
    r"|^(?:FAIL|ERROR): (.{1,200})$"  # unittest
    r"|^\s{1,4}\d{1,4}\) (?:test )?(.{1,200}?)(?: \([\w.]{1,120}\))?$",  # ExUnit, mocha, rspec
    re.M,
)
_ERROR_LINES = (
    re.compile(r"^E\s{1,8}((?!assert\b)\w.{3,300})$", re.M),
    re.compile(r"^\W{0,6}((?:[\w.]{0,80})(?:Error|Exception|Panic)(?: \[\w{1,60}\])?: .{3,300})$", re.M),
    re.compile(r"^\W{0,4}(?:error|fatal|panic|failure|Error)(?:\[\w{1,10}\])?: ?(?!\|)(.{4,300})$", re.M),
    re.compile(r"^E\s{1,8}(.{4,300})$", re.M),
    re.compile(r"^\s{0,8}error: \|-\n\s{1,12}(.{4,300})$", re.M),
    re.compile(r"^.{0,200}?: error: (.{4,300})$", re.M),
    re.compile(r"^(?:FAILED|ERROR) \S{1,300} - (.{4,300})$", re.M),
)
_EMPTY_ERRORS = re.compile(
    r"'?(?:test failed|\|-|exit (?:code|status).*|assert(?:ion)? ?(?:error|failed)?:?"
    r"|(?:AssertionError: )?assert (?:False|None|True|0|not True))'?$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Commit:
    subject: str
    body: str
    amends: bool
    rewords: bool  # history is being rewritten; without edits it is the same commit under another name


@dataclass(frozen=True, slots=True)
class Check:
    """A command that can fail and later pass."""

    key: str  # the runs of one check have the same
    is_tests: bool
    passed: bool
    names: tuple[str, ...]  # of the tests that failed
    errors: tuple[str, ...]  # one a name: the line that tells most
    only: tuple[str, ...]  # the paths it was confined to
    is_whole: bool = True  # where it failed, the rest did run


@dataclass(frozen=True, slots=True)
class Shell:
    """What one command came to."""

    commits: tuple[Commit, ...] = ()
    check: Check | None = None
    changed: tuple[str, ...] = ()
    moved: bool = False
    gone: tuple[str, ...] = ()  # paths removed or put back to what they were
    all_gone: bool = False
    failed: bool = False


def read(given: dict[str, Any], output: Any) -> Shell:
    command = given.get("command")
    if not isinstance(command, str) or not command.strip():
        return Shell()
    failed = isinstance(output, dict) and isinstance(output.get("error"), str)
    text = said(output)
    steps = shell.read(command[:SHOWN])
    commands = [step for step in steps if not isinstance(step, str)]
    parts = [" ".join(map(_outline, shell.without_prefix(words))).strip() for words in commands]
    gone, all_gone = (set[str](), False) if failed else _gone(parts)
    return Shell(
        commits=_commits(command, commands, parts, text, failed),
        check=_check(command, steps, parts, text, failed),
        changed=() if failed else _changed(commands, parts, output),
        moved=not failed and any(part.startswith(("git mv ", "mv ")) for part in parts),
        gone=tuple(sorted(gone)),
        all_gone=all_gone,
        failed=failed,
    )


def said(output: Any) -> str:
    """What it printed, from both ends where it printed much."""
    if isinstance(output, dict):
        parts = [output.get(name) for name in ("error", "output", "errors", "text")]
        text = "\n".join(part for part in parts if isinstance(part, str) and part)
    else:
        text = output if isinstance(output, str) else ""
    if len(text) > SHOWN:
        text = f"{text[: SHOWN // 2]}\n{text[-SHOWN // 2 :]}"
    return text.replace("\r", "")


def _outline(word: Word) -> str:
    """The word without the text in it: nothing that a string says is a command."""
    if word.quoted_at < 0:
        return word.text
    quoted = word.text[word.quoted_at :]
    return f"{word.text[: word.quoted_at]}'{quoted if _is_path(quoted) else ''}'"


def _is_path(text: str) -> bool:
    return bool(re.fullmatch(r"[\w./@-]{1,200}", text))


def _commits(
    command: str, commands: list[Command], parts: list[str], text: str, failed: bool
) -> tuple[Commit, ...]:
    verbs = [match[1] for part in parts if (match := _GIT.match(part))]
    if "commit" not in verbs:
        return ()
    documents = [words.document for words in commands if words.document]
    messages = [message for words in commands for message in _messages(words)] or documents[:1]
    # further -m of one commit are paragraphs of its message
    if verbs.count("commit") == 1 and len(messages) > 1:
        messages = ["\n\n".join(messages)]
    truth = _COMMITTED.findall(text)
    if (failed or "nothing to commit" in text or "no changes added" in text) and not truth:
        return ()
    amends = "--amend" in command or ("reset" in verbs and "--soft" in command)
    rewords = amends or any(verb in ("rebase", "reset", "cherry-pick", "merge", "revert") for verb in verbs)
    found = []
    for place in range(max(len(truth), len(messages))):
        subject, _, body = (messages[place] if place < len(messages) else "").strip().partition("\n")
        subject = truth[place] if place < len(truth) else subject
        kept = [line for line in body.splitlines() if line.strip() and not _TRAILER.search(line)]
        if subject:
            found.append(Commit(clean(subject)[:300], "\n".join(kept)[:2_000], amends, rewords))
    return tuple(found)


def _messages(words: Command) -> Iterator[str]:
    """What stands behind -m, of `git commit` and of nothing else: `python -m unittest` has one as well."""
    rest = iter(word.text for word in words)
    if "git" not in rest or "commit" not in rest:
        return
    for word in rest:
        if given := _MESSAGE.match(word):
            message = word[given.end() :] or next(rest, "")
            _, is_document, document = message.partition("$(cat <<")
            yield _document(f"cat <<{document}") if is_document else message


def _document(command: str) -> str:
    first = shell.read(command)[0]
    return "" if isinstance(first, str) else first.document or ""


def _check(command: str, steps: list[Step], parts: list[str], text: str, failed: bool) -> Check | None:
    commands = [step for step in steps if not isinstance(step, str)]
    tests = next((part for part in parts if _TESTS.match(part)), None)
    if tests is not None:
        outcome, passed = _outcome(text, failed)
        if outcome is None and not any(sign in steps for sign in ("|", "||", ";")):
            outcome = True  # it says nothing that is known here, and its exit code is its own
        if outcome is None:
            return None
        names = () if outcome else tuple(dict.fromkeys(_names(text)))[:20] or ("tests",)
        errors = tuple(_error_of(name, names, text) for name in names)
        return Check("tests", True, outcome, names, errors, _confined(tests), passed > 0)
    telling = (one for one in zip(parts, commands, strict=True) if one[0] and not _is_boring(one[0]))
    part, whole = next(telling, ("", Command()))
    words = [word for word in part.split() if not word.startswith(("-", "$"))]
    if not words:
        return None
    probing = re.match(r"(?:\S*/)?(?:python|node|ruby|perl|bash|sh)[\d.]*$", words[0]) and len(words) < 2
    if probing or " -c " in f"{part} " or " -e " in f"{part} " or whole.document is not None:
        # a question asked of an interpreter, unless it says itself what must be true
        if not _ASSERTS.search(command[:SHOWN]):
            return None
        told = telling_error(text) if failed else ""
        return Check(clean(command)[:SHOWN], False, not failed, (clean(command)[:SHOWN],), (told,), ())
    key = " ".join(words[:3])[:120]
    return Check(key, False, not failed, (key,), (telling_error(text) if failed else "",), ())


def _is_boring(part: str) -> bool:
    return part.split(None, 1)[0].rsplit("/", 1)[-1] in _BORING or bool(_LINT.match(part))


def _outcome(text: str, failed: bool) -> tuple[bool | None, int]:
    """Whether tests passed, and how many did. What was printed counts: a pipe hides the exit code, and a
    linter behind && spoils it."""
    bad = good = 0
    for pattern, is_bad in _COUNTS:
        for match in pattern.finditer(text):
            count = sum(int(group) for group in match.groups() if group)
            bad, good = (bad + count, good) if is_bad else (bad, good + count)
    says_failed = bool(_FAILED.search(text))
    listed = len(_PASS_LINE.findall(text))
    if good and not bad:
        return not says_failed, good
    if bad or says_failed or failed:
        return False, good or listed
    return (True if listed or _PASSED.search(text) else None), good or listed


def _names(text: str) -> list[str]:
    return [clean(next(group for group in match if group)) for match in _NAMES.findall(text)]


def _confined(part: str) -> tuple[str, ...]:
    words = [word for word in part.split()[1:] if not word.startswith("-")]
    words = [word for word in words if word not in ("./...", ".") and not word.endswith("manage.py")]
    return tuple(word for word in words if "/" in word or "." in word or "::" in word)[:10]


def _error_of(name: str, others: Sequence[str], text: str) -> str:
    """What it failed with stands below its name."""
    short = name.rsplit("::", 1)[-1]
    start = text.rfind("\n", 0, max(0, text.find(short))) + 1
    nearby = text[start : start + 3_000]
    ends = [
        place for other in others if other != name and (place := nearby.find(other.rsplit("::", 1)[-1])) > 0
    ]
    return telling_error(nearby[: min(ends, default=len(nearby))])


def telling_error(text: str) -> str:
    for pattern in _ERROR_LINES:
        for match in pattern.finditer(text):
            line = clean(match[1])
            line = line[1:-1] if line[:1] in ("'", '"') and line[-1:] == line[:1] else line
            if len(line) > 8 and not _EMPTY_ERRORS.match(line):
                return line[:200]
    return ""


def _changed(commands: list[Command], parts: list[str], output: Any) -> tuple[str, ...]:
    """Some clients say which files a command changed; else it is read from the command."""
    named = output.get("changed") if isinstance(output, dict) else None
    if isinstance(named, list):
        return tuple(path for path in named if isinstance(path, str))[:40]
    targets = [word.text for words in commands for word in words.writes if word.is_known]
    found = [path for path in targets if len(path) > 2 and _is_path(path)]
    for part in parts:
        words = part.split()
        if words[:1] == ["sed"] and any(word.startswith("-i") for word in words):
            found += [word for word in words[2:] if "." in word and _is_path(word)]
        elif words[:2] == ["git", "mv"] and len(words) == 4:
            found.append(words[3])
        elif words[:1] == ["tee"] and len(words) > 1:
            found.append(words[-1])
    return tuple(path for path in dict.fromkeys(found) if not path.startswith("/dev/"))[:40]


def _gone(parts: list[str]) -> tuple[set[str], bool]:
    gone: set[str] = set()
    for part in parts:
        words = part.split()
        paths = {word.strip("'\"") for word in words[1:] if not word.startswith("-")}
        if words[:1] == ["rm"]:
            gone |= paths
        elif words[:2] in (["git", "checkout"], ["git", "restore"]):
            # a branch is no path; what is one shows itself by a dot or a slash
            gone |= {path for path in paths if "." in path or "/" in path}
            if "." in paths:
                return gone, True
        elif words[:2] == ["git", "reset"] and "--hard" in words:
            return gone, True
    return gone, False
