"""Commits read as files are what git says they are, and nothing else is a commit."""

from __future__ import annotations

import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory.git_objects import commit
from tests.helpers.forged_git import git

LONG = "the same words again and again, so that git finds something to save " * 8


def repository(folder: Path, form: str) -> Path:
    git(folder, "init", "-q", f"--object-format={form}")
    for number in range(12):
        git(folder, "commit", "-q", "--allow-empty", "-m", f"{LONG}{number}")
    return folder / ".git" / "objects"


def repack(folder: Path, *settings: str) -> int:
    """How many commits are deltas of others afterwards."""
    git(folder, *settings, "repack", "-adfq", "--depth=50", "--window=50")
    indexes = map(str, (folder / ".git" / "objects" / "pack").glob("*.idx"))
    return sum(len(line.split()) == 7 for line in git(folder, "verify-pack", "-v", *indexes).splitlines())


@pytest.mark.parametrize("form", ["sha1", "sha256"])
@pytest.mark.parametrize("packed", ["loose", "by offset", "by name"])
def test_every_commit_is_read_as_git_reads_it(form: str, packed: str, tmp_path: Path) -> None:
    objects = repository(tmp_path, form)
    if packed != "loose":
        by_offset = str(packed == "by offset").lower()
        assert repack(tmp_path, "-c", f"repack.useDeltaBaseOffset={by_offset}") > 5
    ids = git(tmp_path, "rev-list", "--all").split()
    for one in ids:
        said = subprocess.run(
            ["git", "cat-file", "commit", one], cwd=tmp_path, capture_output=True, check=True
        )
        found = commit(str(objects), one)
        assert found == said.stdout


def test_what_takes_too_much_to_unpack_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = repository(tmp_path, "sha1")
    assert repack(tmp_path) > 5
    ids = git(tmp_path, "rev-list", "--all").split()
    largest = max(len(commit(str(objects), one) or b"") for one in ids)
    monkeypatch.setattr("backstory.git_objects.LARGEST", largest + 10)
    read = [commit(str(objects), one) for one in ids]
    assert None in read, "a delta takes more than the commit"
    assert any(read)


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    return repository(tmp_path, "sha1")


def test_what_is_not_there_or_no_id_is_none(objects: Path, tmp_path: Path) -> None:
    tree = git(tmp_path, "rev-parse", "HEAD^{tree}")
    head = git(tmp_path, "rev-parse", "HEAD")
    for one in ("0" * 40, head[:12], head.upper(), "../" + head[3:], "", tree, "HEAD"):
        assert commit(str(objects), one) is None
    assert commit(str(tmp_path / "nowhere"), head) is None


FORGED: dict[str, Callable[[bytes], bytes]] = {
    "another commit": lambda text: zlib.compress(b"commit 5\0words"),
    "nothing": lambda text: b"",
    "not compressed": zlib.decompress,
    "cut": lambda text: text[:20],
    "too large": lambda text: zlib.compress(b"commit 9\0" + b"x" * 2_000_000),
}


@pytest.mark.parametrize("how", FORGED)
def test_a_file_of_the_right_name_proves_nothing(how: str, objects: Path, tmp_path: Path) -> None:
    head = git(tmp_path, "rev-parse", "HEAD")
    path = objects / head[:2] / head[2:]
    text = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(FORGED[how](text))
    assert commit(str(objects), head) is None


def test_a_damaged_pack_is_no_proof_and_no_trouble(objects: Path, tmp_path: Path) -> None:
    repack(tmp_path)
    ids = git(tmp_path, "rev-list", "--all").split()
    sound = {commit(str(objects), one) for one in ids} | {None}
    for ending in ("idx", "pack"):
        (path,) = (objects / "pack").glob(f"*.{ending}")
        whole = path.read_bytes()
        path.chmod(0o600)
        for place in range(0, len(whole), 29):
            for damaged in (whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :], whole[:place]):
                path.write_bytes(damaged)
                assert {commit(str(objects), one) for one in ids} <= sound
        path.write_bytes(whole)
