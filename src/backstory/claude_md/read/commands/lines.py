"""A script as the commands that a developer could type. Pure; nothing is run."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from backstory import shell
from backstory.claude_md.read.commands.roles import PINNING

LONGEST = 160  # of a command that is shown
MOST_UNITS = 300  # of one script
LONGEST_SCRIPT = 20_000  # what is behind that is not read
CONTROL = frozenset("function [[ [ (( trap".split())
OPENS, ENDS = frozenset("if for while until case select".split()), frozenset("fi done esac".split())
INSIDE = frozenset("then do else".split())
NO_FOLDER = frozenset("-C --directory --prefix --cwd --dir -f --file".split())
SHARED_OUT = ("--shard", "--max-workers", "--maxWorkers", "--max-parallel")  # among machines and cores
# What only a machine reads, and what it needs to see all failures at once.
FOR_MACHINES = ("--cov=", "--cov-report", "--junitxml=", "--junit-xml=", "-coverprofile=", "--no-fail-fast")
CI_IS_SET = ("CI=true", "CI=1", "CI=yes")
PRINTERS = frozenset(
    "xcpretty xcbeautify tee cat tail head grep sed awk jq gotestfmt pino-pretty tap-spec".split()
)
TESTS = ("/dev/null", "&1", "&2")
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]{1,60}")  # of Debian
PATTERN = re.compile(r"[\w./@:+=,*?\[\]{}!^%-]+")  # which needs no quotes, whatever it had


@dataclass(frozen=True, slots=True)
class Script:
    """Lines that somebody wrote for a shell, and where."""

    text: str
    source: str
    folder: str = ""  # from the project's root
    about: tuple[str, ...] = ()  # the names of its job and step, or the heading above it
    group: int = 0  # scripts of one job or one block of code, in order
    sets: Mapping[str, str] = field(default_factory=dict)  # variables that are set around it
    job: str = ""  # of CI


@dataclass(frozen=True, slots=True)
class Unit:
    """One command of a script, without `cd` and what only a machine needs."""

    words: tuple[str, ...]
    line: str
    folder: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A command of a script that nobody would type as it stands there, or that may be run or not."""

    words: tuple[str, ...]


def typed_in(folder: str, line: str) -> str:
    """A command of a folder, as one types it at the root."""
    return f"cd {shlex.quote(folder)} && {line}" if folder else line


def units(script: Script, is_folder: Callable[[str], bool]) -> list[Unit]:
    return [step for step in steps(script, is_folder) if isinstance(step, Unit)]


def steps(script: Script, is_folder: Callable[[str], bool]) -> list[Unit | LeftOut]:
    return list(islice(_steps(script, is_folder), MOST_UNITS))


def packages(words: Sequence[str]) -> tuple[str, ...]:
    """What a command installs with apt."""
    plain = [word for word in words if not word.startswith("-")]
    plain = plain[1:] if plain[:1] in (["sudo"], ["doas"]) else plain
    if plain[:2] not in (["apt-get", "install"], ["apt", "install"]):
        return ()
    names = (word.partition("=")[0] for word in plain[2:])
    return tuple(name for name in names if PACKAGE.fullmatch(name))


def _steps(script: Script, is_folder: Callable[[str], bool]) -> Iterator[Unit | LeftOut]:
    folder: str | None = script.folder
    outer: list[str | None] = []
    is_cloned = False
    pipe: list[shell.Command] = []
    otherwise: int | None = None  # behind `||`, and in how many parentheses that stands
    read = shell.read(script.text[:LONGEST_SCRIPT])[: 10 * MOST_UNITS]
    for step in [*_outside(read), "\n"]:
        if isinstance(step, LeftOut):
            yield step
            continue
        if isinstance(step, shell.Command):
            if otherwise is None:
                pipe.append(step)
            continue
        if step == "|":
            continue
        if pipe:
            first = [word.text for word in pipe[0]]
            if first[:1] in (["cd"], ["pushd"], ["popd"]):
                folder = _below(folder, pipe[0], is_folder, is_cloned)
            else:
                yield (folder is not None and _unit(pipe, folder)) or LeftOut(tuple(first))
            is_cloned = is_cloned or first[:2] == ["git", "clone"]
        pipe = []
        if step == "(":
            outer.append(folder)
        elif step == ")" and outer:
            folder = outer.pop()
        if step == "||" and otherwise is None:
            otherwise = len(outer)
        elif step in (";", "\n") and otherwise is not None and len(outer) <= otherwise:
            otherwise = None


