"""Three red tests with two causes, and a rule about commit messages that the first commit did not follow."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, turn

ROOT = "/home/dev/weatherbox"

AUTH = """
import json
from datetime import date


class Token:
    def __init__(self, value, expires):
        self.value = value
        self.expires = expires

    @classmethod
    def from_file(cls, path):
        with open(path) as file:
            found = json.load(file)
        return cls(found["value"], date.fromisoformat(found["expires"]))

    def is_valid(self):
        return date.today() <= self.expires

    def header(self):
        if not self.is_valid():
            raise PermissionError(f"token expired on {self.expires}")
        return {"Authorization": f"Bearer {self.value}"}
"""
CACHE = '''
"""Forecasts are kept for an hour, a file each."""


def key(station, day):
    return f"{abs(hash((station, day))) % 10**8:08d}"
'''
UNITS = """
def fahrenheit(celsius):
    return round(celsius * 9 / 5 + 32, 1)
"""
TEST_AUTH = """
from pathlib import Path

from weatherbox.auth import Token

FIXTURE = Path(__file__).parent / "token.json"


def test_a_token_is_valid_until_it_expires():
    assert Token.from_file(FIXTURE).is_valid()


def test_header():
    assert Token.from_file(FIXTURE).header() == {"Authorization": "Bearer not-a-real-one"}
"""
TEST_CACHE = """
from weatherbox.cache import key
from weatherbox.units import fahrenheit


def test_the_key_is_the_same_in_every_process():
    assert key("berlin", "2026-03-01") == "44061216"


def test_keys_differ():
    assert key("berlin", "2026-03-01") != key("bonn", "2026-03-01")


def test_fahrenheit():
    assert fahrenheit(100) == 212.0
"""

SCENARIO = Scenario(
    project="weatherbox",
    began="2026-03-16T07:55:00",
    first_commit="chore: import weatherbox",
    files={
        "weatherbox/__init__.py": "",
        "weatherbox/auth.py": AUTH,
        "weatherbox/cache.py": CACHE,
        "weatherbox/units.py": UNITS,
        "tests/test_auth.py": TEST_AUTH,
        "tests/test_cache.py": TEST_CACHE,
        "tests/token.json": '{"value": "not-a-real-one", "expires": "2026-03-15"}\n',
        ".gitignore": "__pycache__/\n.pytest_cache/\n.hypothesis/\n",
    },
    turns=(
        turn(
            "CI is red since tonight, nobody pushed anything. pls have a look",
            bash("git log --oneline -5; git status --short", "What changed last?"),
            bash("python -m pytest -q --tb=short", "Run the tests"),
            read(f"{ROOT}/tests/test_auth.py"),
            read(f"{ROOT}/weatherbox/auth.py"),
            bash("cat tests/token.json; date +%Y", "When does the token in the fixture expire?"),
            edit(
                f"{ROOT}/weatherbox/auth.py",
                "    def is_valid(self):\n        return date.today() <= self.expires",
                "    def is_valid(self, today=None):\n        return (today or date.today()) <= self.expires",
            ),
            edit(
                f"{ROOT}/weatherbox/auth.py",
                "    def header(self):\n        if not self.is_valid():",
                "    def header(self, today=None):\n        if not self.is_valid(today):",
            ),
            edit(
                f"{ROOT}/tests/test_auth.py",
                "from pathlib import Path\n",
                "from datetime import date\nfrom pathlib import Path\n",
            ),
            edit(
                f"{ROOT}/tests/test_auth.py",
                "    assert Token.from_file(FIXTURE).is_valid()",
                "    token = Token.from_file(FIXTURE)\n    assert token.is_valid(date(2026, 3, 15))\n"
                "    assert not token.is_valid(date(2026, 3, 16))",
            ),
            edit(f"{ROOT}/tests/test_auth.py", "header() ==", "header(date(2026, 3, 1)) =="),
            bash("python -m pytest -q tests/test_auth.py", "Run the tests of auth"),
            bash("git commit -qam 'Tests no longer depend on the date of the token fixture'", "Commit"),
            read(f"{ROOT}/weatherbox/cache.py"),
            bash(
                'for i in 1 2 3; do python -c \'from weatherbox.cache import key; print(key("berlin", "2026-03-01"))\'; done'
            ),
            bash(
                "grep -rn PYTHONHASHSEED . --include=*.yml --include=*.toml --include=*.cfg",
                "Was the seed fixed somewhere?",
            ),
            edit(
                f"{ROOT}/weatherbox/cache.py",
                'def key(station, day):\n    return f"{abs(hash((station, day))) % 10**8:08d}"',
                "import zlib\n\n\ndef key(station, day):\n    return f\"{zlib.crc32(f'{station} {day}'.encode()) % 10**8:08d}\"",
            ),
            bash("python -m pytest -q", "Run all tests"),
            bash('python -c \'from weatherbox.cache import key; print(key("berlin", "2026-03-01"))\''),
            read(f"{ROOT}/tests/test_cache.py"),
            bash(
                'k=$(python -c \'from weatherbox.cache import key; print(key("berlin", "2026-03-01"))\'); '
                'sed -i "s/44061216/$k/" tests/test_cache.py && git diff --stat && python -m pytest -q',
                "Expect the new key",
            ),
            bash("git commit -qam 'Cache keys by crc32, the same in every process'", "Commit"),
            say(
                """Green again: 5 passed. There were two separate problems.

1. **Expired fixture.** `tests/token.json` expired on 2026-03-15 and `Token.is_valid()` compared with the real date, so
   two tests started to fail at midnight. `is_valid` and `header` take the date as an argument now and the tests pass
   a fixed one.
2. **Cache keys.** `cache.key` used the built-in `hash()`, which Python randomizes in every process. CI must have had
   PYTHONHASHSEED set at some point, since the expected value only holds for one seed. In production it means that the
   cache never hit after a restart. Keys are made with `zlib.crc32` now; files under old keys are just never found again
   and expire."""
            ),
        ),
        turn(
            "great find with the hash thing!! but we use conventional commits in this repo (fix: ..., test: ...), "
            "commitlint will reject these two. can you reword",
            bash("git rebase -i HEAD~2", "Reword both"),
            bash(
                "git reset -q --soft HEAD~1 && git commit -q -m 'fix: cache keys by crc32, the same in every process' && "
                "git log --format=%s -3",
                "Reword the newest one",
            ),
            bash(
                "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/reword/' GIT_EDITOR=\"sed -i '1s/.*/test: no longer depend on the date "
                "of the token fixture/'\" git rebase -q -i HEAD~2 && git log --format=%s -3",
                "Reword the older one",
            ),
            say(
                "Reworded: `test: no longer depend on the date of the token fixture` and `fix: cache keys by crc32, the same "
                "in every process`. Nothing was pushed yet, so no force push is needed."
            ),
        ),
    ),
)
