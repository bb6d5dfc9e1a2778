"""Redaction, row by row, against detect-secrets, and against hostile input.

Every secret here is made up and put together at run time (`"gh" + "p_" + ...`), so that scanners and push
protection have nothing to find in this file.
"""

from __future__ import annotations

import json
import random
import string
import subprocess
import sys
import time

import pytest
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.core.scan import scan_line
from detect_secrets.settings import transient_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.capture.redact import PATTERNS, redact


def made_up(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """A random-looking string, the same in every run, with a digit in it."""
    generator = random.Random(length * 1000 + len(alphabet))  # noqa: S311 - not for cryptography
    return "7" + "".join(generator.choice(alphabet) for _ in range(length - 1))


HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
LETTERS = string.ascii_letters + string.digits

BEGIN = "-----BEGIN "
END = "-----END "
KEY_BODY = "\n".join(made_up(64 + i)[:64] for i in range(4)) + "\nQf3a=="
JWT = "ey" + "JhbGciOiJIUzI1NiJ9.ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0." + made_up(43)

# name of the row -> (text with {} where the secret stands, the secret, kind). Exact output is asserted.
POSITIVES: list[tuple[str, str, str, str]] = [
    ("private passage", "keep {} this", "<private>my salary</private>", "private"),
    ("private passage", "keep {} this", "<PRIVATE>two\nlines</Private>", "private"),
    ("private passage", "keep {}", "<private>never closed\nand on", "private"),
    *(
        (
            "private key",
            "before\n{}\nafter",
            f"{BEGIN}{label}-----\n{KEY_BODY}\n{END}{label}-----",
            "private-key",
        )
        for label in (
            "PRIVATE KEY",
            "RSA PRIVATE KEY",
            "EC PRIVATE KEY",
            "OPENSSH PRIVATE KEY",
            "PGP PRIVATE KEY BLOCK",
        )
    ),
    (
        "private key",
        '{{"private": "{}\\n", "next": 1}}',
        (f"{BEGIN}PRIVATE KEY-----\n{KEY_BODY}\n{END}PRIVATE KEY-----").replace("\n", "\\n"),
        "private-key",
    ),
    ("private key", "cut off: {}", f"{BEGIN}RSA PRIVATE KEY-----\n{KEY_BODY}", "private-key"),
    ("private key", "{} but this stays", f"{BEGIN}PRIVATE KEY-----\n{made_up(64)}", "private-key"),
    ("private key tail", "tail:\n{}\nafter", f"{KEY_BODY}\n{END}RSA PRIVATE KEY-----", "private-key"),
    ("age key", "# age\n{}", "AGE-" + "SECRET-KEY-1" + made_up(58, UPPER), "age-key"),
    ("aws access key id", "id {} here", "AK" + "IA" + made_up(16, UPPER), "aws-access-key-id"),
    ("aws access key id", "AccessKeyId: {}", "AS" + "IA" + made_up(16, UPPER), "aws-access-key-id"),
    *(
        ("aws secret access key", context, made_up(40, LETTERS + "/+"), "aws-secret-access-key")
        for context in (
            "aws_secret_access_key = {}",
            '"SecretAccessKey": "{}",',
            "export AWS_SECRET_ACCESS_KEY={}",
            "AWS Secret Access Key [None]: {}",
        )
    ),
    ("google api key", "?key={}&v=1", "AI" + "za" + made_up(35), "gcp-api-key"),
    (
        "google service account",
        '"private_key_id": "{}",',
        made_up(40, HEX),
        "gcp-service-account",
    ),
    ("google oauth client secret", "google {}", "GOC" + "SPX-" + made_up(28), "google-oauth"),
    (
        "azure account key",
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};EndpointSuffix=core.windows.net",
        made_up(86) + "==",
        "azure-key",
    ),
    ("azure account key", "Endpoint=sb://x/;SharedAccessKey={}", made_up(43) + "=", "azure-key"),
    ("azure sas signature", "https://x.blob.core/c?sv=1&sig={}&se=2", made_up(40) + "%3D", "azure-sas"),
    ("azure client secret", "az login {}", "abc" + "8Q" + "~" + made_up(34), "azure-secret"),
    *(
        ("github token", "git clone with {} ok", "gh" + letter + "_" + made_up(36), "github-token")
        for letter in "pousr"
    ),
    ("github token", "{}", "github" + "_pat_" + made_up(22) + "_" + made_up(59), "github-token"),
    ("gitlab token", "use {}", "glp" + "at-" + made_up(20), "gitlab-token"),
    ("slack token", "use {} now", "xo" + "xb-" + "123456789012-" + made_up(24), "slack-token"),
    ("slack token", "use {} now", "xa" + "pp-1-A012-" + made_up(24), "slack-token"),
    (
        "slack webhook",
        "https://hooks.slack.com/services/{}",
        "T" + made_up(8, UPPER) + "/B" + made_up(8, UPPER) + "/" + made_up(24),
        "slack-webhook",
    ),
    (
        "discord webhook",
        "https://discord.com/api/webhooks/123456789012345678/{}",
        made_up(68),
        "discord-webhook",
    ),
    (
        "discord bot token",
        "discord client logs in with {}",
        "M" + made_up(23) + "." + made_up(6) + "." + made_up(27),
        "discord-token",
    ),
    *(
        ("stripe key", "stripe {} end", prefix + made_up(24), "stripe-key")
        for prefix in ("sk" + "_live_", "rk" + "_live_", "sk" + "_test_", "wh" + "sec_")
    ),
    ("anthropic key", "claude {}", "sk-" + "ant-api03-" + made_up(93), "anthropic-key"),
    ("openai key", "openai {}", "sk-" + made_up(48), "openai-key"),
    ("openai key", "openai {}", "sk-" + "proj-" + made_up(48), "openai-key"),
    ("groq key", "groq {}", "gs" + "k_" + made_up(52), "groq-key"),
    ("hugging face token", "login {}", "h" + "f_" + made_up(34), "huggingface-token"),
    ("npm token", "publish {}", "np" + "m_" + made_up(36), "npm-token"),
    ("pypi token", "twine {}", "pypi-" + "AgEIcHlwaS5vcmc" + made_up(60), "pypi-token"),
    ("twilio key", "twilio {}", "A" + "C" + made_up(32, HEX), "twilio-key"),
    ("twilio key", "twilio {}", "S" + "K" + made_up(32, HEX), "twilio-key"),
    ("sendgrid key", "mail {}", "S" + "G." + made_up(22) + "." + made_up(43), "sendgrid-key"),
    ("mailgun key", "mail {}", "ke" + "y-" + made_up(32, HEX), "mailgun-key"),
    ("mailchimp key", "mail {}", made_up(32, HEX) + "-us" + "12", "mailchimp-key"),
    ("telegram bot token", "bot {}", "123456789:" + "AA" + made_up(33), "telegram-token"),
    ("shopify token", "shop {}", "shp" + "at_" + made_up(32, HEX), "shopify-token"),
    ("digitalocean token", "doctl {}", "do" + "p_v1_" + made_up(64, HEX), "digitalocean-token"),
    ("databricks token", "dbx {}", "da" + "pi" + made_up(32, HEX), "databricks-token"),
    ("square token", "square {}", "sq0" + "csp-" + made_up(43), "square-token"),
    ("artifactory token", "jfrog {}", "AK" + "C" + made_up(30), "artifactory-token"),
    ("vault token", "vault {}", "hv" + "s." + made_up(24), "vault-token"),
    ("atlassian token", "jira {}", "ATA" + "TT3" + made_up(60), "atlassian-token"),
    ("linear key", "linear {}", "lin" + "_api_" + made_up(40), "linear-key"),
    ("grafana token", "grafana {}", "gl" + "sa_" + made_up(32) + "_" + made_up(8, HEX), "grafana-token"),
    ("jwt", "got {} back", JWT, "jwt"),
    ("authorization header", "Authorization: Bearer {}", "xyz", "token"),
    ("authorization header", "curl -H 'Authorization: Basic {}' x", "dXNlcjpw" + "YXNz", "token"),
    ("authorization header", '{{"Authorization": "token {}"}}', made_up(12), "token"),
    ("authorization header", 'a = "{{\\"authorization\\": \\"Bearer {}\\"}}"', made_up(12), "token"),
    ("bearer token", "sent Bearer {} to it", made_up(24), "token"),
    ("set-cookie header", "Set-Cookie: session={}; Path=/; HttpOnly", made_up(24), "cookie"),
    ("cookie header", "Cookie: {}", "theme=dark; sid=" + made_up(24), "cookie"),
    ("cookie header", "curl -H 'Cookie: {}' x", "sid=" + made_up(24), "cookie"),
    ("url password", "postgres://user:{}@host/db", "pw", "password"),
    ("url password", "redis://:{}@10.0.0.1:6379/0", "p@ss:w", "password"),
    ("url token", "git clone https://{}@example.com/x.git", made_up(30), "token"),
    ("curl user", "curl -s -u bob:{} https://example.com", "hunter2", "password"),
    ("curl user", "curl --user 'bob:{}' https://example.com", "hunter2", "password"),
    ("mysql password", "mysql -u root -p{} shop", "hunter2", "password"),
    ("mysql password", "mysqldump -uroot -p'{}' shop", "hunter2", "password"),
    ("password argument", "sshpass -p {} ssh host", "hunter2", "password"),
    ("password argument", "redis-cli -h cache -a {} ping", "hunter2", "password"),
    ("password flag", "deploy --password {} --verbose", "foo", "password"),
    ("password flag", "deploy --db-password='{}'", "foo", "password"),
    ("token flag", "deploy --token={} now", "foo", "token"),
    ("token flag", '{{"command": "deploy --api-key \\"{}\\" now"}}', "foo", "token"),
    ("connection string password", "Server=x;Uid=sa;Pwd={};Database=y", "two words", "password"),
    ("connection string password", '"Server=x;Password={};"', "secret", "password"),
    ("npmrc auth", "//registry.npmjs.org/:_authToken={}", made_up(36), "token"),
    ("npmrc auth", "//registry.example.com/:_auth={}", "dXNlcjpw" + "YXNz", "token"),
    ("netrc password", "machine example.com login bob password {}", "hunter2", "password"),
    ("netrc password", "machine example.com\n  login bob\n  password {}\n", "hunter2", "password"),
    ("sql password", "CREATE USER bob IDENTIFIED BY '{}';", "hunter2", "password"),
    ("sql password", "ALTER ROLE bob WITH PASSWORD '{}'", "hunter2", "password"),
    ("xml password", "<db:password>{}</db:password>", "hunter2", "password"),
    ("password assignment", 'password = "{}"', "hunter2!", "password"),
    ("password assignment", "export DB_PASSWORD={}", "hunter2", "password"),
    ("password assignment", "DB_PASSWORD='{}'", "hun ter2", "password"),
    ("password assignment", "  password: {}\n  port: 5432", "hunter2", "password"),
    ("password assignment", "password: {}\n", "swordfish", "password"),
    ("password assignment", '{{"password": "{}", "port": 1}}', "correct horse", "password"),
    ("password assignment", r"\"password\": \"{}\", \"port\": 1", "hunter2", "password"),
    ("password assignment", r"\\\"pwd\\\": \\\"{}\\\"", "hunter2", "password"),
    ("password assignment", r'"command": "export PGPASSWORD={}\nls"', "hunter2", "password"),
    ("password assignment", 'password: str = "{}"', "hunter2", "password"),
    ("password assignment", 'config["password"] = "{}"', "hunter2", "password"),
    ("password assignment", 'token = connect(password="{}")', "hunter2", "password"),
    ("password assignment", 'if password == "{}":', "hunter2", "password"),
    ("password assignment", "'passphrase' => '{}'", "hunter2", "password"),
    ("password assignment", "user=a&password={}&b=c", "swordfish", "password"),
    ("password assignment", 'cut = off; password = "{}', "hunter2 is", "password"),
    ("password assignment", "password: {}", "changeme", "password"),
    ("password assignment", "PASSWORD={}", "123456", "password"),
    ("secret assignment", 'client_secret: "{}"', "hunter2", "secret"),
    ("secret assignment", "SECRET_KEY_BASE={}", made_up(40), "secret"),
    ("token assignment", 'auth_token = "{}"', made_up(20), "token"),
    ("token assignment", "export API_TOKEN={}", "supersecret", "token"),
    ("token assignment", "GET /x?access_token={}&y=1", made_up(20), "token"),
    ("key assignment", "API_KEY={}", made_up(20), "key"),
    ("key assignment", "X-Api-Key: {}", made_up(20), "key"),
    ("key assignment", 'const apiKey = "{}";', made_up(20), "key"),
    ("key assignment", 'encryption_key = "{}"', made_up(20), "key"),
    ("credential assignment", '"credentials": "{}"', made_up(20), "credential"),
]

