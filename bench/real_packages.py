"""Well-known packages as their authors published them, fetched with the package managers of this machine.

Each is fetched once and kept in a folder that the caller names. No host is written here: pip, npm and apt
know where their packages are.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

SECONDS = 600  # for one command
APT = Path("/etc/apt")


class CannotFetch(Exception):
    """A tool or the network is missing, or the package is not what was expected."""


def fetch(expected: dict[str, Any], into: Path) -> Path:
    """The root of the package that an expectation names; what is below `into` is kept for the next run."""
    source, name = expected["fetch"]["from"], expected["fetch"]["name"]
    into = into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    kept = into / f"{source}-{re.sub(r'[^A-Za-z0-9.=@+-]', '_', name)}"
    if not kept.is_dir():
        # What has its own name is complete: a run that was interrupted leaves another.
        with tempfile.TemporaryDirectory(prefix="fetching-", dir=into) as folder:
            packed, files = Path(folder, "packed"), Path(folder, "files")
            packed.mkdir()
            files.mkdir()
            _fetch(source, name, packed, files, into / "apt")
            files.rename(kept)
    root: Path = kept / expected["root"]
    if not root.is_dir():
        there = ", ".join(sorted(path.name for path in kept.iterdir()))
        raise CannotFetch(
            f"{name} has {there} and no {expected['root']}; version {expected['version']} was expected"
        )
    return root


def _fetch(source: str, name: str, packed: Path, files: Path, lists: Path) -> None:
    if source == "pip":
        # What builds its metadata may come as a wheel: only the package itself has to be source.
        own = re.split(r"[^A-Za-z0-9._-]", name)[0]
        _run([sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", own, name], packed)
        _unpack(_only(packed), files)
    elif source == "npm":
        _run(["npm", "pack", "--ignore-scripts", name], packed)
        _unpack(_only(packed), files)
    elif source == "apt":
        _run(["apt-get", *_apt(lists), "download", name], packed)
        _run(["dpkg-deb", "-x", str(_only(packed)), str(files)], packed)
    elif source == "apt-source":
        _run(["apt-get", *_apt(lists), "source", "--download-only", name], packed)
        _unpack_upstream(packed, files)
    else:
        raise CannotFetch(f"{name} is to come from {source!r}; it can come from pip, npm, apt or apt-source")


@cache
def _apt(lists: Path) -> list[str]:
    """Options for lists of packages and sources that are not the machine's own, brought up to date once."""
    shutil.rmtree(lists / "sources", ignore_errors=True)
    for folder in ("sources", "state/lists/partial", "cache/archives/partial"):
        (lists / folder).mkdir(parents=True, exist_ok=True)
    for path in [APT / "sources.list", *(APT / "sources.list.d").glob("*")]:
        if path.suffix in (".list", ".sources") and path.is_file():
            text = re.sub(r"(?m)^Types:.*", "Types: deb deb-src", path.read_text())
            text = re.sub(r"(?m)^deb(\s.*)", r"deb\1\ndeb-src\1", text)
            (lists / "sources" / path.name).write_text(text)
    settings = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": lists / "sources",
        "Dir::State": lists / "state",
        "Dir::Cache": lists / "cache",
        "APT::Sandbox::User": "",  # apt's own user cannot enter a temporary folder of ours
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]
    _run(["apt-get", *options, "update"], lists)
    return options


def _unpack_upstream(packed: Path, files: Path) -> None:
    """A source package as upstream released it, without what the distribution added or changed."""
    archives = [path for path in sorted(packed.glob("*.tar.*")) if path.suffix not in (".asc", ".sig")]
    parts = {match[1]: path for path in archives if (match := re.search(r"\.orig-(.+)\.tar\.", path.name))}
    for path in archives:
        if ".debian.tar." not in path.name and path not in parts.values():
            _unpack(path, files)
    for part, path in parts.items():
        beside = packed / part
        _unpack(path, beside)
        _only(beside).rename(_only(files) / part)


def _unpack(archive: Path, into: Path) -> None:
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(into, filter="data")
    except tarfile.TarError as error:
        raise CannotFetch(f"{archive.name} cannot be unpacked: {error}") from error


def _only(folder: Path) -> Path:
    found = sorted(folder.iterdir())
    if len(found) != 1:
        raise CannotFetch(f"one file or folder was expected, not {[path.name for path in found]}")
    return found[0]


def _run(command: list[str], folder: Path) -> None:
    told = " ".join(word for word in command if not word.startswith("-o"))
    try:
        subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=True)
    except FileNotFoundError as error:
        raise CannotFetch(f"{command[0]} is not installed; without it this package cannot be had") from error
    except subprocess.TimeoutExpired as error:
        raise CannotFetch(f"{told} took more than {SECONDS} s; is the network there?") from error
    except subprocess.CalledProcessError as error:
        why = (error.stderr.strip() or error.stdout.strip())[-1000:]
        raise CannotFetch(f"{told} failed; is the network there?\n{why}") from error
