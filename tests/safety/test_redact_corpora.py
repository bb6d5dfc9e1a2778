"""Redaction of lines as seen in the wild, and against detect-secrets.

Every secret here is made up and put together at run time, as in tests/helpers/secret_texts.py.
"""

from __future__ import annotations

import json
import re

import pytest

from backstory.safety.redact import redact
from tests.helpers.secret_texts import HEX, LETTERS, POSITIVES, UPPER, made_up

# --- two corpora, written from what is seen in the wild and not from the table ------------------------------


# What stands between « and » is a secret. Marks around tokens of a known shape hold pieces (see above).
LEAKS = [
    # shell history
    "export DATABASE_URL=postgresql://app:«s3cr3t-pw»@db.internal:5432/app",
    "  501  export STRIPE_SECRET_KEY=«sk" + "_live_" + made_up(24) + "»",
    "PGPASSWORD=«Tr0ub4dor» psql -h db.internal -U app -c 'select 1'",
    "mysql -h 10.0.0.5 -uroot -p«Sup3rS3cret» shop < dump.sql",
    "mysqldump --user=root --password=«Sup3rS3cret» shop > dump.sql",
    "curl -u admin:«Jenkins!42» -X POST https://ci.example.com/job/build",
    "curl -sH 'Authorization: Bearer «" + made_up(40) + "»' https://api.example.com/v1/me",
    "curl -H 'X-Auth-Token: «" + made_up(32, HEX) + "»' https://api.example.com/v1/me",
    "curl -H 'PRIVATE-TOKEN: «glp" + "at-" + made_up(20) + "»' https://gitlab.example.com/api/v4/projects",
    "curl 'https://maps.example.com/api?key=«AI" + "za" + made_up(35) + "»&q=paris'",
    "http -a bob:«hunter2» GET https://api.example.com/items",
    "http POST :8000/login username=bob password=«hunter2»",
    "wget --user=bob --password='«pa55 word»' https://example.com/file.zip",
    "docker login registry.example.com -u deploy -p «Rk7-mmA2»",
    'echo "«Rk7-mmA2»" | docker login -u deploy --password-stdin # DOCKER_PASSWORD=«Rk7-mmA2»',
    "redis-cli -h cache.internal -a «r3disPass» INFO",
    "sshpass -p «raspberry» ssh pi@192.168.1.10",
    "echo 'pi:«raspberry»' | sudo chpasswd",
    "ldapsearch -x -H ldap://dc1 -D 'cn=admin,dc=example,dc=com' -w «adm1n» -b dc=example,dc=com",
    "openssl pkcs12 -export -in cert.pem -inkey key.pem -out a.p12 -passout pass:«changeit»",
    "aws configure set aws_secret_access_key «" + made_up(40, LETTERS + "/+") + "» --profile prod",
    "vault login «hv" + "s." + made_up(24) + "»",
    "gh auth login --with-token <<< «gh" + "p_" + made_up(36) + "»",
    "npm config set //registry.npmjs.org/:_authToken=«np" + "m_" + made_up(36) + "»",
    "git remote set-url origin https://oauth2:«glp" + "at-" + made_up(20) + "»@gitlab.com/org/repo.git",
    "tailscale up --authkey «tskey" + "-auth-k" + made_up(12) + "-" + made_up(32) + "»",
    "sqlcmd -S db -U sa -P «Str0ng!Passw0rd» -Q 'SELECT 1'",
    "mongosh 'mongodb+srv://app:«m0ngoPw»@cluster0.example.mongodb.net/shop'",
    # .env files
    "SECRET_KEY=«django-insecure-" + made_up(40) + "»",
    "MAIL_HOST=smtp.example.com\nMAIL_USERNAME=bob\nMAIL_PASSWORD=«correct-horse»",
    "SMTP_PASS=«swordfish»",
    "APP_KEY=base64:«" + made_up(43) + "=»",
    "AZURE_STORAGE_KEY=«" + made_up(86) + "==»",
    "OPENAI_API_KEY=«sk-" + "proj-" + made_up(48) + "»",
    "GEMINI_API_KEY='«AI" + "za" + made_up(35) + "»'",
    "TWILIO_AUTH_TOKEN=«" + made_up(32, HEX) + "»",
    "SENTRY_AUTH_TOKEN=«sntr" + "ys_" + made_up(60) + "_" + made_up(43) + "»",
    "JWT_SECRET=«keyboard cat»".replace(" ", "-"),
    # CI logs
    "2025-02-11T09:14:02.113Z ##[debug]NPM_TOKEN=«np" + "m_" + made_up(36) + "»",
    "+ helm upgrade web ./chart --set postgresql.auth.password=«pg-9xK2»",
    "Step 4/9 : ENV DB_PASSWORD «hunter2»",
    '"content": "FROM x\\nENV API_TOKEN «hunter2»\\nRUN y"',
    "fatal: unable to access 'https://ci:«gh" + "s_" + made_up(36) + "»@github.com/org/repo/': 403",
    # YAML, docker-compose, Kubernetes, Ansible
    "    environment:\n      POSTGRES_USER: app\n      POSTGRES_PASSWORD: «s3cretpg»",
    "      - MYSQL_ROOT_PASSWORD=«rootpw»",
    '      RABBITMQ_DEFAULT_PASS: "«guest42»"',
    "smtp:\n  host: mail.example.com\n  user: bob\n  pass: «hunter2»",
    "apiVersion: v1\ndata:\n  db-url: «cG9zdGdyZXM6Ly9hOmJAYy9k»\n  pin: «MTIzNA==»\nkind: Secret",
    "    client-key-data: «LS0tLS1CRUdJTi" + "BSU0EgUFJJVkFURSBLRVkt" + made_up(80) + "»",
    "ansible_become_password: «sudo4me»",
    # Terraform
    'resource "aws_db_instance" "x" {\n  username = "app"\n  password = "«tfP4ss»"\n}',
    'provider "aws" {\n  access_key = "«AK' + "IA" + made_up(16, UPPER) + '»"\n}',
    'variable "api_token" { default = 1 }\napi_token = "«' + made_up(32) + '»"',
    # JSON configuration
    '{"auths":{"ghcr.io":{"username":"bob","password":"«gh' + "p_" + made_up(36) + '»"}}}',
    '{"host": "db", "user": "app", "password": "«p@ss\\"word»", "port": 3306}',
    '"ConnectionStrings": {"Default": "Server=db;Database=x;User Id=sa;Password=«My Pass»;Encrypt=True"}',
    '{"type": "service_account", "private_key_id": "«' + made_up(40, HEX) + '»"}',
    '{"mcpServers": {"x": {"env": {"FIGMA_TOKEN": "«fig' + "d_" + made_up(40) + '»"}}}}',
    # code
    'conn = psycopg2.connect("dbname=shop user=app password=«pgword» host=db")',
    'client = OpenAI(api_key="«sk-' + made_up(48) + '»")',
    'requests.get(url, headers={"Authorization": "Token «' + made_up(40, HEX) + '»"})',
    "app.config['SECRET_KEY'] = '«dev-5c0ffee»'",
    "const transport = createTransport({ auth: { user: 'bob', pass: '«swordfish»' } });",
    'const stripe = new Stripe("«rk' + "_live_" + made_up(24) + '»");',
    "axios.defaults.headers.common['Authorization'] = '«" + made_up(32, HEX) + "»';",
    'dsn := "app:«g0Pw»@tcp(db:3306)/shop"; password := "«g0pher»"',
    'private static final String DB_PASSWORD = "«j4vaBean»";',
    "spring.datasource.password=«springPw1»",
    "$db = new PDO($dsn, 'root', ''); $config['db_password'] = '«phpPw»';",
    "ActionMailer smtp_settings = { user_name: 'bob', password: '«railsPw»' }",
    # connection strings of ten databases
    "postgres://u:«pw1»@h:5432/d",
    "mysql+pymysql://u:«pw2»@h/d?charset=utf8",
    "mariadb://u:«pw3»@h/d",
    "mongodb://u:«pw4»@h1:27017,h2:27017/d?replicaSet=r",
    "redis://default:«pw5»@h:6379/0",
    "amqp://u:«pw6»@h:5672/vhost",
    "clickhouse://u:«pw7»@h:9000/d",
    "jdbc:sqlserver://h:1433;databaseName=d;user=sa;password=«pw8»;",
    "jdbc:oracle:thin:u/«pw0»@h; oracle+cx_oracle://u:«pw9»@h:1521/?service_name=x",
    "jdbc:postgresql://h/d?user=u&password=«pw10»&ssl=true",
    "neo4j+s://neo4j:«pw11»@x.databases.neo4j.io",
    "snowflake://u:«pw12»@account/d/s?warehouse=w",
    "cockroachdb://u:«pw13»@h:26257/d?sslmode=verify-full",
    "Driver={ODBC Driver 18 for SQL Server};Server=h;UID=sa;PWD=«pw 14»;",
    # stack traces and logs
    'sqlalchemy.exc.OperationalError: could not connect to "postgresql://app:«pgPw»@db:5432/app"',
    "requests.exceptions.HTTPError: 401 for url: https://api.example.com/v1/x?access_token=«"
    + made_up(30)
    + "»",
    "    at fetch (https://bot:«" + made_up(30) + "»@example.com/app.js:10:15)",
    "redis.exceptions.AuthenticationError: redis://:«r3dis»@cache:6379/0",
    "> Cookie: theme=dark; sessionid=«" + made_up(32) + "»",
    "< Set-Cookie: sid=«" + made_up(32) + "»; Path=/; HttpOnly",
    "level=info msg=connect user=app password=«logfmt» host=db",
    "DEBUG oauth2: refresh_token=«1//0" + made_up(40) + "» access_token=«ya" + "29.a0" + made_up(60) + "»",
    "POST /oauth/token grant_type=client_credentials&client_id=web&client_secret=«hunter2abc»",
    # prompts
    "the admin password is in the vault, but for now use password: «letmein99»\nthanks",
    "my key is «xa" + "i-" + made_up(80) + "», please try it",
    "deploy it «<private >with the card 4111 1111</private>» today",
]

