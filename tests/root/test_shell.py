"""Reading a command line into commands and operators; what they mean is tested where that is decided."""

from __future__ import annotations

import pytest

from backstory.shell import Command, read, without_prefix


def commands(line: str) -> list[Command]:
    return [step for step in read(line) if isinstance(step, Command)]


def texts(line: str) -> list[list[str] | str]:
    return [step if isinstance(step, str) else [word.text for word in step] for step in read(line)]


@pytest.mark.parametrize(
    ("line", "steps"),
    [
        ("a 'b c' \"d\"", [["a", "b c", "d"]]),
        ("a && b || c; d | e & f", [["a"], "&&", ["b"], "||", ["c"], ";", ["d"], "|", ["e"], "&", ["f"]]),
        ("a\nb", [["a"], "\n", ["b"]]),
        ("a \\\n  b", [["a", "b"]]),
        ("FOO=1 \\\n  a", [["FOO=1", "a"]]),
        ("a # b\nc", [["a"], "\n", ["c"]]),
        ("(a)", ["(", ["a"], ")"]),
        ("a 2>&1 >out <in &>all b", [["a", "b"]]),
    ],
)
def test_a_line_is_commands_with_operators_between_them(line: str, steps: list[list[str] | str]) -> None:
    assert texts(line) == steps


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("$HOME/x", "$HOME/x"),
        ("a$(b 'c d')e", "a$(b 'c d')e"),
        ('"a $b `c` ${d}"', "a $b `c` ${d}"),
        ('"$(cat <<\'EOF\'\nsay "it"\nEOF\n)"', "$(cat <<'EOF'\nsay \"it\"\nEOF\n)"),
    ],
)
def test_a_substitution_stands_in_its_word_as_it_is_written(line: str, text: str) -> None:
    ((word,),) = commands(line)
    assert (word.text, word.is_known) == (text, False)


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("a > out.txt", ["out.txt"]),
        ("a >>out.txt b > 'other one'", ["out.txt", "other one"]),
        ("a 2> errors 1>out.txt", ["errors", "out.txt"]),
        ("a &> all", ["all"]),
        ("a >| out.txt", ["out.txt"]),
        ("a 2>&1", []),
        ("a < in", []),
        ("echo '> no'", []),
    ],
)
def test_the_files_that_the_output_goes_to(line: str, files: list[str]) -> None:
    (command,) = commands(line)
    assert [word.text for word in command.writes] == files


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("a < in > out", ["in"]),
        ("a <<< 'b c'", ["b c"]),
        ("a <(b 'c d') e", ["<(b 'c d')"]),
        ("a > >(b) c", [">(b)"]),
        ("< in", ["in"]),
    ],
)
def test_what_a_command_reads_from(line: str, texts: list[str]) -> None:
    (command,) = commands(line)
    assert [word.text for word in command.reads] == texts


def test_an_array_stands_in_its_word_as_it_is_written() -> None:
    ((word, last),) = commands("files=(a 'b c') d")
    assert (word.text, word.is_known, last.text) == ("files=(a 'b c')", False, "d")


def test_a_here_document_belongs_to_the_command_that_reads_it() -> None:
    first, second, third = commands("cat <<'A' > x && tac <<-B\none $x\nA\n\ttwo\n\tB\nlast")
    assert (first.document, second.document, third.document) == ("one $x", "\ttwo", None)


def test_a_here_document_that_never_comes_is_empty() -> None:
    (command,) = commands("cat <<EOF")
    assert command.document == ""


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("FOO=1 BAR='a b' make", ["make"]),
        ("sudo -u me -- make test", ["make", "test"]),
        ("timeout -k 5 10 make", ["make"]),
        ("! env A=1 nice -n 5 make", ["make"]),
        ("command -v make", []),
        ("$sudo make", ["$sudo", "make"]),
    ],
)
def test_what_stands_before_a_command_is_no_part_of_it(line: str, left: list[str]) -> None:
    (command,) = commands(line)
    assert [word.text for word in without_prefix(command)] == left