# name of the row -> a text that its needles let through and that must come out as it went in.
NEAR_MISSES: list[tuple[str, str]] = [
    ("private passage", "a private talk, written `&lt;private&gt;`; closed </private> but never opened"),
    ("private passage", "class Foo<private_t> { private: int x; }"),
    ("private key", f'if "{BEGIN}PRIVATE KEY-----" in text: raise'),
    ("private key", f"{BEGIN}PUBLIC KEY-----\n{KEY_BODY}\n{END}PUBLIC KEY-----\n# no private key"),
    (
        "private key",
        f"{BEGIN}CERTIFICATE-----\n{KEY_BODY}\n{END}CERTIFICATE----- # its private key is not here",
    ),
    ("private key tail", f'lines.index("{END}PRIVATE KEY-----")'),
    ("age key", "an AGE-SECRET-KEY-1... line"),
    ("aws access key id", "xAK" + "IA" + made_up(30, UPPER)),
    ("aws access key id", "SLOVAKIA and ASIA"),
    ("aws secret access key", "aws_secret_access_key = settings.aws.secret"),
    ("google api key", "AIza is how they begin"),
    ("google service account", '"private_key_id": "<id>"'),
    ("google oauth client secret", "GOCSPX-..."),
    ("azure account key", "AccountKey=<key>;"),
    ("azure sas signature", "/x?sig=short"),
    ("azure client secret", "faq~ish"),
    ("github token", "tokens begin with ghp_ or github_pat_"),
    ("github token", "https://github.com/org/repo git@github.com:org/repo.git"),
    ("gitlab token", "glpat-xxxx"),
    ("slack token", "xoxb-..."),
    ("slack webhook", "https://hooks.slack.com/services/<id>"),
    ("discord webhook", "https://discord.com/api/webhooks/<id>/<token>"),
    ("discord bot token", "discord.Client.login.with_a_bot.run"),
    ("stripe key", "task_live_updates, disk_test_speed, sk_test_..."),
    ("anthropic key", "sk-ant-..."),
    ("openai key", "sk-learn and sk-learn-contrib-examples-repository, task-" + made_up(30)),
    ("groq key", "gsk_widget_new()"),
    ("hugging face token", "hf_hub_download(repo_id)"),
    ("npm token", "npm_config_registry=https://registry.npmjs.org"),
    ("pypi token", "pypi-AgEnt"),
    ("twilio key", "twilio " + made_up(40, HEX)),
    ("sendgrid key", "msg.content.strip() SG.x.y"),
    ("mailgun key", "key-value store, key-" + "a" * 10),
    ("mailchimp key", made_up(32, HEX) + "-user"),
    ("telegram bot token", "12:AAB and ratio:aa"),
    ("shopify token", "shpat_xxx"),
    ("digitalocean token", "api_v1_users"),
    ("databricks token", "fastapi: dapi_client"),
    ("square token", "sq0csp-..."),
    ("artifactory token", "backcompat AKC"),
    ("vault token", "hvs.x"),
    ("atlassian token", "ATATT3..."),
    ("linear key", "lin_api_..."),
    ("grafana token", "glsa_..."),
    ("jwt", "eyJ is base64 of an opening brace; eyJhbGciOiJIUzI1NiJ9"),
    ("authorization header", 'headers = {"Authorization": f"Bearer {token}"}'),
    ("authorization header", "Authorization: Bearer <token>, Authorization: Bearer $TOKEN"),
    ("authorization header", "Authorization: Basic auth is off; the authorization: it works"),
    ("bearer token", "Bearer tokens are sent in a header; the bearer authentication-scheme-is-simple"),
    ("set-cookie header", "Set-Cookie: theme=dark; Path=/"),
    ("set-cookie header", 'f"Set-Cookie: session={session_id}; Path=/"'),
    ("cookie header", "Cookie: theme=dark"),
    ("cookie header", 'f"Cookie: session={session_id}"'),
    ("cookie header", "the cookie jar, cookie = parse(header), cookies: list[str]"),
    ("url password", "https://github.com/org/repo http://localhost:8080/@vite/client ssh://git@host:22/x"),
    ("url password", 'f"postgres://{user}:{password}@{host}/x" postgres://$USER:$PASS@host'),
    ("url password", "user:pass@host in prose, and user:pass too; see https://example.com"),
    ("url token", "https://a-rather-long-user-name-here@example.com"),
    ("curl user", "curl -u bob https://example.com; curl -u $USER:$PASS https://example.com:443"),
    ("mysql password", "mysql -u root -p shop; mysql --port 3306; docker run mysql -p3306:3306"),
    ("mysql password", "mysql -u root -p$MYSQL_PASSWORD shop"),
    ("password argument", "sshpass -p $PASS ssh host; redis-cli -h cache ping"),
    ("password flag", "--password-file x --password $PASS --password PASSWORD; use --password to sign in"),
    ("password flag", 'parser.add_argument("--password", help="what it says")'),
    ("token flag", "[--token TOKEN] --max-tokens 4096 --token-file x --no-token --verbose"),
    ("connection string password", "Server=x;Password={password};Pwd=${PWD};"),
    ("npmrc auth", "//registry.npmjs.org/:_authToken=${NPM_TOKEN}"),
    ("netrc password", "login with your password here; machine x login y password <password>"),
    ("sql password", "a library identified by 'name'; the password 'field'"),
    ("sql password", "CREATE USER bob IDENTIFIED BY '${DB_PASSWORD}';"),
    ("xml password", "<password></password> <password>${db.password}</password>"),
    ("password assignment", 'password = os.environ["DB_PASSWORD"]'),
    ("password assignment", "password: str"),
    ("password assignment", "PASSWORD=$DB_PASSWORD"),
    ("password assignment", "password=<your password>"),
    ("password assignment", "src/auth/password_reset.py: passwordless"),
    ("password assignment", "def reset_password(self, password: str) -> None"),
    ("password assignment", "password_min_length = 12; PASSWORD_FILE=/run/secrets/db1"),
    ("password assignment", "OLDPWD=/home/bob1"),
    ("secret assignment", "secret: ${{ secrets.X }}"),
    ("secret assignment", "secretName: db-creds-2"),
    ("token assignment", "token = get_token()"),
    ("token assignment", "tokens: 1532, max_tokens=4096, token_count: 17"),
    ("token assignment", "the token bucket algorithm"),
    ("key assignment", "api_key = settings.api_key"),
    ("key assignment", "private_key: Ed25519PrivateKey"),
    ("credential assignment", 'fetch(url, { credentials: "include" })'),
]

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
    assert any(needle in text.lower() for needle in row.needles)
    assert row.kind == kind
    assert row.apply(text) == context.format(f"[redacted:{kind}]")


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


