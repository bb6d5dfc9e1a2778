"""Test material for a redactor of secrets: kinds of secrets, ways into a session, and harmless lookalikes.

KINDS       150 makers; each gives (snippet, secret). A secret may be a tuple: none of its parts may be found.
PLACEMENTS  ten ways in which a snippet gets into the hook payloads of a Claude Code session.
LOOKALIKES  100 harmless texts that must stay byte for byte as they are.

In templates, @S@ stands for the secret, @U@ for a user name, @H@ for a host and @N@ for an id of digits.
All values are random; prefixes are put together at run time, so that scanners find nothing in this file.
In payloads, "SESSION" and "CWD" (also at the start of file paths) are to be replaced by the caller.
"""

import base64
import hashlib
import html
import json
import random
import string
import urllib.parse
import uuid
from collections.abc import Callable
from typing import Any

Secret = str | tuple[str, ...]
Maker = Callable[[random.Random], tuple[str, Secret]]
Value = Callable[[random.Random], str]
Placement = Callable[[str, random.Random], list[dict[str, Any]]]

KINDS: list[tuple[str, Maker]] = []

# ---------------------------------------------------------------- values

ALNUM = string.ascii_letters + string.digits
WORDS = (
    "Tulip Harbor Falcon Kettle Walnut Comet Marble Otter Saffron Lantern Pepper Glacier Bison Velvet Copper "
    "Maple Rocket Pickle Thunder Badger Cactus Nebula Orchid Puffin Quartz Raven Sommer Winter Kaktus Ziegel "
    "Wolke Nagel Apfel Drache Lampe Tiger"
).split()
SEED_WORDS = (
    "abandon acoustic airport almost anchor apple arctic autumn bamboo basket blossom bracket bronze cabin "
    "canyon cereal cinnamon clarify coconut copper cradle cruise dolphin dragon ecology elbow ember fabric "
    "falcon fiction galaxy garlic ginger glimpse hazard helmet island jungle kitten ladder lemon lizard "
    "magnet meadow napkin nephew oblige olympic orbit oyster panther peanut pelican puzzle quantum rabbit "
    "ribbon saddle salmon siren tornado tunnel umbrella velvet vintage walnut whisper zebra"
).split()
BECH32 = "".join(sorted(set(string.ascii_uppercase + string.digits) - set("1BIO")))
USERS = [
    "app",
    "deploy",
    "svc_billing",
    "reporting",
    "shop_rw",
    "ci-runner",
    "backup",
    "etl",
    "root",
    "admin",
]
HOSTS = [
    "db-3.int.example.com",
    "10.20.4.17",
    "prod-db.example.net",
    "staging.example.org",
    "vault.corp.example",
]


def pick(alphabet: str, count: int) -> Value:
    """A maker of random text over an alphabet."""
    return lambda r: "".join(r.choice(alphabet) for _ in range(count))


def alnum(count: int) -> Value:
    return pick(ALNUM, count)


def hexa(count: int) -> Value:
    return pick("0123456789abcdef", count)


def lower(count: int) -> Value:
    return pick(string.ascii_lowercase + string.digits, count)


def b64url(count: int) -> Value:
    return pick(ALNUM + "-_", count)


def b64(size: int) -> Value:
    """Standard base64 of so many random bytes."""
    return lambda r: base64.b64encode(r.randbytes(size)).decode()


def prefixed(*parts: str | Value) -> Value:
    """Fixed and random parts, put together."""
    return lambda r: "".join(part if isinstance(part, str) else part(r) for part in parts)


def uid(r: random.Random) -> str:
    return str(uuid.UUID(int=r.getrandbits(128), version=4))


def password(r: random.Random) -> str:
    """A password as a person chooses it; safe in URLs, shells, JSON and XML."""
    one, two, three = r.sample(WORDS, 3)
    number = r.randint(10, 9899)
    sign = r.choice("!-_.*")
    return r.choice(
        [
            f"{one}{two}{number}{sign}",
            f"{one}{sign}{two}{number}",
            f"{one.lower()}-{two.lower()}-{number}-{three.lower()}",
            f"{one.lower()}{two.lower()}{number}",
            f"{one[:3]}{number}{two[:4]}_{three[:3].upper()}{r.randint(1, 9)}",
            "".join(r.choice(ALNUM) for _ in range(r.randint(9, 15))) + str(r.randint(1, 9)),
        ]
    )


def password_signs(r: random.Random) -> str:
    """A password with the special signs that policies ask for; for quoted places."""
    one, two = r.sample(WORDS, 2)
    first, second = r.sample("#%&@^$;=", 2)
    return f"{one}{first}{two.lower()}{second}{r.randint(10, 9899)}!"


def strong(r: random.Random) -> str:
    """A generated password."""
    return alnum(r.randint(18, 26))(r) + str(r.randint(0, 9))


def jwt(r: random.Random) -> str:
    def part(value: dict[str, Any]) -> str:
        return (
            base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")
        )

    start = r.randint(1_700_000_000, 1_780_000_000)
    claims = {"sub": str(r.randint(1000, 99999)), "role": "admin", "iat": start, "exp": start + 86400}
    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{b64url(43)(r)}"


def key_lines(r: random.Random, start: str, count: int, width: int = 64) -> list[str]:
    """Lines of base64 as in the body of a key file."""
    size = width * (count - 1) + width // 2
    text = start + pick(ALNUM + "+/", size - len(start) - 2)(r) + "=="
    return [text[at : at + width] for at in range(0, len(text), width)]


def pem(label: str, lines: list[str]) -> str:
    return "\n".join(["-----" + "BEGIN " + label + "-----", *lines, "-----" + "END " + label + "-----"])


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def fill(template: str, secret: str, r: random.Random) -> str:
    text = template.replace("@U@", r.choice(USERS)).replace("@H@", r.choice(HOSTS))
    return text.replace("@N@", str(r.randint(100_000, 99_999_999))).replace("@S@", secret)


def add(name: str, template: str, value: Value) -> None:
    """A kind whose secret stands in the text as it is."""

    def make(r: random.Random) -> tuple[str, Secret]:
        secret = value(r)
        return fill(template, secret, r), secret

    KINDS.append((name, make))


def kind(name: str) -> Callable[[Maker], Maker]:
    """Register a maker for a kind that needs more than a template."""

    def register(make: Maker) -> Maker:
        KINDS.append((name, make))
        return make

    return register


# ---------------------------------------------------------------- vendor tokens (12)

