"""Which files a tool use changed. Pure: no file is looked at, so what is said here is what the call says.

Of what a shell can do, `rm`, `mv`, `git rm` and `git mv` are understood, wherever in a command they stand.
What only the shell could know (`$x`, `$(...)`, `~`) is left out; a pattern stands for its folder.
"""

from __future__ import annotations

import os

from backstory import shell
from backstory.clients import claude_code
from backstory.clients.canonical import CHANGING, SHELL
from backstory.errors import BadPayload
from backstory.shell import Word, without_prefix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from backstory.clients.canonical import Event
    from backstory.shell import Step

COMMAND_LIMIT = 100_000  # characters of a command that are read
PATH_LIMIT = 4_096
UNKNOWN = "\0"  # a folder whose name is not known
STEPS_UP = 64  # `cd ..` of one command that are understood

GIT_VALUES = frozenset("-C -c --config-env --git-dir --namespace --super-prefix --work-tree".split())


def of_payload(raw: bytes) -> list[str]:
    """The changed paths of a payload as it came."""
    payload = parse(raw) if claude_code.may_change_files(raw) else None
    try:
        return changed(claude_code.read(payload)) if isinstance(payload, dict) else []
    except BadPayload:
        return []  # the drain puts it aside


def parse(raw: bytes) -> object:
    """As json.loads, but None for what is no JSON. The json module takes longer to load than all there is to
    do at the end of a turn; its scanner is a module of its own."""
    try:
        text = raw.decode("utf-8", "surrogatepass").lstrip()
        try:
            from _json import make_scanner

            found, end = make_scanner(_AsJsonDoes)(text, 0)  # type: ignore[arg-type]
            return None if text[end:].strip() else found
        # It is an inner affair of Python's; and some cannot say without the json module what is wrong.
        except (ImportError, AttributeError, TypeError, SystemError):
            import json

            return json.loads(text)
    except (ValueError, StopIteration, RecursionError):
        return None


class _AsJsonDoes:
    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float = parse_constant = float
    parse_int = int


def changed(event: Event) -> list[str]:
    """The paths that a tool use changed, absolute."""
    use = event.use
    if use is None or use.error is not None:
        return []
    if use.action in CHANGING:
        return [_joined(event.cwd, path) for path in use.paths]
    return by_command(use.command or "", event.cwd, use.was_reset) if use.action == SHELL else []


def by_command(command: str, cwd: str, was_reset: bool = False) -> list[str]:
    """The same of a command. `cwd` is the folder that it left the shell in, unless that `was_reset`."""
    if "rm" not in command and "mv" not in command:
        return []
    found = _followed(walked(command, cwd, was_reset))
    return [path for path in dict.fromkeys(found) if UNKNOWN not in path]


def walked(command: str, cwd: str, was_reset: bool = False) -> Iterable[tuple[list[Word], str | None]]:
    """The simple commands of one, each with the folder it runs in; None: nobody knows."""
    steps = shell.read(command[:COMMAND_LIMIT])
    return _walk(steps, cwd if was_reset else _start(steps, cwd))


def _start(steps: list[Step], cwd: str) -> str | None:
    """Where a command began that ended in cwd; None where that cannot be told.

    `cd src && rm a` leaves the shell in src. But the client may have taken it back, as it does from outside
    the project: then cwd is not where the command went.
    """
    end = _end(steps, "/" + "/".join([UNKNOWN] * STEPS_UP))
    if end is None:
        return None
    parts = end.strip("/").split("/")
    left = parts.count(UNKNOWN)
    if not left:  # it went to a place of its own choice
        return None if end == cwd else cwd
    down = "".join(f"/{part}" for part in parts[left:])
    if not cwd.endswith(down):
        return cwd
    return _joined(cwd[: len(cwd) - len(down)] or "/", "/".join([UNKNOWN] * (STEPS_UP - left)))


def _end(steps: list[Step], start: str) -> str | None:
    ends = [at for _, at in _walk(steps, start)]
    return ends[-1] if ends else start


def _followed(commands: Iterable[tuple[list[Word], str | None]]) -> list[str]:
    found: list[str] = []
    for words, at in commands:
        name = _name(words)
        if name == "rm":
            found += _paths(_operands(words[1:]), at)
        elif name == "mv":
            found += _moved(words[1:], at)
        elif name == "git":
            found += _by_git(words[1:], at)
    return found


def _walk(steps: list[Step], start: str | None) -> Iterable[tuple[list[Word], str | None]]:
    """Each command with the folder it runs in, or ends in if it is a `cd`; None: nobody knows."""
    at = before = start
    outer: list[tuple[str | None, str | None]] = []
    for number, step in enumerate(steps):
        if step == "(":
            outer.append((at, before))
        elif step == ")" and outer:
            at, before = outer.pop()
            yield [], at
        elif not isinstance(step, str):
            words = without_prefix(step)
            if _name(words) in ("cd", "pushd", "popd") and _goes(steps, number):
                at, before = _gone(words, at, before), at
            yield words, at


