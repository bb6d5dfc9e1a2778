"""The files of a project, held against git itself; and which of them are source."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backstory.claude_md.read import files as trees
from backstory.claude_md.read import languages
from backstory.claude_md.read.files import File, walk
from backstory.claude_md.read.ignore import Rules
from backstory.claude_md.read.languages import generated, is_test, language_of, language_of_script, sources


def lay(root: Path, *paths: str, **content: str) -> None:
    for path in paths:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    for path, text in content.items():
        (root / path).write_text(text)


def write(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def names(root: Path | str) -> list[str]:
    return [file.path for file in walk(str(root)).files]


def git(root: Path | str, *words: str, **more: bytes) -> bytes:
    environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    ran = subprocess.run(
        ["git", *words], cwd=root, env=environment, capture_output=True, check=False, input=more.get("given")
    )
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


def not_ignored(root: Path | str, files: list[str]) -> list[str]:
    """What git would leave, going by check-ignore."""
    given = b"".join(os.fsencode(path) + b"\0" for path in files)
    ignored = git(root, "check-ignore", "--no-index", "--stdin", "-z", given=given).split(b"\0")
    return sorted(path for path in files if os.fsencode(path) not in ignored)


# The walk


def test_files_are_listed_by_path_with_their_size(tmp_path: Path) -> None:
    write(tmp_path / "b.py", "x = 1\n")
    write(tmp_path / "a" / "c.py", "")
    write(tmp_path / ".github" / "workflows" / "ci.yml", "on: push\n")
    assert walk(str(tmp_path)).files == (
        File(".github/workflows/ci.yml", 9),
        File("a/c.py", 0),
        File("b.py", 6),
    )


@pytest.mark.parametrize(
    "folder",
    ["node_modules", "vendor", "third_party", "a/b/_vendor", ".venv", ".git", ".tox", ".pc", "debian"],
)
def test_what_others_wrote_is_left_out(tmp_path: Path, folder: str) -> None:
    lay(tmp_path, "a/mine.py", f"{folder}/theirs.py")
    assert names(tmp_path) == ["a/mine.py"]


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "CACHEDIR.TAG"])
def test_an_environment_or_a_cache_is_known_by_what_is_in_it(tmp_path: Path, mark: str) -> None:
    lay(tmp_path, "mine.py", f"whatever/{mark}", "whatever/lib/theirs.py")
    assert names(tmp_path) == ["mine.py"]


def test_output_stands_beside_a_manifest_and_a_package_of_that_name_does_not(tmp_path: Path) -> None:
    lay(tmp_path, "build/out.js", "web/package.json", "web/dist/out.js", "src/org/build/Real.java")
    assert names(tmp_path) == ["src/org/build/Real.java", "web/package.json"]


def test_vendor_is_left_out_where_tools_put_it_and_a_package_of_that_name_is_not(tmp_path: Path) -> None:
    own = ["vendor/__init__.py", "a/vendor/x.py", "src/main/java/com/acme/vendor/Vendor.java"]
    own += ["src/virtualenv/run.py"]
    lay(tmp_path, *own, "web/package.json", "web/vendor/theirs.js", "go/go.mod", "go/vendor/theirs.go")
    assert names(tmp_path) == sorted([*own, "web/package.json", "go/go.mod"])


def test_a_debian_folder_further_down_is_the_project_s_own(tmp_path: Path) -> None:
    lay(tmp_path, "packaging/debian/rules.py")
    assert names(tmp_path) == ["packaging/debian/rules.py"]


def test_links_are_not_followed_and_only_plain_files_are_listed(tmp_path: Path) -> None:
    lay(tmp_path / "outside", "secret.py")
    root = tmp_path / "project"
    lay(root, "real.py")
    (root / "link.py").symlink_to(tmp_path / "outside" / "secret.py")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe.py")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket.py"))
        assert names(root) == ["real.py"]


def test_a_root_that_is_a_link_is_the_folder_it_leads_to(tmp_path: Path) -> None:
    lay(tmp_path / "real", "a.py")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = walk(str(tmp_path / "link"))
    assert (found.root, [file.path for file in found.files]) == (str(tmp_path / "real"), ["a.py"])


def test_a_folder_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    lay(tmp_path, "a.py")
    here = os.open(tmp_path, os.O_RDONLY)
    before = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(30):  # far longer than a path may be
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        Path("deep.py").touch()
        found = names(tmp_path)
    finally:
        os.chdir(before)
        os.close(here)
    assert found == ["a.py"]


def test_no_folder_at_all_is_an_empty_tree(tmp_path: Path) -> None:
    assert walk(str(tmp_path / "nowhere")).files == ()


def test_names_that_are_no_text_are_kept_and_can_be_opened(tmp_path: Path) -> None:
    for name in (b"\xff.py", b"new\nline.py", "é 漢.py".encode()):
        write(Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))), "x = 1\n")
    found = walk(str(tmp_path))
    assert [os.fsencode(file.path) for file in found.files] == [
        b"new\nline.py",
        "é 漢.py".encode(),
        b"\xff.py",
    ]
    assert [found.text(file.path) for file in found.files] == ["x = 1\n"] * 3


def test_a_tree_beyond_the_limit_says_so_and_keeps_its_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path, "package.json", *(f"a/b{number}/c.py" for number in range(20)))
    assert walk(str(tmp_path)).whole
    monkeypatch.setattr(trees, "MOST", 10)
    found = walk(str(tmp_path))
    assert not found.whole
    assert found.files[-1].path == "package.json"
    assert len(found.files) < 10


def test_one_folder_beyond_the_limit_is_cut_as_well_and_its_ignore_file_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    lay(root, *(f"a/{number}.py" for number in range(30)), *(f"a/{number}.log" for number in range(30)))
    write(root / "a" / ".gitignore", "*.log\n")
    monkeypatch.setattr(trees, "MOST", 20)
    found = walk(str(root))
    assert not found.whole
    assert len(found.files) < 20
    assert not [file.path for file in found.files if file.path.endswith(".log")]
    monkeypatch.setattr(trees, "MOST", 62)
    assert walk(str(root)).whole


def test_folders_in_folders_without_end_are_not_followed_to_it(tmp_path: Path) -> None:
    deep = "a/" * (trees.DEEPEST - 1)
    lay(tmp_path, f"{deep}a/shown.py")
    assert walk(str(tmp_path)).whole
    lay(tmp_path, f"{deep}a/a/hidden.py")
    found = walk(str(tmp_path))
    assert [file.path for file in found.files] == [f"{deep}a/shown.py"]
    assert not found.whole


@pytest.mark.slow
def test_a_walk_that_takes_too_long_ends_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{number}{'a' * 200}.py" for number in range(2_000)]
    lay(tmp_path, *names, "b/c.py")
    write(tmp_path / ".gitignore", "\n".join(f"*{'?' * 100}b{number}" for number in range(500)))
    monkeypatch.setattr(trees, "SECONDS", 0.5)
    start = time.process_time()
    found = walk(str(tmp_path))
    assert time.process_time() - start < 10  # a minute otherwise
    assert not found.whole
    assert len(found.files) < 2_000


@pytest.mark.slow
def test_ten_thousand_files_are_walked_quickly(tmp_path: Path) -> None:
    lines = [f"*.ext{number}" for number in range(40)] + [f"/some/path{number}/" for number in range(40)]
    write(tmp_path / ".gitignore", "\n".join(lines))
    for folder in range(200):
        place = tmp_path / f"pkg{folder % 10}" / f"mod{folder}"
        place.mkdir(parents=True)
        for number in range(50):
            (place / f"file{number}.py").touch()
    took = []
    for _ in range(3):
        start = time.process_time()  # others may be at work beside it
        found = walk(str(tmp_path))
        took.append(time.process_time() - start)
    assert len(found.files) == 10_001
    assert min(took) < 0.5


# Reading


def test_a_text_is_read_without_its_mark_and_with_bad_bytes_replaced(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", b"\xef\xbb\xbfa\xffb\r\n")
    assert walk(str(tmp_path)).text("a.txt") == "a\N{REPLACEMENT CHARACTER}b\r\n"


def test_nothing_outside_the_root_is_read(tmp_path: Path) -> None:
    write(tmp_path / "secret", "s")
    root = tmp_path / "root"
    write(root / "a" / "real", "r")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "folder").symlink_to(tmp_path)
    (root / "in").symlink_to("a/real")
    found = walk(str(root))
    assert [found.text(path) for path in ("out", "folder/secret", "../secret", str(tmp_path / "secret"))] == [
        None
    ] * 4
    assert found.text("in") == "r"


def test_a_pipe_a_folder_and_a_name_that_cannot_be_are_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    found = walk(str(tmp_path))
    assert [found.text(path) for path in ("pipe", "folder", "missing", "")] == [None] * 4


def test_a_text_that_is_too_large_is_none(tmp_path: Path) -> None:
    write(tmp_path / "a", "x" * 10)
    found = walk(str(tmp_path))
    assert (found.text("a", 10), found.text("a", 9)) == ("x" * 10, None)


def test_a_part_of_a_tree_is_seen_from_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b" / "c.py", "x")
    lay(tmp_path, "ab/d.py", "e.py")
    part = walk(str(tmp_path)).below("a")
    assert (part.root, part.files) == (str(tmp_path / "a"), (File("b/c.py", 1),))
    assert part.text("b/c.py") == "x"


# .gitignore, as git has it


def test_ignore_files_count_at_every_level_and_the_nearest_has_the_last_word(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path / ".gitignore", "*.log\n/private/\n!keep.log\n")
    write(tmp_path / "a" / ".gitignore", "!*.log\nsecret*\n")
    write(tmp_path / ".git" / "info" / "exclude", "mine.txt\nkeep.log\n")
    files = [
        "x.log",
        "keep.log",
        "a/x.log",
        "a/secret.py",
        "private/keep.log",
        "a/private/b.py",
        "a/mine.txt",
    ]
    lay(tmp_path, *files)
    found = [path for path in names(tmp_path) if not path.endswith(".gitignore")]
    assert found == not_ignored(tmp_path, files) == ["a/private/b.py", "a/x.log", "keep.log"]


def test_outside_git_an_ignore_file_counts_as_well(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "made.py\n")
    lay(tmp_path, "made.py", "real.py")
    assert names(tmp_path) == [".gitignore", "real.py"]


def test_the_exclude_file_of_a_linked_work_tree_is_that_of_its_repository(tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    write(main / ".git" / "info" / "exclude", "mine.py\n")
    lay(tmp_path / "linked", "mine.py", "ours.py")
    assert [name for name in names(tmp_path / "linked") if name != ".git"] == ["ours.py"]


def test_the_rules_above_a_folder_hold_in_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path / ".gitignore", "*.log\n/a/b/made.py\n")
    write(tmp_path / "a" / ".gitignore", "/b/other.py\n")
    lay(tmp_path, "a/b/made.py", "a/b/c/made.py", "a/b/x.log", "a/b/other.py")
    assert names(tmp_path / "a" / "b") == ["c/made.py"]


def test_an_ignored_folder_that_is_asked_for_is_looked_at(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path / ".gitignore", "/cache/\n*.py\n")
    lay(tmp_path, "cache/project/a.py")
    assert names(tmp_path) == [".gitignore"]
    assert names(tmp_path / "cache" / "project") == ["a.py"]


def test_a_repository_inside_the_repository_is_not_ours(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    lay(tmp_path, "a.py", "clone/b.py")
    git(tmp_path / "clone", "init", "-q")
    assert names(tmp_path) == ["a.py"]


def test_a_folder_of_repositories_is_seen_whole(tmp_path: Path) -> None:
    lay(tmp_path, "one/a.py", "two/b.py")
    for name in ("one", "two"):
        git(tmp_path / name, "init", "-q")
    assert names(tmp_path) == ["one/a.py", "two/b.py"]


def test_an_ignore_file_that_is_a_link_or_a_pipe_says_nothing(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "*.py\n")
    lay(tmp_path, "a/x.py", "b/x.py")
    (tmp_path / "a" / ".gitignore").symlink_to("../elsewhere")
    os.mkfifo(tmp_path / "b" / ".gitignore")
    assert names(tmp_path) == ["a/x.py", "b/x.py", "elsewhere"]


PIECES = st.sampled_from(
    r"""a|b|ab|*|**|?|/|[ab]|[!a]|[^b]|[a-c]|[]a]|[a|\a|\*|.|[[:alpha:]]|[[:x:]]|[a/b]|é|[[:alpha:|\|-|[\]]
|[b-]|[a-\b]|***|]|[[:a]|A|[z-a]|/**/|**/|/**|[é]|!|#|\ | """.replace("\n", "").split("|")
)
LINES = st.lists(
    st.tuples(
        st.sampled_from(["", "", "!", "/"]),
        st.lists(PIECES, min_size=1, max_size=4),
        st.sampled_from(["", "/", " "]),
    )
    .map(lambda line: line[0] + "".join(line[1]) + line[2])
    .filter(lambda line: "**\\/" not in line),  # asks for a folder more than `**/` does; nobody writes that
    max_size=5,
)
PARTS = st.sampled_from(["a", "b", "ab", "aab", "a.b", "[a]", "a b", "é", "a\\", "#a", "!a", "A", "-", "]"])
PATHS = st.lists(st.lists(PARTS, min_size=1, max_size=4).map("/".join), min_size=1, max_size=8, unique=True)


@pytest.mark.slow
@settings(max_examples=100)
@given(PATHS, LINES, LINES, LINES)
@example(["a/b", "a/ab/b"], ["*", "!/a"], [], [])
@example(["a/b"], ["/*", "!/a/", "/a/*"], [], [])
@example(["A/é/b"], ["/[[:alpha:]]", "![[:alpha:]]/**"], [], [])
@example(["ba", "b/[a]/x"], ["b**/[a[^b]"], [], [])
@example(["ab/a"], ["ab**//"], [], [])
@example(["a/b", "b"], ["a/*", "b/*"], ["!b"], ["b"])
def test_what_is_ignored_is_what_git_ignores(
    paths: list[str], at_top: list[str], inside: list[str], excluded: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        write(
            root / ".git" / "HEAD", "ref: refs/heads/main\n"
        )  # a repository, and no process is needed for it
        for folder in ("objects", "refs"):
            (root / ".git" / folder).mkdir()
        files = []
        for path in paths:
            try:
                write(root / path, "")
            except OSError:
                continue  # a file stands where another path has a folder
            files.append(path)
        write(root / ".git" / "info" / "exclude", "\n".join(excluded))
        write(root / ".gitignore", "\n".join(at_top))
        if (root / "a").is_dir():
            write(root / "a" / ".gitignore", "\n".join(inside))
        found = [path for path in names(root) if not path.endswith(".gitignore")]
        assert found == not_ignored(root, files)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_ignore_file(content: bytes) -> None:
    Rules(content).ignored(b"a/b.py", b"b.py", folder=False)


@pytest.mark.parametrize(
    "pattern",
    [
        b"*a" * 100 + b"b",
        b"/" + b"*a" * 100 + b"b",
        b"**/a*a/" * 100 + b"b",
        b"/" + b"*/" * 500 + b"b",
        b"**/" * 1_000 + b"x",
        b"[a-z]*" * 300,
        b"\n".join([b"*a*a*a*a*b"] * 300),
        b"\n".join([b"[!a]" * 1_000] * 15),
        b"\n".join([b"[!a]" * 300 + b"*"] * 53),
    ],
)
def test_no_pattern_takes_long(pattern: bytes) -> None:
    start = time.process_time()
    rules = Rules(pattern)
    for path in (b"a" * 255, b"/".join([b"a" * 20] * 190), b"a/" * 2_000 + b"c"):
        rules.ignored(path, path.rpartition(b"/")[2], folder=False)
    assert time.process_time() - start < 5


@pytest.mark.slow
def test_a_thousand_plain_names_are_ignored_and_of_patterns_only_so_many_are_tried() -> None:
    plain = Rules(b"".join(b"name%d\n/some/path%d/\n" % (number, number) for number in range(2_000)))
    assert plain.ignored(b"a/name1999", b"name1999", folder=False)
    assert plain.ignored(b"some/path1999", b"path1999", folder=True)
    assert plain.ignored(b"some/path1999", b"path1999", folder=False) is None
    assert plain.ignored(b"a/name", b"name", folder=False) is None
    name = b"a" * 190
    many = Rules(b"".join(b"*a*a*a*a*a%d\n" % number for number in range(5_000)) + b"last\n")
    assert many.ignored(b"last", b"last", folder=False)
    start = time.process_time()
    for _ in range(300):
        assert many.ignored(name, name, folder=False) is None
    assert time.process_time() - start < 3  # 0.4 here, and ten times that if all were tried


def test_a_very_long_ignore_file_is_cut_after_a_line(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "first.py\n" + "# comment\n" * 6_399 + "/a\nlast.py\n")
    lay(tmp_path, "first.py", "last.py", "a")
    assert names(tmp_path) == [".gitignore", "a", "last.py"]


# Source


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/b.py", "Python"),
        ("a.pyi", "Python"),
        ("a.pyx", None),
        ("a.d.ts", "TypeScript"),
        ("a.mjs", "JavaScript"),
        ("a.min.js", None),
        ("a_pb2.py", None),
        ("a.pb.go", None),
        ("testdata/a.go", None),
        ("tests/fixtures/deep/a.js", None),
        ("docs/conf.py", "Python"),
        ("a.html", None),
        ("Makefile", None),
        (".py", "Python"),
        ("py", None),
    ],
)
def test_the_language_of_a_path(path: str, language: str | None) -> None:
    assert language_of(path) == language


@pytest.mark.parametrize(
    "head",
    [
        b"// Code generated by protoc-gen-go. DO NOT EDIT.\npackage a\n",
        b"#!/usr/bin/python\n# This file is generated by x, do not edit by hand.\n",
        b"/*\n * Copyright\n * Automatically generated.\n * Do not edit!\n */\n",
        b"/* DO NOT EDIT: this file was generated */\n",
        b"#\n" * 30 + b"  # Generated from a.proto, so do not\tedit it; do not modify.\n",
    ],
)
def test_a_generated_file_says_so_in_its_head(head: bytes) -> None:
    assert generated(head)


@pytest.mark.parametrize(
    "head",
    [
        b"import os\nPATTERN = 'generated, do not edit'\n",
        b"# Do not edit the config while this runs.\nimport os\n",
        b"# The report is generated below.\n\n\ndef report():\n    pass\n",
    ],
)
def test_a_file_that_speaks_of_generating_is_none(head: bytes) -> None:
    assert not generated(head)


def test_a_head_full_of_the_word_takes_no_longer() -> None:
    head = b"// " + b"generated" * 105 + b"\n" + b"x" * 1_000 + b"do not"
    start = time.process_time()
    assert not any(generated(head) for _ in range(2_000))
    assert time.process_time() - start < 1.5  # 0.02 here, five otherwise


def test_headers_belong_to_the_language_of_the_files_beside_them(tmp_path: Path) -> None:
    for folder, files in (("c", ["a.c", "a.h"]), ("cpp", ["a.cc", "a.h"]), ("both", ["a.c", "a.cpp", "a.h"])):
        lay(tmp_path / folder, *files)
    found = {
        folder: {
            language: [file.path for file in files]
            for language, files in sources(walk(str(tmp_path / folder))).items()
        }
        for folder in ("c", "cpp", "both")
    }
    assert found == {
        "c": {"C": ["a.c", "a.h"]},
        "cpp": {"C++": ["a.cc", "a.h"]},
        "both": {"C": ["a.c"], "C++": ["a.cpp", "a.h"]},
    }


@pytest.mark.parametrize(
    ("head", "language"),
    [
        (b"#!/usr/bin/env python3\nimport os\n", "Python"),
        (b"#! /usr/bin/python3.11 -I\n", "Python"),
        (b"#!/usr/bin/env -S node --no-warnings\n", "JavaScript"),
        (b"#!/bin/sh", "Shell"),
        (b"#!/usr/local/bin/bash -eu\n", "Shell"),
        (b"#!/usr/bin/ruby\r\n", "Ruby"),
        (b"#!/usr/bin/perl -w\n", "Perl"),
        (b"#!/usr/bin/env\n", None),
        (b"#!/usr/bin/make -f\n", None),
        (b"#!/bin/shell\n", None),
        (b"# /bin/sh\n", None),
        (b"\n#!/bin/sh\n", None),
        (b"", None),
    ],
)
def test_a_script_without_an_ending_says_what_it_is_written_in(head: bytes, language: str | None) -> None:
    assert language_of_script(head) == language


def test_scripts_without_an_ending_are_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "#!/usr/bin/env python3\nprint()\n"
    for path in ("bin/tool", "LICENSE", "gradlew", "testdata/tool", "bin/a.out", "tool2"):
        write(tmp_path / path, script)
    write(tmp_path / "bin" / "made", script.replace("print", "# Generated by x. Do not edit.\nprint"))
    write(tmp_path / "bin" / "large", script + "#" * 100_000)
    write(tmp_path / "notes", "Remember the milk.\n")
    found = sources(walk(str(tmp_path)))
    assert found.keys() == {"Python"}
    assert [file.path for file in found["Python"]] == ["bin/tool", "tool2"]
    monkeypatch.setattr(languages, "SCRIPTS", 2)
    assert [file.path for file in sources(walk(str(tmp_path)))["Python"]] == ["bin/tool"]


def test_a_translation_that_ends_in_ts_is_no_typescript(tmp_path: Path) -> None:
    write(tmp_path / "de.ts", '<?xml version="1.0"?>\n<!DOCTYPE TS>\n')
    write(tmp_path / "a.ts", "export const a = 1\n")
    assert [file.path for file in sources(walk(str(tmp_path)))["TypeScript"]] == ["a.ts"]


@pytest.mark.parametrize(
    "path",
    "tests/a.py src/test/java/A.java a/test_b.py a/b_test.go a.test.tsx a.spec.js TestA.java ATest.java "
    "conftest.py __tests__/a.js spec/a_spec.rb".split(),
)
def test_a_test_is_known_by_its_place_or_its_name(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize("path", "testing/a.py a/contest.py latest.js Testament.java src/attest.go".split())
def test_what_only_sounds_like_a_test_is_none(path: str) -> None:
    assert not is_test(path)
