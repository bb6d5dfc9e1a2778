"""Work that was done: bugfixes, features and refactorings, as told by edits, checks and commits."""

# ruff: noqa: E501  what people and programs say is not wrapped

from __future__ import annotations

from typing import Any

import pytest

from backstory.synthesis.rules import commands
from tests.helpers.scripted_session import GREEN, RED, ROOT, Script, Store, found, one

# --- work ---------------------------------------------------------------------------------------------------


def test_a_failing_test_that_passes_after_edits_is_a_bugfix() -> None:
    script = Script().ask("the tests are red, please fix").fail("pytest -q", RED).edit("src/cart.py")
    script.bash("pytest -q", GREEN).say("The total left out the last line, because the loop ended early.")
    bugfix = one(script)
    assert bugfix.kind == "bugfix"
    assert "left out the last line" in bugfix.title + bugfix.text
    assert "test_total: AssertionError: 3 != 4" in bugfix.text
    assert bugfix.files == ("src/cart.py",)
    assert bugfix.cites == (2, 3, 4)


def test_a_commit_of_the_fix_is_not_a_second_observation() -> None:
    script = Script().ask("the tests are red, please fix").fail("pytest -q", RED).edit("src/cart.py")
    script.bash("pytest -q", GREEN).bash(
        "git commit -am 'Count the last line'", "[main 1234567] Count the last line"
    )
    bugfix = one(script.say("Done, committed."))
    assert (bugfix.kind, bugfix.title) == ("bugfix", "Count the last line")
    assert 5 in bugfix.cites


def test_two_bugs_with_two_commits_are_two_fixes_each_with_its_own_words() -> None:
    red = f"FAILED tests/test_mail.py::test_from - KeyError: 'from'\n{RED.replace('1 failed', '2 failed')}"
    script = Script().ask("CI is red").fail("pytest -q", red)
    script.edit("src/cart.py").bash("pytest -q tests/test_cart.py", "6 passed")
    script.bash("git commit -qam 'Totals count every line'")
    script.edit("src/mail.py").bash("pytest -q", "7 passed").bash("git commit -qam 'Mails have a sender'")
    script.say(
        "Two bugs:\n\n1. The cart skipped the last line, because of an off by one.\n"
        "2. The mail had no sender, because `from` was renamed."
    )
    cart, mail = found(script)
    assert (cart.kind, cart.title, cart.files) == ("bugfix", "Totals count every line", ("src/cart.py",))
    assert "off by one" in cart.text and "sender" not in cart.text
    assert (mail.kind, mail.title, mail.files) == ("bugfix", "Mails have a sender", ("src/mail.py",))
    assert "KeyError" in mail.text and "off by one" not in mail.text


def test_two_bugs_without_a_commit_are_told_apart_by_the_list_of_them() -> None:
    red = "not ok 3 - parses dates\n  error: 'off by an hour'\nnot ok 5 - sends mail\n  error: 'hang up'\n# pass 9\n# fail 2"
    script = (
        Script()
        .ask("tests fail since the upgrade")
        .fail("npm test", red)
        .edit("src/date.js")
        .edit("src/mail.js")
    )
    script.bash("npm test", "# pass 11\n# fail 0").say(
        "- **Dates**: `src/date.js` parsed days as local time.\n- **Mail**: `src/mail.js` kept sockets open."
    )
    assert [(one.kind, one.files) for one in found(script)] == [
        ("bugfix", ("src/date.js",)),
        ("bugfix", ("src/mail.js",)),
    ]


SUITE = "--- PASS: t_one\n--- {}: t_spaces\n--- {}: t_newest\n--- {}: t_default\n"

LIST = "- `t_newest`: names were sorted as text.\n- `t_spaces`: the path had lost its quotes.\n"


@pytest.mark.parametrize("commits", [False, True])
def test_bugs_in_one_file_are_told_apart_by_the_tests_that_failed(commits: bool) -> None:
    script = Script().ask("make the tests pass again").fail("./test.sh", SUITE.format("FAIL", "FAIL", "PASS"))
    script.bash("sed -i 's/sort/sort -n/' rotate.sh").edit("rotate.sh")
    script.bash("./test.sh | tail -4", SUITE.format("PASS", "PASS", "PASS"))
    if commits:
        script.bash("git commit -qam 'Make the tests pass'")
    newest, spaces = found(script.say(f"All green:\n\n{LIST}"))
    assert (newest.kind, newest.files, spaces.kind, spaces.files) == (
        "bugfix", ("rotate.sh",), "bugfix", ("rotate.sh",)
    )  # fmt: skip
    assert "sorted" in newest.text + newest.title and "quotes" not in newest.text + newest.title
    assert "quotes" in spaces.text + spaces.title and "sorted" not in spaces.text + spaces.title