def _name(words: list[Word]) -> str:
    return words[0].text.rpartition("/")[2] if words and words[0].is_known else ""


def _goes(steps: list[Step], number: int) -> bool:
    """Does a `cd` move the shell, or only a process of its own; or is it for when another one failed?"""
    before = steps[number - 1] if number else ";"
    after = steps[number + 1] if number + 1 < len(steps) else ";"
    if before == "|" or after in ("|", "&"):
        return False
    other = steps[number - 2] if before == "||" and number > 1 else ""
    return isinstance(other, str) or _name(without_prefix(other)) != "cd"


def _gone(words: list[Word], at: str | None, before: str | None) -> str | None:
    if words[0].text == "popd" or [word.text for word in words[1:]] == ["-"]:
        return before
    to = _operands(words[1:])
    found = _paths(to, at)
    return found[0] if len(to) == len(found) == 1 and not to[0].is_pattern else None


def _operands(words: list[Word]) -> list[Word]:
    """Without options."""
    for place, word in enumerate(words):
        if word.text == "--":
            return [*(word for word in words[:place] if not _is_option(word)), *words[place + 1 :]]
    return [word for word in words if not _is_option(word)]


def _is_option(word: Word) -> bool:
    return word.text.startswith("-") and word.text != "-"


def _moved(words: list[Word], at: str | None) -> list[str]:
    operands, folder, is_exact = _read_mv(words)
    if folder is None:
        if len(operands) < 2:
            return []
        *operands, target = operands
        is_folder = target.text.endswith("/") or target.text.rpartition("/")[2] in (".", "..")
        if is_exact or (len(operands) == 1 and not is_folder):
            return _paths([*operands, target], at)
        folder = target
    found = []
    for word in operands:
        name = word.text.rstrip("/").rpartition("/")[2]
        is_named = word.is_known and not word.is_pattern and name not in ("", ".", "..")
        is_whole = is_named and not folder.is_pattern
        into = Word(f"{folder.text}/{name}", folder.is_known) if is_whole else folder
        found += _paths([word, into], at)
    return found


def _read_mv(words: list[Word]) -> tuple[list[Word], Word | None, bool]:
    """(operands, the folder of -t, whether -T says that the target is none)."""
    operands: list[Word] = []
    folder: Word | None = None
    is_exact = False
    rest = iter(words)
    for word in rest:
        option, sign, value = word.text.partition("=")
        if word.text == "--":
            operands += rest
        elif not _is_option(word):
            operands.append(word)
        elif option.startswith("--"):
            if len(option) > 2 and "--target-directory".startswith(option):
                folder = Word(value, word.is_known) if sign else next(rest, None)
            elif option == "--suffix" and not sign:
                next(rest, None)
            is_exact = is_exact or (len(option) > 5 and "--no-target-directory".startswith(option))
        else:
            letters = option[1:]
            place = min((letters.find(letter) for letter in "tS" if letter in letters), default=len(letters))
            is_exact = is_exact or "T" in letters[:place]
            if place < len(letters):
                attached = word.text[place + 2 :]
                given = Word(attached, word.is_known) if attached else next(rest, None)
                folder = given if letters[place] == "t" else folder
    return operands, folder, is_exact


def _by_git(words: list[Word], at: str | None) -> list[str]:
    rest = iter(words)
    for word in rest:
        if not _is_option(word):
            break
        if word.text in GIT_VALUES and (value := next(rest, None)) and word.text == "-C":
            at = next(iter(_paths([value], at)), None)
    else:
        return []
    given = [_as_pathspec(word) for word in rest]
    options = [other.text for other in given if _is_option(other)]
    if "-n" in options or "--dry-run" in options:
        return []
    if word.text == "rm":
        return _paths(_operands(given), at)
    return _moved(given, at) if word.text == "mv" else []


def _as_pathspec(word: Word) -> Word:
    """Git knows patterns itself, so they may be quoted; `:/x` and the like are a language of its own."""
    if word.is_pattern or not word.is_known:
        return word
    places = [place for place in map(word.text.find, "*?[") if place >= 0]
    return Word(word.text, not word.text.startswith(":"), min(places, default=-1))


def _paths(words: Iterable[Word], at: str | None) -> list[str]:
    found = []
    for word in words:
        text = word.text
        if word.is_pattern:
            folder, slash, _ = text[: word.pattern_at].rpartition("/")
            text = folder + slash or "."
        if word.is_known and text and (at is not None or text.startswith("/")):
            path = _joined(at or "/", text)
            if len(path) <= PATH_LIMIT:
                found.append(path)
    return found


def _joined(folder: str, path: str) -> str:
    joined = os.path.normpath(os.path.join(folder, path))
    return joined[1:] if joined.startswith("//") else joined
