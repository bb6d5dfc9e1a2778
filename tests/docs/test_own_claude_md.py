"""This repository's own AGENTS.md and CLAUDE.md: written by `backstory init`, and still true."""

from __future__ import annotations

from pathlib import Path

from backstory.claude_md.learn import learn, texts_of
from backstory.claude_md.write import sections, settings
from tests.conftest import REPOSITORY

AGENTS = Path(REPOSITORY) / "AGENTS.md"


def test_what_our_own_file_says_is_what_a_sync_would_write() -> None:
    text = AGENTS.read_bytes()
    parsed = sections.parse(text)
    assert not parsed.problems
    assert [section.name for section in parsed.sections] == ["architecture", "conventions"]
    known = learn(str(REPOSITORY), wanted=[section.name for section in parsed.sections])
    texts = texts_of(known, "", settings.read(text))
    for section in parsed.sections:
        new = sections.cleaned(texts[section.name])
        hint = f"{section.name} is behind; `backstory sync --yes` in a checkout brings it up to date"
        assert sections.same(sections.body(text, section), new), hint


def test_claude_code_reads_the_same_file_as_other_agents() -> None:
    # Not at the root, where `claude plugin validate --strict` takes it for a part of the plugin.
    assert (Path(REPOSITORY) / ".claude" / "CLAUDE.md").read_text("utf-8") == "@../AGENTS.md\n"