@pytest.mark.parametrize(
    "said",
    [
        "- `t_newest` and `t_spaces` read the rate from the environment, which was not set.\n- There is a default now.",
        "The rate was not set, which broke:\n\n- `t_newest`\n- `t_spaces`\n\nThere is a default now.",
        "The rate was not set, which broke `t_newest`.\n\n- default added\n- `t_spaces` needed the same default",
    ],
)
def test_one_cause_of_two_failing_tests_is_one_bugfix(said: str) -> None:
    script = Script().ask("make the tests pass again").fail("./test.sh", SUITE.format("FAIL", "FAIL", "PASS"))
    script.edit("rotate.sh").bash("./test.sh", SUITE.format("PASS", "PASS", "PASS"))
    assert one(script.say(said)).kind == "bugfix"


def test_what_was_mended_is_told_though_one_test_is_left_to_ask_about() -> None:
    script = (
        Script().ask("make the tests pass again").fail("sh test.sh", SUITE.format("FAIL", "FAIL", "FAIL"))
    )
    script.edit("rotate.sh").edit("rotate.sh").fail("sh test.sh", SUITE.format("PASS", "PASS", "FAIL"))
    script.say(f"Two pass now:\n\n{LIST}\n`t_default` is left: 7 or 14 days, which one is right?")
    assert [one.kind for one in found(script)] == ["bugfix", "bugfix"]


def test_a_test_that_was_only_brought_up_to_date_is_no_bugfix() -> None:
    script = Script().ask("the test is old, bring it up to date").fail("pytest -q", RED)
    assert found(script.edit("tests/test_cart.py").bash("pytest -q", GREEN).say("All six pass.")) == []


def test_what_is_touched_up_in_a_new_feature_belongs_to_it() -> None:
    script = Script().ask("mails should wait while somebody sleeps").write("src/quiet.js", "x" * 400)
    script.bash("git add -A && git commit -qm 'Hold mails in quiet hours'")
    script.say(
        "Mails wait while the recipient has quiet hours. The hour is that of the recipient's time zone."
    )
    script.ask("and who has no time zone?").edit("src/quiet.js", "zone", "zone ?? 'UTC'")
    script.bash("git commit -qam 'Fall back to UTC'").say("A recipient without a time zone has UTC now.")
    feature = one(script)
    assert feature.title == "Hold mails in quiet hours"
    assert "UTC" in feature.text


def test_a_second_option_is_a_feature_of_its_own() -> None:
    script = Script().ask("add a --json option to list").edit("cli.py", "", "x" * 400)
    script.bash("git commit -qam 'Add --json to list'").say("`list --json` prints the list as JSON.")
    script.ask("and --csv to list as well").edit("cli.py", "a", "b" * 90)
    script.bash("git commit -qam 'Add --csv to list'").say("`list --csv` prints the list as CSV.")
    assert [one.title for one in found(script)] == ["Add --json to list", "Add --csv to list"]


@pytest.mark.parametrize(
    "asked",
    [
        "the invoice shows nearly double the tax since we moved to the new rates, can you check?",
        "station 4 should be at 20 degrees but it shows 68",
        "how come the april report has more rows than it should?",
    ],
)
def test_a_report_of_what_goes_wrong_makes_a_bugfix_even_with_the_test_first(asked: str) -> None:
    script = Script().ask(asked).edit("tests/test_cart.py", "", "x" * 200).fail("pytest -q", RED)
    script.edit("src/cart.py").bash("pytest -q", GREEN).bash("git commit -qam 'Count each row once'")
    said = "The loader added up rows that were sent again, so they counted twice. Now the later one counts."
    assert one(script.say(said)).kind == "bugfix"


def test_a_test_that_was_written_first_makes_a_feature() -> None:
    script = Script().ask("add a discount to the cart").write("tests/test_discount.py").fail("pytest -q", RED)
    script.write("src/discount.py").bash("pytest -q", GREEN)
    assert one(script.say("`discount()` takes ten percent off from ten pieces on.")).kind == "feature"


