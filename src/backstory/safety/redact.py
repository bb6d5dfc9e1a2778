"""Take secrets out of captured text before it is written anywhere.

The idea. A table has one row a kind of secret. A row carries a few literal lower-case *needles* and a
regular expression, which is compiled (once) and tried only where one of its needles stands: substring search
is nearly free and `re.compile` may cost a millisecond, so importing this module compiles nothing and a text
without secrets compiles next to nothing. This runs inside hooks with a latency budget: only `re` is imported.
A vendor's token is one long word with the needle in it, so the needles of those rows (`Token`) are looked for
only in the long words of a text, which are few.

Names and values. Most secrets have no shape of their own; a name says what they are. There is one list of
such names (`_NAMES`), and a row for each way in which a value belongs to a name: behind an operator, in the
next line, as the `value` of a sibling, between tags, as an argument, or in a sentence. The looser the
way, the more the value must look made up (judge.py).

Disguises. The table sees a text without colours, invisible characters and joined strings, and once more what
URL-encoding, entities and base64 hide (disguise.py). What it finds there is replaced in the text itself.

Why no library. Hooks run on the standard library alone. detect-secrets is the oracle in the tests instead:
whatever it finds in a text must be gone from our output.

What is replaced. In a match, the last capturing group is the secret (the whole match where there is no
group), and only that becomes `[redacted:<kind>]`; the text around it stays, because a memory needs to know
that a password was set, not which. While the rows take their turns a secret is a run of FILLER of the same
length, so that all places stay what they were.

Placeholders. `<your password>`, `****`, `xxxx`, `your-api-key`, `null` and the like stay. `changeme` and
`password123` are redacted: people really do run with them.

Kubernetes. Every value in the `data` of a Secret is redacted, base64 being no protection.

Left alone on purpose: a bare word that may as well be a variable (`token = abc`, `secret = value1`), a count
(`pass: 12`), a hash without a telling name, an ordinary word in a sentence ("the password is swordfish").

Idempotent by construction: the table is applied until nothing changes, and a replacement that lies within
an earlier one is refused. Every replacement turns text into a marker, so this ends, in practice after one
more round.

Linear time: quantifiers are bounded or possessive, and a refused value is short or in quotes of its own.

To add a kind, add a row, and a positive and a near miss to tests/helpers/secret_texts.py; a test wants both.
"""

from __future__ import annotations

import re
from functools import lru_cache  # re has it loaded already

from backstory.safety import disguise, judge
from backstory.safety.judge import FILLER, MARKER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Span = tuple[int, int, str]  # from, to, what the marker says
    Place = tuple[int, int]

_DEEPEST = 2  # encodings within encodings


def redact(text: str) -> str:
    """Replace private passages and secrets by `[redacted:<kind>]`."""
    if len(text) < 200:  # ids, names of tools, paths: the same again and again
        return text if _is_plain(text) else _redact_short(text)
    return _redact(text)


def redact_together(text: str) -> str:
    """The same for a text that was put together of redacted ones: what is encoded in them has been looked at,
    but only beside its name does a value show what it is."""
    return _redact(text, _DEEPEST)


@lru_cache(maxsize=512)
def _redact_short(text: str) -> str:
    return _redact(text)


def _redact(text: str, depth: int = 0) -> str:
    while spans := _find(text, depth):
        pieces: list[str] = []
        copied = 0
        for start, end, kind in _merged(spans):
            pieces += text[copied:start], f"{MARKER}{kind}]"
            copied = end
        pieces.append(text[copied:])
        text = "".join(pieces)
    return text


def _is_plain(text: str) -> bool:
    """A word, a path or an id of letters, which is what most texts of an event are: no name with a value, and
    no token without a digit."""
    plain = text.replace("/", "").replace("_", "").replace("-", "").replace(".", "")
    return (plain.isalpha() or (len(text) < _LONG_WORD and plain.isalnum())) and text.isascii()


def _find(text: str, depth: int) -> list[Span]:
    """The secrets in a text, those of later rows last."""
    views = disguise.undone(text)
    plain = views[-1].text if views else text
    if MARKER in plain:
        plain = re.sub(r"\[redacted:[a-z-]{1,40}\]", lambda marker: FILLER * len(marker[0]), plain)
    is_long = len(plain) > _SHORT  # to look for the needles twice would cost more than to look for joins
    if not is_long:
        lowered, words, places = _places_of_needles(plain)
    if is_long or not places.keys() <= _COMMON:
        view = disguise.joined(plain)
        if view:
            views.append(view)
            plain = view.text
        if view or is_long:
            lowered, words, places = _places_of_needles(plain)
    has_needles = not places.keys() <= _COMMON
    found: list[Span] = []
    for number in sorted({number for needle in places for number in _ROWS[needle]}):
        row = PATTERNS[number]
        if row.is_possible(lowered, places):
            plain = row.apply(plain, places, found)
    if depth < _DEEPEST:
        found += _encoded(plain, depth + 1, has_needles, words)
    for view in reversed(views):
        found = [(*view.origin(start, end), kind) for start, end, kind in found]
    return found


def _encoded(plain: str, depth: int, has_needles: bool, long_words: list[Place]) -> list[Span]:
    """The secrets in what is encoded."""
    found: list[Span] = []
    if (has_needles or "%" in plain or "&" in plain) and (view := disguise.decoded(plain)):
        found += [(*view.origin(start, end), kind) for start, end, kind in _find(view.text, depth)]
    for start, end, said in disguise.base64_texts(plain, long_words):
        if inner := _find(said, depth):
            found.append((start, end, inner[0][2]))
    return found


def _merged(spans: list[Span]) -> list[Span]:
    """In order; what overlaps is one, of the kind that was found last."""
    numbered = sorted((start, end, number) for number, (start, end, _) in enumerate(spans))
    merged: list[tuple[int, int, int]] = []
    for start, end, number in numbered:
        if merged and start < merged[-1][1]:
            first, last, before = merged[-1]
            merged[-1] = (first, max(last, end), max(before, number))
        else:
            merged.append((start, end, number))
    return [(start, end, spans[number][2]) for start, end, number in merged]


_COMMON = frozenset(("://",))