# --- the oracle -------------------------------------------------------------------------------------------

# The two high-entropy plugins flag any hash, uuid or long identifier, and the IP plugin flags addresses: what
# they find is not what we promise to remove. Every other plugin is in force.
NOISY = {"Base64HighEntropyString", "HexHighEntropyString", "IPPublicDetector"}

ORACLE_CORPUS = [
    *(context.format(secret) for _, context, secret, _ in POSITIVES),
    *(
        f'{name} {operator} "{made_up(24)}"'
        for name in ("password", "db_passwd", "api_key", "apikey", "secret", "client_secret", "auth_token")
        for operator in ("=", ":", ":=", "==", "=>")
    ),
    "cloudant_password = '" + made_up(64, HEX) + "'",
    "ibm_cloud_api_key: '" + made_up(44) + "'",
    "softlayer_api_key = '" + made_up(64, HEX) + "'",
    "cos_hmac_secret_access_key: '" + made_up(48, HEX) + "'",
    "private_key = '" + made_up(40) + "'",
]


def found_by_oracle(text: str) -> set[str]:
    """What detect-secrets finds, line by line as it is meant to be used."""
    plugins = {plugin.__name__ for plugin in get_mapping_from_secret_type_to_class().values()} - NOISY
    with transient_settings({"plugins_used": [{"name": name} for name in sorted(plugins)]}):
        return {secret.secret_value or "" for line in text.splitlines() for secret in scan_line(line)}