def test_a_test_that_was_written_first_for_a_bug_makes_a_bugfix() -> None:
    script = Script().ask("the total is wrong for order 12").edit("tests/test_cart.py").fail("pytest -q", RED)
    script.edit("src/cart.py").bash("pytest -q", GREEN)
    assert one(script.say("Found it. The last line was skipped; it is counted now.")).kind == "bugfix"


def test_what_breaks_in_the_middle_of_a_refactoring_is_no_bug() -> None:
    script = Script().ask("move the storage out of app.py, no change in behaviour").bash("pytest -q", GREEN)
    script.write("src/storage.py", "def load(): return 1\n").edit("src/app.py").fail("pytest -q", RED)
    script.edit("src/app.py").bash("pytest -q", GREEN).say("Loading and saving live in `src/storage.py` now.")
    refactor = one(script)
    assert refactor.kind == "refactor"
    assert "Failed before" not in refactor.text


def test_code_that_went_from_one_file_to_another_is_a_refactoring() -> None:
    body = "def first_thing():\n    return compute(1)\n\ndef second_thing():\n    return compute(2)\n"
    script = Script().ask("app.py does too much").write("src/render.py", body).edit("src/app.py", body, "")
    assert one(script.say("Both functions are in `src/render.py`.")).kind == "refactor"


def test_a_fix_without_any_test_is_told_where_the_cause_is() -> None:
    script = Script().ask("the login button doesn't do anything").edit("web/login.js")
    script.say(
        "Fixed. The handler was registered before the page was ready, because the script is in the head."
    )
    assert one(script).kind == "bugfix"


def test_a_command_that_fails_and_later_passes_counts_like_a_test() -> None:
    script = (
        Script().ask("the image does not build").fail("docker build -t shop .", "error: command 'gcc' failed")
    )
    script.edit("Dockerfile").bash("docker build -t shop . 2>&1 | tail -3", "Successfully tagged")
    bugfix = one(
        script.say("Alpine has no wheels for lxml, so pip tried to compile it. The base is slim now.")
    )
    assert bugfix.kind == "bugfix"
    assert "command 'gcc' failed" in bugfix.text


@pytest.mark.parametrize(
    "script",
    [
        Script().ask("rename x to y here").edit("src/a.py").say("Renamed `x` to `y` in the helper function."),
        Script().ask("fix the typo in the readme").edit("README.md", "a", "b" * 500).say("The typo is fixed now."),
        Script().ask("add a cache").edit("src/a.py", "", "x" * 500).say("The plan: a cache. Shall I go on?"),
        Script().ask("add a cache").edit("src/a.py", "", "x" * 500).say("It still fails, the key is wrong."),
        Script().ask("add a cache").edit("src/a.py", "", "x" * 500).fail("pytest", RED).say("The cache is in now."),
        Script().ask("try it").write("scratch/t.py").bash("rm -r scratch").say("The scratch script is deleted again."),
        Script().ask("try it").edit("src/a.py", "", "x" * 500).bash("git checkout src/a.py").say("I took it back."),
        Script().ask("look").add("Edit", {"file_path": f"{ROOT}/a.py"}, {"error": "not found"}).say("It is not there."),
        Script().ask("where is it?").fail("ls nowhere", "No such file").say("There is no such folder."),
        Script().ask("is it used?").fail("grep -r foo .", "").say("No, nothing uses it."),
        Script().ask("commit this").bash("git commit -am wip", "[main 1234567] wip").say("Committed as wip."),
        Script().ask("merge it").bash("git merge x && git commit -m 'Merge x'", "Merge made").say("Merged the branch."),
        Script().ask("fix the lint errors").fail("ruff check .", "Found 3 errors").edit("src/a.py").bash("ruff check .").say("Three unused imports are gone now."),
        Script().ask("write tests for it").write("tests/test_a.py").bash("git commit -qam 'Tests of a'").say("There are four tests of `a` now."),
        Script().ask("bump").edit("pyproject.toml").bash("git commit -am 'Bump to 1.2'").say("The version is 1.2 now."),
        Script().ask("write a script").add(
            "Write", {"file_path": "/tmp/t.py", "content": "x" * 900}, {"type": "create"}
        ).say("The script prints the sizes of all tables."),
    ],
)  # fmt: skip
def test_what_is_small_unfinished_taken_back_or_elsewhere_is_not_told(script: Script) -> None:
    assert found(script) == []