HARMLESS = [
    # shell and CI
    "git commit -am 'Rename the token bucket' && git push origin main",
    "pytest -x -k 'test_login and not password' --maxfail=1",
    "PASS: test_login (0.02s)",
    "--- PASS: TestTokenRefresh2 (0.00s)",
    "ok 12 - password reset sends a mail",
    "tests pass = 3, fail = 0, pass_rate: 0.98",
    '{"total": 12, "pass": 12, "fail": 0, "pass_percent": "100%"}',
    "# pass 214\n# fail 0\n# duration_ms 1502.1",
    "docker run --rm -p 5432:5432 -e POSTGRES_PASSWORD=$PGPASS postgres:16",
    "docker login -u $USER --password-stdin < token.txt",
    "docker compose -p shop up -d",
    "kubectl create secret generic db --from-literal=password=$DB_PASSWORD",
    "kubectl get secret db -o jsonpath='{.data.password}' | base64 -d",
    "aws configure set region eu-central-1",
    "aws s3 cp s3://bucket/key-2024-01-02.csv .",
    "openssl req -new -key server.key -out server.csr -passin env:KEY_PASS",
    "openssl x509 -in cert.pem -noout -text",
    "http GET https://example.com/items page==2 --auth-type=bearer",
    "ls -a && http --offline POST example.com name=bob",
    "ldapsearch -x -W -D cn=admin -b dc=example,dc=com",
    "ssh -i ~/.ssh/id_ed25519 git@github.com",
    "export EDITOR=vim PATH=$PATH:/usr/local/bin GPG_TTY=$(tty)",
    "Successfully installed keyring-25.2.1 secretstorage-3.3.3 tokenizers-0.19.1",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 index.js",
    "CACHE_KEY=Linux-pip-9f86d081884c7d659a2feaa0c55ad015",
    "##[group]Run actions/checkout@v4\nwith:\n  token: ***\n  persist-credentials: true",
    # configuration
    "password: ${DB_PASSWORD:?required}",
    "secretKeyRef:\n  name: db-credentials-2\n  key: password",
    "imagePullSecrets:\n  - name: registry-1",
    "kind: Secret\nmetadata:\n  name: postgres\n  namespace: Database\ntype: Opaque\nstringData: {}",
    'variable "db_password" {\n  type      = string\n  sensitive = true\n}',
    'password = var.db_password\ntoken = data.vault_generic_secret.ci.data["token"]',
    '{"username": "bob", "password": null, "token": "", "passwordless": true}',
    "PRIMARY_KEY=id\nSORT_KEY=created_at\nFOREIGN_KEY=customer_account_number",
    "ENV PYTHONUNBUFFERED 1\nENV DB_PASSWORD_FILE /run/secrets/db1\nENV TOKEN_URL https://x.example.com",
    "ARG NPM_TOKEN\nRUN --mount=type=secret,id=npm npm ci",
    "spring.datasource.password=${DB_PASSWORD}",
    # code
    "def authenticate(self, username: str, password: str) -> Token:\n    pass",
    "class AuthError(Exception): pass",
    "try:\n    run()\nexcept KeyError:\n    pass",
    "bypass = true\ncompass=north\nfirst_pass = optimize(module2)\nrender_pass: shadow2",
    "if not secrets.compare_digest(token, expected): raise PermissionError",
    "const { user, pass } = config; login(user, pass);",
    "func NewClient(token string, opts ...Option) (*Client, error) {",
    "private final String passwordEncoder = new BCryptPasswordEncoder(12).toString();",
    "headers: { Authorization: `Bearer ${token}`, 'X-Api-Key': apiKey },",
    'return hmac.new(key, msg=payload, digestmod="sha256").hexdigest()',
    "client_secret=settings.CLIENT_SECRET, secret=secret2)",
    'psql(f"host={host} password={password} user={user}")',
    "const STORAGE_KEY = 'todo-list-v2';",
    "<PasswordField label='Password' error={errors.password} autoComplete='new-password' />",
    "<privateer>ship</privateer> <private-key-name>x</private-key-name> <private/>",
    "type Props<private_t> = Omit<T, 'secret' | 'token'>",
    # traces and prose
    '  File "/app/auth/token.py", line 42, in refresh_token\n    raise TokenExpired(token_id)',
    "KeyError: 'password'",
    "at Object.login (https://example.com:8443/static/app.3f9a1c.js:10:15)",
    'HTTP/1.1 401 Unauthorized\nWWW-Authenticate: Bearer realm="api", error="invalid_token"',
    "Authorization: AWS4-HMAC-SHA256 is the scheme; the authorization: see docs/authorization-v2.md",
    "The user forgot the password; we pass the token on and the key stays where it was.",
    "Rotate keys every 90 days; see https://example.com/docs/api-keys#rotation and mail ops@example.com.",
    "xai-sdk, nvapi-docs, pplx-api, figd_, glrt-, tskey-auth-..., ya29.",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b (tag: v1.2.3)",
    "uuid 550e8400-e29b-41d4-a716-446655440000 at 2025-02-11T09:14:02.113Z",
]


