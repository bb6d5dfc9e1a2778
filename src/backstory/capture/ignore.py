"""What is never kept: files that hold secrets, and the paths and tools that `capture.ignore` names.

Of a tool use about such a file nothing is kept but that there was an event. Of a command that names one, the
beginning is kept without what it printed; where it writes such a file, that text is in the command, and
nothing is kept. What is quoted or substituted in a command may be a command too, and is read as one. A glob
that the shell would expand names such a file if it shows some of its name (`.e*`, but not `*`). A search that
finds lines in such a file names it before each (`.env:3:`), and these are left out.
Redaction would find most of it; this is for what has no shape to be known by.

A hook drains, so the names that always hold are looked up without regular expressions: most drains need none.
"""

from __future__ import annotations

import os
import re

from backstory import config, shell
from backstory.clients.canonical import MCP, OTHER, SEARCH, SHELL
from backstory.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backstory.clients.canonical import Event, Use

# Always: files that are there to hold a secret. One that may hold some among other things (.npmrc,
# settings.json) is left to redaction.
NAMES = frozenset(
    ".env .envrc .git-credentials .htpasswd .netrc .pgpass credentials.json"
    " secrets.json secrets.toml secrets.yaml secrets.yml".split()
)
BEGINNINGS = (".env.", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa", "secrets.env")
ENDINGS = (".env", ".jks", ".kdbx", ".key", ".p12", ".pem", ".pfx")  # alone, as jq writes `.key`: no file
FOLDERS = ("/.aws/", "/.gnupg/", "/.ssh/")
EXAMPLES = (".defaults", ".dist", ".example", ".sample", ".template")  # of .env, to be filled in by others
# A command or a line without any of these names none of them.
HINTS = (*NAMES, *BEGINNINGS, *ENDINGS, *(folder.strip("/") for folder in FOLDERS))
WITH_MESSAGES = frozenset({"gh", "git", "hg", "jj"})  # their quoted words are sentences, and no commands
WITH_TEXT = WITH_MESSAGES | {"cat", "tee"}  # their here-documents are no programs
WRITING = frozenset({"dd", "sponge", "tee"})
MOVING = frozenset({"cd", "pushd"})
IN_PLACE = frozenset({"gsed", "perl", "sed"})  # with the option i
# A text without its quotes, and with what is substituted in it as commands of their own.
UNQUOTED = str.maketrans({**dict.fromkeys("'\"\\$"), **dict.fromkeys("`()", ";"), "#": " "})
WORD_ENDS = str.maketrans(dict.fromkeys("=:@,\"'`(){}[];|&<>", " "))
WILD = "*?["
COMMAND_LIMIT = 20_000
LONGEST_GLOB = 200
LONGEST_PATH = 4_096
MOST_GLOBS = 50  # of a command; one with more is taken to name a file
MOST_WORDS = 16  # that one word with braces is taken for
LONGEST_NAME = 500  # characters of a line in which a path is looked for


class Ignored:
    """What is not to be kept here."""

    __slots__ = ("_endings", "_names", "_paths", "_tools")

    def __init__(self, globs: str = "") -> None:
        self._paths: re.Pattern[str] | None = None
        self._tools: re.Pattern[str] | None = None
        given = parsed(globs)
        own = [glob.rstrip("/").rpartition("/")[2].strip("*?").lower() for glob in given]
        self._endings = (*ENDINGS, *own)
        self._names = (*NAMES, *BEGINNINGS, *(folder.strip("/") for folder in FOLDERS), *own)
        if given:
            self._paths = re.compile("|".join(map(_as_path, given)), re.S)
            if names := [_translated(glob) for glob in given if "/" not in glob]:
                self._tools = re.compile("|".join(names), re.S)

    def path(self, path: str, cwd: str = "/") -> bool:
        path = f"/{path}"
        name = path.rpartition("/")[2].rstrip("*?").lower()
        if name in NAMES or name.startswith(BEGINNINGS) or (name.endswith(ENDINGS) and name not in ENDINGS):
            return not name.endswith(EXAMPLES)
        if "/." in path and any(folder in f"{path}/".lower() for folder in FOLDERS):
            return True
        if self._paths is None or len(path) > LONGEST_PATH:
            return False
        path = os.path.expanduser(re.sub(r"^\$(?:HOME\b|\{HOME\})", "~", path[1:]))
        return bool(self._paths.search(os.path.normpath(os.path.join(cwd, path))))

    def _may_be(self, glob: str) -> bool:
        """Whether a part of a path shows that it fits an ignored name: two letters of its ending, or one of
        each part between dots and two in all, the first dot counting as one. Else `*` and `*.json` would be
        about secrets. As in a shell, what begins with a wild sign fits no name that begins with a dot."""
        if len(glob) > LONGEST_GLOB:
            return False
        shown = [sum(map(str.isalnum, part)) for part in re.sub(r"\[.*?\]", "", glob).split(".")]
        stem, dot, ending = glob.rpartition(".")
        if stem and shown[-1] > 1 and set(ending) & set(WILD) and _fits(dot + ending, self._endings):
            return True
        hidden = glob[0] == "."
        names = tuple(name for name in self._names if (name[:1] == ".") is hidden)
        return all(shown[hidden:]) and sum(shown) + hidden > 1 and _fits(glob, names)

    def apply(self, event: Event) -> None:
        """Take out of an event, as it came, what is not to be kept."""
        use = event.use
        if use is None:
            return
        if self._is_about(use, event.cwd):
            event.use, event.text, event.changed = None, "", []
        elif use.action == SHELL and use.command:
            self._apply_to_shell(event, use, use.command)
        if event.use is not None and use.action in (SHELL, SEARCH):
            use.result = self._without_lines(use.result, event.cwd)
            use.error = None if use.error is None else self._text_without_lines(use.error, event.cwd)

    def _is_about(self, use: Use, cwd: str) -> bool:
        if self._tools is not None and self._tools.fullmatch(use.tool):
            return True
        if any(self.path(path, cwd) for path in use.paths):
            return True
        return use.action in (MCP, OTHER) and any(self.path(path, cwd) for path in _texts(use.given))

    def _apply_to_shell(self, event: Event, use: Use, command: str) -> None:
        bare = command.translate(UNQUOTED).lower()  # as `path` compares them: some file systems do too
        is_long = len(command) > COMMAND_LIMIT
        is_hinted = self._paths is not None or any(hint in bare for hint in HINTS)
        if not is_hinted and (is_long or not any(sign in command for sign in (*WILD, "{"))):
            return
        if is_long:  # too long to be read, and by a hint there may be something in it
            event.use, event.changed = None, []
            return

        def are_ignored(words: list[str]) -> bool:
            return any(self.path(part, event.cwd) for part in _parts(words))

        named, every = False, set[str]()
        for words, targets, globs in _commands(command):
            if are_ignored(targets):
                event.use, event.changed = None, []
                return
            named = named or are_ignored(words)
            every.update(part for glob in globs for part in glob.lower().split("/") if set(part) & set(WILD))
        if named or len(every) > MOST_GLOBS or any(map(self._may_be, every)):
            use.result = {} if use.error is None else None
            use.error = None if use.error is None else ""
            # What is quoted may be a program that writes the file.
            use.given = {"command": re.split(r"[\n'\"]|<<", command, maxsplit=1)[0]}

    def _without_lines(self, result: object, cwd: str) -> object:
        if isinstance(result, str):
            return self._text_without_lines(result, cwd)
        if isinstance(result, dict):
            return {name: self._without_lines(part, cwd) for name, part in result.items()}
        return [self._without_lines(part, cwd) for part in result] if isinstance(result, list) else result

    def _text_without_lines(self, text: str, cwd: str) -> str:
        """Without the lines that begin with the path of an ignored file, as searches print them."""
        if ":" not in text and "-" not in text:
            return text
        small = text.lower()
        hints = [hint for hint in HINTS if hint in small]
        if not hints and self._paths is None:
            return text

        def is_kept(line: str) -> bool:
            head = line[:LONGEST_NAME]
            if self._paths is None:
                small = head.lower()
                if not any(hint in small for hint in hints):
                    return True
            return not any(self.path(path, cwd) for path in _paths_before(head))

        return "\n".join(filter(is_kept, text.split("\n")))


def configured(env: Mapping[str, str]) -> Ignored:
    """What the user set, and what always holds."""
    return Ignored(config.setting("capture.ignore", env))


def parsed(globs: str) -> list[str]:
    """The globs of the setting, or BadInput with what is wrong."""
    found = [glob.strip() for glob in globs.split(",") if glob.strip()]
    for glob in found:
        shown = glob[:40]
        if len(glob) > LONGEST_GLOB or not glob.isprintable():
            raise BadInput(f"capture.ignore has {shown!r}, which is no glob; write names like *.secret")
        if not glob.strip("*?/."):
            raise BadInput(
                f"capture.ignore has {shown!r}, which fits everything; `backstory pause` does that"
            )
    return found


def _commands(command: str, is_inner: bool = False) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """(words, files written to, globs) of each simple command, and of those that stand in its words. What is
    quoted may be a regular expression, so only what begins as a hidden file is a glob there."""
    for step in shell.read(command):
        if isinstance(step, str):
            continue
        words = shell.without_prefix(step)
        name = words[0].text.rpartition("/")[2] if words else ""
        texts = [word.text for word in (*step, *step.reads)]  # with assignments: they may hold a substitution
        if name in WITH_MESSAGES:
            texts = [text for text in texts if " " not in text]
        if name in MOVING:
            texts += [f"{text}/any" for text in texts[1:]]  # what follows is about files in there
        if step.document and name not in WITH_TEXT:
            texts.append(step.document)
        if not is_inner:
            yield from _commands(" ".join(texts).translate(UNQUOTED), is_inner=True)
        names = {text.rpartition("/")[2] for text in texts}
        is_in_place = not IN_PLACE.isdisjoint(names) and any(map(_is_in_place, texts))
        is_writing = is_in_place or not WRITING.isdisjoint(names)
        globs = [word.text for word in (*step, *step.reads) if word.is_pattern]
        if is_inner:
            globs = [glob for glob in globs if glob.rpartition("/")[2][:1] == "."]
        elif any(
            glob.rpartition("/")[2][:1] == "." and _fits(glob.rpartition("/")[2], (".env",)) for glob in globs
        ):
            texts.append(".env")  # `.*` is one where it is not quoted
        yield texts, [word.text for word in step.writes] + (texts if is_writing else []), globs


def _fits(glob: str, names: tuple[str, ...]) -> bool:
    from fnmatch import fnmatchcase

    start = re.split(r"[*?[]", glob[:LONGEST_GLOB], maxsplit=1)[0]
    return any(name.startswith(start) and fnmatchcase(name, glob) for name in names)


def _is_in_place(option: str) -> bool:
    return option.startswith("--in-place") or (option[:1] == "-" != option[1:2] and "i" in option)


def _parts(texts: list[str]) -> set[str]:
    """What may be a path in some words: --env-file=.env, HEAD:.env, @.env, '.env', a.{key,pem}."""
    parts: set[str] = set()
    for word in set(" ".join(texts).split()):
        words = [word]
        while "{" in words[0] and len(words) < MOST_WORDS and len(word) <= LONGEST_GLOB:
            words = [choice for other in words for choice in _without_brace(other)][:MOST_WORDS]
        parts.update(" ".join((word, *words)).translate(WORD_ENDS).split())
    return parts


def _without_brace(word: str) -> list[str]:
    head, _, rest = word.rpartition("{")
    choices, _, tail = rest.partition("}")
    return [f"{head}{choice}{tail}" for choice in choices.split(",")]


def _paths_before(line: str) -> Iterator[str]:
    """What may be a path at the beginning of a line: .env:3:text, .env-4-text beside it, .env:text. One with
    spaces in it is known by the number behind it."""
    if "\x1b" in line:
        line = re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", line)
    for found in re.finditer(r"[:-](?:\d+[:-])?", line):
        path = line[: found.start()]
        if len(found[0]) > 1 or not any(map(str.isspace, path)):
            yield path
        if found[0][0] == ":":
            return  # what follows is text


def _texts(given: object, depth: int = 5) -> Iterator[str]:
    if isinstance(given, str):
        if len(given) <= 4_096 and "\n" not in given:
            yield given
    elif isinstance(given, dict | list) and depth:
        for value in given.values() if isinstance(given, dict) else given:
            yield from _texts(value, depth - 1)


def _as_path(glob: str) -> str:
    """It fits a file, or a folder with all that is in it."""
    if glob.startswith("~/"):
        glob = os.path.expanduser(glob)
    start = "^" if glob.startswith("/") else "/"
    return f"{start}(?:{_translated(glob.rstrip('/'))})(?:/|$)"


def _translated(glob: str) -> str:
    """As a regular expression: * and ? stay within a name, ** does not."""
    wild: dict[str, str] = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    found, at = "", 0
    while at < len(glob):
        sign = "**" if glob.startswith("**", at) else glob[at]
        found += wild.get(sign) or re.escape(sign)
        at += len(sign)
    return found


ALWAYS = Ignored()  # without a setting
