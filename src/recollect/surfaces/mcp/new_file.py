"""A new file in the project, whole or not at all, and never in the place of another."""

from __future__ import annotations

import os

from recollect import paths
from recollect.errors import BadInput


def write_new(cwd: str, path: str, extension: str, text: str) -> str:
    """The real path of what was written. The extension is the one of the format: whoever may write documents
    has no business with scripts and settings."""
    if "\0" in path:
        raise BadInput("a path has no NUL in it; name another file")
    wanted = os.path.join(cwd, os.path.expanduser(path))
    folder, name = os.path.realpath(os.path.dirname(wanted)), os.path.basename(wanted)
    real = os.path.join(folder, name)
    roots = {os.path.realpath(root) for root in (paths.checkout(cwd), paths.place(cwd).root)}
    if not any(os.path.commonpath([folder, root]) == root for root in roots):
        raise BadInput(f"{real} lies outside of {' and '.join(sorted(roots))}; name a file inside")
    if ".git" in folder.split(os.sep):
        raise BadInput(f"{real} lies in git's own folder; name a file outside of it")
    if not name.endswith(extension) or name == extension:
        raise BadInput(f"{name[:60]!r} does not end in {extension}; name a new {extension} file")
    beside = os.path.join(folder, f".{os.urandom(6).hex()}{extension}")
    try:
        with open(beside, "x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(beside, real)  # unlike a rename, it refuses to replace
    except FileExistsError as error:
        raise BadInput(f"{real} exists already; name a new file, or remove that one first") from error
    except OSError as error:
        raise BadInput(f"{real} cannot be written ({error.strerror}); name another file") from error
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
    return real