def test_one_turn_of_edits_is_one_feature_told_in_the_assistants_words() -> None:
    script = Script().ask("implement retries in the client, 3 attempts").edit("src/http.py", "", "x" * 400)
    script.edit("src/http.py").edit("src/config.py")
    feature = one(script.say("`get()` now retries three times. Only connection errors are retried."))
    assert (feature.kind, feature.title) == ("feature", "`get()` now retries three times")
    assert feature.text == "Only connection errors are retried."
    assert feature.files == ("src/http.py", "src/config.py")
    assert "get" in feature.concepts


def test_work_that_goes_on_and_is_committed_later_is_one_observation() -> None:
    script = Script().ask("move the storage out of app.py").write("src/storage.py").edit("src/app.py")
    script.say("Loading and saving live in `src/storage.py` now. Not committed yet.")
    script.ask("now the rendering too").write("src/render.py").edit("src/app.py")
    script.bash("git add -A && git commit -m 'Split app.py into storage and render'")
    script.say("app.py is down to `main()`.")
    refactor = one(script)
    assert refactor.title == "Split app.py into storage and render"
    assert set(refactor.files) == {"src/app.py", "src/render.py", "src/storage.py"}


def test_committing_what_was_told_already_tells_nothing_new() -> None:
    script = Script().ask("implement retries").write("src/retry.py").say("`retry()` tries three times now.")
    script.ask("commit it please").bash("git commit -am 'feat: retries'", "[main 1234567] feat: retries").say(
        "Done."
    )
    assert one(script).title == "`retry()` tries three times now"


def test_rewording_commits_tells_nothing_new() -> None:
    script = Script().ask("add a --json flag").edit("cli.py", "", "x" * 400)
    script.bash("git commit -qam 'Json flag'").say("`--json` prints the result as JSON.")
    script.ask("please reword the commit").bash(
        "git reset -q --soft HEAD~1 && git commit -q -m 'feat: --json'"
    )
    script.bash("git commit --amend -m 'feat: a --json flag'", "[main 1234567] feat: a --json flag").say(
        "Reworded."
    )
    assert one(script).title == "Json flag"


def test_an_amended_commit_replaces_the_one_before() -> None:
    script = Script().ask("add a --json flag").edit("cli.py", "", "x" * 400)
    script.bash("git commit -qam 'Add json flag'").say("`--json` prints the result as JSON.")
    script.ask("also for lists please").edit("cli.py").bash(
        "git commit -q --amend -m 'Add --json, lists too'"
    )
    feature = one(script.say("Lists are printed as JSON as well."))
    assert feature.title == "Add --json, lists too"


def test_a_correction_of_the_last_work_replaces_it() -> None:
    script = (
        Script().ask("cache the prices").write("src/cache.py").say("Prices are cached in a global dict now.")
    )
    script.ask("no, use the database for that").edit("src/cache.py", "a", "x" * 400)
    assert one(script.say("Prices are cached in the table `prices` now.")).title.startswith(
        "Prices are cached in the table"
    )


def test_the_commits_of_one_piece_of_work_are_one() -> None:
    script = Script().ask("add a retry helper and use it in the client").write("src/retry.py", "x = 1\n" * 90)
    script.bash("git add -A && git commit -qm 'Add retry helper'").edit("src/client.py")
    script.bash("git commit -qam 'Use retry helper in the client'").write("tests/test_retry.py")
    script.bash("git add -A && git commit -qm 'Tests for it'").edit("src/log.py")
    script.bash("git commit -qam 'Log to stderr'").say(
        "`retry()` backs off; the client uses it. Logs go to stderr."
    )
    retry, log = found(script)
    assert (retry.title, log.title) == ("Add retry helper", "Log to stderr")
    assert retry.files == ("src/retry.py", "src/client.py", "tests/test_retry.py")


def test_an_interrupted_turn_waits_for_the_next_to_finish_it() -> None:
    script = Script().ask("add a dark mode").edit("web/app.css", "", "x" * 400).ask("in the header as well")
    feature = one(script.edit("web/header.css").say("Dark mode is in, the header included."))
    assert feature.files == ("web/app.css", "web/header.css")


def test_a_session_that_broke_off_still_tells_what_was_committed() -> None:
    script = Script().ask("fix the crash on empty input").edit("src/parse.py")
    script.bash("git commit -qam 'fix: empty input'")
    store = Store()
    assert [one.title for one in store.take(script.items, (), over=True)] == ["Empty input"]
    assert store.summary is not None and "Empty input." in store.summary.completed
    before = tuple(script.items)
    script.say("Empty input gives an empty list now.")
    assert store.take(script.items[len(before) :], before) == []