def _places_of_needles(text: str) -> tuple[str, list[Place], dict[str, list[int]]]:
    """The text in small letters, where its long words are, and where each needle stands that is there at all.
    A text has far fewer different words than words, so these say which anchors of needles may be there."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few capitals become two letters
        lowered = "".join([small if len(small := letter.lower()) == 1 else letter for letter in text])
    ascii_only = lowered.encode("ascii", "replace")
    letters = ascii_only.decode()  # one byte each: nearly all needles are found twice as fast in it
    parts = set(ascii_only.replace(b"\\n", b"  ").translate(_PART_SHAPE).split())
    telling = parts - _dull
    anchors = _anchors(telling, _LONGEST_PART if len(lowered) > _SHORT else len(lowered)) if telling else ()
    found: dict[str, list[int]] = {}
    for anchor in anchors:
        there = _all_places(letters, anchor)
        for needle, at in _ANCHORED[anchor]:
            if needle == anchor:
                places = there
            else:
                places = [
                    place - at for place in there if place >= at and letters.startswith(needle, place - at)
                ]
            if places and (needle not in _OWNERS or "key" in anchors):
                found[needle] = places
    others = [needle for command in parts & _COMMANDS for needle in _BY_COMMAND[command]]
    long_words = _long_words(ascii_only)
    if long_words:
        words = " ".join([letters[start:end] for start, end in long_words])
        heads = {part[:_HEAD] for part in telling} & _HEADS
        tokens = [needle for head in heads for needle in _BY_HEAD[head]]
        others += [needle for needle in tokens + _WITHIN_WORDS if needle in words]
    for needle in others + _PARTLESS:
        if places := _all_places(letters, needle):
            found[needle] = places
    if not lowered.isascii():
        found |= {needle: places for needle in _NOT_ASCII if (places := _all_places(lowered, needle))}
    return lowered, long_words, found


def _all_places(text: str, word: str) -> list[int]:
    places: list[int] = []
    place = text.find(word)
    while place >= 0:
        places.append(place)
        place = text.find(word, place + 1)
    return places


# Parts of words, which are mostly the same: those that say nothing, and the anchors in others.
_dull: set[bytes] = set()
_known: dict[bytes, list[str]] = {}


def _anchors(parts: set[bytes], longest: int) -> set[str]:
    """Those that stand in one of the parts."""
    found: set[str] = set()
    fresh: list[bytes] = []
    for part in parts:
        if (anchors := _known.get(part)) is not None:
            found.update(anchors)
        elif len(part) <= longest and (part[0] > _NINE or part.strip(_NUMERALS)):
            fresh.append(part)
    if fresh:
        vocabulary = b" ".join(fresh).decode()
        present = [anchor for anchor in _ANCHORED if anchor in vocabulary]
        found.update(present)
        if len(fresh) < _MOST_FRESH:
            _learn(fresh, present)
    return found


def _learn(parts: list[bytes], anchors: list[str]) -> None:
    if len(_dull) + len(_known) > _MOST_KNOWN:
        _dull.clear()
        _known.clear()
    for part in parts:
        mine = [anchor for anchor in anchors if anchor in part.decode()] if anchors else []
        if mine or part[:_HEAD] in _HEADS:
            _known[part] = mine
        else:
            _dull.add(part)


_SHORT = 2_000
_NINE, _DASH = b"9-"
_NUMERALS = b"0123456789abcdef_"
_MOST_FRESH = 3_000  # in a text that is worth learning from
_MOST_KNOWN = 30_000
_HEAD = 3  # letters that say which tokens may begin with a part
_LONGEST_PART = 60  # a longer one is no name and no command


# No token that a `Token` row matches is shorter.
_LONG_WORD = 18


def _long_words(lowered: bytes) -> list[Place]:
    """The words in which a token may hide. A search for a run of one letter leaps from word to word."""
    shape = lowered.translate(_WORD_SHAPE)
    run = b"w" * _LONG_WORD
    words: list[Place] = []
    end = 0
    while (start := shape.find(run, end)) >= 0:
        end = shape.find(b" ", start)
        if end < 0:
            end = len(shape)
        # A line of a log begins with its time.
        if not (lowered.startswith(b"20", start) and lowered[start + 4] == _DASH == lowered[start + 7]):
            words.append((start, end))
    return words


# `w` for what a word is made of, a space for everything else.
_WORD_SHAPE = bytearray(b" " * 256)
for _byte in b"abcdefghijklmnopqrstuvwxyz0123456789_.~:%+/-$":
    _WORD_SHAPE[_byte] = ord("w")


# Letters, digits and _ as they are, a space for everything else.
_PART_SHAPE = bytearray(b" " * 256)
for _byte in b"abcdefghijklmnopqrstuvwxyz0123456789_":
    _PART_SHAPE[_byte] = _byte


class Pattern:
    """One row of the table: what to look for, and how to tell a secret from code that looks like one.
    A match begins with one of the needles."""

    __slots__ = ("_compiled", "expression", "is_secret", "kind", "name", "needles")

    def __init__(
        self,
        name: str,
        kind: str | Callable[[re.Match[str]], str],
        needles: str,
        expression: str,
        is_secret: Callable[[re.Match[str]], bool] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.needles = needles.split("|")
        self.expression = expression
        self.is_secret = is_secret
        self._compiled: re.Pattern[str] | None = None

    def is_possible(self, lowered: str, places: dict[str, list[int]]) -> bool:
        return any(needle in places for needle in self.needles)

    def apply(self, text: str, places: dict[str, list[int]], found: list[Span]) -> str:
        """The text with FILLER for what is secret, which is added to `found`."""
        compiled = self.compiled()
        pieces: list[str] = []
        copied = position = 0
        for place in self.candidates(places):
            while match := self.attempt(compiled, text, place, position):
                start, end = match.span(match.lastindex or 0)
                if not text[start:end].strip(FILLER):
                    position = max(end, match.start() + 1)
                elif self.is_secret is None or self.is_secret(match):
                    kind = self.kind if isinstance(self.kind, str) else self.kind(match)
                    found.append((start, end, kind))
                    pieces += text[copied:start], FILLER * (end - start)
                    copied = position = max(end, match.start() + 1)
                else:
                    position = max(self.resume(start, end), match.start() + 1)
        if not pieces:
            return text
        pieces.append(text[copied:])
        return "".join(pieces)

    def candidates(self, places: dict[str, list[int]]) -> Iterable[int]:
        present = [places[needle] for needle in self.needles if needle in places]
        return present[0] if len(present) == 1 else sorted({place for there in present for place in there})

    def attempt(
        self, compiled: re.Pattern[str], text: str, place: int, position: int
    ) -> re.Match[str] | None:
        return compiled.match(text, place) if position <= place else None

    def compiled(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self.expression, re.ASCII)
        return self._compiled

    def resume(self, start: int, end: int) -> int:
        """Where to go on after a refused value: at its beginning, as it may hold an assignment itself."""
        return start


class Named(Pattern):
    """A value that belongs to one of the names; where those stand is found once for all these rows."""

    __slots__ = ("signs",)

    def __init__(
        self,
        name: str,
        expression: str,
        is_secret: Callable[[re.Match[str]], bool],
        signs: tuple[str, ...] = (),
    ) -> None:
        super().__init__(name, _kind_of_name, _NAME_NEEDLES, _NAME + expression, is_secret)
        self.signs = signs  # one of them stands soon after the name

    def is_possible(self, lowered: str, places: dict[str, list[int]]) -> bool:
        if _NAMED not in places:
            begins = _BEGINS.compiled()
            places[_NAMED] = [place for place in super().candidates(places) if begins.match(lowered, place)]
        there = places[_NAMED]
        if self.signs:
            there = _before(there, self.signs, lowered)
        places[self.name] = there
        return bool(there)

    def candidates(self, places: dict[str, list[int]]) -> Iterable[int]:
        return places[self.name]


def _before(places: list[int], signs: tuple[str, ...], lowered: str) -> list[int]:
    """The places soon after which one of the signs stands."""
    following = dict.fromkeys(signs, -1)
    near: list[int] = []
    for place in places:
        for sign in signs:
            if following[sign] < place:
                at = lowered.find(sign, place)
                following[sign] = at if at >= 0 else len(lowered) + _SOON
        if min(following.values()) < place + _SOON:
            near.append(place)
    return near


_SOON = 300
_NAMED = ""  # among the places: those of all names


class Command(Pattern):
    """A needle begins with the whole name of a command."""

    __slots__ = ()


class Anywhere(Pattern):
    """A match may begin anywhere in a text that has a needle."""

    __slots__ = ()

    def candidates(self, places: dict[str, list[int]]) -> Iterable[int]:
        return (0,)

    def attempt(
        self, compiled: re.Pattern[str], text: str, place: int, position: int
    ) -> re.Match[str] | None:
        return compiled.search(text, position)


class Near(Pattern):
    """A match begins a little before its needle."""

    __slots__ = ()

    def attempt(
        self, compiled: re.Pattern[str], text: str, place: int, position: int
    ) -> re.Match[str] | None:
        return compiled.search(text, max(position, place - 250), place + 600)


class Token(Pattern):
    """A secret that is one long word and begins with a needle."""

    __slots__ = ()

    def resume(self, start: int, end: int) -> int:
        return end  # no part of a word that is no token is one


class Shape(Token, Near):
    """A token whose needle is not its beginning."""

    __slots__ = ()


class Passage(Pattern):
    """From an opening tag to the closing one that belongs to it, or to the end; the expression finds tags.
    An opening one in backticks that no closing one follows is a word in a text about such tags."""

    __slots__ = ()

    def apply(self, text: str, places: dict[str, list[int]], found: list[Span]) -> str:
        tags: Iterable[re.Match[str]] = self.compiled().finditer(text)
        if "`<" in text:
            tags = _without_words(list(tags))
        pieces: list[str] = []
        copied = depth = opened = 0
        kind = str(self.kind)
        for tag in tags:
            if tag[0][1] != "/":
                if depth == 0:
                    opened = tag.start()
                    pieces.append(text[copied:opened])
                depth += 1
            elif depth:
                depth -= 1
                if depth == 0:
                    copied = tag.end()
                    found.append((opened, copied, kind))
                    pieces.append(FILLER * (copied - opened))
        if depth:
            found.append((opened, len(text), kind))
            pieces.append(FILLER * (len(text) - opened))
        else:
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


# --- the shapes that several rows share -------------------------------------------------------------------

# Quoted (plain, or with the backslashes of a JSON string in a JSON string) or bare. A quoted value needs no
# closing quote, as captured output is often cut off. A bare one ends where code or a query string would go
# on; backslashes before n, r, t or a quote belong to an enclosing JSON string.
_QUOTED = r"""[bBfFrRuU@$]{0,2}(?:
        "((?:[^"\\\n]|\\.)++)
      | '((?:[^'\\\n]|\\.)++)
      | `((?:[^`\\\n]|\\.)++)
      | \\{1,8}"((?:[^"\\\n]|\\(?!\\{0,8}"))++)
      | \\{1,8}'((?:[^'\\\n]|\\(?!\\{0,8}'))++)
    )"""
_BARE = r"""((?:[^\s"'`,;()\[\]{}<>|&\\]|&(?=[^\s&"'\\])(?![\w.-]{1,40}=)|\\[^\snrt"'\\])++)"""
_VALUE = f"(?:{_QUOTED} | {_BARE})"

# An argument of a command.
_ARGUMENT = r"""(?![\\"']{0,5}\uffff)(?:\\{0,4}"([^"\\\n]++)|\\{0,4}'([^'\\\n]++)|([^\s"'\\|;&]++))"""
_REST = r"[^\n|;&]{0,300}?\s"  # of a command, up to the flag

# The next line, whatever `cat -n`, a diff, a quotation or a log puts before it.
_NEXT_LINE = r"""(?:\r?\n|(?:\\{1,4}r)?\\{1,4}n)
    (?:[ \t]{0,8}\d{1,6}[\u2192\t|:] | [+>-](?![ \t]?-)
          | (?:[^\t\n]{1,60}\t){0,2}\[?\d{4}-\d\d-\d\d[T ][\d:.,+Z]{5,20}\]?
            (?:\ (?:\[[\w.-]{1,20}\]|(?-i:[A-Z]{4,8})|info|debug|warn|error):?){0,2})?
    (?:[ \t]|\\t){0,40}"""

# The names that say what a value is, by the kind that the marker names.
_PASSWORDS = (
    r"passw(?:or[dt]|d)|pass[ _-]?phrase|passcode|pwd|psk(?![a-z])"
    r"|(?<![a-z0-9])(?-i:pw|PW|Pw)(?=\W{0,6}[:=]|\ is\ )(?!\])|kennwort"
    r"|mot[ _-]?de[ _-]?passe|contrase(?:ñ|n|\\{1,4}u00f1)a"
    "|senha|wachtwoord|парол[ьея]|密码|密碼|密钥|パスワード|비밀번호|hasło|lösenord|parola|şifre"
)
_PASS = "|".join(
    ["(?<![a-z])pass", "(?<=[a-z])(?-i:Pass)"]
    + [f"(?<={owner})pass" for owner in "db user my root admin smtp ftp ssh key store".split()]
)
_KEY_OWNERS = (
    "api access private encryption signing account auth master license licence shared deploy service "
    "subscription integration ingest webhook instrumentation consumer validation decryption"
).split()
_NAMES = (
    rf"(?:{_PASSWORDS}|{_PASS}|secret(?:[_ -]?key)?|geheimnis|token|jeton"
    rf"|(?:{'|'.join(_KEY_OWNERS)})[_ -]?key|apikey|credential|zugangsdaten)"
)
_NAME_NEEDLES = (
    "pass|pw|kennwort|mot|contrase|senha|wachtwoord|парол|密码|密碼|密钥|psk|パスワード|비밀번호|hasło|lösenord|parola|şifre|"
    "secret|geheimnis|token|jeton|credential|zugangsdaten|" + "|".join(_KEY_OWNERS)
)
_NAME = rf"""(?xi) (?P<name>{_NAMES})(?:s|n|es)?\d{{0,3}}
    (?P<suffix>(?:[_.-][\w.-]{{1,40}} | (?-i:[A-Z][a-z])\w{{0,40}})?)"""


# In a sentence, between a name and its value.
_WORD = r"(?:,?[ ][^\s:=,;{}<>|]{1,24})"
_VERBS = "is|are|was|be|to|from|von|ist|war|lautet|lauten|hei(?:ß|ss)t|auf|zu|est|es|era|jest|è|é|→|->|=>"


_BEGINS = Pattern("names", "", "", rf"(?i){_NAMES}")


def _flag(words: str) -> str:
    """`--name value`, `--db-name=value`, `-Name value`; `--name-file` is another flag."""
    return (
        rf"(?i)-(?P<name>{words})"
        r"(?:[=:]|(?:[ \t]|\\{1,8}\n|\\{1,8}n){1,8})"  # the line may go on in the next
        r"""[\\"']{0,8}(?![-=:])([^\s"'\\,()\[\]|;&]++)"""
    )


# `docker login -u me -p hunter2`
_LOGIN_TOOLS = ("docker", "podman", "nerdctl", "registry", "acr", "az", "oc")

# Tokens by how they begin. What follows must look random.
_VENDORS = {
    "age-key": "AGE-SECRET-KEY-1",
    "anthropic-key": "sk-ant-",
    "openai-key": "sk-",
    "google-oauth": "GOCSPX- ya29. 1//0",
    "gcp-api-key": "AIza",
    "github-token": "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
    "gitlab-token": "glpat- gloas- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- glsoat- glffct-",
    "slack-token": "xoxa- xoxb- xoxp- xoxr- xoxs- xoxo- xoxd- xoxc- xoxe- xoxe.xoxp- xoxe.xoxb- xapp-",
    "stripe-key": "sk_live_ sk_test_ rk_live_ rk_test_ whsec_ sk_prod_ rk_prod_",
    "groq-key": "gsk_",
    "xai-key": "xai-",
    "nvidia-key": "nvapi-",
    "perplexity-key": "pplx-",
    "huggingface-token": "hf_ api_org_",
    "npm-token": "npm_",
    "pypi-token": "pypi-AgE",
    "sendgrid-key": "SG.",
    "shopify-token": "shpat_ shpca_ shppa_ shpss_",
    "digitalocean-token": "dop_v1_ doo_v1_ dor_v1_",
    "databricks-token": "dapi dose",
    "square-token": "sq0csp- sq0atp- sq0idp- EAAA",
    "artifactory-token": "AKC cmVmdGtuO",
    "vault-token": "hvs. hvb. hvr.",
    "atlassian-token": "ATATT3 ATCTT3 ATBB ATTA",
    "linear-key": "lin_api_ lin_oauth_",
    "grafana-token": "glsa_ glc_",
    "figma-token": "figd_ figdr_ figo_",
    "sentry-token": "sntrys_ sntryu_",
    "tailscale-key": "tskey-",
    "token": (
        "dckr_pat_ dckr_oat_ pul- dp.pt. dp.st. dp.ct. dp.sa. rubygems_ sbp_ sb_secret_ re_ r8_ lsv2_pt_ "
        "lsv2_sk_ "
        "ntn_ secret_ PMAK- NRAK- fo1_ fm1_ fm2_ fm1r_ xkeysib- xsmtpsib- EZAK EZTK FLWSECK duffel_live_ "
        "duffel_test_ dt0c01. dt0s01. LTAI AKID ABSK bkua_ CCIPAT_ phx_ pscale_tkn_ pscale_pw_ pscale_oauth_ "
        "pnu_ "
        "rdme_ ops_ey A3- csk- tgp_v1_ fw_ pcsk_ access-sandbox- access-production- oy2 CLOJARS_ cio "
        "pat-na1- "
        "pat-eu1- pat-na2- sgp_ CFPAT- HRKU- ico- sk.ey nfp_ rnd_ tk-us- sm_aat_ sm_pat_ shippo_live_ "
        "shippo_test_ "
        "tfp_ AQVN t1. y0_ polar_oat_ napi_ KGAT_ sqp_ sqa_ squ_ mfa. dG9r vercel_ vcp_ vck_ cfat_ cfut_ "
        "apify_api_ "
        "jina_ tvly- e2b_ sk-lf- eyJrIjoi ory_at_ ory_st_ EAACEdEose0cBA"
    ),
}


_PREFIXES = {prefix: kind for kind, prefixes in _VENDORS.items() for prefix in prefixes.split()}


def _vendor(match: re.Match[str]) -> str:
    prefix = max((prefix for prefix in _PREFIXES if match[0].startswith(prefix)), key=len)
    return _PREFIXES[prefix]


def _kind_of_name(match: re.Match[str]) -> str:
    return judge.kind_of(match["name"] + match["suffix"])


def _anyone(*words: str) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


# --- the table --------------------------------------------------------------------------------------------

# name (unique), kind (what the marker says), needles (lower case), expression, judge for the loose ones.
# Vendor rows first: `token = "ghp_..."` should say github, unless more than the token stood in the quotes.
PATTERNS: tuple[Pattern, ...] = (
    # With attributes or without, but not Unicode's `<Private Use>`.
    Passage(
        "private passage",
        "private",
        "<private",
        r"(?i)<private(?:\s{1,8}[\w:-]{1,40}\s?=[^<>]{0,200}|\s{0,8})(?<!/)>|</private\s{0,8}>",
    ),
    # Keys in PEM armour; `\n` may be two characters (JSON). With an END mark, all of it, whatever a diff or
    # `cat -n` put before the lines; cut off, as far as the base64 runs. A mark without a key is code about
    # keys.
    Anywhere(
        "private key",
        "private-key",
        "private key",
        r"""(?x) -----BEGIN\ (?:[A-Z0-9]{1,12}\ ){0,3}PRIVATE\ KEY(?:\ BLOCK)?-----
        (?: (?:[^-]|-(?!----)){16,}+ -----END\ [A-Z0-9 ]{1,50}-----
          | (?:(?:\\+[nrt]|[\s>|:,.+"'\u2192-]|\d{1,6}[\u2192\t|:])*+
               (?:(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]*+ | [A-Za-z0-9/][A-Za-z0-9+/=]{15,}+))++
            (?:(?:\\+[nr]|\n)\s?[A-Za-z0-9+/=]{1,64}+(?![\w ]))?
        )""",
    ),
    # The other half of a key that was cut off at its beginning.
    Anywhere(
        "private key tail",
        "private-key",
        "private key-----|private key block-----",
        r"""(?x) (?<![A-Za-z0-9+/=]) (?:[A-Za-z0-9+/]{16,}+={0,2}(?:\\+[nr]|\s)++){1,100}+
        (?:[A-Za-z0-9+/=]{1,64}(?:\\+[nr]|\s)++){0,2} -----END\ [A-Z ]{0,30}PRIVATE\ KEY(?:\ BLOCK)?-----""",
    ),
    # How the DER of a private key begins in base64: PKCS#1, PKCS#8, EC, Ed25519, OpenSSH.
    Shape(
        "bare private key",
        "private-key",
        "ibaakc|kcaqea|ibaakb|adanbgkqhkig9w0baqefaas|mhccaqee|mc4caqawbq|migh|b3blbnnzac1r",
        r"(?<![A-Za-z0-9+/])(?:MII[A-Za-z0-9+/]{2,4}IBAAK[BC]|MII[A-Za-z0-9+/]{2,5}ADANBgkqhkiG9w0BAQEFAAS"
        r"|MHcCAQEE|MC4CAQAwBQ|MIGHAgEAMBMG|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{16,}+={0,2}"
        r"(?:\s{1,2}[A-Za-z0-9+/]{40,}+={0,2})*+(?:\s{1,2}[A-Za-z0-9+/]{4,}={1,2})?",
    ),
    Pattern(
        "putty key",
        "private-key",
        "private-lines:",
        rf"""(?xi) private-lines:\ \d{{1,3}} ((?:{_NEXT_LINE} [A-Za-z0-9+/=]{{16,}}+)++ (?:{_NEXT_LINE}
          [A-Za-z0-9+/]{{1,64}}+={{0,2}}(?![\w:-]))?)""",
    ),
    # A private key as JSON has it: the exponent, or the key of a symmetric cipher.
    Anywhere(
        "json web key",
        "private-key",
        '"kty|kty\\',
        r"""(?<=["'])[dk]\\{0,4}["']\s{0,4}:\s{0,4}\\{0,4}["']([A-Za-z0-9_-]{16,}+)""",
    ),
    # Base64 of "-----BEGIN PRIVATE KEY" and its kin, as in a kubeconfig.
    Token(
        "encoded private key",
        "private-key",
        "ls0tls1crudjti",
        r"LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFUR|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZBVE|BFTkNSWVBURUQgUFJJ)"
        r"[A-Za-z0-9+/]{8,}+={0,2}",
    ),
    Token(
        "aws access key id",
        "aws-access-key-id",
        "akia|asia",
        r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    Token(
        "vendor token",
        _vendor,
        "|".join(_PREFIXES).lower(),
        rf"(?<![A-Za-z0-9])(?:{_anyone(*map(re.escape, _PREFIXES))})(?<![\w-]sk-)"
        r"(?:[A-Za-z0-9_~+/%=-]|\.(?=[A-Za-z0-9])){12,}+",
        judge.is_vendor_token,
    ),
    # No prefix of its own, so by its name; the brackets are the prompt of `aws configure`.
    Pattern(
        "aws secret access key",
        "aws-secret-access-key",
        "secret",
        r"""(?i)secret[_ -]?access[_ -]?key[\\"'\]]{0,8}(?: \[\S{0,30}\])?\s{0,8}[:=]>?[\s\\"']{0,8}"""
        r"""([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])""",
    ),
    Command(
        "aws configure",
        "aws-secret-access-key",
        "configure set",
        r"""configure set [\w.-]{0,80}aws_(?:secret_access_key|session_token) {1,4}"""
        r"""[\\"']{0,8}([^\s"'\\|;&]++)""",
        judge.is_literal,
    ),
    # The id of the key in a service account file; the key itself is in PEM armour.
    Pattern(
        "google service account",
        "gcp-service-account",
        "private_key_id",
        r"""private_key_id[\\"']{0,8}\s{0,8}[:=]\s{0,8}[\\"']{0,8}([0-9a-f]{40})\b""",
    ),
    Pattern(
        "azure account key",
        "azure-key",
        "accountkey=|sharedaccesskey=",
        r"(?i)(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{20,}+={0,2})",
    ),
    # Who has a signed address has what it leads to.
    Pattern(
        "url signature",
        "signature",
        "sig=|signature=|hmac=|x-amz-security-token=",
        r"(?i)(?:(?<=[?&;])(?:sig|hmac)|(?:(?<=[?&;])|(?<=amz-)|(?<=goog-))signature|x-amz-security-token)="
        r"([A-Za-z0-9%+/_~-]{20,}+={0,2})",
    ),
    Shape(
        "azure client secret",
        "azure-secret",
        "q~",
        r"(?<![\w~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,}+",
    ),
    Pattern(
        "webhook",
        "webhook",
        "hook|with/key/",
        r"(?i)(?:hook[\w.-]{0,60}/(?:(?:[a-z][a-z.-]{1,30}|\d{8,})/){0,3}+|with/key/)([A-Za-z0-9_/@-]{16,}+)",
        judge.is_webhook,
    ),
    # A bot token is base64 of an id, a time and a signature: without a prefix, so only near these words.
    Near(
        "discord bot token",
        "discord-token",
        "discord|bot_token|bot token|bot.run|client.run|client.login|bot.login",
        r"(?<![\w.-])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}+",
    ),
    # Account and key ids have two letters for a prefix, so only near these words.
    Near(
        "twilio key",
        "twilio-key",
        "twilio|_sid",
        r"(?<![A-Za-z0-9])(?:AC|SK)[0-9a-f]{32}(?![A-Za-z0-9])",
    ),
    Token("mailgun key", "mailgun-key", "key-", r"(?<![A-Za-z0-9-])key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    Shape(
        "mailchimp key",
        "mailchimp-key",
        "-us",
        r"(?<![0-9a-z])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9a-z])",
    ),
    Shape(
        "telegram bot token",
        "telegram-token",
        ":aa",
        r"(?<![0-9A-Za-z])(?:bot)?(\d{8,10}:AA[A-Za-z0-9_-]{32,}+)",
    ),
    Shape("terraform token", "token", ".atlasv1.", r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}+"),
    Token(
        "jwt", "jwt", "eyj", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}+(?:\.[A-Za-z0-9_-]{4,}+={0,2}){1,4}"
    ),
    # Hashes of passwords, which can be cracked: crypt's, Django's, Argon2's, LDAP's.
    Shape(
        "password hash",
        "password-hash",
        "$2a$|$2b$|$2x$|$2y$|$1$|$5$|$6$|$y$|$7$|$8$|$9$|$apr1$|$argon2|pbkdf2|scrypt|bcrypt_sha256$",
        r"(?x) \$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}"
        r" | \$(?:[156789]|y|gy|apr1|argon2i?d?|scrypt)\$[^\s:\"'\\<>]{20,200}"
        r" | (?<![\w$])(?:pbkdf2[_:]sha\d{1,3}|scrypt|bcrypt_sha256)[$:][^\s\"'\\<>]{30,300}",
        judge.is_mixed,
    ),
    Pattern(
        "ldap hash",
        "password-hash",
        "{ssha|{sha}|{smd5}|{md5}|{crypt}",
        r"(?i)\{(?:S?SHA\d{0,3}|S?MD5|CRYPT)\}([A-Za-z0-9+/$.]{20,}+={0,2})",
    ),
    Pattern(
        "authorization header",
        "token",
        "authorization",
        r"""(?ix) authorization[\\"'\]]{0,8} \s{0,4} [:=,] \s{0,4} [\\"']{0,8}
        (?:bearer|basic|token|bot|digest|apikey|api-key|key|negotiate|ssws|jwt|splunk|genie[-]?key)[ \t]{1,4}
        (?:token=[\\"']{0,8})?
        ([A-Za-z0-9._~+/:|=-]{2,}+)""",
        judge.is_header_value,
    ),
    Pattern(
        "raw authorization header",
        "token",
        "authorization",
        r"""(?i)authorization[\\"'\]]{0,8}\s{0,4}[:=,]\s{0,4}[\\"']{0,8}(?!AWS4-)([A-Za-z0-9._~+/=-]{16,}+)(?![:(\[])""",
        judge.is_raw_header_value,
    ),
    # Without the header's name a bearer token must look like one.
    Pattern(
        "bearer token",
        "token",
        'bearer |basic |bearer"|bearer\\',
        r"""(?i)\b(?:bearer|basic)(?: |\\{0,4}["'],\s{0,4}\\{0,4}["'])([A-Za-z0-9._~+/=-]{16,}+)""",
        judge.looks_random,
    ),
    # Of a response, the value of the cookie; what follows are its attributes. Short ones are settings.
    Pattern(
        "set-cookie header",
        "cookie",
        "set-cookie",
        r"""(?i)set-cookie[\\"']{0,8}\s{0,4}[:=]\s{0,4}[\\"']{0,8}[\w.-]{1,64}=([^\s;"'\\,]{8,}+)""",
        judge.is_literal,
    ),
    # Of a request, all cookies together.
    Pattern(
        "cookie header",
        "cookie",
        "cookie",
        r"""(?ix) (?<!set-) \bcookie[\\"']{0,8} (?:\s{0,4}[:=]\s{0,4}|\ ) [\\"']{0,8}
        ((?=(?:[\w.-]{1,64}=[^\s;"'\\]{0,7};[ ]){0,20}[\w.-]{1,64}=[^\s;"'\\]{8}) [^\r\n"'\\]++)""",
        judge.is_literal,
    ),
    # The names that frameworks give to the cookie of a session.
    Pattern(
        "session cookie",
        "cookie",
        'sess|connect.sid|sid=|sid"|csrf|xsrf',
        r"""(?ix) (?:(?:php|j|asp\.net_|laravel_|_)?sess(?:ion)?(?:_?id|_?key|_?token)?
          | connect\.sid | (?<![a-z])sid | [cx]srf\w{0,12}
) [\\"']{0,8} (?:\s{0,4}[:=,]\s{0,4}|\t)
        [\\"']{0,8} ([A-Za-z0-9%._~+/:-]{20,}+={0,2}) (?![(\[])""",
        judge.is_session_value,
    ),
    # A greedy password takes in the @ that people forget to escape: the last one before a slash counts.
    Pattern(
        "url password",
        "password",
        "://",
        r"""://[^\s/:@"'<>\\\[]{0,128}:([^\s/"'<>\\]{1,256})@""",
        judge.is_url_password,
    ),
    Pattern("url token", "token", "://", r"://([A-Za-z0-9_-]{20,256})@", judge.looks_random),
    Command(
        "user and password",
        "password",
        "curl|http |https |ab -a|siege|smbclient|rpcclient|smbmap|lftp|xh ",
        rf"""(?x) (?<![\w/.:@-])(?: (?:curl|siege)\b{_REST}(?:-u|--user|--proxy-user|-U) | ab\ -A
          | (?:https?|xh)(?=\ ){_REST}(?:-a|--auth)
          | (?:smbclient|rpcclient|lftp|smbmap)\b{_REST}(?:-U|-u|--user) )
        [ =]?[\\"']{{0,8}}[^\s:%,"'\\]{{0,128}}[:%,]([^\s"'\\]++)""",
        judge.is_literal,
    ),
    # mysql takes the password without a space after -p, as archivers do; digits there are docker's ports.
    Command(
        "attached password",
        "password",
        "mysql|mysqldump|mysqladmin|mysqlimport|mysqlsh|mysqlcheck|mysqlshow|mariadb|7z |7za |rar |unrar ",
        r"""(?x) (?:(?:mysql|mariadb)[\w-]{0,12}\b[^\n|;&]{0,200}?\s-p
          | (?:7za?|(?:un)?rar)\ [^\n|;&]{0,200}?-h?p)
        (?![\d:.]*(?:\s|$))[\\"']{0,8}([^\s"'\\|;&]++)""",
        judge.is_literal,
    ),
    # Commands that take a secret with a short flag, by the flag.
    Command(
        "password argument",
        "password",
        (
            "sshpass|redis-cli|valkey-cli|sqlcmd|mssql-cli|bcp |isql|zip |unzip|ipmitool|storepass|keypass|"
            "srcstorepass|deststorepass|srckeypass|destkeypass|mosquitto_pub|mosquitto_sub|mosquitto_passwd|"
            "ldapsearch|ldapadd|ldapmodify|ldapdelete|ldapwhoami|ldappasswd|kadmin|generic-password|"
            "internet-password|mongo|mongosh|mongodump|mongorestore|mongoimport|mongoexport|cqlsh|twine|"
            "evil-winrm|rdesktop|psexec|xfreerdp|cf login|argocd login|doctl|glab|nuget|gem push|"
            "unlock-keychain|create-keychain|security import|set-key-partition-list|signtool|ssh-keygen|"
            "setuser|expo login|supabase|altool|notarytool|cmdkey|wmic|schtasks|nmcli|snmpwalk|snmpget|"
            "snmpset|" + "|".join([f"{tool} login" for tool in _LOGIN_TOOLS])
        ),
        rf"""(?x) (?:
          (?:sshpass|twine|cqlsh|evil-winrm|rdesktop|mongo(?:sh|dump|restore|import|export)?
          |(?:cf|argocd|expo)\ login|psexec|(?:unlock|create)-keychain|supabase
          |altool|notarytool)\b{_REST}-p
          | security\ import\b{_REST}-P | set-key-partition-list\b{_REST}-k | ssh-keygen\b{_REST}-N
          | (?i:setuser)\b[^\n]{{0,80}}?\s> | nmcli\b{_REST}(?:password|[\w.-]{{1,30}}\.psk)
          | signtool\b{_REST}/p | (?:cmdkey|wmic|schtasks)\b{_REST}/(?:pass(?:word)?:|rp)
          | (?:{"|".join(_LOGIN_TOOLS)})\ login\b{_REST}-p(?=[ =])
          | (?:redis-cli|valkey-cli)\b{_REST}-a
          | (?:sqlcmd|mssql-cli|bcp|isql|(?:un)?zip|mosquitto_\w{{2,6}}|ipmitool)\b{_REST}-P
          | (?:ldap\w{{1,8}}|kadmin|(?:generic|internet)-password)\b{_REST}-w
          | (?:src|dest)?(?:store|key)pass(?=[ ]) | (?:doctl|glab)\b{_REST}-t
          | (?:nuget|gem\ push)\b{_REST}-k | snmp\w{{2,8}}\b{_REST}-[AX]
          | xfreerdp\b{_REST}/p: )
        [ =]?(?!-){_ARGUMENT}""",
        judge.is_argument,
    ),
    # Commands that take it as their last argument, or the last but none.
    Command(
        "positional password",
        "password",
        (
            "htpasswd|openssl passwd|mkpasswd|vault login|ngrok|cargo login|rabbitmqctl|"
            "wpa_passphrase|user-secrets set|config set|mc alias set|http-basic|snyk auth|"
            "bw unlock|requirepass|b2 |config:set|auth:token|rclone obscure|wandb login|net use|net user"
        ),
        rf"""(?x) (?:
          (?<![.\w/])htpasswd[ ](?:-[A-Za-z]{{1,6}}[ ](?:\d{{1,2}}[ ])?){{0,3}}?
            -[a-zA-Z]{{0,5}}b[a-zA-Z]{{0,5}}[ ](?:-[A-Za-z]{{1,4}}[ ](?:\d{{1,2}}[ ])?){{0,3}}
            (?:(?<!n[bB][ ])(?<!n[bB][bB][ ])[\w./~-]{{1,200}}[ ])?+[\w.@-]{{1,64}}
          | openssl\ passwd(?:\ -(?:salt\ \S{{1,40}}|\w{{1,8}})){{0,4}}
          | mkpasswd(?:\ -[\w=-]{{1,20}}(?:\ (?:sha-\d{{3}}|bcrypt|yescrypt|md5))?){{0,4}}
          | vault\ login(?:\ -[\w=-]{{1,40}}){{0,3}} | ngrok\ (?:authtoken|config\ add-authtoken)
          | cargo\ login(?:\ --registry\ \S{{1,60}})?
          | rabbitmqctl\ (?:add_user|change_password)\ \S{{1,64}} | wpa_passphrase\ \S{{1,64}}
          | user-secrets\ set\ \S{{1,120}}
          | config\ set\ --secret\ \S{{1,120}} | http-basic\.\S{{1,120}}\ \S{{1,64}} | snyk\ auth
          | mc\ alias\ set\ \S{{1,64}}\ \S{{1,200}}\ \S{{1,64}} | bw\ unlock | requirepass
          | b2\ (?:account\ )?authorize(?:[-_]account)?\ \S{{1,64}} | rclone\ obscure
          | wandb\ login(?:\ --relogin)? | net\ use\ [^\n]{{0,120}}?/user:\S{{1,64}}
          | net\ use\ (?:\S{{1,3}}\ )?\\\\\S{{1,120}}(?=\ \S{{1,64}}\ /user:)
          | net\ user\ \S{{1,64}} )
        [ \t]{{1,4}}(?![-/]){_ARGUMENT}""",
        judge.is_argument,
    ),
    # Commands that put something where secrets are kept: whatever they put there is one.
    Pattern(
        "stored secret",
        "secret",
        "secret|put-parameter|vault kv|vault write|variable set|config:set|env add",
        rf"""(?x) (?:
          (?:secrets?(?:manager)?\s|put-parameter|variable\ set|env\ add)(?:[^\n|;&]{{0,300}}?\s)??
             (?:(?:--body|-b|--value|--secret-string|--string-value|--plaintext|--secret-binary)[ =]
             |--from-literal[= ][\\"']{{0,4}}[\w.-]{{1,80}}=)
          | (?:vault\ (?:kv\ (?:put|patch)|write)|(?<!create\ )secrets?\ (?:set|import|put)|config:set)\s
             (?:[^\n|;&]{{0,300}}?\s)??[\w.-]{{1,80}}=(?!=|@) )
        (?!-){_ARGUMENT}""",
        judge.is_argument,
    ),
    Command(
        "piped password",
        "password",
        "echo |printf ",
        rf"""(?x) (?:echo|printf)\s(?:-[neE]{{1,3}}\s)?
        (?:[\\"']{{0,4}}%s(?:\\{{1,4}}n)?[\\"']{{0,4}}\s)?{_ARGUMENT}(?:\\{{1,4}}n)?
        [\\"']{{0,4}}\s{{0,4}}\|[^\n|;&]{{0,200}}?
        (?:-stdin\b|sudo\ -S|--with-token|--passphrase-fd|\bsecrets?\ |env\ add|cryptsetup
        |pass\ stdin|\blogin\b)""",
        judge.is_argument,
    ),
    Pattern("here string", "secret", "<<<", rf"(?<!<)<<<(?!<)\s{{0,4}}{_ARGUMENT}", judge.is_here_string),
    Pattern(
        "secure string",
        "password",
        "-securestring",
        rf"(?xi) -securestring\s{{1,4}}(?:-\w{{1,12}}\s{{1,4}}){{0,3}}{_ARGUMENT}",
        judge.is_argument,
    ),
    # `login: admin / hunter2`, `auth=("admin", "hunter2")`
    Pattern(
        "login",
        "password",
        "log in|login|cred|zugangsdaten|account|auth",
        r"""(?xi) (?:
          (?:log\ ?in|cred(?:ential)?s?|zugangsdaten|account)
            (?:[^\n:=]{0,40}[:=]|[^\n:=]{0,30}\ (?:with|as|mit|is|ist)|(?=\ \S{1,64}\ /\ ))\ {1,4}
            [`*"']{0,3}[\w.@-]{1,64}[`*"']{0,3}\ ?[/:]\ ?[`*"']{0,3}
          | auth\w{0,20}\s?[=:(]\s?[(\[]?\s?\\{0,4}["'][^"'\n\\]{1,64}\\{0,4}["'],\s{0,4}\\{0,4}["'] )
        ((?:[^\s"'`<>|,;.:)*\\]|[,;.:)*](?=[^\s"'`<>|\\])){6,}+)""",
        judge.is_login_password,
    ),
    Pattern(
        "signing key",
        "key",
        "jwt.|createhmac|hmac.new|hmac(",
        r"""(?xi) (?:jwt\.(?:sign|verify|encode|decode)|createhmac|hmac(?:\.new)?)\(
        [^\n]{0,120}?,\s{0,4}b?\\{0,4}["']([^"'\s\\]{8,}+)""",
        judge.is_signing_key,
    ),
    Pattern(
        "hexadecimal private key",
        "private-key",
        "0x",
        r"0x([0-9a-fA-F]{64})(?![0-9A-Za-z])",
        judge.is_in_a_line_about_private_keys,
    ),
    Near(
        "card number",
        "card-number",
        "card|cvv|cvc|visa",
        r"(?<![\w.-])\d{4}(?:[ -]?\d{4}){2}[ -]?\d{1,7}(?![\w.-])",
        judge.is_card_number,
    ),
    Pattern(
        "openssl password",
        "password",
        "pass:|openssl enc",
        rf"""(?x) (?: pass:(?<=[ "']pass:) | openssl\ enc\b{_REST}-[kK]\ {{1,4}}) {_ARGUMENT}""",
        judge.is_openssl_password,
    ),
    # What is typed where a program asks: expect, pexpect.
    Pattern(
        "typed password",
        "password",
        "assword",
        rf"""(?x) assword[^\n]{{0,20}}{_NEXT_LINE}[\w.]{{0,40}}send(?:line)?[ (]{{1,4}}
        \\{{0,4}}["']([^"'\\\n]{{4,}}+)""",
        judge.is_literal,
    ),
    # What a test types into the field of a page.
    Pattern(
        "password for a field",
        "password",
        "assword",
        r"""(?xi) assword[\w\]"'=*^$ \\-]{0,16}["'`]\)?\s{0,2}
        (?:(?P<call>\)?\.(?:fill|type|send_?keys|set_?value|enter_?text|press_?sequentially)\()|,\s{0,4})
        \\{0,4}["'`]([^"'`\s\\]{6,}+)\\{0,4}["'`]\s?[,)]""",
        judge.is_typed_into_a_field,
    ),
    Pattern(
        "output of a secret",
        "secret",
        (
            "base64 -d|base64 --decode|new value: |generated for |openssl rand|token_hex(|token_urlsafe(|"
            "master.key|secret.key"
        ),
        rf"""(?xi) (?:(?:base64\ -(?:d|-decode)|openssl\ rand|token_(?:hex|urlsafe)\(|(?:master|secret)\.key)
            [^\n\\]{{0,30}}{_NEXT_LINE}
          |new\ value:\ |generated\ for\ [^\s:]{{1,60}}:\ )
        ([^\s"'\\]{{8,}}+)(?=[ \t]*(?:\r?\n|["'\\]|$))""",
        judge.is_output_of_a_secret,
    ),
    # A password that is hashed at once, and the seed of one-time codes.
    Near(
        "hashed literal",
        "password",
        "hash(|hashpw(|hashsync(|_hash(|hash_password(|make_password(|set_password(|setpassword(",
        r"""(?i)(?:password|bcrypt|argon2|hashpw|hashsync)[^\n"'`]{0,60}\(\s{0,4}b?\\{0,4}["'`]([^"'`\s\\]{6,}+)""",
        judge.is_hashed,
    ),
    Pattern(
        "one-time seed",
        "totp-secret",
        "totp(",
        r"""(?i)totp\(\s{0,4}\\{0,4}["']([A-Z2-7 ]{16,}+)={0,6}\\{0,4}["']""",
    ),
    Near(
        "url key",
        "key",
        "key=|appid=",
        r"(?i)[?&](?:[\w-]{0,16}[_-])?(?:key|appid)=([A-Za-z0-9_-]{20,}+)",
        judge.is_vendor_token,
    ),
    Pattern(
        "key in a sentence",
        "key",
        "key is |key ist ",
        r"""(?i)key\ (?:is|ist)\ {1,4}[\\"'`]{0,4}([A-Za-z0-9_-]{20,}+)(?![.(\[])""",
        judge.is_vendor_token,
    ),
    # `"Key": "..."` as in appsettings.json: only what no word and no digest is.
    Pattern(
        "bare key",
        "key",
        'key"',
        r"""(?xi)(?<=["'])key\\{0,4}"\s?:\s?\\{0,4}"([a-z0-9+/_-]{16,}+={0,2})\\{0,4}["']""",
        judge.is_jumble,
    ),
    Pattern("database key", "key", "pragma key", r"""(?i)pragma\ key\s?=\s?\\{0,4}["']([^"'\n]{4,}+)["']"""),
    # Kaggle's file, and what wandb.login takes.
    Pattern(
        "key of a user",
        "key",
        'username"|login(key',
        r"""(?xi) (?:username"\s?:\s?"[^"\n]{1,64}",\s{0,8}"key"\s?:\s?|login\(key\s?=\s?)
        ["']([a-z0-9]{20,}+)["']""",
        judge.is_mixed,
    ),
    # A literal that looks made up, behind others in a call that logs in.
    Pattern(
        "login call",
        "password",
        (
            "connect(|login(|pdo(|mysqli(|authenticate(|set_wallet(|basicauth(|basic_auth(|sign_in(|signin(|"
            "begin(|superuser(|create_user(|connection("
        ),
        r"""(?xi) [a-z_]{3,12}\( (?:[^()"'\n]{0,80}+["'][^"'\n]{0,120}+["']){0,6}?
        [^()"'\n]{0,80}+(?:(?<=,)|(?<=,\s)|(?<=,\\)|(?<=,\s\\))
        ["']((?:[a-z]{4}[ ]){3}[a-z]{4}
          |(?=[^"'\d]{0,99}\d)(?![^"'\s@]{1,64}@[\w.-]{1,64}["'])[^"'\s\\]{8,100}+)\\{0,4}["']\s{0,4}[,)]""",
        judge.is_login_argument,
    ),
    Near(
        "chpasswd",
        "password",
        "chpasswd",
        r"""(?x) (?<![\w.-])[\w.-]{1,64}:([^\s"'\\|]{1,256}+)[\\"']{0,8}\s{0,4}\|\s{0,4}(?:sudo\s)?chpasswd\b
          | \bchpasswd\b[^\n|;&<]{0,40}<<<\s{0,4}[\\"']{0,8}[\w.-]{1,64}:([^\s"'\\|]{1,256})""",
        judge.is_literal,
    ),
    Pattern(
        "dockerfile env",
        "password",
        "env ",
        r"""(?xm) (?:^|(?<=[:\u2192\t+])|(?<=[:\u2192\t ][ ])|(?<=\\[nt])) ENV[ \t]{1,4}
          (?:[A-Z0-9_]{0,40}_|PG|DB)?
        (?:PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|SECRET|TOKEN|(?:API|ACCESS|SECRET|PRIVATE)_?KEY)
        (?P<suffix>_[A-Z0-9_]{1,40})? [ \t]{1,4} [\\"']{0,8} (?!=) ([^\s"'\\]++)""",
        judge.is_environment_value,
    ),
    Anywhere(
        "kubernetes secret",
        "kubernetes-secret",
        'kind: secret|"kind": "secret"|"kind":"secret"',
        r"""(?xm) (?:^|\\n|\{)[+]?[ \t]{0,12} \\?"?(?P<name>[\w.-]{1,80})\\?"?:[ ]?\\?"?
        ([A-Za-z0-9+/]{4,}+={0,2}) (?=\\?"?,?(?:$|\\n|\}))""",
        judge.is_encoded_value,
    ),
    Pattern(
        "password flag",
        "password",
        "-pass",
        _flag("pass|password|passwd|passphrase|passcode"),
        judge.is_flag_value,
    ),
    Pattern(
        "token flag",
        "token",
        (
            "-token|-authtoken|-secret|-api|-auth|-access|-account|-private|-license|-pat|"
            "-primary|-master|-client"
        ),
        _flag(
            "tokens?|authtoken|secret(?:-key|-string|-access-key)?|api-?key|auth-?key|(?:access|account|private|license|primary|master)-key"
            "|client-secret|pat"
        ),
        judge.is_flag_value,
    ),
    # ODBC and ADO strings: between semicolons a bare word is a literal, and may hold spaces.
    Near(
        "connection string password",
        "password",
        "password=|pwd=",
        r"""(?i); ?(?:password|pwd)=([^;"'\r\n\\(\[]{1,256}+)(?=[;"'\r\n\\]|$)""",
        judge.is_literal,
    ),
    # Go's MySQL driver and Oracle's tools put it in forms of their own.
    Near(
        "dsn password",
        "password",
        "@tcp(|@unix(|oracle:|sqlplus",
        r"""(?x) (?<![\w.-])[\w.-]{1,64}:([^\s"'`\\@/]{1,128})@(?:tcp|unix)\(
          | \b(?:oracle:(?:thin|oci):|sqlplus\s(?:-\S{1,8}\s)?[\\"']{0,8})[\w.-]{1,64}
            /([^\s"'\\@/]{1,128})@""",
        judge.is_literal,
    ),
    # host:port:database:user:password
    Near(
        "pgpass line",
        "password",
        ":5432:|:*:|:5433:|:6432:|pgpass",
        r"""(?<![\w:/.-])[\w*][\w.-]{0,100}:(?:\d{4,5}|\*):[\w*-]{1,64}:[\w.*@-]{1,64}:((?:[^\s:"'\\]|\\[:\\]){1,256}+)""",
        judge.is_literal,
    ),
    Pattern(
        "npmrc auth",
        "token",
        ':_auth|_auth=|_auth =|auth"|auth\\',
        r"""(?x) (?:(?<=/:)|(?<![\w:]):?)
        (?:_auth(?:Token)?[ ]?=[ ]?"?|(?<=["'_])auth\\{0,4}"\s?:\s?\\{0,4}")([^\s"'\\]{8,}+)""",
        judge.is_auth_value,
    ),
    Pattern(
        "netrc password",
        "password",
        "login",
        rf"""(?x) \blogin(?:\s|{_NEXT_LINE}){{1,8}}[^\s\\]{{1,128}}
        (?:{_NEXT_LINE}|\s){{1,8}}password(?:{_NEXT_LINE}|\s){{1,8}}([^\s"'\\]++)(?!\ ?[=(])""",
        judge.is_literal,
    ),
    Near(
        "sql password",
        "password",
        "identified by|identified with|password '|password \\'|password \"",
        r"""(?i)\b(?:(?:user|role|grant|alter|create)\b[^;\n]{0,200}?\sidentified (?:with \S{1,40} )?by"""
        r"""|(?:user|role|login)\b[^;\n]{0,200}?\s(?:encrypted )?password(?: ?=)?) """
        r"""\\{0,8}["']((?:[^"'\\\n]|\\[^"'\n])++)""",
        judge.is_literal,
    ),
    # A variable of the environment with a value that can only be a key: AZURE_STORAGE_KEY, Laravel's APP_KEY.
    Near(
        "environment key",
        "key",
        '_key=|_key:|_key =|_key"|_key\'|_key\\|_salt|_pat=|_pat:|_pat =|_pat"',
        r"""(?x) [A-Z0-9]_(?:KEY|SALT|PAT)[\\"'\]]{0,8}\s{0,4} (?:
          [:=]\s{0,4}[\\"']{0,8}((?:base64:)?[A-Za-z0-9+/_]{20,}+={0,2})(?![\w.:(\[-])
          | [,=]>?\s{0,4}\\{0,4}['"]([^'"\s]{32,}+) )
          | (?:AUTH|LOGGED_IN|NONCE)_(?:KEY|SALT)'[ ]?,\s{0,12}'([^'\n]{8,}+)'""",
        judge.is_key_value,
    ),
    # --- a value that belongs to a name ---
    # `name = value` in its many spellings; what stands before the secret word does not matter.
    Named(
        "assignment",
        rf"""(?:\\{{0,8}}["'`])? \]?  # "name": and config["name"] =
        (?:[ \t]?:[ \t]?[&*]?(?:'static\ )?[A-Za-z][\w.\[\]|, ?]{{0,40}}(?=\ ?=[ \t]*[^=\s]))?  # name: str =
        (?P<operator>[ \t]{{0,8}}(?: ={{1,3}}>? | !={{1,2}} | :=? )(?:\*\*)?[ \t]{{0,8}})
        {_VALUE}""",
        judge.is_assigned,
    ),
    # `#define NAME "value"`, PHP's `define('NAME', 'value')`
    Named(
        "definition",
        rf"""(?P<operator>(?:[\\"']{{1,4}}\s{{0,4}},)?[ \t]{{1,20}}){_QUOTED}""",
        judge.is_defined,
        ('"', "'"),
    ),
    # `process.env.NAME || "value"`
    Named(
        "fallback",
        rf"""(?P<operator>[\\"'`\])]{{0,4}}\s{{0,4}}(?:\|\||\?\?|\bor\b)\s{{0,4}}){_QUOTED}""",
        judge.is_fallback,
        ("||", "??", "or"),
    ),
    # `name:` or `name: >-` and the value in the next line.
    Named(
        "next line",
        rf"""(?:\\{{0,8}}["'`])? {_WORD}{{0,8}}? [ \t]{{0,4}}
          (?P<operator>[:=]\ ?(?P<block>[>|][+-]?|<<[-~]?\\?["']?[A-Z_]{{1,20}}\\?["']?)?)
        [ \t]{{0,4}}[(\\]?(?P<newline>(?:{_NEXT_LINE}){{1,2}}) (?:{_QUOTED}
          | ((?:[^\s"'`,;(){{}}<>\\]|\\[^\snrt"'\\]){{3,}}+)
        (?=[ \t]*(?:\r?\n|\\|$)))""",
        judge.is_on_the_next_line,
        ("\n", "\\n"),
    ),
    # `name: X, value: Y` and `variable "X" {{ default = Y }}`
    Named(
        "sibling",
        rf"""(?=\\{{0,8}}["']|[ \t]{{0,4}}(?:,|:?\r?\n|:?\\{{1,4}}n)) \\{{0,8}}["']?
          (?:(?!\b(?:name|key|id)\b\\{{0,4}}["']?\s?[:=])[^{{}}<>]|(?<=["'\w]\s){{){{0,200}}?
        (?<![\w.-])(?P<operator>(?:value|default|default_?value|plain_?text|string_?value)\\{{0,8}}["']?\s{{0,8}}[:=]\s{{0,8}})
        {_VALUE}""",
        judge.is_sibling,
        ("value", "default", "plain"),
    ),
    # <password>x</password>, <key>password</key><string>x</string>, <entry key="password">x</entry>
    Named(
        "element",
        rf"""(?:[^<>\n]{{0,80}}>|(?=</))(?:</[\w:.-]{{1,40}}>(?:\s|\\n|{_NEXT_LINE}){{0,3}}<[\w:.-]{{1,40}}>)?(?:\s|\\n)?(?:<!\[CDATA\[)?([^<>\n]++)(?=</|\]\]>)""",
        judge.is_element,
        ("<",),
    ),
    # In a sentence, as an argument of a call, or behind a space: what looks made up.
    Named(
        "loose value",
        rf"""(?P<glue> [\\"'`*)\]]{{1,6}}\s{{0,4}},\s{{0,4}}
          | (?P<call>\((?:\\{{0,8}}["'][^"'\n]{{0,64}}["'],\s{{0,4}})?)(?=[\\"'])
          | [\\"'`*_)\]]{{0,4}} (?:{_WORD}{{1,7}}?[ ]?[:=]|{_WORD}{{0,7}}?[ ](?:{_VERBS})[:=]?)
            [*]{{0,2}}(?:[ ](?:now|still|currently|jetzt|noch|again|set\ to))?[*]{{0,2}}[ \t]{{1,4}}
          | [\\"'`*]{{0,4}}(?:[ \t]{{1,8}}|\\t|\s{{0,8}}\|\s{{0,3}})
          | [\u3041-\u9fff\uac00-\ud7a3]{{1,16}}[:\u300c]?[ ]?
        ) [*_]{{0,2}}(?P<quote>[\\"'`\u201c\u201e\u300c(]{{0,4}}|\u00ab\s?)
        (?=\S{{0,80}}(?:[\d!#$%^~]|(?-i:[a-z][A-Z])))  # no word, so that "was changed to" is read on
        ((?:[^\s"'`<>|,;.:)*\u201c\u201d\u00bb\u3001-\u9fff\\]|[,;.:)*](?=[^\s"'`<>|\u3001-\u9fff\\])){{6,}}+)""",
        judge.is_loose,
        tuple("0123456789!#$%^~"),
    ),
    # A table whose head has the name.
    Named(
        "table cell",
        rf"""[ *`]{{0,4}}\|[^\n]{{0,200}}{_NEXT_LINE}\|[ |:-]{{3,200}}
        (?:{_NEXT_LINE}\|[^\n]{{0,400}}){{0,30}}?
        {_NEXT_LINE}\|[^\n]{{0,300}}?\|[ `*]{{0,4}}
        (?=[^\s|]{{0,80}}[\d!#$%^~])(?![^\s|@]{{1,64}}@[\w-]{{1,64}}\.)
        ([^\s|`]{{6,200}}+)(?=[ `*]{{0,40}}\|)""",
        judge.is_made_up,
        ("|-", "| -", "|:"),
    ),
    # One-time codes for the day when a device is lost, the words of a wallet, the key of a licence.
    Pattern(
        "recovery codes",
        "recovery-code",
        (
            "recovery code|backup code|recovery-code|backup-code|recovery_code|backup_code|"
            "scratch code|wiederherstellungscode"
        ),
        rf"""(?xi) \w{{6,20}}[ _-]?codes?[^\n]{{0,80}}?(?:[:=\[(]|{_NEXT_LINE})
        ((?:(?:{_NEXT_LINE}|\s|[-*+,"'\\\[\]\u2192|>]|\d{{1,6}}[.)\u2192\t])*+
          (?:[a-z0-9]{{4,8}}[ -]?[a-z0-9]{{4,8}}|\d{{6,10}})(?![a-z0-9(=])){{2,}}+)""",
        judge.is_mixed_or_digits,
    ),
    Pattern(
        "seed phrase",
        "seed-phrase",
        ("seed phrase|mnemonic|recovery phrase|seed_phrase|seedphrase|secret phrase|seed words"),
        rf"""(?xi) (?:seed[ _]?(?:phrase|words)|mnemonic|(?:recovery|secret)\ phrase)
        [^\n]{{0,60}}?(?:[:="'(\[]|\bis\b|{_NEXT_LINE})[\s\\"'\[]{{0,8}}
        ([a-z]{{3,8}}(?:[ ,"'\n]{{1,4}}(?:\d{{1,2}}[.)]\ ?)?[a-z]{{3,8}}){{11,23}}+)(?![a-z])""",
    ),
    Pattern(
        "licence key",
        "key",
        "licen|product key|serial|activation|/ipk",
        r"""(?xi) (?:licen[sc]e|product|serial|activation|/ipk)\w{0,8}[ _-]?(?:key|code|number)?\w{0,4}
        (?:[^\n\w]{1,8}(?:is\ )?|[^\n:]{1,60}:\ )[\\"'`]{0,4}
        ((?:[A-Z0-9]{4,8}-){3,8}[A-Z0-9]{4,12})\b""",
        judge.is_mixed,
    ),
)

# --- where to look for the needles ------------------------------------------------------------------------

_ROWS: dict[str, list[int]] = {}
_BY_COMMAND: dict[bytes, list[str]] = {}  # by the word that they begin with
_BY_HEAD: dict[bytes, list[str]] = {}  # those of tokens by how a word with them begins
_WITHIN_WORDS: list[str] = []
_PARTLESS: list[str] = []
_NOT_ASCII: list[str] = []
_OWNERS: set[str] = set()  # of keys: nothing without that word
_longest: dict[str, str] = {}  # part of each of the others
for _number, _row in enumerate(PATTERNS):
    for _needle in _row.needles:
        if _needle not in _ROWS:
            _parts = _needle.encode("ascii", "replace").translate(_PART_SHAPE).split()
            if isinstance(_row, Shape):
                _WITHIN_WORDS.append(_needle)
            elif isinstance(_row, Token):
                _BY_HEAD.setdefault(_parts[0][:_HEAD], []).append(_needle)
            elif isinstance(_row, Command):
                _BY_COMMAND.setdefault(_parts[0], []).append(_needle)
            elif not _needle.isascii():
                _NOT_ASCII.append(_needle)
            elif _parts and not (_part := max(_parts, key=len))[:1].isdigit():
                _longest[_needle] = _part.decode()
                if isinstance(_row, Named) and _needle in _KEY_OWNERS:
                    _OWNERS.add(_needle)
            else:
                _PARTLESS.append(_needle)
        _ROWS.setdefault(_needle, []).append(_number)
_COMMANDS = frozenset(_BY_COMMAND)
_HEADS = frozenset(_BY_HEAD)
# Needles by an anchor, which several have in common, with how far into the needle it stands.
_ANCHORED: dict[str, list[tuple[str, int]]] = {"key": [], "token": [], "seed": []}
for _needle in sorted(_longest, key=lambda needle: len(_longest[needle])):
    _anchor = next((anchor for anchor in _ANCHORED if anchor in _needle), _longest[_needle])
    _ANCHORED.setdefault(_anchor, []).append((_needle, _needle.index(_anchor)))