def _outside(steps: Sequence[shell.Command | str]) -> Iterator[shell.Command | LeftOut | str]:
    """Without loops and conditions, and what follows a function: that is for the machine that checks it."""
    depth = 0
    for step in steps:
        first = [word.text for word in step[:2]] if isinstance(step, shell.Command) else []
        first = first[1:] if first and first[0] in INSIDE else first
        depth += bool(first and first[0] in OPENS)
        if not depth and first and first[0] in CONTROL:
            yield LeftOut((first[0],))
            return
        if not depth:
            yield step
        elif isinstance(step, shell.Command):
            yield LeftOut(tuple(word.text for word in shell.without_prefix(step)))
        if depth and first and first[0] in ENDS:
            depth -= 1


def _below(
    folder: str | None, words: Sequence[shell.Word], is_folder: Callable[[str], bool], is_cloned: bool
) -> str | None:
    """Where `cd` leads; None where that is not in the project."""
    if folder is None or len(words) != 2 or not words[1].is_known:
        return None
    path = posixpath.normpath(posixpath.join(folder, words[1].text))
    path = "" if path == "." else path
    if path.startswith(("/", "..")):
        return None
    if path and not is_folder(path):
        return folder if is_cloned and "/" not in words[1].text.strip("/") else None
    return path


def _unit(pipe: list[shell.Command], folder: str) -> Unit | None:
    parts = []
    words: list[str] = []
    if all(command and command[0].text in PRINTERS for command in pipe[1:]):
        pipe = pipe[:1]  # what makes output pretty hides whether it failed
    for at, command in enumerate(pipe):
        if not command or command.document is not None or command.reads:
            return None
        if any(word.text not in TESTS for word in command.writes):
            return None
        kept = _kept(command)
        if not _is_typed(kept):
            return None
        parts.append(" ".join(_shown(word) for word in kept))
        words = words if at else [word.text for word in shell.without_prefix(kept)]
    line = " | ".join(parts)
    if not words or len(line) > LONGEST or not line.isprintable():
        return None
    return Unit(tuple(words), line, folder)


def _is_typed(words: Sequence[shell.Word]) -> bool:
    """Whether a developer would type that, and it is safe to show without quotes."""
    if not words or words[0].text in ("sudo", "doas", "echo", "git", "curl", "wget", "!"):
        return False
    if any(word.is_pattern and not PATTERN.fullmatch(word.text) for word in words):
        return False
    # A wheel is what an earlier job has built.
    return not any(word.text.startswith("dist/") or word.text.endswith(".whl") for word in words)


def _kept(command: Sequence[shell.Word]) -> list[shell.Word]:
    """Without options whose value only the machine knows, and such as pin a lock. Empty: it needs one."""
    kept: list[shell.Word] = []
    for word in command:
        if word.is_known:
            if not kept and word.text in CI_IS_SET:
                continue
            if not kept or not (word.text in PINNING or word.text.startswith((*SHARED_OUT, *FOR_MACHINES))):
                kept.append(word)
        elif word.text.startswith("-") and ("=" in word.text or word.text.startswith("-D")):
            if word.text.partition("=")[0] in NO_FOLDER:
                return []
        elif kept and kept[-1].text.startswith("-") and len(kept[-1].text) > 1 and kept[-1].text != "--":
            if kept.pop().text in NO_FOLDER:
                return []
        else:
            return []
    while kept and kept[-1].text == "--":
        kept.pop()
    is_uv_run = [word.text for word in kept[:2]] == ["uv", "run"]
    return _without_default_group(kept) if is_uv_run else kept


def _without_default_group(words: list[shell.Word]) -> list[shell.Word]:
    """`uv run` has the group `dev` unless it is told not to."""
    texts = [word.text for word in words]
    dropped = {at for at, text in enumerate(texts) if text in ("--dev", "--no-default-groups", "--group=dev")}
    dropped |= {
        near for at in range(len(texts)) if texts[at : at + 2] == ["--group", "dev"] for near in (at, at + 1)
    }
    return [word for at, word in enumerate(words) if at not in dropped]


def _shown(word: shell.Word) -> str:
    if word.is_pattern or ("=" in word.text and word.text.partition("=")[0].isidentifier()):
        name, sign, value = word.text.partition("=")
        return word.text if word.is_pattern or not value else name + sign + shlex.quote(value)
    return shlex.quote(word.text) if word.text else "''"