add("github_classic_token", "echo @S@ | gh auth login --with-token", prefixed("gh", "p_", alnum(36)))
add("github_fine_grained", "GH_PAT: @S@", prefixed("github", "_pat_11", alnum(20), "_", alnum(59)))
add("gitlab_token", "use @S@ for the gitlab api, it has read_api", prefixed("gl", "pat-", b64url(20)))
add(
    "slack_bot_token",
    "slack:\n  channel: '#deploys'\n  bot_token: @S@",
    prefixed("xo", "xb-", pick(string.digits, 12), "-", pick(string.digits, 13), "-", alnum(24)),
)
add("stripe_live_key", 'stripe.api_key = "@S@"', prefixed("sk", "_live_", alnum(24)))
add(
    "openai_project_key",
    'client = OpenAI(api_key="@S@", timeout=30)',
    prefixed("sk", "-proj-", b64url(74), "T3Blbk", "FJ", b64url(74)),
)
add("anthropic_key", "ANTHROPIC_API_KEY=@S@", prefixed("sk", "-ant-", "api03-", b64url(93), "AA"))
add("sendgrid_key", "sgMail.setApiKey('@S@');", prefixed("S", "G.", b64url(22), ".", b64url(43)))
add("huggingface_token", "login(token='@S@', add_to_git_credential=False)", prefixed("h", "f_", alnum(34)))
add("digitalocean_token", "doctl auth init -t @S@", prefixed("do", "p_v1_", hexa(64)))
add("shopify_admin_token", "X-Shopify-Access-Token: @S@", prefixed("shp", "at_", hexa(32)))
add(
    "telegram_bot_token",
    "curl -s https://api.telegram.org/bot@S@/getUpdates",
    prefixed(pick("123456789", 10), ":AA", b64url(33)),
)

# ---------------------------------------------------------------- cloud (10)


@kind("aws_credentials_file")
def _aws_credentials(r: random.Random) -> tuple[str, Secret]:
    key_id = "AK" + "IA" + pick(string.ascii_uppercase + "234567", 16)(r)
    secret = pick(ALNUM + "+/", 40)(r)
    return f"[shop-prod]\naws_access_key_id = {key_id}\naws_secret_access_key = {secret}\n", secret


add(
    "aws_session_token",
    'export AWS_SESSION_TOKEN="@S@"',
    prefixed("IQoJb3JpZ2lu", "X2VjE", pick(ALNUM + "+/", 260), "=="),
)


@kind("gcp_service_account_json")
def _gcp_account(r: random.Random) -> tuple[str, Secret]:
    lines = key_lines(r, "MIIEvQIBADANBgkqhkiG9w0B", 26)
    account = {
        "type": "service_account",
        "project_id": f"shop-prod-{r.randint(100000, 999999)}",
        "private_key_id": hexa(40)(r),
        "private_key": pem("PRIVATE" + " KEY", lines) + "\n",
        "client_email": "uploader@shop-prod.iam.gserviceaccount.com",
    }
    return json.dumps(account, indent=2), tuple(lines)


add("google_server_key", "GOOGLE_GEOCODING_SERVER_KEY=@S@", prefixed("AI", "za", b64url(35)))
add(
    "azure_storage_connection",
    "DefaultEndpointsProtocol=https;AccountName=shopassets;AccountKey=@S@;EndpointSuffix=core.windows.net",
    b64(64),
)
add(
    "azure_login_client_secret",
    "az login --service-principal -u 4c1f7a52-09d1-4d6e-8a34-5b1d7be1e0aa -p @S@ --tenant example.com",
    prefixed(alnum(3), "8Q", "~", pick(ALNUM + "-_.~", 34)),
)


@kind("azure_sas_url")
def _azure_sas(r: random.Random) -> tuple[str, Secret]:
    signature = urllib.parse.quote(b64(32)(r), safe="")
    url = (
        "https://shopassets.blob.core.windows.net/backups/shop.bak?sv=2023-11-03&st=2026-03-01T00%3A00%3A00Z"
    )
    return f"azcopy copy '{url}&se=2027-03-01T00%3A00%3A00Z&sr=c&sp=racwl&sig={signature}' .", signature


@kind("aws_presigned_url")
def _aws_presigned(r: random.Random) -> tuple[str, Secret]:
    key_id = "AS" + "IA" + pick(string.ascii_uppercase + "234567", 16)(r)
    signature = hexa(64)(r)
    return (
        "https://shop-exports.s3.eu-central-1.amazonaws.com/2026/orders.csv?X-Amz-Algorithm=AWS4-HMAC-SHA256"
        f"&X-Amz-Credential={key_id}%2F20260311%2Feu-central-1%2Fs3%2Faws4_request"
        "&X-Amz-Date=20260311T090112Z&X-Amz-Expires=604800"
        f"&X-Amz-SignedHeaders=host&X-Amz-Signature={signature}",
        signature,
    )


add(
    "azure_service_bus",
    "Endpoint=sb://orders.servicebus.windows.net/;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=@S@",
    b64(32),
)
add(
    "aws_ssm_parameter_output",
    '{\n    "Parameter": {\n        "Name": "/prod/shop/db_password",\n        "Type": "SecureString",\n'
    '        "Value": "@S@",\n        "Version": 4\n    }\n}',
    strong,
)

# ---------------------------------------------------------------- databases (10)

add("postgres_url", "DATABASE_URL=postgres://@U@:@S@@@H@:5432/shop?sslmode=require", password)
add("jdbc_url", "jdbc:mysql://@H@:3306/billing?useSSL=true&user=@U@&password=@S@", password)
add("mongodb_srv_url", 'mongoose.connect("mongodb+srv://@U@:@S@@cluster0.k3v1x.mongodb.net/shop")', password)
add("redis_url_no_user", "CELERY_BROKER_URL: redis://:@S@@@H@:6379/0", strong)
add("adonet_connection", "Server=tcp:@H@,1433;Database=Orders;User Id=@U@;Password=@S@;Encrypt=True;", strong)
add(
    "psycopg_connect",
    'conn = psycopg2.connect(host="@H@", dbname="shop", user="@U@", password="@S@")',
    password_signs,
)
add(
    "django_databases",
    "DATABASES = {\n    'default': {\n        'ENGINE': 'django.db.backends.postgresql',\n"
    "        'NAME': 'shop',\n"
    "        'USER': '@U@',\n        'PASSWORD': '@S@',\n        'HOST': '@H@',\n    }\n}",
    password_signs,
)
add("libpq_dsn", 'dsn := "host=@H@ port=5432 user=@U@ password=@S@ dbname=shop sslmode=disable"', password)
add("sql_identified_by", "CREATE USER '@U@'@'%' IDENTIFIED BY '@S@';", password_signs)
add("odbc_pwd", 'cnxn = pyodbc.connect("DRIVER={ODBC Driver 18};SERVER=@H@;UID=@U@;PWD=@S@")', strong)

# ---------------------------------------------------------------- env files and shells (9)

add(
    "dotenv_quoted", 'APP_ENV=production\nAPP_DEBUG=false\nMAIL_PASSWORD="@S@"\nMAIL_PORT=587', password_signs
)
add("bash_export_single_quoted", "export LDAP_BIND_PW='@S@'", password_signs)
add("powershell_env", '$env:SONAR_TOKEN = "@S@"', prefixed("sq", "u_", hexa(40)))
add(
    "powershell_secure_string",
    '$pw = ConvertTo-SecureString "@S@" -AsPlainText -Force\n'
    '$cred = New-Object PSCredential("CORP\\@U@", $pw)',
    password,
)
add("fish_set", "set -gx SENTRY_AUTH_TOKEN @S@", hexa(64))
add("windows_setx", 'setx NEXUS_PASSWORD "@S@" /M', password)
add(
    "compose_environment_list",
    "services:\n  db:\n    image: postgres:16\n    environment:\n      - POSTGRES_USER=@U@\n"
    "      - POSTGRES_PASSWORD=@S@",
    password,
)
add("systemd_environment", '[Service]\nEnvironment="APP_PORT=8080" "APP_SECRET_KEY=@S@"', hexa(48))
add("pgpassword_inline", "PGPASSWORD=@S@ psql -h @H@ -U @U@ -c 'select count(*) from orders'", password)

