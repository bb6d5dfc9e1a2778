"""What a person chose about sections, kept as comments in the file."""

from __future__ import annotations

import time

import pytest

from backstory.claude_md.write import settings
from backstory.claude_md.write.dynamic import with_views
from backstory.claude_md.write.settings import Settings
from backstory.errors import BadInput
from backstory.model import Command

BOTH = b"<!-- backstory: off patterns, git-insights -->\n<!-- backstory: command test = make check -->\n"
CHOSEN = Settings(("patterns", "git-insights"), {"test": ("make check",)})


def test_settings_are_read_from_comments_of_their_own() -> None:
    assert settings.read(b"# Mine\n\n" + BOTH + b"more\n") == CHOSEN


def test_what_is_written_is_read_back_and_all_else_stays() -> None:
    text = b"# Mine\n\ntext without an end"
    chosen = Settings(
        ("patterns",), {"build": ("npx @scope/tool build", "make -j2"), "test": ("a --b",), "lint": ()}
    )
    written = settings.write(text, chosen)
    assert written.startswith(text)
    assert settings.read(written) == chosen
    assert settings.write(written, chosen) == written
    assert settings.write(written, Settings()).rstrip() == text


def test_settings_that_change_stay_where_a_person_put_them() -> None:
    written = settings.write(b"# Mine\n" + BOTH + b"below\n", Settings(("conventions",)))
    assert written == b"# Mine\n<!-- backstory: off conventions -->\nbelow\n"


def test_settings_have_the_line_breaks_of_the_file() -> None:
    assert settings.write(b"# Mine\r\n", Settings(("patterns",))).endswith(b"patterns -->\r\n")
    assert settings.read(BOTH.replace(b"\n", b"\r\n")) == CHOSEN


def test_settings_stand_above_the_section_of_docmem() -> None:
    text = with_views(b"# Mine\n", [("handbook", "How")])
    written = settings.write(text, CHOSEN)
    assert settings.read(written) == CHOSEN
    assert written.index(b"backstory: off") < written.index(b"# DOCMEM Dynamic")


@pytest.mark.parametrize(
    "around",
    [
        b"```\n%s```\n",
        b"```\n%s",
        b"<!-- MANUAL -->\n%s<!-- END MANUAL -->\n",
        b"<!-- AUTO-MANAGED: patterns -->\n%s<!-- END AUTO-MANAGED -->\n",
        b"    %s",
    ],
)
def test_a_line_in_something_else_is_text(around: bytes) -> None:
    line = b"<!-- backstory: off conventions -->\n"
    assert settings.read(b"# Mine\n\n" + around % line) == Settings()


@pytest.mark.parametrize(
    "line",
    [
        "off nonsense, ../../etc/passwd",
        "off",
        "command deploy = rm -rf /",
        "command test",
        "command test = a\x1b[31mred",
        "command test = a\u202eb",
        "command test = a --> b",
        "command test = <!-- AUTO-MANAGED: patterns",
        "command test = " + "x" * 201,
        "command test = " + "x" * 100_000,
        "by program, digest 3f9a1c0b7e21",
        "run test = make",
    ],
)
def test_hostile_lines_say_nothing(line: str) -> None:
    assert settings.read(f"# Mine\n<!-- backstory: {line} -->\n".encode()) == Settings()


def test_of_many_commands_of_a_role_few_are_taken() -> None:
    lines = "".join(f"<!-- backstory: command test = make t{number} -->\n" for number in range(1_000))
    assert settings.read(lines.encode()).commands == {"test": tuple(f"make t{number}" for number in range(5))}


@pytest.mark.parametrize(
    "piece", [b"<!-- backstory: off ", b"<!-- backstory: command test = -", b" - --", b"\n"]
)
def test_reading_takes_time_in_proportion_to_the_text(piece: bytes) -> None:
    began = time.monotonic()
    settings.read(piece * (1_000_000 // len(piece)))
    assert time.monotonic() - began < 5


def test_a_command_of_a_person_replaces_those_of_its_role() -> None:
    found = [Command("build", "make", "Makefile"), Command("test", "make test", "Makefile")]
    corrected = Settings(commands={"test": ("make check",), "build": ()}).corrected(found)
    assert corrected == (Command("test", "make check", ""),)


@pytest.mark.parametrize("given", ["test", "deploy=x", "test=a\nb", "test=a --> b", "test=" + "x" * 300])
def test_what_is_no_command_is_refused(given: str) -> None:
    with pytest.raises(BadInput):
        settings.command(given)


def test_a_secret_in_a_command_is_not_kept() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    assert secret not in settings.command(f"test=GITHUB_TOKEN={secret} make check")[1]


@pytest.mark.parametrize(
    "line",
    [
        b"<!-- backstory: off the record, this is great -->",
        b"<!-- backstory: of patterns -->",
        b"<!-- backstory: command the fleet = yes -->",
        b"<!-- backstory: remember the milk -->",
    ],
)
def test_a_comment_that_only_begins_like_a_setting_stays_and_is_told_of(line: bytes) -> None:
    text = b"# Ours\n" + line + b"\n<!-- backstory: off patterns -->\n"
    assert settings.read(text).off == ("patterns",)
    assert settings.misread(text) == [2]
    changed = settings.write(text, settings.Settings(("git-insights",), {}))
    assert line in changed
    assert settings.read(changed).off == ("git-insights",)


def test_more_commands_of_a_role_than_are_read_stay_where_they_are() -> None:
    lines = [f"<!-- backstory: command run = ./run{number} -->\n".encode() for number in range(7)]
    text = b"# Ours\n" + b"".join(lines)
    assert len(settings.read(text).commands["run"]) == settings.MOST_OF_A_ROLE
    assert settings.misread(text) == [7, 8]
    changed = settings.write(text, settings.with_choices(settings.read(text), ["patterns"], [], {}))
    assert all(line in changed for line in lines)
