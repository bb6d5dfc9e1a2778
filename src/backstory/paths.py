"""Where backstory keeps its data, and which project a folder belongs to.

The rule for the data folder is the same here and in plugin/hooks/hook.sh; a test runs both side by side.
Where not even a home is known, the plugin's scripts name one that the client gave them.
Git is read as files, never run: a hook cannot afford a process, and a repository's own configuration must
not decide what runs.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


MOST_LINES = 10_000  # of a repository's configuration
MOST_REFS = 32_000_000  # bytes of its packed refs; more keep a session waiting


def data_folder(env: Mapping[str, str]) -> str | None:
    """The folder that holds everything; None where not even a home is known.

    A path that is not absolute would mean another store in each folder: of XDG_DATA_HOME it is ignored, as
    its specification says, of the others there is no folder.
    """
    folder = env.get("BACKSTORY_HOME")
    if not folder and (data := env.get("XDG_DATA_HOME", "")).startswith("/"):
        folder = os.path.join(data, "backstory")
    if not folder and (home := env.get("HOME")):
        folder = os.path.join(home, ".local", "share", "backstory")
    return folder if folder and folder.startswith("/") else None


def make_folder(folder: str) -> None:
    """Make a folder of ours, with those above it that are missing: for its owner alone, whatever the umask.
    (The mode that os.makedirs is given is only for the last one.)"""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    if above and not os.path.exists(above):
        make_folder(above)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise


def close_to_others(folder: str) -> bool:
    """Let only its owner look into the data folder. False where others still can: it is not for us alone
    (somebody else's, a shared one like /tmp, a home), or its file system knows no modes."""
    about = os.stat(folder)
    if not about.st_mode & 0o077:
        return True
    is_shared = about.st_uid != os.geteuid() or about.st_mode & 0o1000
    if is_shared or os.path.realpath(folder) in ("/", os.path.realpath(os.environ.get("HOME") or "/")):
        return False
    try:
        os.chmod(folder, 0o700)
    except OSError:
        return False
    return not os.stat(folder).st_mode & 0o077  # not every file system says that it cannot


def whole_entries(path: str) -> str:
    """PATH without its empty and relative entries, which mean the current folder."""
    return os.pathsep.join(filter(os.path.isabs, path.split(os.pathsep))) or os.defpath


def database(folder: str) -> str:
    return os.path.join(folder, "backstory.db")


def recovered(folder: str) -> str:
    """What recoveries had to say that nobody has acknowledged yet."""
    return os.path.join(folder, "recovered.txt")


def spool(folder: str) -> str:
    return os.path.join(folder, "spool")


def worker_lock(folder: str) -> str:
    return os.path.join(folder, "worker.lock")


def log_file(folder: str) -> str:
    return os.path.join(folder, "logs", "backstory.log")


class Place:
    """A folder seen as a project: where it lies, what to call it, and git's state there."""

    __slots__ = (
        "branch",
        "common",
        "head",
        "is_shallow",
        "location",
        "mark",
        "name",
        "remote",
        "root",
        "tops",
    )

    def __init__(
        self,
        location: str,
        name: str,
        root: str,
        branch: str | None,
        head: str | None,
        tops: tuple[str, ...] = (),
        common: str | None = None,
        remote: str = "",
    ) -> None:
        self.location = location
        self.name = name
        self.root = root
        self.branch = branch
        self.head = head
        # The top of the work tree that the folder is in, which may be a linked one: as it is, as it was
        # spelled on the way there, and the root.
        self.tops = tuple(dict.fromkeys((*tops, root)))
        self.common = common  # the git common directory; None outside git
        self.remote = remote  # where it is pushed to; "" where nowhere
        self.is_shallow = common is not None and os.path.isfile(os.path.join(common, "shallow"))
        # What is quickly said of a repository. Where it is another than before, its history may be as well.
        self.mark = ""
        if common:
            more = f"{' shallow' if self.is_shallow else ''}{'' if head else ' empty'}"
            self.mark = f"{inode(common)} {remote}{more}"


def inode(folder: str) -> int:
    """The number that a folder keeps when it is moved; 0 where it is gone."""
    try:
        return os.stat(folder).st_ino
    except OSError:
        return 0


def place(cwd: str) -> Place:
    """The project that a folder belongs to.

    Its location is the git common directory, so that worktrees share one memory and two folders called `api`
    do not; outside git it is the real path. A `.git` may name any folder, also one of somebody else's: of one
    that does not name this checkout in turn nothing is read, and the location is the checkout's path.
    """
    folder = os.path.realpath(cwd)
    at, git, common = git_folders(folder)
    if git is None or common is None:
        location = root = at
        branch = head = None
        remote = ""
    else:
        location, root = common, at
        branch, head = _head(git, common)
        remote = _remote(common, at)
        if git != common:  # a linked worktree
            root = os.path.dirname(common) if os.path.basename(common) == ".git" else common
    name = os.path.basename(root).removesuffix(".git")
    spelled = text(_as_spelled(cwd, folder[len(at) :]))
    tops = (text(at), spelled) if git else (spelled,)
    return Place(_distinct(location), text(name or root), text(root), branch, head, tops, common, remote)


def _as_spelled(cwd: str, below: str) -> str:
    path = os.path.normpath(cwd)
    return path[: len(path) - len(below)] if path.endswith(below) else path


def checkout(cwd: str) -> str:
    """The top of the work tree that a folder is in: of a linked one its own. Outside git, the folder."""
    return _checkout(os.path.realpath(cwd))[0]


def git_folders(cwd: str) -> tuple[str, str | None, str | None]:
    """The checkout, the git folder that it names, and the git common directory: None where that git folder is
    not the checkout's own."""
    at, git = _checkout(os.path.realpath(cwd))
    return at, git, _common_folder(git, at) if git else None


def _checkout(folder: str) -> tuple[str, str | None]:
    at = folder
    while (git := _git_folder(at)) is None or not _is_trusted(at, folder):
        parent = os.path.dirname(at)
        if parent == at:
            return folder, None
        at = parent
    return at, git


def _is_trusted(at: str, folder: str) -> bool:
    """A `.git` above a folder counts only from who owns that folder, from us or from root: in a place like
    /tmp anybody can make one."""
    try:
        owner = os.lstat(os.path.join(at, ".git")).st_uid
        return owner in (0, os.geteuid()) or owner == os.lstat(folder).st_uid
    except OSError:  # it is gone meanwhile
        return False


def _git_folder(folder: str) -> str | None:
    dot_git = os.path.join(folder, ".git")
    if os.path.isfile(os.path.join(dot_git, "HEAD")):
        return os.path.realpath(dot_git)
    pointer = _line(dot_git)  # a worktree's or a submodule's .git is a file: "gitdir: <path>"
    if pointer and pointer.startswith("gitdir: "):
        target = os.path.realpath(os.path.join(folder, pointer.removeprefix("gitdir: ")))
        if os.path.isfile(os.path.join(target, "HEAD")):
            return target
    return None


def _common_folder(git: str, at: str) -> str | None:
    """The git common directory, if this git folder is the one of the checkout at this path."""
    if os.path.dirname(git) == at:
        return git
    common, name = os.path.split(os.path.dirname(git))
    back = _line(os.path.join(git, "gitdir"))
    if name == "worktrees" and back and os.path.isfile(os.path.join(common, "HEAD")):
        return common if _is_same(os.path.join(git, os.path.dirname(back)), at) else None
    # A submodule. Git keeps its path in the second file where worktrees have settings of their own.
    works = (_work_tree(os.path.join(git, file)) for file in ("config", "config.worktree"))
    return git if any(work and _is_same(os.path.join(git, work), at) for work in works) else None


def _work_tree(config: str) -> str | None:
    found = [value for section, key, value in _settings(config) if (section, key) == ("[core]", "worktree")]
    return found[-1] if found else None


def _settings(config: str) -> Iterator[tuple[str, str, str]]:
    """(section, key, value) of a configuration as git writes it."""
    section = ""
    for number, line in enumerate(_lines(config)):
        if number > MOST_LINES:
            break
        key, _, value = line.strip().partition("=")
        if key.startswith("["):
            section = key
            continue
        plain = value.strip().replace("\\\\", "\0").replace('\\"', "\1").replace('"', "")
        yield section, key.strip(), plain.replace("\0", "\\").replace("\1", '"')


def _remote(common: str, at: str) -> str:
    """Where a repository is pushed to. Of one that was cloned from a folder, where that one is."""
    url = _url(common)
    if not (path := _local(url, at)):
        return text(normal_remote(url))
    for git in (os.path.join(path, ".git"), path):
        if os.path.isfile(os.path.join(git, "HEAD")) and (further := _url(git)) and not _local(further, path):
            return text(normal_remote(further))
    return text(path)


def _url(common: str) -> str:
    """Of the remote `origin`, or of the only one."""
    urls: dict[str, str] = {}
    for section, key, value in _settings(inside(common, "config")):
        if section.startswith('[remote "') and key == "url":
            urls.setdefault(section, value)
    return urls.get('[remote "origin"]') or ("".join(urls.values()) if len(urls) == 1 else "")


def _local(url: str, at: str) -> str:
    """The folder that a remote is; "" where it is none."""
    if url.startswith("file://"):
        url = url.removeprefix("file://")
    elif not url or ":" in url.partition("/")[0]:
        return ""
    return os.path.realpath(os.path.join(at, url))


def normal_remote(url: str) -> str:
    """A remote, the same however it was written: https, ssh, with a user, a port or a token, with `.git`."""
    scheme, is_url, rest = url.partition("://")
    if not is_url:
        rest = url.replace(":", "/", 1)  # git@host:path
    host, _, path = rest.partition("/")
    host = host.rpartition("@")[2]
    for port in {"http": ":80", "https": ":443", "ssh": ":22"}.get(scheme, ""), ":":
        host = host.removesuffix(port)
    return f"{host}/{path.strip('/').removesuffix('.git')}".strip("/").lower()


def _is_same(folder: str, at: str) -> bool:
    try:
        return os.path.samefile(folder, at)
    except OSError:
        return False


def _head(git: str, common: str) -> tuple[str | None, str | None]:
    head = _line(inside(git, "HEAD")) or ""
    if not head.startswith("ref: "):
        return None, _commit(head)
    ref = head.removeprefix("ref: ")
    if not ref.startswith("refs/") or "/." in ref or ".." in ref or not ref.isprintable():
        return None, None  # git makes none like that
    commit = _line(inside(git, ref)) or _line(inside(common, ref)) or _packed(common, ref)
    return ref.removeprefix("refs/heads/"), _commit(commit)


def _commit(commit: str | None) -> str | None:
    return commit if commit and len(commit) in (40, 64) and not commit.strip("0123456789abcdef") else None


def _packed(common: str, ref: str) -> str | None:
    path = inside(common, "packed-refs")
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            lines = file.read(MOST_REFS)  # as a whole: a million lines one by one take a second
    except OSError:
        return None
    end = lines.find(b" " + ref.encode("utf-8", "surrogateescape") + b"\n")
    return lines[lines.rfind(b"\n", 0, end) + 1 : end].decode("ascii", "replace") if end > 0 else None


def inside(folder: str, name: str) -> str:
    """The real path of what is in a folder; empty where a link leads out of it."""
    path = os.path.realpath(os.path.join(folder, name))
    return path if path.startswith(os.path.join(folder, "")) else ""


def text(path: str) -> str:
    """A path as text that can be told and stored."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _distinct(path: str) -> str:
    """The same, and no two paths have the same text: a byte that is not UTF-8 becomes `//xNN`, and `//` is in
    no real path."""
    known = os.fsencode(path).decode("utf-8", "surrogateescape")
    if known.isprintable():  # no surrogate is
        return known
    return "".join(f"//x{ord(sign) - 0xDC00:02x}" if "\ud800" <= sign <= "\udfff" else sign for sign in known)


def _line(path: str) -> str | None:
    line = next(_lines(path), None)
    return None if line is None else line.strip().replace("\0", "")


def _lines(path: str) -> Iterator[str]:
    if not os.path.isfile(path):
        return  # a pipe of that name would keep us waiting for ever
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            while line := file.readline(4096):
                yield line
    except OSError:
        return
