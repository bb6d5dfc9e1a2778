"""What is never kept: nothing of it reaches the store, from hooks or from transcripts."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backstory.capture import ignore
from backstory.capture.event import past_event, read_event
from backstory.clients import claude_code
from backstory.clients.canonical import Event
from backstory.errors import BadInput
from backstory.intake.drain import drain
from backstory.store import turns
from backstory.store.file.connection import connect
from tests.helpers.chaos import NOW, Json, bash, tool_use
from tests.helpers.turn_payloads import happened

WORD = "hunter-zebra-quartz"  # of no shape that redaction knows


@pytest.fixture
def db(data: Path) -> Iterator[sqlite3.Connection]:
    data.mkdir(exist_ok=True)
    with closing(connect(str(data / "backstory.db"))) as db:
        yield db


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


FOUND = f"""src/a.py:1:DB_NAME
.env:DB_NAME={WORD}
./.env:3:DB_NAME={WORD}
.env-4-DB_HOST={WORD}
deploy/my app/prod.env:12:{WORD}
/home/a/.ssh/config-9-{WORD}
\x1b[35m\x1b[K.env\x1b[m\x1b[K\x1b[36m\x1b[K:\x1b[m\x1b[K{WORD}
cat: .env: No such file or directory
.env
.env.example:1:DB_NAME=
src/keys.js:7:event.key:1"""
KEPT = [
    *("src/a.py:1:DB_NAME", "cat: .env: No such file or directory", ".env", ".env.example:1:DB_NAME="),
    "src/keys.js:7:event.key:1",
]


@pytest.mark.parametrize(
    "payload",
    [
        bash("grep -rn DB_ .", FOUND),
        bash("grep -rn DB_ . | head -1000", FOUND + "\n" + "x" * 30_000),
        tool_use("Grep", {"pattern": "DB_"}, {"mode": "content", "content": FOUND, "filenames": []}),
        tool_use("Grep", {"pattern": "DB_"}, [{"type": "text", "text": FOUND}]),
        {
            **bash("grep -rn DB_ .", ""),
            "hook_event_name": "PostToolUseFailure",
            "error": f"Exit code 2\n{FOUND}",
        },
    ],
    ids=["short", "long", "search", "search of a subagent", "failed"],
)
def test_lines_that_a_search_found_in_such_a_file_are_not_kept(payload: Json) -> None:
    event = read_event(json.dumps(payload).encode(), spool_name="x", at=NOW)
    use = event.use
    assert use is not None
    kept = json.dumps([use.result, use.error, use.excerpt, use.printed])
    assert WORD not in kept
    assert all(line in kept.replace('\\"', '"') for line in KEPT)


def test_lines_of_files_that_the_user_ignores_are_not_kept_either() -> None:
    found = f"notes/diary.txt:3:{WORD}\nprivate/a-b.py-7-{WORD}\nsrc/a.py:1:mine"
    payload = bash("rg mine", found)
    ignored = ignore.Ignored("diary.txt, private/")
    event = read_event(json.dumps(payload).encode(), spool_name="x", at=NOW, ignored=ignored)
    assert event.use is not None and event.use.output == "src/a.py:1:mine"


@pytest.mark.parametrize(
    "path",
    [
        *("/p/.env", ".env", "/p/.env.local", "deploy/prod.env", "server.PEM", "/p/tls/server.key"),
        *(
            "~/.ssh/config",
            "/home/a/.ssh/known_hosts",
            "/home/a/.aws/credentials",
            "id_rsa",
            "x/id_ed25519.pub",
        ),
        *(
            "/home/a/.netrc",
            ".pgpass",
            "vault.kdbx",
            "config/secrets.yml",
            "credentials.json",
            ".env*",
            "x/id_ed25519.pub",
        ),
    ],
)
def test_files_that_are_there_for_secrets_are_ignored_without_a_setting(path: str) -> None:
    assert ignore.ALWAYS.path(path)


@pytest.mark.parametrize(
    "path",
    [
        *("/p/.env.example", ".env.sample", "/p/environment.py", "src/secrets.py", "keys.py", "/p/key"),
        *("credentials/form.tsx", ".envelope", "monkey", "/p/awssh/x", ".key", "README.md", "package.json"),
    ],
)
def test_files_that_only_look_like_it_are_kept(path: str) -> None:
    assert not ignore.ALWAYS.path(path)


def test_globs_fit_names_folders_with_all_in_them_whole_paths_and_tools() -> None:
    ignored = ignore.Ignored("*.secret, private/, ~/diary, notes/2026-*, mcp__mail__*, /srv/**/dump?.sql")
    home = str(Path.home())
    fitting = ["a.secret", "x/private/deep/a.md", f"{home}/diary/today.md", "notes/2026-01.md"]
    assert all(ignored.path(path, "/here/p") for path in (*fitting, "../private/a", "/srv/a/b/dump1.sql"))
    assert not any(
        ignored.path(path, "/here/p") for path in ("secret", "privately/a", "notes/x", "/srv/dump.sql")
    )
    kept, left_out = (
        claude_event(tool_use(tool, {"q": "x"}, {})) for tool in ("mcp__maps__find", "mcp__mail__get")
    )
    for event in (kept, left_out):
        ignored.apply(event)
    assert kept.use and not left_out.use


@pytest.mark.parametrize("globs", ["*", "a, **", "*/*", "x\x1b[31m", "y" * 300])
def test_a_setting_that_fits_everything_or_is_no_glob_is_refused(globs: str) -> None:
    with pytest.raises(BadInput, match=r"capture\.ignore has"):
        ignore.parsed(globs)


def claude_event(payload: Json) -> Event:
    return claude_code.read({"session_id": "s", "cwd": "/p", **payload})


SECRET_USES = {
    "read": tool_use("Read", {"file_path": "/p/.env"}, {"type": "text", "file": {"content": f"A={WORD}"}}),
    "edit": tool_use("Edit", {"file_path": "/p/.env", "old_string": "a", "new_string": WORD}, {}),
    "write": tool_use(
        "Write", {"file_path": "/p/a.pem", "content": WORD}, {"type": "create", "content": WORD}
    ),
    "mcp": tool_use("mcp__files__read", {"path": "/p/.env"}, [{"type": "text", "text": WORD}]),
    "mcp list": tool_use(
        "mcp__files__read", {"paths": ["/p/x", "/p/.env"]}, [{"type": "text", "text": WORD}]
    ),
    "grep": tool_use("Grep", {"pattern": WORD, "path": "/p/.env"}, {"filenames": [], "content": WORD}),
    "echo": bash(f"echo A={WORD} >> .env", ""),
    "heredoc": bash(f"cat > .env <<EOF\nA={WORD}\nEOF", ""),
    "tee": bash(f"echo {WORD} | tee -a config/prod.env", ""),
    "in place": bash(f"sed -i 's/A=.*/A={WORD}/' .env", ""),
    "other signs": bash(f"echo {WORD} >| .env", ""),
    "both outputs": bash(f"echo {WORD} &> .env", ""),
    "numbered": bash(f"echo {WORD} 1> .env", ""),
    "command in a command": bash(f'bash -c "echo {WORD} > .env"', ""),
    "two deep": bash(f"ssh host \"sh -c 'echo {WORD} >> .env'\"", ""),
    "eval": bash(f"eval echo {WORD} \\> .env", ""),
    "substitution": bash(f"x=$(echo {WORD} > .env)", ""),
    "process substitution": bash(f"echo {WORD} > >(tee .env)", ""),
    "tee on another host": bash(f"echo a | ssh host 'echo {WORD} | tee .env'", ""),
    "quoted name": bash(f"echo {WORD} > .e'n'v", ""),
    "dd": bash(f"echo {WORD} | dd of=.env", ""),
    "mcp within": tool_use(
        "mcp__files__read", {"files": [{"path": ".env"}]}, [{"type": "text", "text": WORD}]
    ),
}
PRINTING = [
    *(
        "cat .env",
        "cat .ENV",
        "sudo cat ./.env",
        "head -3 < .env",
        "grep -n TOKEN .env.production",
        "cat .env*",
    ),
    *('bash -c "cat .env"', "docker run --env-file=.env app env", "git show HEAD:.env", "cat ~/.ssh/config"),
    *("X=$(cat .env); echo $X", "set -a; . ./.env; printenv", "openssl rsa -in server.key -text"),
    *("python3 - <<'E'\nprint(open('.env').read())\nE", "cd ~/.ssh && cat *", "cat .ENV"),
    *("diff <(sort .env) b", 'cat <<< "$(cat .env)"', 'f=(.env); cat "${f[@]}"', "cat .e'n'v", "cat .e\\nv"),
    *("echo $(<.env)", "grep -rh . ~/.ssh", f"python3 -c \"open('.env', 'w').write('{WORD}')\""),
    f"cp /dev/stdin .env <<< {WORD}",
]
GLOBS = [
    *(
        "cat .e*",
        "cat .en?",
        "cat ./.[e]nv",
        "cat .*",
        "cat .??*",
        "cat .E*",
        "cat .{env,foo}",
        "cat .e{n,m}v",
    ),
    *("cat id_*", "cat *_rsa", "cat *.ke?", "cat tls/*.pe*", "cat server.{key,crt}", "cat c*s.json"),
    *("cat ~/.s*/config", "for f in .e*; do cat $f; done", "find . -name '.e*' -exec cat {} +"),
    *('bash -c "cat .e*"', "ssh host 'cat .e*'", "eval cat .e\\*", "cat $(echo .e*)", "sh <<E\ncat .e*\nE"),
]


@pytest.mark.parametrize("use", SECRET_USES.values(), ids=SECRET_USES.keys())
def test_nothing_of_a_tool_use_about_such_a_file_is_kept(
    use: Json, data: Path, db: sqlite3.Connection, project: Path
) -> None:
    happened(data, project, "look around", use, answer="fine")
    assert drain(db, str(data / "spool"), now=NOW).stored == 3
    assert WORD not in dump(db)
    (turn,) = turns.of_session(db, "session-1")
    assert not (turn.edited or turn.read or turn.failed)


@pytest.mark.parametrize("command", PRINTING + GLOBS)
def test_a_command_that_names_such_a_file_is_kept_without_what_it_printed(
    command: str, data: Path, db: sqlite3.Connection, project: Path
) -> None:
    happened(data, project, "look around", bash(command, f"A={WORD}"))
    drain(db, str(data / "spool"), now=NOW)
    stored = dump(db)
    assert WORD not in stored and command.split(maxsplit=1)[0] in stored


@pytest.mark.parametrize(
    "command",
    [
        *("git commit -m 'leave .env alone'", "jq .key a.json", "ls src", "cat .env.example"),
        *(
            "git commit -F - <<E\nleave .env alone\nE",
            "cat > a.md <<E\nfill in .env\nE",
            "cd src && cat a.py",
        ),
        "git commit -m \"$(cat <<'E'\nleave .env alone\nE\n)\"",
        *(
            "cat *.md",
            "ls *",
            "cat *",
            "grep -r foo .",
            "git add .",
            "cat *.json",
            "ls *.{ts,tsx}",
            "cat a.*",
        ),
        *("ls s*", "ls src/*.p*", "rg 'foo.p*'", "jq '.items[].key' a", "find . -name '*.p*'", "ls *rc"),
        *("ls .github/*", "cat README*", "cat .eslintrc*", "git commit -m 'ignore .e* files'"),
        *("grep '.*' a", 'grep "import .* from" a', "grep -o '[a-z_]*' a", "sed 's/.*x//' a"),
        *('psql -c "select c.*, s.* from c"', "python3 - <<E\nprint({'a': [1]}, r'.*')\nE", "a 2>&1 | tail"),
    ],
)
def test_a_command_that_names_none_keeps_its_output(command: str) -> None:
    event = claude_event(bash(command, WORD))
    ignore.ALWAYS.apply(event)
    assert event.use and (event.use.output, event.use.command) == (WORD, command)


@pytest.mark.parametrize("command", ["cat di*/a.md", "cat *.sec*", "cat ~/diary/a", "cat $HOME/diary/a"])
def test_a_glob_may_fit_what_the_user_ignores_too(command: str) -> None:
    kept, left_out = claude_event(bash("cat *", WORD)), claude_event(bash(command, WORD))
    for event in (kept, left_out):
        ignore.Ignored("~/diary, diary/, *.secret").apply(event)
    assert kept.use and kept.use.output == WORD
    assert left_out.use and not left_out.use.output


@pytest.mark.parametrize(
    "command",
    [
        *(
            "echo A=S | /usr/bin/tee .env",
            "sudo /usr/bin/sed -i s/A/S/ .env",
            "sed --in-place=.bak s/A/S/ .env",
        ),
    ],
)
def test_a_program_with_its_path_writes_such_a_file_too(command: str) -> None:
    event = claude_event(bash(command, WORD))
    ignore.ALWAYS.apply(event)
    assert event.use is None


@pytest.mark.parametrize(
    "command", ["cat {a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,.env}", "ruby -e 'puts File.read(%q[.env])'"]
)
def test_a_name_among_many_or_in_brackets_is_seen(command: str) -> None:
    event = claude_event(bash(command, WORD))
    ignore.ALWAYS.apply(event)
    assert event.use and not event.use.output


def test_wild_signs_in_what_is_printed_or_given_cost_nothing() -> None:
    printed = "\n".join(f"*q{n:05}-" + "*-" * 240 + ":.env" for n in range(100))
    braces = "cat " + " ".join(f"*a{n}.*{{{','.join('abcdefghijklmnop')}}}" for n in range(400))
    given = {"hook_event_name": "PostToolUse", "tool_name": "mcp__a__b", "tool_response": ""}
    start = time.process_time()
    for payload in (
        bash("make", printed),
        bash(braces, ""),
        {**given, "tool_input": {"a": [f"*q{n}/*w{n}" for n in range(10_000)]}},
        {**given, "tool_input": {"a": "a/**/" * 4_000}},
    ):
        ignore.Ignored("a/**/b/**/c").apply(claude_event(payload))
    assert time.process_time() - start < 4


def test_a_long_command_with_globs_but_without_such_a_name_is_kept() -> None:
    event = claude_event(bash("cat > a.py <<E\n" + "x = {'a': '*'}\n" * 2_000 + "E", ""))
    ignore.ALWAYS.apply(event)
    assert event.use and event.use.command


def test_an_error_of_such_a_command_is_not_kept_but_that_it_failed_is() -> None:
    failed = {"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "error": f"Exit code 1\n{WORD}"}
    event = claude_event({**failed, "tool_input": {"command": "cat .env nothing"}})
    ignore.ALWAYS.apply(event)
    assert event.use and event.use.error == "" and event.use.exit_status == 1


def test_a_transcript_tells_as_little() -> None:
    payload = {"session_id": "s", "cwd": "/p", **SECRET_USES["read"]}
    event = past_event(payload, name="n", at=1, for_synthesis=True, ignored=ignore.ALWAYS)
    assert event.use is None
    raw = b'{"hook_event_name": "Stop", "session_id": "s", "cwd": "/p", "last_assistant_message": "hm"}'
    assert read_event(raw, spool_name="n", at=1).text == "hm"


def test_what_the_user_set_holds_for_the_next_drain(
    data: Path, db: sqlite3.Connection, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_CAPTURE_IGNORE", "diary/, mcp__mail__*")
    mail = tool_use("mcp__mail__get", {"id": 1}, [{"type": "text", "text": WORD}])
    happened(data, project, "x", bash("cat diary/a.md", WORD), mail)
    drain(db, str(data / "spool"), now=NOW)
    assert WORD not in dump(db)


def test_a_setting_that_cannot_be_read_leaves_the_payloads_where_they_are(
    data: Path, db: sqlite3.Connection, project: Path
) -> None:
    (data / "config.toml").write_text("[capture\nignore = ")
    happened(data, project, "x", bash("ls", "a"))
    assert drain(db, str(data / "spool"), now=NOW).left == 3
    (data / "config.toml").write_text('[capture]\nignore = "diary/"\n')
    assert drain(db, str(data / "spool"), now=NOW).stored == 3


def dump(db: sqlite3.Connection) -> str:
    return "\n".join(db.iterdump())
