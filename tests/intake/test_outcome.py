"""What a shell command came to: commits, and checks that failed or passed."""

from __future__ import annotations

import pytest

from backstory.clients import claude_code
from backstory.clients.canonical import SHELL, Use
from backstory.intake import outcome
from backstory.intake.outcome import Outcome
from backstory.memory.failing_tests import APART

ROOT = "/home/me/app"
COMMITTED = "[main abc1234] mend the door\n 1 file changed, 1 insertion(+)"


def ran(command: str, output: str = "", stderr: str = "") -> Use:
    return claude_code.tool_use("Bash", {"command": command}, {"stdout": output, "stderr": stderr})


def failed(command: str, error: str) -> Use:
    return claude_code.tool_use("Bash", {"command": command}, error=error)


def of(use: Use, cwd: str = ROOT) -> Outcome:
    return outcome.of(use, cwd, [ROOT])


# --- commits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m 'mend the door'",
        "git add -A && git commit -m x",
        "git commit -m \"$(cat <<'EOF'\nmend the door\n\nwith a hinge\nEOF\n)\"",
        "git -c user.name=me commit -m x",
        f"git -C {ROOT} commit -m x",
        "git -C src commit -m x",
        "cd /home/me/app && git commit -m x",
        f"(cd {ROOT}/src; git commit -m x)",
        "cd $HOME/app && git commit -m x",
        "cd /tmp/elsewhere && make; cd - && git commit -m x",
        "(cd /tmp/elsewhere && make) && git commit -m x",
        "sudo git commit -m x",
    ],
)
def test_a_commit_is_known_by_what_git_prints(command: str) -> None:
    assert of(ran(command, COMMITTED)).commits == [("abc1234", "mend the door", False)]


@pytest.mark.parametrize(
    "command",
    [
        "cd /tmp/elsewhere && git commit -m x",
        "(cd /tmp/elsewhere && git commit -m x)",
        "git -C /tmp/elsewhere commit -m x",
        "git -C ../other commit -m x",
        "cd .. && git -C other commit -m x",
        "git log -1",
        "cat notes.txt",
        "echo git commit",
    ],
)
def test_what_is_committed_elsewhere_or_only_shown_is_none_of_ours(command: str) -> None:
    cwd = "/home/me" if command.startswith("cd ..") else ROOT
    assert of(ran(command, COMMITTED), cwd).commits == []


@pytest.mark.parametrize(
    ("command", "left_in"), [("cd .. && git commit -m x", ROOT), ("cd src && git commit -m x", f"{ROOT}/src")]
)
def test_a_step_within_the_project_stays_there(command: str, left_in: str) -> None:
    assert of(ran(command, COMMITTED), left_in).commits


def test_a_shell_that_was_taken_back_had_left_the_project() -> None:
    use = ran("cd $SCRATCH && git commit -m x", COMMITTED, f"Shell cwd was reset to {ROOT}")
    assert of(use).commits == []


def test_an_amended_commit_says_so() -> None:
    assert of(ran("git commit --amend --no-edit", COMMITTED)).commits == [("abc1234", "mend the door", True)]


@pytest.mark.parametrize(
    ("command", "undone", "keeps_changes"),
    [
        ("git reset --hard HEAD~1", 1, False),
        ("git reset --soft HEAD^ && git commit -m 'again'", 1, True),
        ("git reset HEAD~3", 3, True),
        ("git reset HEAD~1 -- a.py", 0, True),
        ("git reset --hard HEAD", 0, True),
        ("git -C /elsewhere reset --hard HEAD~1", 0, True),
        ("echo git reset --hard HEAD~1", 0, True),
    ],
)
def test_a_reset_to_a_commit_before_takes_back_those_after_it(
    command: str, undone: int, keeps_changes: bool
) -> None:
    done = of(ran(command))
    assert (done.undone, done.keeps_changes) == (undone, keeps_changes)
    assert of(failed(command, "fatal: ambiguous argument")).undone == 0


def test_the_first_commit_of_a_repository_is_that_of_a_scratch_folder() -> None:
    printed = "[main (root-commit) abc1234] initial"
    assert of(ran("git init && git commit -m initial", printed)).commits == []


def test_two_commits_of_one_command_are_two() -> None:
    printed = "[main abc1234] one\n 1 file changed\n[feature/x-1 def5678abc] two: [wip]\n"
    assert of(ran("git commit -m one; git commit -m two", printed)).commits == [
        ("abc1234", "one", False),
        ("def5678abc", "two: [wip]", False),
    ]


def test_a_commit_of_a_command_that_failed_afterwards_was_made() -> None:
    error = f"Exit code 1\n{COMMITTED}\nerror: failed to push"
    assert of(failed("git commit -m x && git push", error)).commits


