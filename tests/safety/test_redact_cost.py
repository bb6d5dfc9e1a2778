"""What redaction costs: linear time for hostile input, next to nothing for the rest."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from backstory.safety.redact import PATTERNS, redact
from tests.helpers.growth import assert_linear, processor_time
from tests.helpers.secret_texts import BEGIN

pytestmark = pytest.mark.slow

HOSTILE = {
    "one letter": "a",
    "password=": "password=",
    "begin marks": "-----BEGIN ",
    "private key marks": f"{BEGIN}PRIVATE KEY-----",
    "half a url": "://a:a",
    "curl": "curl ",
    "mysql": "mysql ",
    "private": "<private>",
    "private and closed": "<private>a</private>",
    "half a private tag": "<private",
    "private tag without an end": "<private a=b",
    "cookies": "cookie: a=b; ",
    "refused calls": "token=get_token(a,",
    "refused attributes": "token=a.",
    "refused names": "token_count=",
    "refused words": "password: a.b ",
    "refused flags": "--token={a}",
    "refused quotes": "token='a ",
    "open quotes": 'password="',
    "words of passwords": "password: swordfish ",
    "base64 lines": "A" * 64 + "\n",
    "parameters": "user=a password=b.c ",
    "passes": "pass: 12 of user ",
    "env": "ENV TOKEN is ",
    "echo": "echo a | ",
    "httpie": "http -a b ",
    "logins": "docker login -u ",
    "yaml": "  name: abcdefgh\n",
    "long words": "abcdefghij" * 9 + " ",
    "paths for passes": "pass:/",
    "flags for passes": "-pass://",
    "variables for passes": "x_pass=$a/",
    "headers": "authorization=",
    "gitlab words": "gldt-",
    "figma words": "figd_a-",
    "tailscale words": "tskey-a-",
    "nvidia words": "nvapi-a-",
    "openai words": "sk-a",
    "bearers": "bearer a",
    "quoted headers": 'authorization: "',
    "here strings": "<",
}

# The last line lets every row have its turn.
ALL_NEEDLES = "\n" + "\n".join(needle for row in PATTERNS for needle in row.needles)


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    redact(ALL_NEEDLES)


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_takes_linear_time(unit: str) -> None:
    times = 16_000 // len(unit)
    assert_linear(redact, unit * times + ALL_NEEDLES, unit * times * 4 + ALL_NEEDLES)


@pytest.mark.parametrize(
    "unit", ["<private>", "<private", "<private a=", "</private>", "<private>a</private>"]
)
def test_a_megabyte_of_private_tags_takes_linear_time(unit: str) -> None:
    times = 250_000 // len(unit)
    assert_linear(redact, unit * times, unit * times * 4)


def test_backslashes_take_linear_time() -> None:
    assert_linear(redact, 'password=\\"' + "\\" * 50_000, 'password=\\"' + "\\" * 200_000)


def test_a_payload_without_secrets_costs_next_to_nothing() -> None:
    payload = json.dumps(
        {"tool": "Edit", "old": "def area(width, height):\n    return width * height\n" * 40}
    )
    best = min(processor_time(redact, payload) for _ in range(20))
    assert best < 0.002  # it takes 0.00005


def test_importing_compiles_nothing_and_loads_only_re() -> None:
    script = (
        "import re, sys; import backstory.safety; before = set(sys.modules); compile = re.compile\n"
        "re.compile = None\n"
        "import backstory.safety.redact as module\n"
        "ours = {f'backstory.safety.{name}' for name in ('redact', 'judge', 'disguise')}\n"
        "loaded = set(sys.modules) - before - ours - {'__future__'}\n"
        "assert not loaded, loaded\n"
        "module.redact('def area(width, height): return width * height')\n"
        "re.compile = compile\n"
        "assert module.redact('password=hunter2') == 'password=[redacted:password]'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