# ---------------------------------------------------------------- configs (15)

add(
    "json_nested_smtp",
    '{"smtp": {"host": "mail.example.com", "port": 465, "auth": {"user": "noreply", "pass": "@S@"}}}',
    password,
)
add(
    "json_name_value_pair",
    '{ "name": "STRIPE_WEBHOOK_SECRET", "value": "@S@" },',
    prefixed("wh", "sec_", alnum(32)),
)
add(
    "k8s_env_value_next_line",
    "env:\n  - name: LOG_LEVEL\n    value: info\n  - name: DB_PASSWORD\n    value: @S@",
    password,
)


@kind("k8s_secret_data_base64")
def _k8s_secret(r: random.Random) -> tuple[str, Secret]:
    plain = strong(r)
    snippet = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: shop-db\ndata:\n  password: {encoded(plain)}"
    return snippet, (encoded(plain), plain)


add("yaml_block_scalar", "jwt:\n  issuer: shop\n  signing_secret: |\n    @S@\n  ttl: 3600", b64(48))
add(
    "helm_values",
    "postgresql:\n  auth:\n    username: @U@\n    postgresPassword: '@S@'\n    database: shop",
    strong,
)
add("toml_section", '[mail]\nserver = "mail.example.com"\nusername = "@U@"\npassword = "@S@"', password_signs)
add(
    "ini_section",
    "[ldap]\nuri = ldaps://@H@\nbind_dn = cn=@U@,dc=example,dc=com\nbind_password = @S@",
    password,
)
add("java_properties", "spring.datasource.username=@U@\nspring.datasource.password=@S@", password)
add("xml_app_setting", '<add key="PaymentApiSecret" value="@S@" />', b64(30))
add(
    "maven_settings",
    "<server>\n  <id>nexus-releases</id>\n  <username>@U@</username>\n  <password>@S@</password>\n</server>",
    password,
)
add(
    "hcl_variable_default",
    'variable "db_master_password" {\n  type      = string\n  sensitive = true\n  default   = "@S@"\n}',
    password,
)
add(
    "cloudformation_default",
    "Parameters:\n  MasterUserPassword:\n    Type: String\n    NoEcho: true\n    Default: @S@",
    strong,
)
add("plist_key_string", "<key>UploadAPIKey</key>\n<string>@S@</string>", alnum(32))
add(
    "ansible_inventory",
    "web1 ansible_host=10.20.4.31 ansible_user=@U@ ansible_ssh_pass=@S@ ansible_python_interpreter=auto",
    password,
)

# ---------------------------------------------------------------- command lines (18)

add("curl_user", "curl -sS -u @U@:@S@ https://nexus.example.com/service/rest/v1/status", password)
add("gh_secret_set", 'gh secret set DEPLOY_KEY_PASSPHRASE --body "@S@" --repo acme/shop', password)
add(
    "kubectl_from_literal",
    "kubectl create secret generic shop-db --from-literal=password='@S@' -n prod",
    password_signs,
)
add("aws_configure_set", "aws configure set aws_secret_access_key @S@ --profile ci", pick(ALNUM + "+/", 40))
add("gcloud_sql_password", "gcloud sql users set-password @U@ --instance=shop-db --password=@S@", password)
add(
    "az_admin_password",
    'az sql server create -n shopsql -g shop-rg --admin-user @U@ --admin-password "@S@"',
    strong,
)
add("docker_login_p", "docker login -u @U@ -p @S@ images.example.com", password)
add(
    "helm_set",
    "helm upgrade --install redis ./charts/redis --set auth.enabled=true,auth.password=@S@",
    strong,
)
add("vault_kv_put", "vault kv put secret/shop/smtp username=@U@ password=@S@", password)
add("mysql_p_attached", "mysql -h @H@ -u @U@ -p@S@ billing < dump.sql", password)
add("redis_cli_a", "redis-cli -h @H@ -p 6380 --tls -a @S@ info replication", strong)
add("zip_password", "zip -r -P @S@ customers.zip exports/2026", password)
add("openssl_passin", "openssl pkcs12 -in cert.p12 -nodes -passin pass:@S@ -out cert.pem", password)
add("sshpass", "sshpass -p '@S@' ssh -o StrictHostKeyChecking=no @U@@@H@ uptime", password_signs)
add("htpasswd_batch", "htpasswd -b -c /etc/nginx/.htpasswd @U@ @S@", password)
add(
    "terraform_var",
    "terraform apply -auto-approve -var 'region=eu-central-1' -var 'db_password=@S@'",
    password,
)
add(
    "twine_token",
    "twine upload -u __token__ -p @S@ dist/*",
    prefixed("py", "pi-", "AgEIcHlwaS5vcmc", "CJ", b64url(120)),
)
add("sudo_stdin", "echo '@S@' | sudo -S systemctl restart nginx", password)

# ---------------------------------------------------------------- code (12)

add("python_constant", 'BASE_URL = "https://api.example.com"\nAPI_SECRET = "@S@"', hexa(40))
add(
    "js_config_object",
    "const config = { region: 'eu', clientId: 'shop-web', clientSecret: '@S@' };",
    b64url(40),
)
add("ts_default_argument", 'function connect(host: string, password = "@S@"): Promise<Client> {', password)
add("java_setter", 'dataSource.setUsername("@U@");\ndataSource.setPassword("@S@");', password_signs)
add("csharp_network_credential", 'client.Credentials = new NetworkCredential("@U@", "@S@");', password_signs)
add("go_struct_literal", 'opts := &redis.Options{Addr: "@H@:6379", Password: "@S@", DB: 0}', strong)
add("rust_const", 'const WEBHOOK_SIGNING_SECRET: &str = "@S@";', hexa(64))
add("ruby_hash_rocket", "config.omniauth :google_oauth2, 'shop-web', { :client_secret => '@S@' }", b64url(35))
add("php_define", "define('RECAPTCHA_SECRET_KEY', '@S@');", prefixed("6L", b64url(38)))
add("jwt_sign_argument", "const token = jwt.sign({ id: user.id }, '@S@', { expiresIn: '1d' });", strong)
add(
    "requests_auth_tuple",
    'r = requests.get(f"{base}/rest/api/2/myself", auth=("@U@", "@S@"))',
    password_signs,
)
add(
    "c_define_wifi",
    '#define WIFI_SSID "workshop-2g"\n#define WIFI_PASSWORD "@S@"',
    password,
)

# ---------------------------------------------------------------- http (10)


