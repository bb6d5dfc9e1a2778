"""Redaction, row by row, and in any text whatever."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.safety.clean import clean
from backstory.safety.judge import FILLER
from backstory.safety.redact import PATTERNS, _places_of_needles, redact
from tests.helpers.secret_texts import NEAR_MISSES, POSITIVES, made_up

READABLE_CODE = r"""
key: value
commit 3f786850e387550fdab836ed7e6dc881de23001b
id = 550e8400-e29b-41d4-a716-446655440000
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
connect(password=password, token=tok, api_key=settings.API_KEY)
self.token = token
username, password = value
password = user.password
password = getpass.getpass("Password: ")
password = input("password: ").strip().encode("utf8")
url = "/x?token=" + value1 + "&y=1"
if "password=" in line1 and "token: " not in line2:
print("token:", token1, "and more")
hashed = hash_password(password)
const token = req.headers.authorization
const [password, setPassword] = useState("")
let token = await fetch("/x")
password: Optional[str] = None
token: str | None = None
password: string;
password: z.string().min(8),
private String password;
token = tokens[0]
secret = process.env.SECRET
token := os.Getenv("X")
if token is None or password == other:
"token_type": "Bearer"
"usage": {"input_tokens": 1532, "output_tokens": 20}
token_url: https://example.com/token
<input type="password" name="password" placeholder="Password" />
errors.password = "Password is required"
"forgot_password": "Forgot your password?"
CONF_PASSWORD = "password"
pad_token = "<pad>"
token = "IDENT"
Token::Ident
match token => token.id
fn parse(tokens: &[Token]) -> Vec<Token2>
tokenizer = "bert-base-uncased"
secret_name = "prod/db2"
private_key = load_key("k1.pem")
:param password: The user's password
password: the one you chose
password TEXT NOT NULL
credentials = '{0}:{1}'.format(user, passwd)
token: "{{ token1 }}"
password = "${DB_PASSWORD}"
api_key: your-api-key
password: ********
secretKeyRef: {name: x, key: y}
"""


@pytest.mark.parametrize(("name", "context", "secret", "kind"), POSITIVES)
def test_a_secret_is_replaced_and_the_text_around_it_kept(
    name: str, context: str, secret: str, kind: str
) -> None:
    redacted = redact(context.format(secret))
    assert redacted == context.format(f"[redacted:{kind}]")
    assert secret not in redacted
    assert redact(redacted) == redacted


@pytest.mark.parametrize(("name", "context", "secret", "kind"), POSITIVES)
def test_a_secret_is_replaced_by_the_row_that_it_is_listed_under(
    name: str, context: str, secret: str, kind: str
) -> None:
    row = next(row for row in PATTERNS if row.name == name)
    text = context.format(secret)
    lowered, _, places = _places_of_needles(text)
    found: list[tuple[int, int, str]] = []
    assert row.is_possible(lowered, places)
    assert row.apply(text, places, found) == context.format(FILLER * len(secret))
    ((start, end, said),) = found
    assert (text[start:end], said) == (secret, kind)


@pytest.mark.parametrize(("name", "text"), NEAR_MISSES)
def test_a_near_miss_stays_as_it_is(name: str, text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("line", READABLE_CODE.strip().splitlines())
def test_ordinary_code_stays_readable(line: str) -> None:
    assert redact(line) == line
    assert redact(json.dumps({"old_string": line + "\n"})) == json.dumps({"old_string": line + "\n"})


def test_ordinary_code_stays_readable_as_one_text() -> None:
    assert redact(READABLE_CODE) == READABLE_CODE


def test_every_row_has_a_positive_and_a_near_miss() -> None:
    names = [row.name for row in PATTERNS]
    assert len(names) == len(set(names))
    assert set(names) == {name for name, *_ in POSITIVES}
    assert set(names) == {name for name, _ in NEAR_MISSES}


def test_every_needle_is_lower_case() -> None:
    for row in PATTERNS:
        assert row.needles
        assert all(needle and needle == needle.lower() for needle in row.needles)


def test_a_secret_in_a_tool_input_dumped_as_json_is_replaced() -> None:
    inner = json.dumps({"password": "hunter2", "port": 5432})
    for _ in range(3):
        inner = json.dumps({"content": inner})
        assert "hunter2" not in redact(inner)
        assert "5432" in redact(inner)


def test_a_password_with_an_escaped_quote_is_replaced_whole() -> None:
    assert redact(r'password = "hun\"ter2" # x') == 'password = "[redacted:password]" # x'


def test_a_token_within_a_longer_quoted_password_takes_the_rest_with_it() -> None:
    token = "gh" + "p_" + made_up(36)
    assert redact(f'password = "abc {token} def"') == 'password = "[redacted:password]"'


# --- properties -------------------------------------------------------------------------------------------

EMBEDDED = [context.format(secret) for _, context, secret, _ in POSITIVES]

FRAGMENTS = [
    *EMBEDDED,
    *(secret for _, _, secret, _ in POSITIVES),
    *(text for _, text in NEAR_MISSES),
    *(needle for row in PATTERNS for needle in row.needles),
    *(
        '"',
        "'",
        "\\",
        '\\"',
        "=",
        ":",
        " = ",
        ": ",
        "@",
        "[redacted:",
        "[redacted:password]",
        "]",
        "\n",
        " ",
        "-p",
    ),
]


@settings(max_examples=300)
@given(st.text())
def test_any_text_can_be_redacted_and_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@settings(max_examples=600)
@given(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=5)), max_size=12))
def test_redacting_twice_changes_nothing_whatever_stands_next_to_a_secret(pieces: list[str]) -> None:
    once = redact("".join(pieces))
    assert redact(once) == once


# Secrets that are recognised by their own shape, wherever they stand.
SHAPED = [
    (secret, context)
    for name, context, secret, _ in POSITIVES
    if name.endswith((" token", " key", "jwt"))
    and name not in ("url token", "bearer token", "azure account key", "environment key", "licence key")
]


@settings(max_examples=300)
@given(st.text(), st.sampled_from(SHAPED), st.text())
def test_a_secret_is_found_in_any_surrounding_text(before: str, shaped: tuple[str, str], after: str) -> None:
    secret, context = shaped
    text = f"{before}\n{context.format(secret)}\n{after}"
    assert secret not in redact(text)


def test_a_private_part_that_ends_beyond_the_cut_is_private_up_to_it() -> None:
    long = "my salary " * 3_000
    for tag in ("<private>{}</private>", "`<private>`{}`</private>`", "`<private>`{}</private>"):
        assert "salary" not in clean("keep " + tag.format(long) + " this")
    assert clean("</private> words " * 3_000).startswith("</private> words </private>")
