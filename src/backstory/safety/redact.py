"""Take secrets out of captured text before it is written anywhere.

The idea. A table has one row a kind of secret. A row carries a few literal lower-case *needles* and a
regular expression; the expression is compiled (once) and tried only when one of its needles occurs in the
text. Substring search is nearly free and `re.compile` may cost a millisecond, so importing this module
compiles nothing and a text without secrets compiles next to nothing. This runs inside hooks with a latency
budget: only `re` is imported.

Two short cuts make the search cheaper still. A vendor's token is one long word with the needle in it, so the
needles of those rows (`Token`) are looked for only in the long words of a text, which are few. The needles of
the other rows share roots: where no `key` is, `api_key` need not be looked for.

Why no library. Hooks run on the standard library alone. detect-secrets is the oracle in the tests instead:
whatever it finds in a text must be gone from our output.

What is replaced. In a match, the last capturing group is the secret (the whole match where there is no
group), and only that becomes `[redacted:<kind>]`; the text around it stays, because a memory needs to know
that a password was set, not which. Vendor tokens have a shape of their own and are judged by it. The loose
forms (`name = value`, flags, URLs) are judged again by a function that knows code from literals: a reference
(`$TOKEN`, `os.environ[...]`, `${{ secrets.X }}`, `f"{token}"`), a type or a call is not a secret.

Placeholders. `<your password>`, `****`, `xxxx`, `your-api-key`, `null` and the like stay. `changeme` and
`password123` are redacted: people really do run with them.

Kubernetes. Every value in the `data` of a Secret is redacted, base64 being no protection; elsewhere base64 is
judged by its name like any other value, except that an encoded private key is known by its first letters.

Left alone on purpose: a bare word that may as well be a variable (`token = abc`, `secret = value1`), a count
(`pass: 12`), a hash without a telling name, a signature of a single request.

Idempotent by construction: the table is applied until nothing changes, and a replacement that lies within
an earlier one is refused. Every replacement turns text into a marker, so this ends, in practice after one
more round.

Linear time: quantifiers are bounded or possessive, and a refused value is short or in quotes of its own.

To add a kind, add a row, and a positive and a near miss to tests/helpers/secret_texts.py; a test wants both.
"""

from __future__ import annotations

import re

from backstory.safety import judge
from backstory.safety.judge import MARKER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def redact(text: str) -> str:
    """Replace private passages and secrets by `[redacted:<kind>]`."""
    while needles := _needles_in(text.lower()):
        before = text
        for row in PATTERNS:
            if not needles.isdisjoint(row.needles):
                text = row.apply(text)
        if text == before:
            break
    return text


def _needles_in(lowered: str) -> set[str]:
    words = _long_words(lowered)
    found = {needle for needle in _TOKEN_NEEDLES if needle in words}
    for root, needles in _OTHER_NEEDLES.items():
        if root in lowered:
            found.update(needle for needle in needles if needle in lowered)
    return found


# No token that a `Token` row matches is shorter.
_LONG_WORD = 18


def _long_words(lowered: str) -> str:
    """The words in which a token may hide. A search for a run of one letter leaps from word to word."""
    shape = lowered.encode("ascii", "replace").translate(_WORD_SHAPE)
    run = b"w" * _LONG_WORD
    words: list[str] = []
    end = 0
    while (start := shape.find(run, end)) >= 0:
        end = shape.find(b" ", start)
        if end < 0:
            end = len(shape)
        words.append(lowered[start:end])
    return " ".join(words)