@kind("basic_auth_header")
def _basic_auth(r: random.Random) -> tuple[str, Secret]:
    plain = password_signs(r)
    token = encoded(f"{r.choice(USERS)}:{plain}")
    return f"GET /api/v2/orders HTTP/1.1\nHost: api.example.com\nAuthorization: Basic {token}", (token, plain)


@kind("bearer_jwt")
def _bearer_jwt(r: random.Random) -> tuple[str, Secret]:
    token = jwt(r)
    return f'curl -H "Authorization: Bearer {token}" https://api.example.com/me', (token, token.split(".")[2])


add("bearer_opaque", "> Authorization: Bearer @S@\n> Accept: application/json", b64url(43))
add("cookie_session", "Cookie: theme=dark; lang=de; sessionid=@S@; _consent=1", lower(32))
add("set_cookie", "< Set-Cookie: connect.sid=s%3A@S@; Path=/; HttpOnly; Secure; SameSite=Lax", b64url(64))
add(
    "x_api_key_header",
    'fetch(url, { headers: { "Content-Type": "application/json", "X-Api-Key": "@S@" } })',
    alnum(40),
)
add(
    "query_access_token",
    "GET https://graph.example.com/v19.0/me/accounts?fields=id&access_token=@S@",
    alnum(96),
)
add(
    "form_body_password",
    "curl -d 'grant_type=password&username=@U@&password=@S@' https://sso.example.com/token",
    strong,
)
add(
    "oauth_token_response",
    '{"token_type":"Bearer","expires_in":3599,"scope":"offline","refresh_token":"@S@"}',
    prefixed("1//", "0", b64url(90)),
)
add(
    "slack_webhook_url",
    'curl -X POST -d \'{"text":"done"}\' https://hooks.' + "slack.com/services/T0@N@/B0@N@/@S@",
    alnum(24),
)

# ---------------------------------------------------------------- auth files (10)

add("netrc", "machine git.example.com\n  login @U@\n  password @S@", password)
add("pgpass", "@H@:5432:shop:@U@:@S@", password)
add(
    "npmrc",
    "@acme:registry=https://npm.example.com/\n//npm.example.com/:_authToken=@S@",
    prefixed("np", "m_", alnum(36)),
)
add(
    "pypirc",
    "[internal]\nrepository = https://python.example.com/simple\nusername = @U@\npassword = @S@",
    password,
)
add("git_credentials", "https://@U@:@S@@git.example.com", prefixed("gl", "pat-", b64url(20)))
add(
    "kubeconfig_token",
    "users:\n- name: prod-admin\n  user:\n    token: @S@",
    prefixed("kubeconfig-u-", lower(10), ":", lower(54)),
)


@kind("docker_config_json")
def _docker_config(r: random.Random) -> tuple[str, Secret]:
    plain = password(r)
    token = encoded(f"{r.choice(USERS)}:{plain}")
    document = {"auths": {"images.example.com": {"auth": token}}, "credsStore": ""}
    return json.dumps(document, indent=2), (token, plain)


add(
    "wp_config_salt",
    "define( 'DB_NAME', 'wordpress' );\ndefine( 'LOGGED_IN_KEY', '@S@' );",
    pick(ALNUM + "!#%&()*+,-.:;=?@[]^_{|}~", 64),
)
add("my_cnf", "[client]\nuser=@U@\npassword=@S@\nhost=@H@", password)
add(
    "rclone_conf",
    "[backup]\ntype = s3\nprovider = Minio\naccess_key_id = @U@\nsecret_access_key = @S@",
    alnum(40),
)

# ---------------------------------------------------------------- prose (10)

add(
    "prose_english_password",
    "the staging login is @U@ and the password is @S@, please test the checkout",
    password,
)
add(
    "prose_english_changed",
    "I changed the root password on @H@ to @S@ yesterday, the old one is gone.",
    password,
)
add("prose_english_api_key", "Here is our API key for the weather service: @S@ (do not commit it)", hexa(32))
add(
    "prose_english_slash",
    "log in with @U@ / @S@ (those are the prod credentials) and check the queue",
    password,
)
add("prose_german_lautet", "Das Passwort für den Benutzer @U@ lautet @S@, bitte nicht weitergeben.", password)
add("prose_german_zugangsdaten", "Zugangsdaten Testsystem:\nBenutzer: @U@\nKennwort: @S@", password)
add("prose_french", "Le mot de passe de la base de production est « @S@ », utilisateur @U@.", password)
add("prose_spanish", "la contraseña del servidor @H@ es @S@ y el usuario es @U@", password)
add("prose_polish", "Hasło do bazy: @S@, login @U@", password)
add("prose_russian", "пароль от админки: @S@ , логин @U@", password)

# ---------------------------------------------------------------- logs and tracebacks (6)

add(
    "log_connection_params",
    "DEBUG pool: connecting with {'host': '@H@', 'user': '@U@', 'password': '@S@', 'connect_timeout': 5}",
    password,
)
add(
    "traceback_with_url",
    'Traceback (most recent call last):\n  File "app/db.py", line 41, in connect\n'
    "    engine = create_engine(url)\nsqlalchemy.exc.ArgumentError: Could not parse URL from string "
    "'postgresql+asyncpg://@U@:@S@@@H@/shop;'",
    password,
)
add(
    "axios_error_headers",
    "AxiosError: Request failed with status code 403\n  config: {\n    method: 'post',\n    headers: {\n"
    "      Accept: 'application/json',\n      'X-Auth-Token': '@S@'\n    }\n  }",
    b64url(48),
)
add(
    "mysqld_temporary_password",
    "[Note] [MY-010454] [Server] A temporary password is generated for root@localhost: @S@",
    pick(ALNUM + "#%*+-.:=?_", 14),
)
add(
    "jenkins_initial_password",
    "Jenkins initial setup is required. An admin user has been created and a password generated.\n"
    "Please use the following password to proceed to installation:\n\n@S@\n\n"
    "This may also be found at: /var/jenkins_home/secrets/initialAdminPassword",
    hexa(32),
)
add("shell_trace", "+ mc alias set backup https://minio.example.com @U@ @S@\n+ mc ls backup/shop", alnum(40))

# ---------------------------------------------------------------- private keys (7)


@kind("pem_rsa_key")
def _pem_rsa(r: random.Random) -> tuple[str, Secret]:
    lines = key_lines(r, "MIIEpAIBAAKCAQEA", 25)
    return pem("RSA " + "PRIVATE" + " KEY", lines), tuple(lines)


@kind("pem_encrypted_ec_key")
def _pem_ec(r: random.Random) -> tuple[str, Secret]:
    lines = key_lines(r, "", 4)
    salt = hexa(32)(r).upper()
    text = pem(
        "EC " + "PRIVATE" + " KEY", ["Proc-Type: 4,ENCRYPTED", f"DEK-Info: AES-256-CBC,{salt}", "", *lines]
    )
    return text, tuple(lines)


@kind("openssh_private_key")
def _openssh(r: random.Random) -> tuple[str, Secret]:
    lines = key_lines(r, "b3BlbnNzaC1rZXktdjEA" + "AAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW", 6, 70)
    # The first line is the same for all such keys.
    return pem("OPENSSH " + "PRIVATE" + " KEY", lines), tuple(lines[1:])


