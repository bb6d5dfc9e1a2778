"""Which files a tool use changed: what a command says, and nothing that it only seems to say."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.capture.changes import by_command, changed, of_payload, parse
from backstory.clients import claude_code
from tests.helpers.chaos import bash, event, tool_use

P = "/home/a project"


def of(command: str, cwd: str = P, *, was_reset: bool = False) -> list[str]:
    """What changed, from the project; what lies outside stays absolute."""
    found = by_command(command, cwd, was_reset)
    assert all(path.startswith("/") and path == os.path.normpath(path) for path in found)
    return [path.removeprefix(P + "/") for path in found]


# --- tools that name their file -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "given_", "found"),
    [
        ("Edit", {"file_path": "/p/src/a.py", "old_string": "a", "new_string": "b"}, ["/p/src/a.py"]),
        ("Write", {"file_path": "/p/über uns/naïve “quote” 日本.md", "content": "x"}, None),
        ("MultiEdit", {"file_path": '/p/it\'s "quoted".py', "edits": []}, None),
        ("NotebookEdit", {"notebook_path": "/p/n b.ipynb", "new_source": ""}, ["/p/n b.ipynb"]),
        ("NotebookEdit", {"file_path": "/p/n.ipynb"}, []),
        ("Edit", {"file_path": "src/../a.py"}, [f"{P}/a.py"]),
        ("Edit", {"file_path": "//p//a.py"}, ["/p/a.py"]),
        ("Edit", {"file_path": ""}, []),
        ("Edit", {"file_path": ["/p/a.py"]}, []),
        ("Edit", {}, []),
        ("Read", {"file_path": "/p/a.py"}, []),
        ("Bash", {"command": ["rm", "a"]}, []),
        ("Bash", {}, []),
        ("mcp__x__Edit", {"file_path": "/p/a.py"}, []),
    ],
)
def test_a_tool_that_writes_a_file_says_which(
    tool: str, given_: dict[str, object], found: list[str] | None
) -> None:
    use = claude_code.read(tool_use(tool, given_, {}, cwd=P))
    assert changed(use) == (found if found is not None else [given_["file_path"]])


# --- commands -----------------------------------------------------------------------------------------------

COMMANDS: list[tuple[str, list[str] | None]] = [  # None: all words but the first
    # rm
    ("rm a.txt", ["a.txt"]),
    ("rm -rf src/old lib", ["src/old", "lib"]),
    ("rm -f -- -dash.txt --", ["-dash.txt", "--"]),
    ("rm --recursive --force x", ["x"]),
    ("/bin/rm x; \\rm y; 'rm' z", ["x", "y", "z"]),
    ("rm x x ./x src/../x", ["x"]),
    ("rm /etc/passwd", ["/etc/passwd"]),
    ("rm ../neighbour/x", ["/home/neighbour/x"]),
    ("rm", []),
    ("rm -rf", []),
    ("rm ''", []),
    # quoting
    ("rm 'a b.txt' \"c d.txt\" e\\ f.txt", ["a b.txt", "c d.txt", "e f.txt"]),
    ("rm it\\'s.txt \"it's.txt\" 'say \"hi\".txt'", ["it's.txt", 'say "hi".txt']),
    ('rm "a\\"b" "c\\\\d" "e\\f" "g\\$h" \'i$j\' k\\$l', ['a"b', "c\\d", "e\\f", "g$h", "i$j", "k$l"]),
    ("rm 'with;semicolon' 'and && and' 'or | or' '# no comment'", None),
    ("rm a'b'\"c\"d", ["abcd"]),
    (
        "rm über.txt 日本語/ファイル.py 'naïve café' 🦊.md",
        ["über.txt", "日本語/ファイル.py", "naïve café", "🦊.md"],
    ),
    ("rm a#b", ["a#b"]),
    ("rm a\\\n  b", ["a", "b"]),
    ("rm 'two\nlines'", ["two\nlines"]),
    # what only the shell knows
    ('rm "$FILE" $x ${y} `z` $(ls) $((1+1)) ~/w known', ["known"]),
    ("rm $'a\\'b' known", ["known"]),
    ('rm "$(echo "a) b")" known', ["known"]),
    ('rm "${x:-a b}" known', ["known"]),
    ("rm $(rm hidden) `rm hidden` shown", ["shown"]),
    ("X=rm; $X a", []),
    # patterns stand for their folder
    ("rm src/*.py", ["src"]),
    ("rm -rf build*", [P]),
    ("rm src/*/x.py src/[ab]/y ?.txt", ["src", P]),
    ("rm /tmp/*", ["/tmp"]),
    ("rm /*", ["/"]),
    ("rm src/{a,b}.py", ["src"]),
    ("rm 'literal*.txt' lit\\?eral \"[x]\"", ["literal*.txt", "lit?eral", "[x]"]),
    # mv
    ("mv a.py b.py", ["a.py", "b.py"]),
    ("mv a.py lib/", ["a.py", "lib/a.py"]),
    ("mv sub/a.py .", ["sub/a.py", "a.py"]),
    ("mv sub/deep/a.py sub/..", ["sub/deep/a.py", "a.py"]),
    ("mv a.py b/ lib", ["a.py", "lib/a.py", "b", "lib/b"]),
    ("mv -t lib a.py 'b c.py'", ["a.py", "lib/a.py", "b c.py", "lib/b c.py"]),
    ("mv -vt lib a.py", ["a.py", "lib/a.py"]),
    ("mv -tlib a.py", ["a.py", "lib/a.py"]),
    ("mv --target-directory=lib a.py", ["a.py", "lib/a.py"]),
    ("mv --target-directory lib a.py", ["a.py", "lib/a.py"]),
    ("mv a.py b.py -t lib", ["a.py", "lib/a.py", "b.py", "lib/b.py"]),
    ("mv -T a lib/", ["a", "lib"]),
    ("mv -fT a lib/", ["a", "lib"]),
    ("mv -S .bak a b", ["a", "b"]),
    ("mv --suffix .bak --backup=numbered a b", ["a", "b"]),
    ("mv -- -a -b", ["-a", "-b"]),
    ("mv a", []),
    ("mv src/*.py lib/", ["src", "lib"]),
    ('mv "$x" lib/', ["lib"]),
    ('mv a "$d"', ["a"]),
    ("mv a b.txt{,.old}", ["a", P]),
    # git
    ("git rm a.py", ["a.py"]),
    ("git rm -r --cached 'a b'", ["a b"]),
    ("git mv a.py lib/b.py", ["a.py", "lib/b.py"]),
    ("git mv a b lib", ["a", "lib/a", "b", "lib/b"]),
    ("git -C sub rm a.py", ["sub/a.py"]),
    ("git -C 'my sub' -C deeper mv a b", ["my sub/deeper/a", "my sub/deeper/b"]),
    ('git -C "$X" rm a /abs/b', ["/abs/b"]),
    ("git -c user.name='rm x' --no-pager rm a", ["a"]),
    ("git rm '*.log' src/*.py", [P, "src"]),
    ("git rm ':(glob)**/x' known", ["known"]),
    ("git rm -n a; git mv --dry-run b c", []),
    ("git commit -m 'rm a' && git log -- rm b", []),
    ("git", []),
    # where commands begin and end
    ("rm a; rm b && rm c || rm d | rm e & rm f\nrm g", ["a", "b", "c", "d", "e", "f", "g"]),
    ("(rm a); { rm b; }; ( ( rm c ) )", ["a", "b", "c"]),
    ("echo x |& rm a", ["a"]),
    ("if [ -f a ]; then rm a; else rm b; fi", ["a", "b"]),
    ("while rm a; do ! rm b; done", ["a", "b"]),
    ("case $x in (a) rm a;; b) rm b;; esac", ["a", "b"]),
    ("for f in rm mv; do echo $f; done", []),
    ("echo rm a", []),
    ("grep rm a; docker run --rm image; npm run rm-it a; ./rm.sh b; alarm c", []),
    ("find . -name x -exec rm {} \\; ; ls | xargs rm", []),
    ("rm a # and b\n# rm c\nrm d;# rm e", ["a", "d"]),
    ("files=(rm a b); rm c", ["c"]),
    # what stands before a command
    ("sudo rm a; sudo -n -u www rm b; sudo -E -- rm c", ["a", "b", "c"]),
    ("X=1 Y='a b' rm a; env Z=2 rm b; env -i -u HOME rm c", ["a", "b", "c"]),
    ("X=$(pwd) rm a", ["a"]),
    ("command rm a; nohup rm b; time -p rm c; exec rm d; nice -n 5 rm e", ["a", "b", "c", "d", "e"]),
    ("timeout -s KILL 5 rm a", ["a"]),
    ("command -v rm a", []),
    ("env -C elsewhere rm a", []),
    # redirections are no operands
    ("rm a >out 2>/dev/null <in b >>log 2>&1 c &>all d >|e", ["a", "b", "c", "d"]),
    ("rm 2 2>x", ["2"]),
    ("rm a <<<'rm b'", ["a"]),
    ("diff <(rm a) >(rm b) ; rm c", ["c"]),
    # here-documents
    ("cat <<EOF\nrm a\nEOF\nrm b", ["b"]),
    ("cat <<'EOF' >x && rm a\nrm b 'unclosed\nEOF\nrm c", ["a", "c"]),
    ("cat <<-\tEOF\n\trm a\n\tEOF\nrm b", ["b"]),
    ('cat <<"A B" <<C\nrm a\nA B\nrm b\nC\nrm c', ["c"]),
    ("cat <<EOF\nrm a\n EOF\nrm b", []),
    ("git commit -m \"$(cat <<'EOF'\ndon't :) rm a\nEOF\n)\" && rm b", ["b"]),
    ('python - <<PY\nprint("rm a)")\nPY\nmv b c', ["b", "c"]),
    # where it runs
    ("cd sub && rm a", ["sub/a"]),
    ("cd 'my sub'; rm a; cd deeper; rm b", ["my sub/a", "my sub/deeper/b"]),
    ("cd sub && rm a && cd .. && rm b", ["sub/a", "b"]),
    ("cd sub && rm a && cd - && rm b", ["sub/a", "b"]),
    ("pushd sub; rm a; popd; rm b", ["sub/a", "b"]),
    ("(cd sub && rm a); rm b", ["sub/a", "b"]),
    ("cd /elsewhere && rm a", ["/elsewhere/a"]),
    ('cd "$X" && rm a /abs/b', ["/abs/b"]),
    ("cd && rm a", []),
    ("cd ~ && rm a", []),
    ("cd sub || exit 1; rm a", ["sub/a"]),
    ("cd sub || cd other; rm a", ["sub/a"]),
    ("cd sub | cat; cd sub & rm a", ["a"]),
    ("cd -P -- sub && rm a", ["sub/a"]),
    ("if cd sub; then rm a; fi", ["sub/a"]),
]


@pytest.mark.parametrize(("command", "found"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_changes(command: str, found: list[str] | None) -> None:
    if found is None:
        found = shlex.split(command)[1:]
    assert of(command) == found


@pytest.mark.parametrize(
    ("command", "cwd", "found"),
    [
        ("cd sub && rm a", f"{P}/sub", ["sub/a"]),
        ("cd sub/deep && rm a && cd .. && rm b", f"{P}/sub", ["sub/deep/a", "sub/b"]),
        ("rm a && cd sub && rm b", f"{P}/sub", ["a", "sub/b"]),
        ("cd sub && rm a", f"{P}/sub/sub", ["sub/sub/a"]),
        ("cd .. && rm b", P, ["b"]),
        ("cd ../lib && rm b", f"{P}/lib", ["lib/b"]),
        ("rm a && cd .. && rm b", P, ["b"]),  # the folder it came from has a name that nobody told us
        (f"cd '{P}' && rm a", P, ["a"]),
        (f"rm a && cd '{P}/sub' && rm b", f"{P}/sub", ["sub/b"]),
        ("rm a && cd /tmp && rm b", P, ["a", "/tmp/b"]),  # taken back from there
        ("cd ../other && rm b", P, ["/home/other/b"]),
    ],
)
def test_the_client_tells_the_folder_that_a_command_went_to(command: str, cwd: str, found: list[str]) -> None:
    assert of(command, cwd) == found


def test_a_shell_that_was_taken_back_into_the_project_did_not_end_there() -> None:
    assert of("cd .. && rm a", P) == ["a"]
    assert of("cd .. && rm a", P, was_reset=True) == ["/home/a"]


# --- payloads -----------------------------------------------------------------------------------------------


def raw(payload: dict[str, Any], **how: Any) -> bytes:
    return json.dumps(payload, **how).encode("utf-8", "surrogatepass")


def test_a_payload_tells_what_changed() -> None:
    edit = tool_use("Edit", {"file_path": "/p/é.py"}, {"filePath": "/p/é.py"}, cwd="/p")
    for how in ({}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"indent": 2}):
        assert of_payload(raw(edit, **how)) == ["/p/é.py"]
    assert of_payload(raw(bash("rm 'a b'", cwd="/p"))) == ["/p/a b"]
    assert of_payload(b" \n" + raw(edit)) == ["/p/é.py"]


def test_a_command_whose_shell_was_taken_back_is_known_by_what_the_client_says() -> None:
    gone = bash("cd .. && rm a", stderr="\nShell cwd was reset to /home/p", cwd="/home/p")
    assert of_payload(raw(gone)) == ["/home/a"]


@pytest.mark.parametrize(
    "payload",
    [
        bash("ls"),
        event("Stop", last_assistant_message='"PostToolUse" "Edit"'),
        {**bash("rm a"), "hook_event_name": "PostToolUseFailure", "error": '"PostToolUse"'},
        {**bash("rm a"), "hook_event_name": "PreToolUse", "x": "PostToolUse"},
        {**bash("rm a"), "cwd": "relative"},
        {**bash("rm a"), "cwd": None},
        {**bash("rm a"), "tool_input": "rm a"},
        {**bash("rm a"), "tool_name": ["Bash"], "x": "Bash"},
    ],
)
def test_a_payload_that_tells_of_no_change_tells_none(payload: dict[str, Any]) -> None:
    assert of_payload(raw(payload)) == []


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[" * 100_000, b'{"a": }', b"\xff\xfe", b'"PostToolUse" "Edit"', b"nul", b"1" * 9_999],
)
def test_what_is_no_json_is_nothing(text: bytes) -> None:
    assert parse(text) is None or parse(text) == json.loads(text.decode().split('" ')[0] + '"')
    assert of_payload(b'{"PostToolUse" "Edit"' + text) == []


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    )
)
def test_json_is_read_as_json_reads_it(value: Any) -> None:
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) == value


# --- any command --------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    "rm mv git cd sudo env -t -T -C -- - a b/ ../c /d 'e f' \"g\" $x $( ) ( { } ` ' \" \\ ; && || | & > >> <"
    " << <<- <<< EOF \n \t # * ? [ ~ = x=( é \0 \ud800 2> &> time command case esac".split(" ")
)


@pytest.mark.slow
@settings(max_examples=400)
@given(st.one_of(st.text(), st.lists(PIECES).map(" ".join), st.lists(PIECES).map("".join)), st.text())
def test_no_command_is_too_odd(command: str, cwd: str) -> None:
    for place in ("/p", "/" + cwd.replace("\0", "")):
        for text in (command, f"rm {command}", f"cd {command} && mv {command}"):
            for path in by_command(text, place):
                assert path.startswith("/") and "\0" not in path


@pytest.mark.parametrize(
    "command",
    [
        "$(" * 50_000 + "rm x",
        '"' + "$" * 100_000 + " rm",
        '"' + "`" * 100_000 + " rm",
        "A=1 " * 25_000 + "rm x",
        "cd a;" * 20_000 + "rm x",
        "cd ..;" * 16_000 + "rm x",
        "mv -- " + "a " * 49_000 + "b",
        "sudo " * 20_000 + "rm x",
        "<<E " * 25_000 + "\nrm x",
        "(" * 99_000 + "rm",
        "rm " + "[" * 99_000,
        "cat <<A\n" + "x\n" * 49_000 + "rm y",
        "x=(" * 33_000 + "rm",
    ],
    ids=lambda command: command[:8],
)
def test_a_long_command_takes_no_time(command: str) -> None:
    started = time.process_time()
    by_command(command, "/p")
    assert time.process_time() - started < 5  # a tenth of a second, where nothing else runs


NAMES = st.text(st.characters(exclude_characters="/\0\n", exclude_categories=["Cs"]), min_size=1, max_size=20)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(NAMES.filter(lambda name: name not in (".", "..")), min_size=2, max_size=4, unique=True))
def test_what_a_real_shell_removes_and_moves_is_what_is_found(names: list[str]) -> None:
    """The same command, once read and once run."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(os.path.realpath(made))
        (folder / "sub dir").mkdir()
        (folder / "into").mkdir()
        for name in names:
            if len(os.fsencode(name)) < 200:
                (folder / "sub dir" / name).touch()
        quoted = [shlex.quote(name) for name in names]
        command = (
            f"cd 'sub dir' && rm -f -- {quoted[0]} # rm into\n"
            f"mv -t ../into -- {' '.join(quoted[1:])} 2>/dev/null; (cd .. && rm -rf nothing)"
        )
        before = files(folder)
        subprocess.run(["bash", "-c", command], cwd=folder, check=True, stdin=subprocess.DEVNULL)
        real = before ^ files(folder)
        found = set(by_command(command, str(folder / "sub dir")))
    assert real <= found
    assert found - real <= {str(folder / "nothing")}


def files(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if path.is_file()}
