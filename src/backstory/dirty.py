"""The list of files that changed since CLAUDE.md was brought up to date, one absolute path a line:
.claude/.dirty-files. A project that has one is initialised.

Intake appends to it, a sync takes away what it has seen to, and the end of a turn tells the model of a change
once; what it was told of is noted in the data folder (announced/), because the list is for people to read.
Whoever changes the list holds a lock on its folder. A repository may come with a list, or with a link in its
place: nothing outside the project is read or written through it.
"""

from __future__ import annotations

import os
import stat

from backstory import log, paths
from backstory.errors import BadInput, StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NAME = ".claude/.dirty-files"
MOST_READ = 4_000_000  # bytes; a longer list came with the repository, and its end is left out
LARGEST = 1_000_000  # bytes; a list beyond that takes no path a second time
LONGEST = 4_096  # characters of a path
PATIENCE = 0.5  # seconds for a lock that others hold for a moment
NEVER = frozenset({"CLAUDE.md", "AGENTS.md"})  # they change because of us
TOP_FILES = ("CLAUDE.md", "AGENTS.md", ".claude/CLAUDE.md")  # where a project has its sections
OWNERSHIP = b"<!-- backstory: by "  # how the line begins that says whose a section is
FOLDERS = frozenset({".claude", ".git"})
EXCLUDE_LIMIT = 1_000_000  # bytes of git's file of that name


def root_of(cwd: str) -> str | None:
    """The initialised project that a folder is in; a work tree of git's is not left on the way up.

    The same rule as in plugin/hooks/hook.sh; a test runs both side by side.
    """
    try:
        at = os.path.realpath(cwd)
    except ValueError:  # NUL, or half a surrogate pair
        return None
    while not os.path.isfile(os.path.join(at, NAME)):
        parent = os.path.dirname(at)
        if parent == at or os.path.exists(os.path.join(at, ".git")):
            return None
        at = parent
    return at


def adopt(cwd: str, was_tracked: Callable[[str], object]) -> str | None:
    """The same; but a work tree of git's that came initialised becomes so here: one that is linked to an
    initialised one, and one whose CLAUDE.md has sections of ours. Who has deleted the list wants no more
    tracking: `was_tracked` says of a file whether it was known here before."""
    if (root := root_of(cwd)) is not None:
        return root
    top, git, common = paths.git_folders(cwd)
    if common is None or top == os.path.realpath(os.path.expanduser("~")):
        return None
    if git == common or not os.path.isfile(os.path.join(paths.place(cwd).root, NAME)):
        files = [os.path.realpath(os.path.join(top, name)) for name in TOP_FILES]
        if any(map(was_tracked, files)) or not any(map(_has_ownership, files)):
            return None
    create(top)
    return top


def _has_ownership(path: str) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            _size(handle)
            return OWNERSHIP in file.read(LARGEST)
    except OSError:
        return False


def inside(path: str, root: str) -> str | None:
    """The path as the list has it, below root whatever links lead there; None where it does not belong."""
    if not path.startswith("/") or len(path) > LONGEST or any(sign in path for sign in "\n\r\0"):
        return None
    folder, name = os.path.split(os.path.normpath(path))
    try:
        path.encode("utf-8", "surrogateescape")
        real = os.path.join(os.path.realpath(folder), name)
        top = os.path.realpath(root)
    except ValueError:  # half a surrogate pair
        return None
    if real == top:
        return root
    below = _below(top)
    if not real.startswith(below):
        return None
    parts = real[len(below) :].split("/")
    return None if name in NEVER or FOLDERS.intersection(parts) else os.path.join(root, *parts)


def listed(changed: Iterable[str], roots: dict[str, str | None]) -> list[tuple[str, str]]:
    """(root, path) of those that belong into a list. The project is the one that the file is in: the shell
    may be in another. `roots` is what is known of folders already."""
    found = []
    for path in changed:
        is_folder = os.path.isdir(path) and not os.path.islink(path)
        folder = path if is_folder else os.path.dirname(path)
        if folder not in roots:
            roots[folder] = root_of(folder)
        root = roots[folder]
        if root and (place := inside(path, root)):
            found.append((root, place))
    return found


def create(root: str) -> None:
    """Initialise a project: an empty list, unless there is one. It is nothing for git."""
    try:
        os.makedirs(os.path.join(root, os.path.dirname(NAME)), exist_ok=True)
        with _Alone(root) as path:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666))
    except OSError as error:
        raise _refused(root, error) from error
    try:
        _exclude(root)
    except OSError as error:
        log.write("warning", f"git will show {root}/{NAME}: {error}")


