"""Which CLAUDE.md files a changed path bears on."""

from __future__ import annotations

from backstory.claude_md.affected import bears_on

ROOT = "/home/walrus"
PLACES = ["CLAUDE.md", "packages/api/CLAUDE.md", "packages/api/core/AGENTS.md", "packages/apiary/CLAUDE.md"]


def test_a_path_bears_on_the_root_and_on_the_nearest_file_above_it() -> None:
    assert bears_on(f"{ROOT}/packages/api/core/a.py", ROOT, PLACES) == [
        "CLAUDE.md",
        "packages/api/core/AGENTS.md",
    ]
    assert bears_on(f"{ROOT}/packages/api/b.py", ROOT, PLACES) == ["CLAUDE.md", "packages/api/CLAUDE.md"]
    assert bears_on(f"{ROOT}/tools/a.txt", ROOT, PLACES) == ["CLAUDE.md"]


def test_a_folder_bears_on_all_files_in_it_and_the_root_on_everything() -> None:
    assert bears_on(f"{ROOT}/packages", ROOT, PLACES) == PLACES
    assert bears_on(f"{ROOT}/packages/apiary/", ROOT, PLACES) == ["CLAUDE.md", "packages/apiary/CLAUDE.md"]
    assert bears_on(ROOT, ROOT, PLACES) == bears_on(f"{ROOT}/", ROOT, PLACES) == PLACES


def test_what_lies_outside_of_the_project_bears_on_nothing() -> None:
    for path in ("/home/walrus-2/src/a.py", "/home", "src/a.py"):
        assert bears_on(path, ROOT, PLACES) == []
    assert bears_on("/src/a.py", "/", ["CLAUDE.md"]) == ["CLAUDE.md"]
