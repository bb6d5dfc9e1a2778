"""Retries for an HTTP client: tests first, a wish about tests, a decision about what is retried."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, turn, write

ROOT = "/home/dev/porter"

CLIENT = '''
"""A small client for the parcel service."""

import json
import urllib.error
import urllib.request


class Client:
    def __init__(self, base, opener=urllib.request.urlopen):
        self.base = base
        self.opener = opener

    def request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method)
        with self.opener(request, timeout=10) as response:
            return json.loads(response.read())

    def track(self, parcel):
        return self.request("GET", f"/parcels/{parcel}")

    def ship(self, address):
        return self.request("POST", "/parcels", {"address": address})
'''
TEST_CLIENT = """
import io
import json

from porter.client import Client


def answers(*replies):
    left = list(replies)

    def opener(request, timeout):
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return io.BytesIO(json.dumps(reply).encode())

    opener.left = left
    return opener


def test_track():
    assert Client("http://x", answers({"state": "moving"})).track("7") == {"state": "moving"}
"""
TEST_RETRY = """
import urllib.error
from email.message import Message

import pytest
from test_client import answers

from porter.client import Client


def http_error(status, **headers):
    message = Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    return urllib.error.HTTPError("http://x", status, "no", message, None)


def test_a_503_is_tried_again():
    client = Client("http://x", answers(http_error(503), {"state": "moving"}))
    assert client.track("7") == {"state": "moving"}


def test_after_four_times_it_gives_up():
    client = Client("http://x", answers(*[http_error(503)] * 4))
    with pytest.raises(urllib.error.HTTPError):
        client.track("7")


def test_a_404_is_not_tried_again():
    opener = answers(http_error(404), {"state": "moving"})
    with pytest.raises(urllib.error.HTTPError):
        Client("http://x", opener).track("7")
    assert len(opener.left) == 1
"""
TEST_RETRY_2 = """

def test_it_waits_as_long_as_the_server_says():
    waited = []
    opener = answers(http_error(429, Retry_After="7"), {"state": "moving"})
    Client("http://x", opener, sleep=waited.append).track("7")
    assert waited == [7.0]


def test_a_parcel_is_never_shipped_twice():
    opener = answers(http_error(503), {"id": 1})
    with pytest.raises(urllib.error.HTTPError):
        Client("http://x", opener, sleep=print).ship("here")
    assert len(opener.left) == 1
"""
REQUEST = """        request = urllib.request.Request(self.base + path, data=data, method=method)
        with self.opener(request, timeout=10) as response:
            return json.loads(response.read())
"""
RETRYING = """        request = urllib.request.Request(self.base + path, data=data, method=method)
        for attempt in range(ATTEMPTS):
            try:
                with self.opener(request, timeout=10) as response:
                    return json.loads(response.read())
            except urllib.error.HTTPError as error:
                if error.code not in TRANSIENT or attempt == ATTEMPTS - 1:
                    raise
                time.sleep(0.5 * 2**attempt)
"""

SCENARIO = Scenario(
    project="porter",
    began="2026-04-07T12:15:00",
    first_commit="porter",
    files={
        "porter/__init__.py": "",
        "porter/client.py": CLIENT,
        "tests/test_client.py": TEST_CLIENT,
        "pytest.ini": "[pytest]\npythonpath = .\n",
        ".gitignore": "__pycache__/\n.pytest_cache/\n.hypothesis/\n",
    },
    turns=(
        turn(
            "The parcel service answers 503 every now and then and then the whole job dies. Let's have the client retry, with "
            "exponential backoff, max 4 tries. Tests first please.",
            read(f"{ROOT}/porter/client.py"),
            read(f"{ROOT}/tests/test_client.py"),
            bash("ls tests docs", "See what else is there"),
            write(f"{ROOT}/tests/test_retry.py", TEST_RETRY.lstrip()),
            bash("python -m pytest -q --tb=line", "They have to fail"),
            edit(f"{ROOT}/porter/client.py", REQUEST, RETRYING),
            edit(
                f"{ROOT}/porter/client.py",
                "import json\nimport urllib.error\nimport urllib.request\n",
                "import json\nimport time\nimport urllib.error\nimport urllib.request\n\nATTEMPTS = 4\n"
                "TRANSIENT = {429, 502, 503, 504}\n",
            ),
            bash("python -m pytest -q --durations=2", "Run them again"),
            say(
                "Works: 429, 502, 503 and 504 are tried again, four times in all, after 0.5, 1 and 2 seconds. Everything else "
                "is raised at once. 4 passed. The suite takes four seconds now because of the waiting; not committed yet."
            ),
        ),
        turn(
            "four seconds is a no go. tests here don't sleep, ever - pass the clock/sleep in, like the opener. Also: does this "
            "retry the POST as well? we must not ship a parcel twice!! and it should honour Retry-After",
            bash(f"cat >> tests/test_retry.py <<'X'\n{TEST_RETRY_2}X", "Two more tests"),
            bash("python -m pytest -q --tb=line", "See them fail"),
            read(f"{ROOT}/porter/client.py"),
            edit(
                f"{ROOT}/porter/client.py",
                "    def __init__(self, base, opener=urllib.request.urlopen):\n        self.base = base\n",
                "    def __init__(self, base, opener=urllib.request.urlopen, sleep=time.sleep):\n        self.base = base\n"
                "        self.sleep = sleep\n",
            ),
            edit(
                f"{ROOT}/porter/client.py",
                "                if error.code not in TRANSIENT or attempt == ATTEMPTS - 1:\n                    raise\n"
                "                time.sleep(0.5 * 2**attempt)\n",
                "                if method not in SAFE or error.code not in TRANSIENT or attempt == ATTEMPTS - 1:\n"
                "                    raise\n"
                '                self.sleep(float(error.headers.get("Retry-After") or 0.5 * 2**attempt))\n',
            ),
            edit(
                f"{ROOT}/porter/client.py",
                "ATTEMPTS = 4\n",
                'ATTEMPTS = 4\nSAFE = {"GET", "HEAD", "PUT", "DELETE"}\n',
            ),
            bash("python -m pytest -q --tb=short", "Run the tests"),
            bash(
                "sed -i 's|^\\(    client = Client(.*\\))$|\\1, sleep=lambda _: None)|' tests/test_retry.py; "
                "grep -n lambda tests/test_retry.py; python -m pytest -q --durations=1",
                "No test sleeps any more",
            ),
            bash(
                "git add -A && git commit -q -F - <<'X'\nRetry transient errors of the parcel service\n\n"
                "503 and friends no longer end a job: four tries with exponential backoff, or as long as\nRetry-After says. "
                "Only idempotent methods, so that no parcel is shipped twice.\nX\ngit log --stat -1 | tail -4",
                "Commit",
            ),
            say(
                """All three are in, and the suite is back to a fraction of a second.

- `sleep` is passed in like the opener; no test waits.
- `Retry-After` wins over our own backoff.
- POST did get retried before, good that you asked. I decided to retry only idempotent methods (GET, HEAD, PUT,
  DELETE) and to leave POST alone altogether, because a 503 may come after the service has already booked the parcel.
  If shipping should survive a 503 too, the service would have to accept an idempotency key.

Committed as one commit."""
            ),
        ),
        turn(
            "perfect. does the service support such a key?",
            bash("grep -rni idempot . --include=*.md --include=*.py | head", "Anything about it in here?"),
            say(
                "Nothing in this repository says so, and I can't see their API documentation from here. Worth asking them; "
                "until then POST stays without retries."
            ),
        ),
    ),
)