@kind("putty_ppk")
def _putty(r: random.Random) -> tuple[str, Secret]:
    lines = key_lines(r, "AAABA", 14)
    public = key_lines(r, "AAAAB3NzaC1yc2EAAAADAQABAAABAQ", 6)
    head = "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: deploy\nPublic-Lines: 6\n"
    body = "\n".join(public) + "\nPrivate-Lines: 14\n" + "\n".join(lines)
    return f"{head}{body}\nPrivate-MAC: {hexa(64)(r)}", tuple(lines)


add(
    "age_secret_key",
    "# created: 2026-02-11T10:12:44+01:00\n@S@",
    prefixed("AGE-" + "SECRET-" + "KEY-1", pick(BECH32, 58)),
)


@kind("jwk_private")
def _jwk(r: random.Random) -> tuple[str, Secret]:
    secret = b64url(43)(r)
    jwk = {"kty": "EC", "crv": "P-256", "kid": "sig-1", "x": b64url(43)(r), "y": b64url(43)(r), "d": secret}
    return json.dumps(jwk), secret


add(
    "wireguard_config",
    "[Interface]\nAddress = 10.8.0.2/24\nPrivateKey = @S@\nDNS = 10.8.0.1",
    b64(32),
)

# ---------------------------------------------------------------- hashes that can be cracked (4)

CRYPT = "./" + ALNUM


@kind("bcrypt_in_sql")
def _bcrypt(r: random.Random) -> tuple[str, Secret]:
    digest = pick(CRYPT, 53)(r)
    row = f"(1, 'admin@example.com', '$2b$12${digest}', true)"
    return f"INSERT INTO users (id, email, password_hash, is_admin) VALUES {row};", digest  # noqa: S608


@kind("shadow_line")
def _shadow(r: random.Random) -> tuple[str, Secret]:
    digest = pick(CRYPT, 86)(r)
    return f"{r.choice(USERS)}:$6${pick(CRYPT, 16)(r)}${digest}:19782:0:99999:7:::", digest


@kind("htpasswd_apr1")
def _apr1(r: random.Random) -> tuple[str, Secret]:
    digest = pick(CRYPT, 22)(r)
    return f"{r.choice(USERS)}:$apr1${pick(CRYPT, 8)(r)}${digest}", digest


@kind("django_pbkdf2")
def _pbkdf2(r: random.Random) -> tuple[str, Secret]:
    digest, name = b64(32)(r), "pass" + "word"
    return f'"{name}": "pbkdf2_sha256$720000${alnum(22)(r)}${digest}",', digest


# ---------------------------------------------------------------- other forms of text (9)


@kind("ansi_grep_highlight")
def _ansi_grep(r: random.Random) -> tuple[str, Secret]:
    prefix, rest = "sk" + "_live_", alnum(32)(r)
    return f"config/prod.env:STRIPE_KEY=\x1b[01;31m\x1b[K{prefix}\x1b[m\x1b[K{rest}", (rest, prefix + rest)


add(
    "ansi_key_value_log",
    "\x1b[32mINF\x1b[0m login ok \x1b[36muser=\x1b[0m@U@ \x1b[36mpassword=\x1b[0m@S@",
    password,
)


@kind("zero_width_in_password")
def _zero_width(r: random.Random) -> tuple[str, Secret]:
    one, two = alnum(9)(r), alnum(9)(r)
    return f"Password: {one}\u200b{two}\nURL: https://wiki.example.com", (
        one + "\u200b" + two,
        one + two,
        one,
        two,
    )


@kind("full_width_japanese")
def _full_width(r: random.Random) -> tuple[str, Secret]:
    plain = alnum(12)(r)
    wide = "".join(chr(ord(letter) + 0xFEE0) for letter in plain)
    return f"ユーザー：{r.choice(USERS)}\nパスワード：{wide}", (wide, plain)


@kind("base64_of_env_line")
def _base64_env(r: random.Random) -> tuple[str, Secret]:
    plain = strong(r)
    token = encoded(f"DB_PASSWORD={plain}\n")
    return f"echo {token} | base64 -d >> .env", (token, plain)


@kind("url_encoded_password")
def _url_encoded(r: random.Random) -> tuple[str, Secret]:
    plain = password_signs(r)
    quoted = urllib.parse.quote(plain, safe="")
    return f"mysql://{r.choice(USERS)}:{quoted}@{r.choice(HOSTS)}:3306/shop", (quoted, plain)


@kind("json_in_json_string")
def _json_in_json(r: random.Random) -> tuple[str, Secret]:
    secret = password(r)
    inner = json.dumps({"username": r.choice(USERS), "password": secret, "engine": "postgres"})
    return json.dumps({"Name": "prod/shop/db", "SecretString": inner}), secret


@kind("split_string")
def _split_string(r: random.Random) -> tuple[str, Secret]:
    one, two = "gh" + "p_" + alnum(16)(r), alnum(20)(r)
    return f'GITHUB_TOKEN = "{one}" + "{two}"  # split for the scanner', (one, two, one + two)


@kind("html_entities")
def _html_entities(r: random.Random) -> tuple[str, Secret]:
    one, two = alnum(8)(r), alnum(8)(r)
    plain = f"{one}&{two}'{r.randint(1, 9)}"
    escaped = html.escape(plain)
    return f'<input type="password" name="smtp_password" value="{escaped}">', (escaped, plain, one, two)


# ---------------------------------------------------------------- others (8)


@kind("recovery_codes")
def _recovery_codes(r: random.Random) -> tuple[str, Secret]:
    codes = tuple(f"{lower(5)(r)}-{lower(5)(r)}" for _ in range(8))
    return "Two-factor recovery codes (each works once):\n" + "\n".join(codes), codes


add(
    "otpauth_uri",
    "otpauth://totp/Shop:@U@?secret=@S@&issuer=Shop&digits=6&period=30",
    pick(string.ascii_uppercase + "234567", 32),
)


@kind("seed_phrase")
def _seed_phrase(r: random.Random) -> tuple[str, Secret]:
    words = r.sample(SEED_WORDS, 12)
    phrase = " ".join(words)
    return f'MNEMONIC="{phrase}"', (phrase, " ".join(words[:6]), " ".join(words[6:]))


add("ethereum_private_key", 'accounts: ["0x@S@"],  // deployer private key', hexa(64))
add(
    "django_secret_key",
    "SECRET" + "_KEY = 'django-insecure-@S@'",
    pick(string.ascii_lowercase + string.digits + "!@#%^&*(-_=+)", 50),
)


@kind("license_key")
def _license_key(r: random.Random) -> tuple[str, Secret]:
    key = "-".join(pick(string.ascii_uppercase + string.digits, 5)(r) for _ in range(5))
    return f"Product activated for 25 seats.\nLicense key: {key}", key


add(
    "password_reset_link",
    "Reset your password: https://shop.example.com/reset-password?uid=@N@&token=@S@",
    b64url(48),
)


