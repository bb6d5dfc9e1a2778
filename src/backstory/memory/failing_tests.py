"""The names of tests in what a test runner prints of those that failed. Pure."""

from __future__ import annotations

import re

MOST = 50  # names of one output
LONGEST = 200  # characters of one
APART = " / "  # between the lines of an error that is kept

_NAMED = re.compile(
    r"^\s*(?:"
    r"(?:FAILED|ERROR) (?P<pytest>\S+::\S+)"
    r"|(?P<verbose>\S+\.py::\S+) (?:FAILED|ERROR)\b"
    r"|(?:FAIL|ERROR): (?P<unittest>test\w+ \([\w.]+\))"
    r"|--- FAIL: (?P<go>\S+)"
    r"|test (?P<cargo>\S+) \.\.\. FAILED"
    r"|● (?P<jest>(?!Console\b|Test suite failed|Cannot log)\S.*?)"
    r"|[✕✗×] (?P<vitest>\S.*?)(?: \(?\d+(?:\.\d+)? ?m?s\)?)?"
    r"|(?:FAIL|❯) +(?P<file>\S+\.(?:test|spec)\.[cm]?[jt]sx?(?: > .*?)?)(?: \(.*\))?"
    r"|rspec \S+:\d+ # (?P<rspec>\S.*?)"
    r")\s*$|^\s*(?:FAILED|ERROR) (?P<reason>\S+::\S+) - |^\s*--- FAIL: (?P<timed>\S+) \("
)


def names(output: str) -> list[str]:
    """Of the tests that failed, as the runner names them, each once."""
    found: dict[str, None] = {}
    for line in output.replace(APART, "\n").splitlines():
        named = _NAMED.match(line[: 2 * LONGEST])
        if named and (name := next(filter(None, named.groups()), "")) and len(name) <= LONGEST:
            found[" ".join(name.split())] = None
    return list(found)[:MOST]