def test_what_detect_secrets_finds_is_gone_and_it_finds_nothing_in_the_output() -> None:
    total = 0
    for text in ORACLE_CORPUS:
        found = found_by_oracle(text)
        total += len(found)
        redacted = redact(text)
        for secret in found:
            assert secret not in redacted, text
        # Its keyword plugin takes our marker for a password, as it would any string after `password =`.
        left = {secret for secret in found_by_oracle(redacted) if not secret.startswith("[redacted:")}
        assert not left, (text, redacted)
    assert total > 60, "the oracle found next to nothing: is it switched on?"


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


@settings(deadline=None, max_examples=300)
@given(st.text())
def test_any_text_can_be_redacted_and_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@settings(deadline=None, max_examples=600)
@given(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=5)), max_size=12))
def test_redacting_twice_changes_nothing_whatever_stands_next_to_a_secret(pieces: list[str]) -> None:
    once = redact("".join(pieces))
    assert redact(once) == once


# Secrets that are recognised by their own shape, wherever they stand.
SHAPED = [
    (secret, context)
    for name, context, secret, _ in POSITIVES
    if name.endswith((" token", " key", "jwt"))
    and name not in ("url token", "bearer token", "azure account key")
]


@settings(deadline=None, max_examples=300)
@given(st.text(), st.sampled_from(SHAPED), st.text())
def test_a_secret_is_found_in_any_surrounding_text(before: str, shaped: tuple[str, str], after: str) -> None:
    secret, context = shaped
    text = f"{before}\n{context.format(secret)}\n{after}"
    assert secret not in redact(text)