@kind("card_with_cvv")
def _card(r: random.Random) -> tuple[str, Secret]:
    digits = [4] + [r.randint(0, 9) for _ in range(14)]
    total = sum(d if at % 2 else (d * 2 - 9 if d > 4 else d * 2) for at, d in enumerate(digits))
    number = "".join(map(str, [*digits, -total % 10]))
    return f"company card for the ads account: {number}, exp 09/29, cvv {r.randint(100, 999)}", number


# ---------------------------------------------------------------- placements

PROJECT = "/home/dev/.claude/projects/-home-dev-project"


def _event(event: str, r: random.Random, **fields: object) -> dict[str, Any]:
    return {
        "session_id": "SESSION",
        "transcript_path": f"{PROJECT}/SESSION.jsonl",
        "cwd": "CWD",
        "prompt_id": uid(r),
        "permission_mode": "default",
        "hook_event_name": event,
        **fields,
    }


def _tool_use_id(r: random.Random, *parts: object) -> str:
    """Also different for the same state of the rng, if the call differs."""
    return "toolu_" + hashlib.sha256(repr((r.getrandbits(64), parts)).encode()).hexdigest()[:24]


def _tool(
    r: random.Random,
    name: str,
    tool_input: dict[str, Any],
    tool_response: object,
    server: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """The two events of one successful tool call."""
    call: dict[str, Any] = {"tool_name": name, "tool_input": tool_input}
    call["tool_use_id"] = _tool_use_id(r, name, tool_input, tool_response)
    if server:
        call["mcp_server"] = server
    before = _event("PreToolUse", r, **call)
    after = _event("PostToolUse", r, **call, tool_response=tool_response, duration_ms=r.randint(3, 900))
    after["prompt_id"] = before["prompt_id"]
    return [before, after]


def _stdout(text: str) -> dict[str, Any]:
    return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}


def _numbered(text: str) -> str:
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 1))


def _prompt_sentence(snippet: str, r: random.Random) -> list[dict[str, Any]]:
    start = r.choice(["The deploy still fails, this is what I have:", "ok, use this for the test:"])
    return [
        _event("UserPromptSubmit", r, prompt=f"{start}\n\n{snippet}\n\nCan you check why it does not work?")
    ]


def _bash_heredoc(snippet: str, r: random.Random) -> list[dict[str, Any]]:
    command = f"mkdir -p deploy && cat > deploy/setup.txt <<'EOF'\n{snippet}\nEOF\nwc -l deploy/setup.txt"
    lines = snippet.count("\n") + 1
    tool_input = {"command": command, "description": "Write the setup notes"}
    return _tool(r, "Bash", tool_input, _stdout(f"{lines} deploy/setup.txt"))


def _bash_stdout(snippet: str, r: random.Random) -> list[dict[str, Any]]:
    return _tool(r, "Bash", {"command": "cat deploy/setup.txt"}, _stdout(snippet))


def _read_numbered(snippet: str, r: random.Random) -> list[dict[str, Any]]:
    """The file as the hook gets it, and with line numbers in the batch as the model gets it."""
    path = "CWD/deploy/setup.txt"
    text = f"# setup of the shop\n\n{snippet}\n"
    lines = text.count("\n") + 1
    file = {"filePath": path, "content": text, "numLines": lines, "startLine": 1, "totalLines": lines}
    events = _tool(r, "Read", {"file_path": path}, {"type": "text", "file": file})
    call = {
        "tool_name": "Read",
        "tool_input": {"file_path": path},
        "tool_use_id": events[0]["tool_use_id"],
        "tool_response": [{"text": _numbered(text), "type": "text"}],
    }
    return [*events, _event("PostToolBatch", r, tool_calls=[call])]


def _write_then_edit(snippet: str, r: random.Random) -> list[dict[str, Any]]:
    """A file is written with the snippet; an edit then takes it out again."""
    path = "CWD/deploy/setup.txt"
    text, todo = f"{snippet}\n", "# moved to the vault"
    written: dict[str, Any] = {
        "type": "create",
        "filePath": path,
        "content": text,
        "structuredPatch": [],
        "originalFile": None,
    }
    removed = [f"-{line}" for line in snippet.split("\n")]
    patch = {
        "oldStart": 1,
        "oldLines": len(removed),
        "newStart": 1,
        "newLines": 1,
        "lines": [*removed, f"+{todo}"],
    }
    edited = {
        "filePath": path,
        "oldString": snippet,
        "newString": todo,
        "originalFile": text,
        "structuredPatch": [patch],
        "userModified": False,
        "replaceAll": False,
    }
    edit = {"file_path": path, "old_string": snippet, "new_string": todo, "replace_all": False}
    return [
        *_tool(r, "Write", {"file_path": path, "content": text}, {**written, "userModified": False}),
        *_tool(r, "Edit", edit, edited),
    ]


def _git_diff(snippet: str, r: random.Random) -> list[dict[str, Any]]:
    lines = snippet.split("\n")
    diff = [
        "diff --git a/deploy/setup.txt b/deploy/setup.txt",
        f"index {hexa(7)(r)}..{hexa(7)(r)} 100644",
        "--- a/deploy/setup.txt",
        "+++ b/deploy/setup.txt",
        f"@@ -1,2 +1,{len(lines) + 1} @@",
        " # setup of the shop",
        "-# to be done",
        *(f"+{line}" for line in lines),
    ]
    return _tool(r, "Bash", {"command": "git diff HEAD~1 -- deploy"}, _stdout("\n".join(diff)))


def _mcp_json(snippet: str, r: random.Random) -> list[dict[str, Any]]:
    """An MCP server gives an issue as a JSON document; the snippet is escaped in its body."""
    number = r.randint(10, 4000)
    body = f"Steps to reproduce:\n\n{snippet}\n\nThen open the page."
    issue = {"number": number, "title": "Login fails", "state": "open", "body": body, "comments": 2}
    response = [{"type": "text", "text": json.dumps(issue, ensure_ascii=False, indent=2)}]
    server = {"name": "tracker", "source": "user"}
    return _tool(r, "mcp__tracker__get_issue", {"number": number}, response, server)


def _stop_fence(snippet: str, r: random.Random) -> list[dict[str, Any]]:
    message = f"Done. This is now in `deploy/setup.txt`:\n\n```\n{snippet}\n```\n\nAll 12 tests pass."
    fields = {"stop_hook_active": False, "last_assistant_message": message}
    return [_event("Stop", r, **fields, background_tasks=[], session_crons=[])]


def _failed_command_log(snippet: str, r: random.Random) -> list[dict[str, Any]]:
    """A failed command whose log has a time stamp before each line."""
    second = r.randint(10, 40)
    lines = ["starting deploy", *snippet.split("\n"), "deploy failed"]
    log = "\n".join(
        f"2026-03-11T09:14:{second + at // 10:02}.{at % 10}37Z {line}" for at, line in enumerate(lines)
    )
    call = {
        "tool_name": "Bash",
        "tool_input": {"command": "make deploy"},
        "tool_use_id": _tool_use_id(r, log),
    }
    before = _event("PreToolUse", r, **call)
    failure = {"error": f"Exit code 1\n{log}", "is_interrupt": False, "duration_ms": r.randint(500, 9000)}
    return [before, _event("PostToolUseFailure", r, **call, **failure)]


