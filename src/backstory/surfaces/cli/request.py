"""`backstory claude-md request`: the one command that the plugin's skills may have a model run unasked.

The rule that allows it is the command itself, to the letter: it has no argument, so nothing behind it names a
file, another project or a command. What is wanted stands on standard input: one of backstory's own commands,
of those below, and under it the text of a section.

Claude Code runs an allowed command also behind a pipe, and with a file of the project as its input, without
asking. So a request is carried out only if it stands in the command line that started us: then a model wrote
it word for word, and nobody can have put a file there that it has not.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from backstory import dirty, errors, paths
from backstory.clients import claude_code
from backstory.store import sessions
from backstory.surfaces.cli.common import standard_input, store, typed

MOST_BYTES = 120_000
MOST_CALLERS = 8
# The parameters of each command that a request may give. None of them leads out of the project.
MAY_GIVE = {
    "init": "existing subtrees no_subtrees off wanted commands offline dry_run yes as_json",
    "sync": "everything offline dry_run yes as_json",
    "claude-md status": "as_json",
    "claude-md section list": "within as_json",
    "claude-md section get": "name within as_json",
    "claude-md section keep": "name within as_json",
    "claude-md section set": "name add within as_json",
}
HOW = (
    "write it into the command as a here-document, no file and no pipe:"
    " claude-md request <<'END_OF_REQUEST', then the request, then END_OF_REQUEST"
)
# A shell writes what it is told to run in its own way: other quotes, and `ps` shows line ends as ^J.
_SPELLING = re.compile(rb"\^[IJ]|['\"\\\s]+")


@click.command()
@click.pass_context
def request(context: click.Context) -> None:
    """Do what standard input says, in the session's own project; for the plugin's skills.

    \b
      backstory claude-md request <<'END_OF_REQUEST'
      claude-md section set architecture
      ## Architecture Overview
      ...
      END_OF_REQUEST

    The first line is one of these, without --project and --file: init, sync, claude-md status, claude-md
    section list, get, set or keep. What follows is the text that `set` takes. It must stand in the command
    itself: a file or a pipe is refused."""
    given = _written()
    line, _, text = given.partition(b"\n")
    root = _own_project()
    command, words = _command(context.find_root().command, typed([os.fsdecode(line)]))
    with command.make_context(command.name, words, parent=context) as inner:
        if within := inner.params.get("within"):
            inner.params["within"] = _managed(root, within)
        with _as_input(text):
            command.invoke(inner)


def _written() -> bytes:
    """The request, if it is one that the model wrote."""
    if sys.stdin is None or sys.stdin.isatty():
        raise errors.BadInput(f"there is no request; {HOW}")
    given = standard_input().read(MOST_BYTES + 1)
    if len(given) > MOST_BYTES:
        raise errors.BadInput(f"a request has at most {MOST_BYTES:,} bytes")
    plain = _SPELLING.sub(b"", given)
    if not plain:
        raise errors.BadInput(f"the request is empty; {HOW}")
    if not any(plain in _SPELLING.sub(b"", line) for line in _callers()):
        raise errors.BadInput(f"the request does not stand in the command that was run; {HOW}")
    return given.lstrip()


def _callers() -> Iterator[bytes]:
    """The command line of each process that started us, or started that one."""
    pid = os.getppid()
    for _ in range(MOST_CALLERS):
        if pid <= 1:
            return
        parent, line = _process(pid)
        yield line
        pid = parent


def _process(pid: int) -> tuple[int, bytes]:
    """The parent of a process, and its command line; 0 where the system tells neither."""
    with suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])  # its name may have brackets
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return parent, file.read()
    return _listed(pid)


def _listed(pid: int) -> tuple[int, bytes]:
    """The same on a system without such files."""
    # Else other letters are not shown as they are.
    env = {**os.environ, "LC_ALL": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"}
    command = ["ps", "-ww", "-o", "ppid=,args=", "-p", str(pid)]
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        told = subprocess.run(command, capture_output=True, env=env, timeout=5, check=True).stdout
        parent, _, line = told.strip().partition(b" ")
        return int(parent), line
    return 0, b""


def _own_project() -> str:
    """The project that our session was started in, or the worktree of it that the shell is in now. A command
    may have led the shell to any other folder that the session is allowed to use."""
    with store() as (db, _):
        started = sessions.folder_of(db, claude_code.session_id(os.environ))
    if started is None:
        raise errors.BadInput(
            "this session is not known, so its project is not either; it may be paused. In a terminal,"
            " `backstory init`, `sync` and `claude-md` do the same"
        )
    here = os.getcwd()
    root, own = (dirty.root_of(folder) or paths.checkout(folder) for folder in (here, started))
    common = paths.git_folders(here)[2]
    if root != own and (common is None or common != paths.git_folders(started)[2]):
        raise errors.BadInput(
            f"{paths.text(root)} is not the project of this session; go back to {paths.text(started)}"
        )
    for path in (os.path.join(root, name) for name in dirty.TOP_FILES):
        if os.path.lexists(path) and not os.path.realpath(path).startswith(os.path.join(root, "")):
            raise errors.BadInput(f"{paths.text(path)} leads out of the project; ask the user")
    return root


def _command(every: click.Command, line: str) -> tuple[click.Command, list[str]]:
    """The command that a line names, and its arguments, of which each may be given."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise errors.BadInput(f"the first line of the request is no command: {error}") from error
    words = words[words[:1] == ["backstory"] :]
    name = next((name for name in MAY_GIVE if words[: name.count(" ") + 1] == name.split()), None)
    if name is None:
        raise errors.BadInput(f"a request begins with one of: {', '.join(MAY_GIVE)}")
    for part in name.split():
        every = every.commands[part] if isinstance(every, click.Group) else every
    words = words[name.count(" ") + 1 :]
    given = every.make_parser(click.Context(every, info_name=name)).parse_args(list(words))[
        0
    ]  # looks nothing up
    if others := sorted(set(given) - set(MAY_GIVE[name].split())):
        raise errors.BadInput(f"a request to {name} cannot say {', '.join(others)}; leave that out")
    return every, words


def _managed(root: str, within: str) -> str:
    """A file that may have sections, by its path from the root."""
    if os.path.basename(within) not in dirty.NEVER:
        raise errors.BadInput(f"{typed([within])[:300]} is no CLAUDE.md or AGENTS.md")
    return os.path.join(root, within)


@contextmanager
def _as_input(text: bytes) -> Iterator[None]:
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(text), "utf-8")
    try:
        yield
    finally:
        sys.stdin = before
