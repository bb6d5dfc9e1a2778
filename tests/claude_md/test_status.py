"""`backstory claude-md status`, in real projects."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from backstory import dirty, paths
from backstory.claude_md.read.references import references
from backstory.claude_md.write import sections
from backstory.store.file.connection import connect
from tests.conftest import Run
from tests.helpers.claude_md_project import change, write

pytestmark = pytest.mark.slow


@pytest.fixture
def project(fixed_project: Path) -> Path:
    return fixed_project


@pytest.fixture
def ready(initialised: Path) -> Path:
    return initialised


def edit(project: Path, name: str, text: str) -> None:
    path = project / "CLAUDE.md"
    path.write_bytes(sections.with_section(path.read_bytes(), name, text))


def test_a_project_at_rest_has_nothing_pending(run: Run, ready: Path) -> None:
    ran = run("claude-md", "status")
    assert ran.code == 0, ran.err
    assert "pending  nothing" in ran.out
    assert "last sync  today" in ran.out
    assert "on stop  auto" in ran.out
    assert "project-description  program" in ran.out
    assert "\x1b" not in ran.out
    assert "backstory sync" not in ran.out


def test_the_status_is_json_on_request(run: Run, ready: Path) -> None:
    told = run("claude-md", "status", "--json").json
    assert told["root"] == str(ready)
    assert (told["pending"], told["on_stop"]) == ([], "auto")
    assert told["synced_at"] > 0
    (file,) = told["files"]
    text = (ready / "CLAUDE.md").read_text()
    assert file["file"] == "CLAUDE.md"
    assert file["lines"] == len(text.splitlines())
    assert file["tokens"] == -(-len(text) // 4)
    assert file["there"] is True
    assert (file["stale"], file["problems"], file["unknown"]) == ([], [], [])
    first = file["sections"][0]
    assert (first["name"], first["author"], first["edited"], first["offered"]) == (
        "project-description",
        "program",
        False,
        False,
    )


def test_pending_files_are_counted_and_the_first_twenty_named(run: Run, ready: Path) -> None:
    changed = [str(ready / "walrus" / f"a {number:02}.py") for number in range(25)]
    dirty.append(str(ready), [*changed, *changed])
    ran = run("claude-md", "status")
    assert ran.code == 0
    assert "pending  25 files" in ran.out
    assert "  walrus/a 19.py\n  and 5 more\n" in ran.out
    assert "walrus/a 20.py" not in ran.out
    assert "`backstory sync`" in ran.out
    assert len(run("claude-md", "status", "--json").json["pending"]) == 25


def test_what_changed_outside_of_claude_code_is_pending_too(run: Run, ready: Path) -> None:
    with (ready / "pyproject.toml").open("a") as file:
        file.write("# more\n")
    ran = run("claude-md", "status")
    assert "pending  1 file changed\n" in ran.out
    assert "  pyproject.toml (outside of Claude Code)\n" in ran.out
    assert "`backstory sync`" in ran.out
    told = run("claude-md", "status", "--json").json
    assert (told["pending"], told["outside"]) == ([], run("sync", "--yes", "--json").json["outside"])
    assert told["outside"] == ["pyproject.toml"]


def test_prose_that_is_behind_is_named(run: Run, ready: Path) -> None:
    run("claude-md", "section", "set", "architecture", stdin="Fish in, walrus out.\n")
    change(ready, "kitchen/fish.py", "")
    run("sync", "--yes")
    for command in (["claude-md", "status"], ["claude-md", "section", "list"]):
        (line,) = [one for one in run(*command).out.splitlines() if "architecture" in one]
        assert line.endswith("behind")
    assert "/backstory:memory-sync has it looked at." in run("claude-md", "status").out
    found = run("claude-md", "status", "--json").json["files"][0]["sections"]
    (one,) = [one for one in found if one["behind"]]
    assert (one["name"], one["behind"]) == ("architecture", ["+ `kitchen/`"])


def test_a_section_that_backstory_never_wrote_is_not_called_edited(run: Run, ready: Path, data: Path) -> None:
    text = (ready / "CLAUDE.md").read_text()
    marker = "<!-- AUTO-MANAGED: patterns -->\n"
    start = text.index(marker) + len(marker)
    (ready / "CLAUDE.md").write_text(text[:start] + "Mine.\n" + text[text.index("<!-- END", start) :])
    with closing(connect(paths.database(str(data)))) as db:
        db.execute("DELETE FROM claude_sections")
    for command in (["claude-md", "status"], ["claude-md", "section", "list"]):
        out = run(*command).out
        assert "not written by backstory" in out
        assert "edited by hand" not in out


@pytest.mark.parametrize("command", ["claude-md status", "sync"])
def test_a_home_is_no_project_for_anybody(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(home)
    ran = run(*command.split())
    assert (ran.code, "is no project" in ran.err, "backstory init" in ran.err) == (2, True, False)


def test_a_section_edited_by_hand_is_named(run: Run, ready: Path) -> None:
    edit(ready, "patterns", "Mine.")
    ran = run("claude-md", "status")
    assert "edited by hand" in ran.out
    found = run("claude-md", "status", "--json").json["files"][0]["sections"]
    (one,) = [one for one in found if one["edited"]]
    assert one["name"] == "patterns"


def test_who_wrote_a_section_is_told(run: Run, ready: Path) -> None:
    assert run("claude-md", "section", "set", "architecture", stdin="Fish in, walrus out.\n").code == 0
    assert "architecture         model" in run("claude-md", "status").out


def test_a_reference_to_what_is_gone_is_stale(run: Run, ready: Path) -> None:
    said = "See `walrus/gone.py`, `walrus/feeding_1.py`, [the docs](docs/none.md#top) and `feeding_2.py`.\n"
    run("claude-md", "section", "set", "architecture", stdin=said)
    told = run("claude-md", "status", "--json").json["files"][0]["stale"]
    assert told == [
        {"section": "architecture", "reference": "walrus/gone.py"},
        {"section": "architecture", "reference": "docs/none.md"},
    ]
    assert "architecture names walrus/gone.py, which is not there" in run("claude-md", "status").out


def test_a_word_in_capitals_stands_for_any_name_where_there_are_such_files(run: Run, ready: Path) -> None:
    write(ready, {"sea/tests/test_fish.py": "", "sea/cmd-dive.c": "", "sea/a-b-c.c": ""})
    there = "`APP/tests/test_fish.py`, `sea/cmd-NAME.c`, `sea/ABC-b-XYZ.c`, `sea/APP/`"
    said = f"{there}, `sea/tool-NAME.c`, `APP/docs/`, `sea/GONE.md`\n"
    run("claude-md", "section", "set", "architecture", stdin=said)
    told = run("claude-md", "status", "--json").json["files"][0]["stale"]
    assert [one["reference"] for one in told] == ["sea/tool-NAME.c", "APP/docs/", "sea/GONE.md"]


def test_a_path_of_many_words_in_capitals_takes_no_time(run: Run, ready: Path) -> None:
    write(ready, {f"sea/x{'-a' * 100}": ""})
    run("claude-md", "section", "set", "architecture", stdin=f"`sea/{'AAA-a' * 8}.py`\n")
    began = time.process_time()
    (stale,) = run("claude-md", "status", "--json").json["files"][0]["stale"]
    assert stale["reference"].endswith("-a.py")
    assert time.process_time() - began < 5


def test_what_tools_make_is_not_stale_though_it_is_not_there(run: Run, project: Path) -> None:
    sea = {"sea/__init__.py": '"""Where walruses are most of the year"""\n'}
    sea["sea/.gitignore"] = "/salt.py\n/site/\n"
    write(project, {".gitignore": "/made/\n*.log\n", **sea})
    run("init", "--yes", "--offline", "--subtree", "sea")
    made = "`dist/`, `node_modules/`, `.venv/`, `build/out.js`, `made/a.py`, `made/`, `walrus/x.log`"
    said = f"{made}, `sea/site`, [x](../../a.md), `walrus/gone.py`\n"
    run("claude-md", "section", "set", "architecture", stdin=said)
    said = "`salt.py`, `made/b.py`, `pepper.py`\n"
    run("claude-md", "section", "set", "module-description", "--in", "sea/CLAUDE.md", stdin=said)
    files = run("claude-md", "status", "--json").json["files"]
    assert [[one["reference"] for one in file["stale"]] for file in files] == [
        ["../../a.md", "walrus/gone.py"],
        ["pepper.py"],
    ]


def test_a_module_speaks_of_what_is_in_it(run: Run, project: Path) -> None:
    write(project, {"sea/__init__.py": '"""The sea."""\n', "sea/deep/fish.py": ""})
    run("init", "--yes", "--offline", "--subtree", "sea")
    files = run("claude-md", "status", "--json").json["files"]
    assert [file["file"] for file in files] == ["CLAUDE.md", "sea/CLAUDE.md"]
    assert [file["stale"] for file in files] == [[], []]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("`src/a.py`", ["src/a.py"]),
        ("`src/a.py:12` and `src/b.py:3:7`", ["src/a.py", "src/b.py"]),
        ("`./src/a.py`", ["src/a.py"]),
        ("`src/gone` and `elsewhere/gone`", ["src/gone"]),
        ("`elsewhere/`", ["elsewhere/"]),
        ("`app.py` and `package.json`", ["app.py", "package.json"]),
        (
            "[text](docs/x.md) [web](https://example.org/a.md) [mail](mailto:a@b.c) [here](#top)",
            ["docs/x.md"],
        ),
        ("``src/odd`name.py``", ["src/odd`name.py"]),
        ("`text/html`, `origin/main`, `and/or`, `n/a`, `owner/repo`", []),
        ("`npm run build`, `go build ./...`, `make`, `--flag`, `x/y z`", []),
        ("`*.test.ts`, `src/*.py`, `src/{a,b}.py`, `$HOME/a.py`, `~/a.py`, `/api/users`, `@scope/pkg`", []),
        ("`Next.js`, `Node.js`, `os.path`, `flask.Flask`, `v1.2.3`, `self.value`", []),
        ("`../util.js` is what code imports, `node:fs`, `crate::a`", []),
        ("`src/a.py` and `src/a.py`", ["src/a.py"]),
        ("`src/a.py#L10`, `src/b.py#L1-L20` and `src/c.py#L3-4`", ["src/a.py", "src/b.py", "src/c.py"]),
        ("`process.env`, `import.meta.env`, `a.b.c`", []),
        ("`vite.config.ts`, `main.c` and `src/x.y.c`", ["vite.config.ts", "main.c", "src/x.y.c"]),
        ("```sh\ncat `src/never.py`\n```\n`src/a.py`", ["src/a.py"]),
        ("src/plain.py is no reference", []),
    ],
)
def test_what_looks_like_a_path_is_a_reference(tmp_path: Path, body: str, found: list[str]) -> None:
    (tmp_path / "src").mkdir()
    assert references(body, [str(tmp_path)]) == found


@pytest.mark.parametrize("piece", ["`", "`a", "](", "``` `", "` `` "])
def test_hostile_sections_take_no_time(tmp_path: Path, piece: str) -> None:
    began = time.process_time()
    references(piece * 20_000, [str(tmp_path)])
    assert time.process_time() - began < 5  # quadratic takes minutes


def test_problems_of_markers_and_names_that_are_not_ours_are_told(run: Run, ready: Path) -> None:
    with (ready / "CLAUDE.md").open("a") as file:
        file.write(
            "\n<!-- AUTO-MANAGED: tides -->\nhigh\n<!-- END AUTO-MANAGED -->\n<!-- AUTO-MANAGED: x -->\n"
        )
    ran = run("claude-md", "status")
    assert ran.code == 0
    assert "unknown name" in ran.out
    assert "section x has no end" in ran.out
    told = run("claude-md", "status", "--json").json["files"][0]
    assert told["unknown"] == ["tides"]
    assert "no end" in told["problems"][0]["said"]


def test_a_managed_file_that_is_gone_is_told(run: Run, ready: Path) -> None:
    (ready / "CLAUDE.md").unlink()
    ran = run("claude-md", "status")
    assert ran.code == 0
    assert "CLAUDE.md  is gone, or cannot be read; `backstory init` makes it, or says why" in ran.out
    assert run("claude-md", "status", "--json").json["files"][0]["there"] is False


def test_the_setting_is_told_and_a_wrong_one_refused(
    run: Run, ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_CLAUDE_MD_ON_STOP", "agent")
    assert "on stop  agent" in run("claude-md", "status").out
    monkeypatch.setenv("BACKSTORY_CLAUDE_MD_ON_STOP", "sometimes")
    ran = run("claude-md", "status")
    assert (ran.code, "agent, auto, off" in ran.err) == (2, True)
