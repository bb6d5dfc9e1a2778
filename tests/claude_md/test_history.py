"""What commits say: files that change, decisions and habits, and only where it is strong."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from backstory.claude_md.read.history import LONGEST, Commit, insights, parse
from backstory.model import Insights


def made(
    subject: str,
    *files: str,
    body: str = "",
    author: str = "Ada",
    email: str = "ada@example.org",
    short: str = "abc1234",
) -> Commit:
    changed = [(name.partition("=")[2] or name, name.partition("=")[0]) for name in files]  # before=now
    return Commit(
        short,
        "2026-01-31",
        author,
        email,
        subject,
        body,
        tuple(("M" if path == before else "R", path, before) for path, before in changed),
    )


def of(*commits: Commit) -> Insights:
    return insights(commits, lambda _: True)


def decided(subject: str, body: str = "") -> Sequence[str]:
    return [text for _, _, text in of(made(subject, body=body)).decisions]


# Files.


def test_files_that_change_often_come_first_and_rare_ones_not_at_all() -> None:
    found = of(
        *[made("x", "b.py")] * 3, *[made("x", "a.py")] * 5, *[made("x", "c.py")] * 2, made("x", "d.py")
    )
    assert found.hot == (("a.py", 5), ("b.py", 3))


def test_at_most_ten_files_are_hot() -> None:
    assert len(of(*[made("x", *(f"{number}.py" for number in range(20)))] * 3).hot) == 10


@pytest.mark.parametrize(
    "path",
    """package-lock.json web/yarn.lock Cargo.lock go.sum CHANGELOG.md docs/changes.rst NEWS HISTORY.txt
    version.py VERSION CLAUDE.md src/AGENTS.md .claude/settings.json node_modules/a/b.js vendor/x.go
    api_pb2.py api.pb.go app.min.js dist/app.js __snapshots__/a.snap .changeset/new.md""".split(),
)
def test_what_changes_with_everything_or_is_made_is_not_hot(path: str) -> None:
    assert of(*[made("x", path, "a.py")] * 4).hot == (("a.py", 4),)


def test_a_name_that_cannot_be_printed_is_left_out() -> None:
    bad = ("new\nline.py", "bell\x07.py", "\udce4.py", "\u202egnp.py")
    assert of(*[made("x", "a.py", *bad)] * 4).hot == (("a.py", 4),)


def test_two_files_belong_together_where_each_seldom_changes_alone() -> None:
    found = of(
        *[made("x", "model.py", "schema.sql")] * 4,
        made("x", "model.py"),
        *[made("x", "main.py", "rare.py")] * 3,
        *[made("x", "main.py")] * 9,
        *[made("x", "once.py", "twice.py")] * 2,
    )
    assert found.together == (("model.py", "schema.sql", 4),)


def test_a_commit_of_many_files_says_nothing_about_them() -> None:
    many = [f"{number}.py" for number in range(31)]
    found = of(*[made("Format everything", *many)] * 5)
    assert (found.hot, found.together) == ((), ())
    assert of(*[made("x", *many[:30])] * 5).together


def test_a_file_is_counted_by_the_name_that_it_has_now() -> None:
    found = of(
        made("Newest", "c.py"),
        made("Second move", "b.py=c.py"),
        made("x", "b.py"),
        made("First move", "a.py=b.py"),
        *[made("x", "a.py")] * 2,
    )
    assert found.hot == (("c.py", 6),)


def test_an_older_file_of_the_same_name_is_another() -> None:
    added = Commit("1", "2026-01-31", "Ada", "a@b", "Add", "", (("A", "a.py", "a.py"),))
    found = of(made("Move", "a.py=b.py"), *[made("x", "a.py")] * 2, added, *[made("x", "a.py")] * 3)
    assert dict(found.hot) == {"b.py": 4, "a.py": 3}


def test_what_a_bot_commits_does_not_count() -> None:
    bot = made("Use left-pad instead of right-pad", "a.py", author="dependabot[bot]")
    other = made(
        "Use x instead of y", "a.py", author="CI", email="41898282+github-actions[bot]@users.example"
    )
    found = of(*[bot] * 5, *[other] * 5)
    assert found == Insights((), (), (), ())


# Decisions.


@pytest.mark.parametrize(
    "subject",
    [
        "Use SQLite instead of flat files",
        "feat(db): use asyncpg rather than psycopg",
        "refactor: replace requests with httpx",
        "Switch the build from setuptools to hatchling",
        "Switched CI over to GitHub Actions",
        "Migrate to TypeScript",
        "Drop support for Python 3.8",
        "Drop Python 3.9",
        "Adopt ruff",
        "Move away from Redux",
        "Deprecate the v1 endpoints",
        "Standardize on pnpm",
        "Stop writing bytecode",
        "Remove moment.js in favor of date-fns",
        "Require Node 20",
        "Prefer composition over inheritance in widgets",
        "Decided to keep one binary",
        "feat(api)!: return 404 for unknown ids",
        "Enable WAL and use it by default",
        "chore: switch from npm to yarn",
        "Move CI from CircleCI to GitHub Actions",
        "Convert the project to ES modules",
        "Disallow `any`",
        "feat!: drop node 14",
        "deprecate `__version__`",
    ],
)
def test_a_subject_that_chooses_is_a_decision(subject: str) -> None:
    assert decided(subject) == [subject]


@pytest.mark.parametrize(
    "subject",
    [
        "Fix crash on empty input",
        "Add tests for the parser",
        "Update README",
        "Drop unused import",
        "Remove dead code",
        "docs: use sphinx instead of mkdocs in an example",
        "Bump lodash from 4.17.20 to 4.17.21",
        "Release 2.0",
        "A hit takes no longer than a second",
        "What a tree is called by default is said once",
        "A version comes back out instead of being replaced",
        "Merge branch 'main' into feature",
        "style: replace tabs with spaces",
        "Move helper to utils",
        "Improve error messages",
        "Drop shadow on cards",
        "drops invalid packets",
        "Pin dependencies",
        "Require confirmation before deleting",
        "Stop the spinner when a command fails",
        "Convert string to f-string",
        "replace assertEquals with assertEqual",
        "refactor: replace var with const",
        "Fix bug: use len() instead of count()",
        "fix(parser): replace a regex with another",
        "Use self instead of cls",
        "Remove deprecated options",
        "Switch statement to handle null",
        "Switch tooltips off",
        "Migrate the database to version 42",
        "Port changes from upstream",
        "Make the cursor move over to the next line",
        "Add an option to use HTTP/2 by default",
    ],
)
def test_a_subject_that_does_work_is_none(subject: str) -> None:
    assert decided(subject) == []


def test_the_reason_comes_along_where_the_message_gives_one() -> None:
    assert decided(
        "Keep one connection a call.",
        "A pool was tried.\n\nIt goes because another process may replace\nthe file. So there.\n",
    ) == ["Keep one connection a call: It goes because another process may replace the file."]
    assert decided("Fix the parser", "It failed because of a bug.") == []
    assert decided("Rework ids", "Decision: ids are never reused\n\nSigned-off-by: A") == [
        "Rework ids: ids are never reused"
    ]
    assert decided("Rework ids", "BREAKING CHANGE: ids are strings\nnow") == [
        "Rework ids: ids are strings now"
    ]


def test_a_decision_is_one_bounded_line_of_plain_text() -> None:
    (text,) = decided("Use a\x1b[2J instead of b", "It is \x00so because\u202e\r\nof this.")
    assert text.isprintable() and "\n" not in text
    (cut,) = decided("Use x instead of y " + "word " * 100)
    assert len(cut) <= LONGEST and cut.endswith("word…")


def test_what_was_taken_back_is_no_decision_any_more() -> None:
    found = of(
        made('Revert "Use Redis instead of SQLite"'),
        made("Adopt ruff", short="2"),
        made("Use Redis instead of SQLite"),
        made("Adopt ruff", short="1"),
    )
    assert found.decisions == (("2026-01-31", "2", "Adopt ruff"),)


def test_at_most_eight_decisions_are_told_and_the_newest_first() -> None:
    found = of(*(made(f"Adopt tool {number}", short=str(number)) for number in range(20)))
    assert [short for _, short, _ in found.decisions] == [str(number) for number in range(8)]


# Habits.


def habits(*subjects: str, body: str = "") -> str:
    return " ".join(of(*(made(subject, body=body) for subject in subjects)).habits)


VERBS = ("Add", "Fix", "Remove", "Update")


def test_nothing_is_said_about_few_commits_or_about_no_habit() -> None:
    assert habits(*["feat: add it"] * 9) == ""
    mixed = ["Added x", "fix y", "Removes the z.", "feat: w", "JIRA-1 v", "u " * 50]
    assert habits(*mixed * 5, body="") == "Messages are a single line."


def test_conventional_commits_are_noticed_with_types_and_scopes() -> None:
    said = habits(
        *["feat(api): add x", "fix(cli): handle y", "docs(api): mention z", "fix(api)!: drop w"] * 5
    )
    assert "`type(scope): subject`; types: `docs`, `feat`, `fix`." in said
    assert "Usual scopes: `api`, `cli`." in said
    assert "in the imperative" in said
    plain = habits(*["feat: add x", "fix: handle y"] * 8)
    assert "`type: subject`; types: `feat`, `fix`." in plain and "scopes" not in plain
    assert "small letter" in plain


def test_a_type_is_told_if_a_tenth_of_the_commits_have_it() -> None:
    said = habits(*["feat: add x"] * 14, *["fix: handle y"] * 3, *["perf: reduce z"] * 2, "ci: run w")
    assert "`type: subject`; types: `feat`, `fix`, `perf`." in said


def test_subjects_that_name_the_part_they_change_are_noticed() -> None:
    said = habits(*[f"net/http: {verb.lower()} the client" for verb in VERBS] * 4)
    assert "as in `net/http: ...`" in said and "imperative" in said


@pytest.mark.parametrize(
    ("words", "mood"),
    [
        (VERBS, "imperative"),
        (("Added", "Fixed", "Removed", "Dropped", "Simplified"), "past tense"),
        (("Adds", "Fixes", "Removes", "Simplifies"), "third person"),
    ],
)
def test_the_mood_of_subjects_is_noticed(words: tuple[str, ...], mood: str) -> None:
    said = habits(*[f"{word} the thing" for word in words] * 4)
    assert f"in the {mood}" in said and "capital letter" in said and "50 characters" in said


def test_references_and_sign_offs_are_noticed() -> None:
    assert "pull request" in habits(*["Add x (#12)"] * 12)
    assert "`SHOP-123`" in habits(*["SHOP-7 add x"] * 12)
    assert "as in `#123`" in habits(*["Add x"] * 12, body="Fixes #9")
    signed = habits(*["Add x"] * 12, body="Signed-off-by: Ada <ada@example.org>")
    assert "signed off" in signed and "single line" in signed
    assert "explains the change" in habits(*["Add x"] * 12, body="It was missing.")
    assert "72 characters" in habits(*["Add " + "x" * 60] * 12)


# What git prints.


def test_the_log_is_read_by_position_and_not_by_what_it_says() -> None:
    sha = "0123456789abcdef0123456789abcdef01234567"
    one = f"{sha}|0123456|2026-01-31|Ada|a@b|M|A body\nwith lines\n|\nM|A|R087|{sha}|D|A|new\nline|"
    log = f"{one}|{sha}|7|d|n|e|empty||".replace("|", "\0").encode()
    first, second = parse(log)
    assert first.subject == "M" and first.body == "A body\nwith lines\n"
    assert first.files == (("M", "A", "A"), ("R", "D", sha), ("A", "new\nline", "new\nline"))
    assert (second.subject, second.files) == ("empty", ())
    assert list(parse(b"")) == []


def test_hostile_messages_take_no_time() -> None:
    nasty = [
        made("use " * 1_000, body="because " * 500),
        made("replace " + "a " * 2_000, body="." * 4_000),
        made("a/" * 2_000 + ": x", body="a-" * 2_000),
        made("feat(" * 800, body="Decision: " + "\n \n" * 1_000),
        made("switch " * 500, body="-b" * 2_000 + ": "),
    ]
    start = time.perf_counter()
    of(*nasty * 60)
    assert time.perf_counter() - start < 2