def unmark(marked: str) -> tuple[str, list[str]]:
    """A line as it was written, and the secrets in it."""
    return marked.replace("«", "").replace("»", ""), re.findall("«(.+?)»", marked)


@pytest.mark.parametrize("marked", LEAKS)
def test_a_secret_seen_in_the_wild_is_gone(marked: str) -> None:
    text, secrets = unmark(marked)
    redacted = redact(text)
    assert secrets
    assert not [secret for secret in secrets if secret in redacted]
    # Most of what is not secret is still there.
    assert len(redacted.split()) >= len(re.sub("«.+?»", "x", marked).split()) - 2


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_line_seen_in_the_wild_stays_byte_for_byte(text: str) -> None:
    assert redact(text) == text
    assert redact(json.dumps({"output": text})) == json.dumps({"output": text})


def test_the_corpora_are_large_enough() -> None:
    assert len(set(LEAKS)) >= 40
    assert len(set(HARMLESS)) >= 40


# --- the oracle -------------------------------------------------------------------------------------------


# The two high-entropy plugins flag any hash, uuid or long identifier, and the IP plugin flags addresses: what
# they find is not what we promise to remove. Every other plugin is in force.
NOISY = {"Base64HighEntropyString", "HexHighEntropyString", "IPPublicDetector"}

ORACLE_CORPUS = [
    *(context.format(secret) for _, context, secret, _ in POSITIVES),
    *(unmark(marked)[0] for marked in LEAKS),
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
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import transient_settings

    known: list[type] = list(get_mapping_from_secret_type_to_class().values())
    plugins = {plugin.__name__ for plugin in known} - NOISY
    with transient_settings({"plugins_used": [{"name": name} for name in sorted(plugins)]}):
        return {secret.secret_value or "" for line in text.splitlines() for secret in scan_line(line)}


@pytest.mark.slow
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