@pytest.mark.parametrize(
    ("subject", "kind", "title"),
    [
        ("feat(cli): a --json flag", "feature", "A --json flag"),
        ("fix!: empty input", "bugfix", "Empty input"),
        ("refactor: storage of its own", "refactor", "Storage of its own"),
        ("Add a --json flag", "feature", "Add a --json flag"),
        ("Fix crash on empty input", "bugfix", "Fix crash on empty input"),
        ("Extract the storage", "refactor", "Extract the storage"),
        ("export: --separator for Excel", "feature", "Export: --separator for Excel"),
    ],
)
def test_a_commit_says_what_it_is(subject: str, kind: str, title: str) -> None:
    script = Script().ask("go on with the flag, an option please").edit("cli.py")
    observation = one(script.bash(f'git commit -am "{subject}"', f"[main 1234567] {subject}").say("Done."))
    assert (observation.kind, observation.title) == (kind, title)


@pytest.mark.parametrize(
    "subject", ["docs: how to install", "chore: bump", "test: more of them", "style: black"]
)
def test_chores_are_not_told(subject: str) -> None:
    assert found(Script().ask("go on").edit("cli.py").bash(f"git commit -qam '{subject}'").say("Done.")) == []


@pytest.mark.parametrize(
    ("prompt", "said", "kind"),
    [
        ("the parser is 900 lines, can you break it up? keep the api", "`parser` is now three files.", "refactor"),
        ("the dashboard is slow, make it faster", "Customers are preloaded now.", "refactor"),
        ("the app hangs when I add an account", "The lock was taken twice, because `add` calls `save`.", "bugfix"),
        ("fold the four importers into one. the output must stay the same", "The four importers are one now.", "refactor"),
        ("these are copies of the same script", "`run.sh` reads the name from its settings. All outputs are identical.", "refactor"),
        ("it should be possible to export the list", "The list is written to a file, which was missing so far.", "feature"),
        ("search returns deleted articles", "Deleted rows were never filtered out. They are left out now.", "bugfix"),
        ("users see yesterday's data after midnight", "The cache kept the date of its start. It asks on each request now.", "bugfix"),
        ("the report page", "The report was in one big file. It is a page of its own now.", "feature"),
        ("get the hard coded urls out of the code", "All urls are read from `settings.toml`, nothing else changed.", "refactor"),
        ("set the session to 12 hours", "Sessions end after 12 hours now.", "feature"),
        ("the service is down now and then. let's have the client retry", "It tries four times now.", "feature"),
    ],
)  # fmt: skip
def test_the_kind_follows_from_what_was_asked_and_said(prompt: str, said: str, kind: str) -> None:
    script = Script().ask(prompt).edit("src/a.py").edit("src/b.py").edit("src/a.py").say(said)
    assert one(script).kind == kind


def test_work_is_what_it_was_asked_for_at_first() -> None:
    script = Script().ask("let's have the client retry on 503. tests first").write("tests/test_retry.py")
    script.fail("pytest -q", RED).edit("src/client.py", "", "x" * 400).bash("pytest -q", GREEN)
    script.say("503 is tried again four times. Not committed yet.")
    script.ask("we must not ship a parcel twice!! leave POST alone").edit("src/client.py", "a", "b")
    script.bash("git commit -qam 'Retry transient errors'").say("POST is left alone.")
    assert one(script).kind == "feature"


def test_what_programs_make_is_nobodys_edit() -> None:
    made = [
        "src/__pycache__/a.pyc",
        "node_modules/x/index.js",
        "dist/app.js",
        "package-lock.json",
        ".coverage",
    ]
    changed = [f"{ROOT}/{file}" for file in ("src/cart.py", *made)]
    script = Script().ask("the tests are red").fail("pytest -q", RED)
    script.bash("sed -i s/a/b/ src/cart.py", bashEditDiff={"changedFiles": changed}).bash("pytest -q", GREEN)
    bugfix = one(script.say("The total left out the last line, because the loop ended early."))
    assert bugfix.files == ("src/cart.py",)