class Pattern:
    """One row of the table: what to look for, and how to tell a secret from code that looks like one."""

    __slots__ = ("_compiled", "expression", "is_secret", "kind", "name", "needles")

    def __init__(
        self,
        name: str,
        kind: str,
        needles: tuple[str, ...],
        expression: str,
        is_secret: Callable[[re.Match[str]], bool] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.needles = needles
        self.expression = expression
        self.is_secret = is_secret
        self._compiled: re.Pattern[str] | None = None

    def apply(self, text: str) -> str:
        if self._compiled is None:
            self._compiled = re.compile(self.expression, re.ASCII)
        marker = f"{MARKER}{self.kind}]"
        pieces: list[str] = []
        copied = position = 0
        while match := self._compiled.search(text, position):
            start, end = match.span(match.lastindex or 0)
            if _lies_in_marker(text, start, end):
                position = max(end, match.start() + 1)
            elif self.is_secret is None or self.is_secret(match):
                pieces += text[copied:start], marker
                copied = position = end
            else:
                position = max(self.resume(start, end), match.start() + 1)
        pieces.append(text[copied:])
        return "".join(pieces)

    def resume(self, start: int, end: int) -> int:
        """Where to go on after a refused value: at its beginning, as it may hold an assignment itself."""
        return start


class Token(Pattern):
    """A secret that is one long word, of which each of its needles is a part."""

    __slots__ = ()

    def resume(self, start: int, end: int) -> int:
        return end  # no part of a word that is no token is one


class Passage(Pattern):
    """From an opening tag to the closing one that belongs to it, or to the end; the expression finds tags.
    An opening one in backticks that no closing one follows is a word in a text about such tags."""

    __slots__ = ()

    def apply(self, text: str) -> str:
        if self._compiled is None:
            self._compiled = re.compile(self.expression, re.ASCII)
        tags: Iterable[re.Match[str]] = self._compiled.finditer(text)
        if "`<" in text:
            tags = _without_words(list(tags))
        pieces: list[str] = []
        copied = depth = 0
        for tag in tags:
            if tag[0][1] != "/":
                if depth == 0:
                    pieces += text[copied : tag.start()], f"{MARKER}{self.kind}]"
                depth += 1
            elif depth:
                depth -= 1
                copied = tag.end()
        if depth == 0:
            pieces.append(text[copied:])
        return "".join(pieces)


def _without_words(tags: list[re.Match[str]]) -> list[re.Match[str]]:
    kept: list[re.Match[str]] = []
    closes = False  # does the next of them close?
    for tag in reversed(tags):
        if tag[0][1] == "/" or closes or not _is_quoted(tag):
            kept.append(tag)
            closes = tag[0][1] == "/" or (closes and _is_quoted(tag))
    return kept[::-1]


def _is_quoted(tag: re.Match[str]) -> bool:
    return tag.string[tag.start() - 1 : tag.start()] == "`" == tag.string[tag.end() : tag.end() + 1]


def _lies_in_marker(text: str, start: int, end: int) -> bool:
    """Is this span a marker, or does it begin amid one? A longer span that begins with one is not."""
    opened = text.rfind(MARKER, max(0, start - 40), start + len(MARKER))
    if opened < 0:
        return False
    closed = text.find("]", opened, opened + 40)
    return opened < start <= closed or (opened == start and end <= closed + 1)


# --- the shapes that several rows share -------------------------------------------------------------------

# Quoted (plain, or with the backslashes of a JSON string in a JSON string) or bare. A quoted value needs no
# closing quote, as captured output is often cut off. A bare one ends where code or a query string would go
# on; backslashes before n, r, t or a quote belong to an enclosing JSON string.
_VALUE = r"""(?:
    [bBfFrRuU]{0,2}(?:
        "((?:[^"\\\n]|\\.)++)
      | '((?:[^'\\\n]|\\.)++)
      | `((?:[^`\\\n]|\\.)++)
      | \\{1,8}"((?:[^"\\\n]|\\(?!\\{0,8}"))++)
      | \\{1,8}'((?:[^'\\\n]|\\(?!\\{0,8}'))++)
    )
  | ((?:\[redacted:[a-z-]+\]|[^\s"'`,;()\[\]{}<>|&\\]|\\[^\snrt"'\\])++)
)"""


def _assignment(words: str) -> str:
    """`name = value` in its many spellings; what stands before the secret word does not matter."""
    return (
        rf"""(?xi) (?P<name>(?:{words})s?\d{{0,3}})
        (?P<suffix>(?:[_.-][\w.-]{{1,40}} | (?-i:[A-Z][a-z])\w{{0,40}})?)
        (?:\\{{0,8}}["'`])? \]?                                     # "name": and config["name"] =
        (?:[ \t]?:[ \t]?[A-Za-z][\w.\[\]|, ?]{{0,40}}(?=\ ?=))?       # name: str | None =
        (?P<operator>[ \t]{{0,8}}(?: ={{1,3}}>? | !={{1,2}} | :=? )[ \t]{{0,8}})"""
        + _VALUE
    )


def _flag(words: str) -> str:
    """`--name value` or `--db-name=value`; `--name-file` is another flag."""
    return (
        rf"(?<![\w-])--(?:[a-z0-9]{{1,20}}-){{0,4}}(?P<name>{words})"
        r"(?:=|(?:[ \t]|\\{1,8}\n|\\{1,8}n){1,8})"  # the line may go on in the next
        r"""[\\"']{0,8}(?!-)((?:\[redacted:[a-z-]+\]|[^\s"'\\,()\[\]|;&])++)"""
    )


# `docker login -u me -p hunter2`
_LOGIN_TOOLS = ("docker", "podman", "nerdctl", "registry", "acr", "az", "oc")


# --- the table --------------------------------------------------------------------------------------------

# name (unique), kind (what the marker says), needles (lower case), expression, judge for the loose ones.
# Vendor rows first: `token = "ghp_..."` should say github, unless more than the token stood in the quotes.
PATTERNS: tuple[Pattern, ...] = (
    # With attributes or without, but not Unicode's `<Private Use>`.
    Passage(
        "private passage",
        "private",
        ("<private",),
        r"(?i)<private(?:\s{1,8}[\w:-]{1,40}\s?=[^<>]{0,200}|\s{0,8})(?<!/)>|</private\s{0,8}>",
    ),
    # Keys in PEM armour; `\n` may be two characters (JSON). With an END mark, all of it, whatever a diff or
    # `cat -n` put before the lines; cut off, as far as the base64 runs. A mark without a key is code about
    # keys.
    Pattern(
        "private key",
        "private-key",
        ("private key",),
        r"""(?x) -----BEGIN\ (?:[A-Z0-9]{1,12}\ ){0,3}PRIVATE\ KEY(?:\ BLOCK)?-----
        (?: (?:[^-]|-(?!----)){16,}+ -----END\ [A-Z0-9 ]{1,50}-----
          | (?:(?:\\+[nrt]|[\s>|:,.+"'\u2192-]|\d{1,6}[\u2192\t|:])*+
               (?:(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]*+ | [A-Za-z0-9/][A-Za-z0-9+/=]{15,}+))++
            (?:(?:\\+[nr]|\n)\s?[A-Za-z0-9+/=]{1,64}+(?![\w ]))?
        )""",
    ),
    # The other half of a key that was cut off at its beginning.
    Pattern(
        "private key tail",
        "private-key",
        ("private key-----", "private key block-----"),
        r"""(?x) (?<![A-Za-z0-9+/=]) (?:[A-Za-z0-9+/]{16,}+={0,2}(?:\\+[nr]|\s)++){1,100}+
        (?:[A-Za-z0-9+/=]{1,64}(?:\\+[nr]|\s)++){0,2} -----END\ [A-Z ]{0,30}PRIVATE\ KEY(?:\ BLOCK)?-----""",
    ),
    # Base64 of "-----BEGIN PRIVATE KEY" and its kin, as in a kubeconfig.
    Token(
        "encoded private key",
        "private-key",
        ("ls0tls1crudjti",),
        r"LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFUR|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZBVE|BFTkNSWVBURUQgUFJJ)"
        r"[A-Za-z0-9+/]{8,}+={0,2}",
    ),
    Token("age key", "age-key", ("age-secret-key-",), r"(?i)\bAGE-SECRET-KEY-1[A-Z0-9]{40,}+"),
    Token(
        "aws access key id",
        "aws-access-key-id",
        ("akia", "asia"),
        r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    # No prefix of its own, so by its name; the brackets are the prompt of `aws configure`.
    Pattern(
        "aws secret access key",
        "aws-secret-access-key",
        ("secret",),
        r"""(?i)secret[_ -]?access[_ -]?key[\\"'\]]{0,8}(?: \[\S{0,30}\])?\s{0,8}[:=]>?[\s\\"']{0,8}"""
        r"""([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])""",
    ),
    Pattern(
        "aws configure",
        "aws-secret-access-key",
        ("configure set",),
        r"""\bconfigure set [\w.-]{0,80}aws_(?:secret_access_key|session_token) {1,4}"""
        r"""[\\"']{0,8}([^\s"'\\|;&]++)""",
        judge.is_literal,
    ),
    Token("google api key", "gcp-api-key", ("aiza",), r"\bAIza[A-Za-z0-9_-]{35,}+"),
    # The id of the key in a service account file; the key itself is in PEM armour.
    Pattern(
        "google service account",
        "gcp-service-account",
        ("private_key_id",),
        r"""private_key_id[\\"']{0,8}\s{0,8}[:=]\s{0,8}[\\"']{0,8}([0-9a-f]{40})\b""",
    ),
    Token(
        "google oauth",
        "google-oauth",
        ("gocspx-", "ya29."),
        r"\b(?:GOCSPX-|ya29\.(?:[a-z]\.)?)[A-Za-z0-9_-]{20,}+",
    ),
    Pattern(
        "azure account key",
        "azure-key",
        ("key=",),
        r"(?i)(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{20,}+={0,2})",
    ),
    Pattern("azure sas signature", "azure-sas", ("sig=",), r"[?&;]sig=([A-Za-z0-9%+/_-]{20,}+={0,2})"),
    Token(
        "azure client secret",
        "azure-secret",
        ("q~",),
        r"(?<![\w~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,}+",
    ),
    Token(
        "github token",
        "github-token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{30,}+|github_pat_[A-Za-z0-9_]{40,}+)",
    ),
    Token(
        "gitlab token",
        "gitlab-token",
        (
            *("glpat-", "gloas-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-"),
            *("glagent-", "glsoat-", "glffct-"),
        ),
        r"\bgl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_.-]{20,}+",
        judge.looks_random,
    ),
    Token(
        "slack token",
        "slack-token",
        ("xox", "xapp-"),
        r"(?i)\b(?:xox[a-z](?:\.xox[a-z])?|xapp)-[A-Za-z0-9%/+-]{13,}+=*+",
    ),
    Pattern(
        "slack webhook",
        "slack-webhook",
        ("hooks.slack.com",),
        r"(?i)hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9_/]{20,}+)",
    ),
    Pattern(
        "discord webhook",
        "discord-webhook",
        ("/api/webhooks/",),
        r"(?i)discord(?:app)?\.com/api/webhooks/\d{10,}+/([A-Za-z0-9_-]{30,}+)",
    ),
    # A bot token is base64 of an id, a time and a signature: without a prefix, so only near these words.
    Pattern(
        "discord bot token",
        "discord-token",
        ("discord", "bot"),
        r"(?<![\w.-])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}+",
    ),
    Token(
        "stripe key",
        "stripe-key",
        ("k_live_", "k_test_", "whsec_"),
        r"(?<![A-Za-z0-9])(?:[sr]k_(?:live|test)_[A-Za-z0-9]{10,}+|whsec_[A-Za-z0-9+/]{20,}+=*+)",
    ),
    Token("anthropic key", "anthropic-key", ("sk-ant-",), r"(?<![A-Za-z0-9])sk-ant-[A-Za-z0-9_-]{16,}+"),
    Token(
        "openai key", "openai-key", ("sk-",), r"(?<![A-Za-z0-9_-])sk-[A-Za-z0-9_-]{20,}+", judge.looks_random
    ),
    Token("groq key", "groq-key", ("gsk_",), r"\bgsk_[A-Za-z0-9]{40,}+"),
    Token("xai key", "xai-key", ("xai-",), r"(?<![A-Za-z0-9_-])xai-[A-Za-z0-9]{40,}+"),
    Token("nvidia key", "nvidia-key", ("nvapi-",), r"\bnvapi-[A-Za-z0-9_-]{40,}+", judge.looks_random),
    Token("perplexity key", "perplexity-key", ("pplx-",), r"\bpplx-[A-Za-z0-9]{40,}+"),
    Token("hugging face token", "huggingface-token", ("hf_",), r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{30,}+"),
    Token("npm token", "npm-token", ("npm_",), r"(?<![A-Za-z0-9_])npm_[A-Za-z0-9]{36,}+"),
    Token("pypi token", "pypi-token", ("pypi-age",), r"\bpypi-AgE[A-Za-z0-9_-]{40,}+"),
    # Account and key ids have two letters for a prefix, so only near these words.
    Pattern(
        "twilio key",
        "twilio-key",
        ("twilio", "_sid"),
        r"(?<![A-Za-z0-9])(?:AC|SK)[0-9a-f]{32}(?![A-Za-z0-9])",
    ),
    Token("sendgrid key", "sendgrid-key", ("sg.",), r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,}+"),
    Token("mailgun key", "mailgun-key", ("key-",), r"(?<![A-Za-z0-9-])key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    Token(
        "mailchimp key",
        "mailchimp-key",
        ("-us",),
        r"(?<![0-9a-z])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9a-z])",
    ),
    Token(
        "telegram bot token", "telegram-token", (":aa",), r"(?<![0-9A-Za-z])\d{8,10}:AA[A-Za-z0-9_-]{32,}+"
    ),
    Token(
        "shopify token",
        "shopify-token",
        ("shp",),
        r"\bshp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32,}+",
    ),
    Token(
        "digitalocean token",
        "digitalocean-token",
        ("_v1_",),
        r"\bdo[opr]_v1_[0-9a-f]{64,}+",
    ),
    Token("databricks token", "databricks-token", ("dapi",), r"\bdapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    Token("square token", "square-token", ("sq0",), r"\bsq0(?:csp|atp)-[A-Za-z0-9_-]{22,}+"),
    Token("artifactory token", "artifactory-token", ("akc",), r"(?<![A-Za-z0-9+/])AKC[A-Za-z0-9]{15,}+"),
    Token("vault token", "vault-token", ("hvs.", "hvb.", "hvr."), r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}+"),
    Token("atlassian token", "atlassian-token", ("atatt3",), r"\bATATT3[A-Za-z0-9_=-]{50,}+"),
    Token("linear key", "linear-key", ("lin_api_",), r"\blin_api_[A-Za-z0-9]{30,}+"),
    Token("grafana token", "grafana-token", ("glsa_", "glc_"), r"\b(?:glsa|glc)_[A-Za-z0-9_+/]{30,}+=*+"),
    Token("figma token", "figma-token", ("figd_",), r"\bfigd_[A-Za-z0-9_-]{30,}+", judge.looks_random),
    Token(
        "sentry token", "sentry-token", ("sntrys_", "sntryu_"), r"\bsntry[su]_[A-Za-z0-9+/_-]{40,}+[\w+/=-]*+"
    ),
    Token("tailscale key", "tailscale-key", ("tskey-",), r"\btskey-[A-Za-z0-9-]{16,}+", judge.looks_random),
    Token(
        "jwt", "jwt", ("eyj",), r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}+(?:\.[A-Za-z0-9_-]{4,}+={0,2}){1,4}"
    ),
    Pattern(
        "authorization header",
        "token",
        ("authorization",),
        r"""(?ix) authorization[\\"'\]]{0,8} \s{0,4} [:=,] \s{0,4} [\\"']{0,8}
        (?:bearer|basic|token|bot|digest|apikey|api-key|key|negotiate|ssws|jwt)[ \t]{1,4}
        (?:token=[\\"']{0,8})?
        ([A-Za-z0-9._~+/:|=-]{2,}+)""",
        judge.is_header_value,
    ),
    Pattern(
        "raw authorization header",
        "token",
        ("authorization",),
        r"""(?i)authorization[\\"'\]]{0,8}\s{0,4}[:=,]\s{0,4}[\\"']{0,8}(?!AWS4-)([A-Za-z0-9._~+/=-]{16,}+)(?![:(\[])""",
        judge.is_raw_header_value,
    ),
    # Without the header's name a bearer token must look like one.
    Pattern(
        "bearer token", "token", ("bearer ",), r"(?i)\bbearer ([A-Za-z0-9._~+/=-]{16,}+)", judge.looks_random
    ),
    # Of a response, the value of the cookie; what follows are its attributes. Short ones are settings.
    Pattern(
        "set-cookie header",
        "cookie",
        ("set-cookie",),
        r"""(?i)set-cookie[\\"']{0,8}\s{0,4}[:=]\s{0,4}[\\"']{0,8}[\w.-]{1,64}=([^\s;"'\\,]{8,}+)""",
        judge.is_literal,
    ),
    # Of a request, all cookies together.
    Pattern(
        "cookie header",
        "cookie",
        ("cookie",),
        r"""(?ix) (?<!set-) \bcookie[\\"']{0,8} (?:\s{0,4}[:=]\s{0,4}|\ ) [\\"']{0,8}
        ((?=(?:[\w.-]{1,64}=[^\s;"'\\]{0,7};[ ]){0,20}[\w.-]{1,64}=[^\s;"'\\]{8}) [^\r\n"'\\]++)""",
        judge.is_literal,
    ),
    # A greedy password takes in the @ that people forget to escape: the last one before a slash counts.
    Pattern(
        "url password",
        "password",
        ("://",),
        r"""://(?:\[redacted:[a-z-]+\]|[^\s/:@"'<>\\\[]){0,128}:((?:\[redacted:[a-z-]+\]|[^\s/"'<>\\]){1,256})@""",
        judge.is_literal,
    ),
    Pattern("url token", "token", ("://",), r"://([A-Za-z0-9_-]{20,256})@", judge.looks_random),
    Pattern(
        "curl user",
        "password",
        ("curl",),
        r"""\bcurl\b[^\n]{0,300}?\s(?:-u|--user|--proxy-user)[ =]?"""
        r"""[\\"']{0,8}[^\s:"'\\]{0,128}:([^\s"'\\]++)""",
        judge.is_literal,
    ),
    Pattern(
        "httpie user",
        "password",
        (" -a", "--auth"),
        r"""(?<![\w/.:@-])https?[ \t][^\n|;&]{0,300}?(?<=\s)(?:-a|--auth)[ =]?"""
        r"""[\\"']{0,8}[^\s:"'\\]{1,128}:([^\s"'\\]++)""",
        judge.is_literal,
    ),
    # mysql takes the password without a space after -p; digits there are docker's ports.
    Pattern(
        "mysql password",
        "password",
        ("mysql", "mariadb"),
        r"""\b(?:mysql|mariadb)[\w-]{0,12}\b[^\n|;&]{0,200}?\s-p(?![\d:.]*(?:\s|$))[\\"']{0,8}([^\s"'\\|;&]++)""",
        judge.is_literal,
    ),
    Pattern(
        "password argument",
        "password",
        (
            *("sshpass", "redis-cli", "sqlcmd", "ldap", "storepass", "keypass"),
            *(f"{tool} login" for tool in _LOGIN_TOOLS),
        ),
        rf"""(?x) (?: \bsshpass\b[^\n|;&]{{0,40}}?\s-p | \bredis-cli\b[^\n|;&]{{0,200}}?\s-a
          | \bsqlcmd\b[^\n|;&]{{0,200}}?\s-P | -(?:src|dest)?(?:store|key)pass(?=[ ])
          | \bldap(?:search|add|modify|delete|whoami|passwd)\b[^\n|;&]{{0,200}}?\s-w
          | \b(?:{"|".join(_LOGIN_TOOLS)})\ login\b[^\n|;&]{{0,200}}?\s-p(?=[ =]) )
        [ =]?[\\"']{{0,8}}([^\s"'\\|;&]++)""",
        judge.is_literal,
    ),
    Pattern(
        "piped password",
        "password",
        ("password-stdin", "sudo -s", "with-token"),
        r"""(?x) \becho\s(?:-n\s)?[\\"']{0,8}([^\s"'\\|;&]{1,256}+)[\\"']{0,8}\s{0,4}\|
        [^\n|;&]{0,200}?(?:--password-stdin|sudo\ -S|--with-token)\b""",
        judge.is_literal,
    ),
    Pattern(
        "openssl password",
        "password",
        ("pass:", "openssl enc"),
        r"""(?x) (?: -pass(?:in|out)?\ {1,4}[\\"']{0,8}pass:
          | \bopenssl\ enc\b[^\n|;&]{0,200}?\s-[kK]\ {1,4}[\\"']{0,8} ) ([^\s"'\\|;&]++)""",
        judge.is_literal,
    ),
    Pattern(
        "chpasswd",
        "password",
        ("chpasswd",),
        r"""(?x) (?<![\w.-])[\w.-]{1,64}:([^\s"'\\|]{1,256}+)[\\"']{0,8}\s{0,4}\|\s{0,4}(?:sudo\s)?chpasswd\b
          | \bchpasswd\b[^\n|;&<]{0,40}<<<\s{0,4}[\\"']{0,8}[\w.-]{1,64}:([^\s"'\\|]{1,256})""",
        judge.is_literal,
    ),
    Pattern(
        "dockerfile env",
        "password",
        ("env ",),
        r"""(?xm) (?:^|[:\u2192\t]|\\[nt])[ \t]{0,8} ENV[ \t]{1,4} (?:[A-Z0-9_]{0,40}_|PG|DB)?
        (?:PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|SECRET|TOKEN|(?:API|ACCESS|SECRET|PRIVATE)_?KEY)
        (?P<suffix>_[A-Z0-9_]{1,40})? [ \t]{1,4} [\\"']{0,8} (?!=) ([^\s"'\\]++)""",
        judge.is_environment_value,
    ),
    Pattern(
        "kubernetes secret",
        "kubernetes-secret",
        ("kind: secret", '"kind": "secret"', '"kind":"secret"'),
        r"""(?xm) (?:^|\\n|\{)[ \t]{0,12} \\?"?(?P<name>[\w.-]{1,80})\\?"?:[ ]?\\?"?
        ([A-Za-z0-9+/]{4,}+={0,2}) (?=\\?"?,?(?:$|\\n|\}))""",
        judge.is_encoded_value,
    ),
    Pattern(
        "password flag",
        "password",
        ("-pass",),
        _flag("pass|password|passwd|passphrase"),
        judge.is_flag_value,
    ),
    Pattern(
        "token flag",
        "token",
        ("-token", "-secret", "-key", "-apikey"),
        _flag("token|tokens|secret|secret-key|api-?key|access-key|private-key"),
        judge.is_flag_value,
    ),
    # ODBC and ADO strings: between semicolons a bare word is a literal, and may hold spaces.
    Pattern(
        "connection string password",
        "password",
        ("password=", "pwd="),
        r"""(?i); ?(?:password|pwd)=((?:\[redacted:[a-z-]+\]|[^;"'\r\n\\(\[])++)(?=[;"'\r\n\\]|$)""",
        judge.is_literal,
    ),
    # Go's MySQL driver and Oracle's tools put it in forms of their own.
    Pattern(
        "dsn password",
        "password",
        ("@tcp(", "@unix(", "oracle:", "sqlplus"),
        r"""(?x) (?<![\w.-])[\w.-]{1,64}:([^\s"'`\\@/]{1,128})@(?:tcp|unix)\(
          | \b(?:oracle:(?:thin|oci):|sqlplus\s(?:-\S{1,8}\s)?[\\"']{0,8})[\w.-]{1,64}
            /([^\s"'\\@/]{1,128})@""",
        judge.is_literal,
    ),
    Pattern(
        "npmrc auth", "token", (":_auth",), r""":_auth(?:Token)?[ ]?=[ ]?"?([^\s"'\\]++)""", judge.is_literal
    ),
    Pattern(
        "netrc password",
        "password",
        ("login",),
        r"""\blogin(?:\s|\\n){1,8}[^\s\\]{1,128}(?:\s|\\n){1,8}password(?:\s|\\n){1,8}([^\s"'\\]++)""",
        judge.is_literal,
    ),
    Pattern(
        "sql password",
        "password",
        ("identified by", "password '"),
        r"""(?i)\b(?:user|role)\b[^;\n]{0,200}?\s(?:identified (?:with \S{1,40} )?by|password) """
        r"""\\{0,8}'((?:[^'\\\n]|\\[^'\n])++)""",
        judge.is_literal,
    ),
    Pattern(
        "xml password",
        "password",
        ("password>", "passphrase>"),
        r"(?i)<(?:[\w.-]{0,40}:)?[\w.-]{0,40}(?:password|passphrase)>([^<>\n]++)</",
        judge.is_literal,
    ),
    # A variable of the environment with a value that can only be a key: AZURE_STORAGE_KEY, Laravel's APP_KEY.
    Pattern(
        "environment key",
        "key",
        ("_key=", "_key:", "_key =", '_key"', "_key'", "_key\\"),
        r"""[A-Z0-9]_KEY[\\"']{0,8}\s{0,4}[:=]\s{0,4}[\\"']{0,8}((?:base64:)?[A-Za-z0-9+/_]{20,}+={0,2})(?![\w.:(\[-])""",
        judge.is_mixed,
    ),
    # The generic assignments, by the word in the name.
    Pattern(
        "password assignment",
        "password",
        ("passw", "passphrase", "pwd"),
        _assignment("passw(?:or)?d|passphrase|pwd"),
        judge.is_assigned_secret,
    ),
    Pattern(
        "pass assignment",
        "password",
        ("pass=", "pass:", "pass =", "pass :", 'pass"', "pass'", "pass\\", "_pass_"),
        _assignment("(?<![a-z])pass|(?<=[a-z])(?-i:Pass)|(?:db|user|my|root|admin|smtp|ftp)pass"),
        judge.is_assigned_pass,
    ),
    Pattern(
        "secret assignment",
        "secret",
        ("secret",),
        _assignment("secret(?:[_-]?key)?"),
        judge.is_assigned_secret,
    ),
    Pattern("token assignment", "token", ("token",), _assignment("token"), judge.is_assigned_secret),
    Pattern(
        "key assignment",
        "key",
        (
            *("api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "account_key"),
            *("private_key", "privatekey", "encryption_key", "encryptionkey"),
            *("signing_key", "auth_key", "master_key"),
        ),
        _assignment("(?:api|access|private|encryption|signing|account|auth|master)[_-]?key"),
        judge.is_assigned_secret,
    ),
    Pattern(
        "credential assignment",
        "credential",
        ("credential",),
        _assignment("credential"),
        judge.is_assigned_secret,
    ),
)

# --- where to look for the needles ------------------------------------------------------------------------

_ROOTS = ("@", "key", "pass", "secret", "token", "auth", "login", "cookie", "private", "sql", "hooks")


def _by_root(patterns: tuple[Pattern, ...]) -> dict[str, list[str]]:
    roots: dict[str, list[str]] = {root: [] for root in _ROOTS}
    for row in patterns:
        if row.__class__ is not Token:
            for needle in row.needles:
                for root in _ROOTS:
                    if root in needle:
                        roots[root].append(needle)
                        break
                else:
                    roots[needle] = [needle]
    return roots


_TOKEN_NEEDLES = tuple([needle for row in PATTERNS if row.__class__ is Token for needle in row.needles])
_OTHER_NEEDLES = _by_root(PATTERNS)

# `w` for what a word is made of, a space for everything else.
_WORD_SHAPE = bytearray(b" " * 256)
for _byte in b"abcdefghijklmnopqrstuvwxyz0123456789_.~:%+/-":
    _WORD_SHAPE[_byte] = ord("w")