# --- cost -------------------------------------------------------------------------------------------------

MEGABYTE = 1_000_000

HOSTILE = {
    "one letter": "a",
    "password=": "password=",
    "begin marks": "-----BEGIN ",
    "private key marks": f"{BEGIN}PRIVATE KEY-----",
    "half a url": "://a:a",
    "curl": "curl ",
    "mysql": "mysql ",
    "private": "<private>",
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
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_takes_linear_time(unit: str) -> None:
    # The last line lets every row have its turn.
    needles = "\n".join(needle for row in PATTERNS for needle in row.needles)
    text = unit * (MEGABYTE // len(unit)) + "\n" + needles
    began = time.perf_counter()
    redact(text)
    assert time.perf_counter() - began < 8


def test_backslashes_take_linear_time() -> None:
    began = time.perf_counter()
    redact('password=\\"' + "\\" * MEGABYTE)
    assert time.perf_counter() - began < 8


def test_a_payload_without_secrets_costs_next_to_nothing() -> None:
    payload = json.dumps(
        {"tool": "Edit", "old": "def area(width, height):\n    return width * height\n" * 40}
    )
    best = min(_timed(payload) for _ in range(20))
    assert best < 0.002


def _timed(text: str) -> float:
    began = time.perf_counter()
    redact(text)
    return time.perf_counter() - began


def test_importing_compiles_nothing_and_loads_only_re() -> None:
    script = (
        "import re, sys; import recollect.capture; before = set(sys.modules); compile = re.compile\n"
        "re.compile = None\n"
        "import recollect.capture.redact as module\n"
        "loaded = set(sys.modules) - before - {'recollect.capture.redact', '__future__'}\n"
        "assert not loaded, loaded\n"
        "module.redact('def area(width, height): return width * height')\n"
        "re.compile = compile\n"
        "assert module.redact('password=hunter2') == 'password=[redacted:password]'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