# --- reading Bash -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "output", "subjects"),
    [
        ("git commit -m 'One thing'", {"output": ""}, ["One thing"]),
        ('git add -A && git commit -qam "Say \\"hi\\""', {"output": ""}, ['Say "hi"']),
        (
            "git commit -m x",
            {"output": "[main (root-commit) 1234567] The truth\n 1 file changed"},
            ["The truth"],
        ),
        ("git commit -m a", {"error": "Exit code 1\n[main 1234567] A\nremote: rejected"}, ["A"]),
        ("git commit -m a", {"error": "Exit code 1\nhook failed"}, []),
        ("git commit -m a", {"output": "On branch main\nnothing to commit"}, []),
        ("git commit -F - <<'EOF'\nSubject\n\nBody.\nEOF", {"output": ""}, ["Subject"]),
        ("git commit -m \"$(cat <<'EOF'\nSubject\n\nBody.\nEOF\n)\"", {"output": ""}, ["Subject"]),
        ("git -C /x commit --message='One'", {"output": ""}, ["One"]),
        ("git commit -m A && git commit -m B", {"output": ""}, ["A", "B"]),
        ("python -m unittest -q && git commit -qam 'Once'", {"output": ""}, ["Once"]),
        ("git commit \\\n  -m 'Once' -- a.py && python -m pytest -m slow", {"output": ""}, ["Once"]),
        ("echo 'git commit -m no'", {"output": "git commit -m no"}, []),
        ("git log --grep commit -m", {"output": ""}, []),
        ("cat <<EOF\ngit commit -m 'no'\nEOF", {"output": ""}, []),
    ],
)
def test_commits_are_read_from_commands(command: str, output: dict[str, Any], subjects: list[str]) -> None:
    assert [commit.subject for commit in commands.read({"command": command}, output).commits] == subjects


def test_the_body_of_a_commit_is_read_without_its_trailers() -> None:
    command = "git commit -m 'One' -m 'Because of two.' -m 'Co-Authored-By: Claude <noreply@anthropic.com>'"
    (commit,) = commands.read({"command": command}, {"output": ""}).commits
    assert commit.body == "Because of two."


@pytest.mark.parametrize(
    ("command", "output", "passed", "names"),
    [
        ("pytest -q", {"output": "3 passed in 0.1s"}, True, ()),
        ("python -m pytest -q | tail -1", {"output": "1 failed, 3 passed"}, False, ("tests",)),
        ("uv run pytest tests", {"error": f"Exit code 1\n{RED}"}, False, ("tests/test_cart.py::test_total",)),
        ("npm test", {"output": "# pass 4\n# fail 0"}, True, ()),
        ("npm run test:unit", {"output": "not ok 2 - adds up\n# pass 1\n# fail 1"}, False, ("adds up",)),
        ("npx jest", {"error": "Exit code 1\n  ● cart › adds up\nTests: 1 failed, 2 passed"}, False, ("cart › adds up",)),
        ("go test ./...", {"output": "ok  \tshop/cart\t0.1s"}, True, ()),
        ("go test ./...", {"error": "Exit code 1\n--- FAIL: TestTotal (0.00s)\nFAIL"}, False, ("TestTotal",)),
        ("cargo test", {"output": "test cart::total ... FAILED\ntest result: FAILED. 1 passed; 1 failed"}, False, ("cart::total",)),
        ("python manage.py test", {"error": "Exit code 1\nFAIL: test_total (cart.Tests)\nFAILED (failures=1)"}, False, ("test_total (cart.Tests)",)),
        ("make check", {"error": "Exit code 2\nmake: *** [check] Error 2"}, False, ("tests",)),
        ("mix test", {"output": "12 tests, 0 failures"}, True, ()),
        ("mix test", {"error": "Exit code 2\n  1) test keeps rows (ImporterTest)\n2 tests, 1 failure"}, False, ("keeps rows",)),
        ("npm run build", {"error": "Exit code 1\nerror: no such module"}, False, ("npm run build",)),
    ],
)  # fmt: skip
def test_checks_are_read_from_commands(
    command: str, output: dict[str, Any], passed: bool, names: tuple[str, ...]
) -> None:
    check = commands.read({"command": command}, output).check
    assert check is not None
    assert (check.passed, check.names) == (passed, names)


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "cat x | grep y",
        "git status",
        "python -c 'import redis'",
        "which redis || echo none",
        "# pytest",
    ],
)
def test_what_only_looks_is_no_check(command: str) -> None:
    assert commands.read({"command": command}, {"error": "Exit code 1\nerror: no"}).check is None