def read(root: str) -> list[str]:
    """The lines in their order; a path that changed twice is there twice."""
    try:
        with _Alone(root) as path:
            return _lines(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        log.write("warning", f"{root}/{NAME} could not be read: {error}")
        return []


def append(root: str, changed: Iterable[str]) -> None:
    """Add paths, all of them or none. FileNotFoundError: the project is not initialised any more."""
    with _Alone(root) as path:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            size = _size(handle)
            new: Iterable[str] = changed
            if size > LARGEST:
                known = set(_lines(path))
                new = [line for line in dict.fromkeys(changed) if line not in known]
            text = _text(new)
            if size and os.pread(handle, 1, size - 1) != b"\n":  # somebody edited it
                text = b"\n" + text
            if os.write(handle, text) != len(text):
                os.ftruncate(handle, size)
                raise OSError("the disk is full")
        finally:
            os.close(handle)


def remove(root: str, data: str, lines: Iterable[str]) -> None:
    """Take exactly these lines away, the first of equal ones; what was added meanwhile stays, and the model
    will be told of it even if it was told of the same path before."""
    try:
        with _Alone(root) as path:
            left = _lines(path)
            gone = list(lines)
            _note(root, data, set(_announced(root, data)).difference(gone))
            counts: dict[str, int] = {}
            for line in gone:
                counts[line] = counts.get(line, 0) + 1
            kept = []
            for line in left:
                if counts.get(line):
                    counts[line] -= 1
                else:
                    kept.append(line)
            if len(kept) < len(left):
                _replace(path, kept, stat.S_IMODE(os.stat(path).st_mode))
    except FileNotFoundError:
        pass  # there is no list any more
    except OSError as error:
        raise _refused(root, error) from error


def announce(root: str, data: str, undrained: Iterable[str]) -> list[str]:
    """The changed files that the model was not told of yet: of these and of the list. Now it was."""
    with _Alone(root) as path:
        below = _below(root)
        # A list that came with the repository cannot know where the project lies.
        listed = [line for line in _lines(path) if line == root or line.startswith(below)]
        pending = dict.fromkeys([*listed, *undrained])
        known = set(_announced(root, data))
        new = [line for line in pending if line not in known]
        if new:
            _note(root, data, pending)
        return new


def prune(root: str, data: str) -> None:
    """Forget that a file was announced which is not in the list any more, however it left. For when nothing
    is undrained."""
    with _Alone(root) as path:
        known = _announced(root, data)
        pending = set(_lines(path))
        kept = [line for line in known if line in pending]
        if len(kept) < len(known):
            _note(root, data, kept)


class _Alone:
    """`with _Alone(root) as path:` is the list, for us alone."""

    __slots__ = ("_handle", "_path")

    def __init__(self, root: str) -> None:
        self._path = os.path.realpath(os.path.join(root, NAME))
        if not self._path.startswith(_below(os.path.realpath(root))):
            raise PermissionError("it leads out of the project")
        folder = os.path.dirname(self._path)
        self._handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _wait(self._handle)
        except BaseException:
            os.close(self._handle)
            raise

    def __enter__(self) -> str:
        return self._path

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def _wait(handle: int) -> None:
    from backstory import locks

    try:
        is_ours = locks.wait(handle, PATIENCE, pause=0.002)
    except OSError:
        return  # a network drive that cannot lock folders; better than no list there
    if not is_ours:
        raise TimeoutError("somebody else has it locked")


def _lines(path: str) -> list[str]:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        _size(handle)
        text = file.read(MOST_READ)
    text = text[: text.rfind(b"\n") + 1] if len(text) == MOST_READ else text
    return [line for line in text.decode("utf-8", "surrogateescape").split("\n") if line]


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _size(handle: int) -> int:
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        raise OSError("it is not a plain file")
    return about.st_size


def _replace(path: str, lines: Iterable[str], mode: int) -> None:
    made = f"{path}.new"  # only who holds the lock makes one, so what a kill left is written over
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(made, flags, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(_text(lines))
    os.rename(made, path)


def _announced(root: str, data: str) -> list[str]:
    try:
        return _lines(_note_of(root, data))
    except FileNotFoundError:
        return []


def _note(root: str, data: str, announced: Iterable[str]) -> None:
    path = _note_of(root, data)
    paths.make_folder(os.path.dirname(path))
    _replace(path, announced, 0o600)


def _note_of(root: str, data: str) -> str:
    try:
        from _sha1 import sha1  # type: ignore[import-not-found]  # hashlib is too slow to load for a hook
    except ImportError:
        from hashlib import sha1
    digest = sha1(root.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()
    return os.path.join(data, "announced", str(digest))


def _below(folder: str) -> str:
    return folder.rstrip("/") + "/"


def _refused(root: str, error: OSError) -> BadInput | StoreError:
    where = paths.text(os.path.join(root, NAME))
    if isinstance(error, TimeoutError):
        return StoreError(f"{where}: {error}; try again in a moment")
    return BadInput(f"{where} cannot be written ({error.strerror or error}); mend that and try again")


def _exclude(root: str) -> None:
    """Git's own list of what it does not show, which nobody else gets to see."""
    top, _, common = paths.git_folders(root)
    if common is None:
        return  # no git here
    path = os.path.join(common, "info", "exclude")
    if os.path.realpath(os.path.dirname(path)) != os.path.dirname(path):
        return  # a link may lead to the list of another repository
    listed = os.path.relpath(os.path.join(os.path.realpath(root), NAME), top)
    pattern = "/" + "".join(f"\\{sign}" if sign in "\\*?[ " else sign for sign in listed) + "*"
    line = pattern.encode("utf-8", "surrogateescape")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    with open(handle, "r+b", buffering=0) as file:
        if _size(handle) > EXCLUDE_LIMIT:
            return
        text = file.read()
        if line not in text.splitlines():
            file.write((b"\n" if text and not text.endswith(b"\n") else b"") + line + b"\n")
