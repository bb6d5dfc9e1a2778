"""`backstory sync` and what people and models wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from backstory import dirty
from backstory.claude_md.write import sections
from tests.conftest import Run
from tests.helpers.claude_md_project import NEW_COMMAND, change, section

pytestmark = pytest.mark.slow


@pytest.fixture
def project(fixed_project: Path) -> Path:
    return fixed_project


def edit(project: Path, name: str, text: str) -> None:
    """What a person does."""
    path = project / "CLAUDE.md"
    path.write_bytes(sections.with_section(path.read_bytes(), name, text))


def test_a_section_that_a_person_edited_is_offered_a_new_text(run: Run, ready: Path) -> None:
    edit(ready, "build-commands", "## Build Commands\nMy own way.")
    change(ready, "pyproject.toml", NEW_COMMAND)
    ran = run("sync", "--yes", "--json")
    assert ran.json["files"][0]["sections"]["build-commands"] == "offered"
    assert section(ready, "build-commands") == "## Build Commands\nMy own way."
    listed = run("claude-md", "section", "list", "--json").json
    assert [one["name"] for one in listed["sections"] if one["offered"]] == ["build-commands"]
    assert run("claude-md", "section", "accept", "build-commands").code == 0
    assert "`ruff check`" in section(ready, "build-commands")


def test_what_was_turned_down_is_not_offered_again(run: Run, ready: Path) -> None:
    edit(ready, "build-commands", "## Build Commands\nMy own way.")
    change(ready, "pyproject.toml", NEW_COMMAND)
    assert "Offered" in run("sync", "--yes").out
    run("claude-md", "section", "keep", "build-commands")
    change(ready, "pyproject.toml", "\n# more\n")
    assert run("sync", "--yes", "--json").json["files"][0]["sections"]["build-commands"] == "kept"


def test_what_a_model_wrote_is_not_computed_but_told_of(run: Run, ready: Path) -> None:
    prose = "## Architecture Overview\nFish come in, walruses come out.\n"
    assert run("claude-md", "section", "set", "architecture", stdin=prose).code == 0
    change(ready, "kitchen/fish.py", "")
    ran = run("sync", "--yes", "--json")
    assert ran.json["prose"] == [
        {"file": "CLAUDE.md", "section": "architecture", "because": ["+ `kitchen/`"]}
    ]
    assert "architecture" not in ran.json["files"][0]["sections"]
    assert section(ready, "architecture") == prose.strip()
    assert (
        "Written by Claude, and what it is about changed: architecture in CLAUDE.md (+ `kitchen/`)\n"
        "/backstory:memory-sync has it looked at.\n" in run("sync", "--yes").out
    )


def test_prose_about_commands_is_not_behind_for_a_command_that_a_person_gave(run: Run, ready: Path) -> None:
    assert run("init", "--yes", "--offline", "--no-subtrees", "--command", "test=make feed").code == 0
    prose = "## Build Commands\n- Test: `make feed`\n"
    assert run("claude-md", "section", "set", "build-commands", stdin=prose).code == 0
    change(ready, "walrus/new.py", "")
    assert run("sync", "--yes", "--json").json["prose"] == []
    change(ready, "pyproject.toml", NEW_COMMAND)
    (one,) = run("sync", "--yes", "--json").json["prose"]
    assert one["section"] == "build-commands"
    assert all("make feed" not in fact for fact in one["because"])


def test_a_section_that_a_person_removed_stays_removed(run: Run, ready: Path) -> None:
    text = (ready / "CLAUDE.md").read_bytes()
    (found,) = [one for one in sections.parse(text).sections if one.name == "build-commands"]
    (ready / "CLAUDE.md").write_bytes(text[: found.start] + text[found.stop :])
    change(ready, "pyproject.toml", NEW_COMMAND)
    told = run("sync", "--yes", "--all", "--offline", "--json").json
    assert "build-commands" not in told["files"][0]["sections"]
    assert b"AUTO-MANAGED: build-commands" not in (ready / "CLAUDE.md").read_bytes()


def test_unsound_markers_are_told_and_what_is_sound_is_written(run: Run, ready: Path) -> None:
    text = (ready / "CLAUDE.md").read_text()
    (ready / "CLAUDE.md").write_text(
        "<!-- AUTO-MANAGED: patterns -->\nagain\n<!-- END AUTO-MANAGED -->\n\n" + text
    )
    change(ready, "pyproject.toml", NEW_COMMAND)
    ran = run("sync", "--yes", "--json")
    assert ran.code == 1
    assert "CLAUDE.md:1 " in ran.err
    assert "twice" in ran.json["problems"][0]["said"]
    assert ran.json["problems"][0]["line"] == 1
    assert "`ruff check`" in section(ready, "build-commands")
    assert dirty.read(str(ready)) == [str(ready / "pyproject.toml")]
    (ready / "CLAUDE.md").write_text((ready / "CLAUDE.md").read_text().partition("END AUTO-MANAGED -->\n")[2])
    assert run("sync", "--yes").code == 0
    assert dirty.read(str(ready)) == []


def test_a_section_of_a_name_that_is_not_ours_is_left_alone(run: Run, ready: Path) -> None:
    theirs = "<!-- AUTO-MANAGED: tides -->\nhigh and low\n<!-- END AUTO-MANAGED -->\n"
    with (ready / "CLAUDE.md").open("a") as file:
        file.write("\n" + theirs)
    run("sync", "--all", "--offline", "--yes")
    assert (ready / "CLAUDE.md").read_text().endswith(theirs)


def test_a_managed_file_that_is_gone_is_told_and_not_made_again(run: Run, ready: Path) -> None:
    (ready / "CLAUDE.md").unlink()
    change(ready, "pyproject.toml", NEW_COMMAND)
    ran = run("sync", "--yes", "--json")
    assert (ran.code, "CLAUDE.md is gone; `backstory init`" in ran.err) == (1, True)
    assert ran.json["problems"][0]["said"].startswith("is gone; `backstory init`")
    assert not (ready / "CLAUDE.md").exists()
    assert dirty.read(str(ready)) == [str(ready / "pyproject.toml")]
    assert run("init", "--yes", "--offline", "--no-subtrees").code == 0
    assert run("sync", "--yes").code == 0
    assert dirty.read(str(ready)) == []


def test_a_text_that_would_become_empty_says_so(run: Run, ready: Path) -> None:
    (ready / "pyproject.toml").unlink()
    shutil.rmtree(ready / "tests")
    dirty.append(str(ready), [str(ready / "pyproject.toml")])
    run("sync", "--yes")
    assert section(ready, "build-commands") == "## Build Commands\nNothing that the files show."


def test_where_nothing_was_written_that_is_said(run: Run, ready: Path) -> None:
    (file,) = run("sync", "--all", "--offline", "--yes", "--json").json["files"]
    assert set(file["sections"].values()) == {"unchanged"}
    assert run("sync", "--all", "--offline", "--yes").out == "Up to date: CLAUDE.md\n"
    change(ready, "pyproject.toml", NEW_COMMAND)
    (ready / "CLAUDE.md").chmod(0o444)
    ran = run("sync", "--yes")
    assert (ran.code, "p to date" in ran.out) == (1, False)


def test_an_offer_that_waits_is_named(run: Run, ready: Path) -> None:
    edit(ready, "build-commands", "## Build Commands\nMy own way.")
    change(ready, "pyproject.toml", NEW_COMMAND)
    run("sync", "--yes")
    ran = run("sync", "--yes")
    assert ran.out == "1 offer waits: `backstory claude-md section diff build-commands`\n"
    assert run("sync", "--yes", "--json").json["waiting"] == [
        {"file": "CLAUDE.md", "section": "build-commands"}
    ]
    run("claude-md", "section", "keep", "build-commands")
    ran = run("sync", "--all", "--offline", "--yes")
    assert "Left as a person wants it: build-commands" in ran.out
    assert "ruff check" not in ran.out


def test_an_edit_alone_is_no_reason_for_an_offer(run: Run, ready: Path) -> None:
    edit(ready, "build-commands", "## Build Commands\nMy own way.")
    told = run("sync", "--yes", "--json").json
    assert told["files"][0]["sections"]["build-commands"] == "unchanged"
    assert run("sync", "--all", "--offline", "--yes", "--json").json["waiting"] == []
    assert section(ready, "build-commands") == "## Build Commands\nMy own way."


def test_prose_is_named_again_until_a_model_has_seen_to_it(run: Run, ready: Path) -> None:
    prose = "## Architecture Overview\nFish come in, walruses come out.\n"
    run("claude-md", "section", "set", "architecture", stdin=prose)
    change(ready, "kitchen/fish.py", "")
    first = run("sync", "--yes", "--json").json["prose"]
    assert run("sync", "--yes", "--json").json["prose"] == first  # the model died meanwhile
    change(ready, "harbour/boat.py", "")
    (one,) = run("sync", "--yes", "--json").json["prose"]
    assert one["because"] == ["+ `harbour/`", "+ `kitchen/`"]
    assert run("claude-md", "section", "keep", "architecture").code == 0
    assert run("sync", "--yes", "--json").json["prose"] == []
    shutil.rmtree(ready / "kitchen")
    (one,) = run("sync", "--yes", "--json").json["prose"]
    assert one["because"] == ["- `kitchen/`"]
    run("claude-md", "section", "set", "architecture", stdin=prose + "Some are fed twice.\n")
    assert run("sync", "--yes", "--json").json["prose"] == []