def _subagent_then_compaction(snippet: str, r: random.Random) -> list[dict[str, Any]]:
    """A subagent reports the snippet; the summary of a compaction has it again."""
    agent = "a" + hexa(16)(r)
    task = {
        "description": "Look at the setup",
        "prompt": "Find out how the shop is set up.",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    report = f"I looked at the deployment. In deploy/setup.txt:\n\n{snippet}\n\nNothing else is configured."
    response = {
        "status": "completed",
        "prompt": task["prompt"],
        "agentId": agent,
        "agentType": "general-purpose",
        "content": [{"type": "text", "text": report}],
        "totalDurationMs": r.randint(900, 90_000),
        "totalTokens": r.randint(9000, 40_000),
        "totalToolUseCount": 3,
        "canContinueAgent": True,
    }
    before, after = _tool(r, "Agent", task, response)
    stopped = _event(
        "SubagentStop",
        r,
        agent_id=agent,
        agent_type="general-purpose",
        stop_hook_active=False,
        agent_transcript_path=f"{PROJECT}/SESSION/subagents/agent-{agent}.jsonl",
        last_assistant_message=report,
        background_tasks=[],
        session_crons=[],
    )
    summary = f"1. Request: repair the deploy.\n2. Key facts so far:\n{snippet}\n3. Next: run the tests."
    return [before, stopped, after, _event("PostCompact", r, trigger="auto", compact_summary=summary)]


PLACEMENTS: list[tuple[str, Placement]] = [
    ("prompt_sentence", _prompt_sentence),
    ("bash_heredoc", _bash_heredoc),
    ("bash_stdout", _bash_stdout),
    ("read_numbered", _read_numbered),
    ("write_then_edit", _write_then_edit),
    ("git_diff", _git_diff),
    ("mcp_json_escaped", _mcp_json),
    ("stop_markdown_fence", _stop_fence),
    ("failed_command_log", _failed_command_log),
    ("subagent_then_compaction", _subagent_then_compaction),
]

# ---------------------------------------------------------------- lookalikes


def _hex_digest(name: str, text: str) -> str:
    return hashlib.new(name, text.encode()).hexdigest()


def _b64_digest(name: str, text: str) -> str:
    return base64.b64encode(hashlib.new(name, text.encode()).digest()).decode()


def _blob(text: str, size: int) -> str:
    """Base64 that is always the same."""
    return base64.b64encode(hashlib.shake_256(text.encode()).digest(size)).decode()


SHA1 = _hex_digest("sha1", "commit")
SHA256 = _hex_digest("sha256", "file")
UUID = "7d0f3c1e-52a4-4b0e-9c55-0d6f1b9a8e21"

LOOKALIKES: list[tuple[str, str]] = [
    # hashes, ids and checksums
    ("git_log_hash", f"commit {SHA1}\nDate:   Tue Mar 10 17:02:11 2026 +0100\n\n    Rename the token parser"),
    (
        "git_log_oneline",
        f"{SHA1[:9]} fix: password reset mail had the wrong link\n{SHA1[9:18]} chore: bump deps",
    ),
    ("git_diff_index", f"diff --git a/src/auth.ts b/src/auth.ts\nindex {SHA1[:7]}..{SHA1[7:14]} 100644"),
    ("git_rebase_todo", f"pick {SHA1[3:10]} add the secrets page\nsquash {SHA1[20:27]} typo"),
    ("git_submodule", f" {SHA1} vendor/zlib (v1.3.1-12-g{SHA1[:7]})"),
    ("uuid_in_json", f'{{"id": "{UUID}", "status": "open"}}'),
    ("request_id_log", f"INFO request_id={UUID} method=GET path=/orders status=200 dur=12ms"),
    ("npm_integrity", f'"integrity": "sha512-{_b64_digest("sha512", "left-pad")}",'),
    ("yarn_lock_checksum", f"  checksum: 10c0/{_hex_digest('sha512', 'yarn')}"),
    ("poetry_lock_hash", f'    {{file = "idna-3.7-py3-none-any.whl", hash = "sha256:{SHA256}"}},'),
    ("pip_require_hash", f"certifi==2026.1.4 --hash=sha256:{_hex_digest('sha256', 'certifi')}"),
    (
        "cargo_lock_checksum",
        f'name = "serde"\nversion = "1.0.219"\nchecksum = "{_hex_digest("sha256", "serde")}"',
    ),
    ("go_sum", f"golang.org/x/text v0.14.0 h1:{_b64_digest('sha256', 'text')}"),
    ("docker_digest", f"FROM python:3.12-slim@sha256:{_hex_digest('sha256', 'python')}"),
    (
        "docker_ps",
        f'{SHA256[:12]}   postgres:16   "docker-entrypoint.s…"   2 hours ago   Up 2 hours   shop-db-1',
    ),
    ("sha256sum_output", f"{SHA256}  dist/shop-2.4.1.tar.gz"),
    ("md5_etag", f'ETag: "{_hex_digest("md5", "etag")}"'),
    ("nix_hash", f'sha256 = "sha256-{_b64_digest("sha256", "nix")}";'),
    ("action_pinned_to_sha", f"      - uses: actions/checkout@{SHA1} # v4.2.2"),
    ("terraform_lock", f'  hashes = [\n    "h1:{_b64_digest("sha256", "aws")}",\n  ]'),
    ("asset_file_name", f"dist/assets/index-{SHA1[:8]}.js   142.31 kB │ gzip: 45.90 kB"),
    ("content_security_hash", f"script-src 'self' 'sha256-{_b64_digest('sha256', 'inline')}'"),
    (
        "subresource_integrity",
        f'<script src="/app.js" integrity="sha384-{_b64_digest("sha384", "js")}"></script>',
    ),
    ("traceparent", f"traceparent: 00-{_hex_digest('md5', 'trace')}-{SHA1[:16]}-01"),
    ("mongo_object_id", f'db.orders.findOne({{ _id: ObjectId("{SHA1[:24]}") }})'),
    ("ulid_and_ksuid", "order 01HRZ4Y8Q5T3N9M2K7W6V1XBCD was shipped"),
    ("kubernetes_pod_name", "shop-api-7c9d8f6b54-x2x9q   1/1   Running   0   3d4h"),
    ("aws_arn", "arn:aws:iam::123456789012:role/shop-ci-deploy"),
    ("aws_resource_ids", "vpc-0a1b2c3d4e5f67890 subnet-0f9e8d7c6b5a43210 sg-01234abcd5678ef90"),
    # placeholders
    ("placeholder_your_key", "OPENAI_API_KEY=your-api-key-here"),
    ("placeholder_angle", "Authorization: Bearer <token>"),
    ("placeholder_shell_variable", "DATABASE_URL=postgres://${DB_USER}:${DB_PASSWORD}@${DB_HOST}:5432/shop"),
    ("placeholder_upper_url", "postgresql://USER" + ":PASSWORD@HOST:PORT/DATABASE"),
    ("placeholder_stars", 'password: "********"'),
    ("placeholder_x", "api_key: xxxxxxxxxxxxxxxxxxxxxxxx"),
    ("placeholder_empty", "DB_PASSWORD=\nAPI_TOKEN=\nSECRET_KEY="),
    ("placeholder_replace_me", "jwt_secret = <REPLACE_ME>"),
    ("node_process_env", "const key = process.env.API_KEY;"),
    ("python_environ", 'password = os.environ["DB_PASSWORD"]'),
    ("python_getenv_none", 'token = os.getenv("GITHUB_TOKEN")'),
    ("github_actions_secret", "          token: ${{ secrets.GITHUB_TOKEN }}"),
    ("helm_template", "password: {{ .Values.auth.password | quote }}"),
    ("jinja_vault", 'db_password: "{{ vault_db_password }}"'),
    ("terraform_reference", "  password = var.db_password"),
    ("spring_placeholder", "spring.datasource.password=${SPRING_DATASOURCE_PASSWORD}"),
    ("k8s_secret_key_ref", "valueFrom:\n  secretKeyRef:\n    name: shop-db\n    key: password"),
    ("compose_secret_file", "POSTGRES_PASSWORD_FILE: /run/secrets/db_password"),
    ("powershell_variable", "$env:API_TOKEN = $Token"),
    ("onepassword_reference", "DB_PASSWORD=op://shop/database/password"),
    ("masked_ci_output", "Run docker login -u ci -p ***"),
    # commands with variables
    ("mysql_variable", 'mysql -u root -p"$PW" shop < dump.sql'),
    ("mysql_prompts", "mysql -u root -p shop"),
    ("curl_variable", 'curl -H "Authorization: Bearer $TOKEN" https://api.example.com/me'),
    ("docker_password_stdin", 'echo "$CI_PASSWORD" | docker login -u ci --password-stdin images.example.com'),
    ("kubectl_get_secret", "kubectl get secret shop-db -o jsonpath='{.data.password}' | base64 -d"),
    ("ssh_keygen", "ssh-keygen -t ed25519 -f ~/.ssh/id_deploy -C deploy"),
    ("openssl_rand", "export SECRET_KEY=$(openssl rand -hex 32)"),
    ("vault_read_field", "vault kv get -field=password secret/shop/smtp"),
    ("mkdir_p", "mkdir -p src/components/PasswordStrengthIndicator && cp -p a.txt b.txt"),
    ("grep_for_secrets", "grep -rn 'password' src/ --include='*.py' | head -20"),
    # code that handles secrets
    ("getpass", 'password = getpass.getpass("Password: ")'),
    ("type_annotation", "token: str | None = None"),
    ("reset_function", "def reset_password(token: str, new_password: str) -> bool:"),
    ("hash_compare", "if not bcrypt.checkpw(password.encode(), user.password_hash):"),
    (
        "ts_interface",
        "interface Credentials {\n  username: string;\n  password: string;\n  apiKey?: string;\n}",
    ),
    ("zod_schema", "password: z.string().min(12).max(128),"),
    ("sql_column", "password_hash VARCHAR(255) NOT NULL,"),
    ("java_field", "private final PasswordEncoder passwordEncoder;"),
    ("go_error", 'return fmt.Errorf("invalid token: %w", err)'),
    ("rust_match", "Token::Identifier(name) => self.parse_identifier(name),"),
    ("csrf_template", '<input type="hidden" name="csrf_token" value="{{ csrf_token() }}">'),
    ("react_state", "const [password, setPassword] = useState('');"),
    ("input_element", '<input type="password" name="password" autocomplete="current-password" required>'),
    ("test_name", "PASSED tests/test_auth.py::test_login_with_expired_refresh_token_returns_401"),
    ("secrets_module", "session_key = secrets.token_urlsafe(32)"),
    ("keyword_arguments", "client = Client(api_key=settings.api_key, timeout=settings.timeout)"),
    (
        "tokenizer_settings",
        "max_tokens=4096, pad_token_id=0, eos_token='</s>', tokenizer='bert-base-uncased'",
    ),
    ("token_usage", '"usage": {"input_tokens": 21474, "output_tokens": 20, "cache_read_input_tokens": 0}'),
    ("primary_key", "PRIMARY KEY (tenant_id, order_id), FOREIGN KEY (user_id) REFERENCES users (id)"),
    ("keyboard_shortcut", '{ "key": "ctrl+shift+alt+f12", "command": "workbench.action.toggleDevTools" }'),
    # prose and translations
    ("prose_stored_hashed", "The password is stored hashed, so we cannot send it to the user."),
    ("prose_german_wrong", "Das Passwort ist falsch oder abgelaufen, bitte erneut versuchen."),
    ("prose_token_expired", "The token is expired after 15 minutes; the secret is rotated every night."),
    ("prose_policy", "A password must have at least 12 characters, one digit and one special character."),
    (
        "translations",
        '"login.pass'
        + 'word": "Passwort", "login.forgot": "Passwort vergessen?", "login.submit": "Anmelden"',
    ),
    ("prose_french_forgot", "Mot de passe oublié ? Cliquez ici pour recevoir un lien."),
    ("readme_token_how_to", "Create a token under Settings > Developer settings and export it as GH_TOKEN."),
    ("log_auth_failed", 'FATAL:  password authentication failed for user "shop_rw"'),
    # other data
    ("ssh_public_key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + _blob("public", 32)[:43] + " deploy@build"),
    (
        "certificate",
        pem("CERTIFICATE", ["MIID" + _blob("certificate", 45), _blob("more", 48), _blob("end", 31)]),
    ),
    ("base64_image", f"background: url(data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{_blob('image', 90)});"),
    ("source_map_url", "//# sourceMappingURL=main.4f1e9c2ab7.chunk.js.map"),
    ("css_rule", ".password-field:focus-visible { box-shadow: 0 0 0 3px #a1b2c3d4; color: #0f172a; }"),
    ("hex_dump", "00000010: 7f45 4c46 0201 0100 0000 0000 0000 0000  .ELF............"),
    (
        "minified_js",
        "!function(e,t){var n=t.key||t.token;for(var r=0;r<n.length;r++)e[n[r]]=void 0}(window,a0b1c2);",
    ),
    (
        "token_regex",
        r"SECRET_RE = re.compile(r'(?i)(password|token)\s*[:=]\s*[\"\']?([A-Za-z0-9_\-]{16,64})')",
    ),
    (
        "format_description",
        "Keys look like `<prefix>_<32 hex digits>`, for instance prefix_0000…; see the RFC.",
    ),
    ("url_with_ids", "https://www.figma.com/file/Zk3mQx8RtY1uWvB5nLpDcE/Checkout?node-id=1204%3A8831"),
    ("time_stamps", "created=2026-03-11T09:14:22.137Z build=20260311091422 epoch=1773220462137"),
    ("version_string", "shop-api 2.14.0-rc.3+build.20260311.g4f1e9c2 (linux/amd64, go1.24.1)"),
]