# --- checks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "state"),
    [
        (failed("pytest -q", "Exit code 1\nE   assert 1 == 2"), "failed"),
        (failed("./deploy.sh", "Exit code 3\nno such host"), "failed"),
        (failed("pytest -q", "interrupted by the user"), ""),
        (failed("ls /nowhere", "Exit code 2\nls: cannot access"), ""),
        (failed("cd x && grep -r walrus", "Exit code 1"), ""),
        (ran("pytest -q", "3 passed in 0.1s"), "passed"),
        (ran("pytest -q | tail -3", "FAILED tests/test_a.py::test_b\n1 failed, 2 passed"), "failed"),
        (ran("npm test 2>&1 | tee log", "Tests: 2 failing"), "failed"),
        (ran("go vet ./... | head", "main.go:3:5: undefined: walrus"), "failed"),
        (ran("pytest -q | tail -3", "0 failed, 3 passed"), "passed"),
        (ran("cat build.log", "FAILED tests/test_a.py"), "passed"),
        (ran("./deploy.sh | tail", "1 failed"), "passed"),
    ],
)
def test_a_pipe_hides_the_exit_status_but_not_what_a_check_prints(use: Use, state: str) -> None:
    done = of(use)
    assert (done.failed, done.passed) == (state == "failed", state == "passed")


def test_what_goes_on_in_the_background_has_not_passed() -> None:
    use = claude_code.tool_use("Bash", {"command": "pytest"}, {"stdout": "", "backgroundTaskId": "b1"})
    done = of(use)
    assert (done.failed, done.passed) == (False, False)


def test_runs_of_one_check_have_the_same_name() -> None:
    assert of(ran("cd /x && FOO=1 pytest -q tests/pay | tail -3")).checks == ["pytest tests/pay"]
    assert of(failed("timeout 60 pytest -x tests/pay", "Exit code 1")).checks == ["pytest tests/pay"]
    assert of(ran("mise run fmt && mise run lint")).checks == ["mise run fmt", "mise run lint"]
    assert of(ran("go test -race ./...")).checks == ["go test"]
    assert of(ran("ls && git status")).checks == []


def test_a_check_that_is_not_confined_covers_one_that_is() -> None:
    assert outcome.covers("go test", "go test ./pay")
    assert not outcome.covers("go test ./pay", "go test")
    assert not outcome.covers("go test ./a", "go test ./b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Exit code 1\n...\nE   assert 1 == 2\nmore\n", "E assert 1 == 2"),
        ("Traceback\nValueError: bad walrus\n", "ValueError: bad walrus"),
        ("src/a.rs:3:5: error[E0425]: no x\nwarning\n", "src/a.rs:3:5: error[E0425]: no x"),
        ("error: one\nerror: two\nerror: one\n", "error: one / error: two"),
        ("Exit code 1\nsomething\nthe last line\n\n", "the last line"),
        ("", ""),
    ],
)
def test_the_lines_that_say_what_is_wrong(text: str, expected: str) -> None:
    assert outcome.error_lines(text) == expected


def test_errors_and_commands_are_short() -> None:
    done = of(failed("pytest " + "x" * 1_000, "Exit code 1\n" + "".join(f"error: {n}\n" for n in range(99))))
    assert len(done.command) == outcome.COMMAND
    assert done.error.split(APART) == [f"error: {n}" for n in range(outcome.ERROR_LINES)]


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("git add -A; git commit -qm 'feat: a'; git status --short", ""),
        ("git commit -qm 'feat: a' 2>&1 | tail -3", "error: no"),
        ("git commit -q --dry-run -m 'feat: a'", ""),
        ("test -f nope && git commit -qm 'feat: a' || true", ""),
        ("git --git-dir=/tmp/other/.git commit -m a", "[main abc1234] a"),
        ("GIT_DIR=/tmp/other/.git git commit -m a", "[main abc1234] a"),
        ("git commit -m a || echo '[main abc1234] fake'", "[main abc1234] fake"),
    ],
)
def test_what_may_not_have_been_committed_here_is_no_commit(command: str, printed: str) -> None:
    assert of(ran(command, printed)).commits == []


def test_of_commits_here_and_elsewhere_only_those_that_were_told_here_count() -> None:
    command = "cd /tmp/other && git commit -m there; cd /home/me/app && git commit -m here"
    done = of(ran(command, "[main aaa1111] there\n[main bbb2222] here"))
    assert [subject for _, subject, _ in done.commits] == ["here"]


@pytest.mark.parametrize(
    ("passed", "failed"),
    [("python3", "python3 pytest tests/a.py"), ("make", "make test"), ("cargo", "cargo test")],
)
def test_a_program_that_ran_says_nothing_about_its_tests(passed: str, failed: str) -> None:
    assert not outcome.covers(passed, failed)


def test_to_ask_a_program_for_its_version_checks_nothing() -> None:
    assert of(ran("pytest --version", "pytest 8")).checks == []


def test_a_deeply_nested_result_takes_no_time() -> None:
    nested: object = "the end"
    for _ in range(150):
        nested = {"part": nested}
    use = Use("Bash", SHELL, {"command": "make"})
    use.result = {"output": nested}
    assert outcome.printed(use).endswith("the end")
