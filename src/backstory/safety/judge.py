"""Telling a secret from code that looks like one.

The loose forms in redact.py (`name = value`, flags, headers) match far more than secrets. These judges look
at a match and say whether its value is a literal that somebody would rather keep to themselves, or else a
reference, a type, a call, a placeholder, a label.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

MARKER = "[redacted:"  # how every replacement begins
FILLER = "\uffff"  # what a secret is made of until then; no character of any text

# After a secret word these say that the value is about the secret, and not the secret: `token_count`.
_HARMLESS_SUFFIXES = frozenset(
    "age algorithm arn attempts bucket budget callback changed class cls column confirmation count counter "
    "created dialog dir directory duration endpoint env error errors exists expiration expires expiry field "
    "file filename form format func function generator handler header help hint icon id ids index input "
    "invalid issuer kind label len length less level limit link list location manager max message min "
    "mismatch mode model name names page param parameter path pattern placeholder policy position prefix "
    "prompt provider ref reference regex required reset resolver rotation rules scope scopes service session "
    "size source start stdin store strategy strength suffix text timeout title tooltip ttl type types uri "
    "url usage validation validator var variable version visible".split()
)

# Values that are not secrets whatever their name: types, keywords, and what documentation puts there.
_HARMLESS_VALUES = frozenset(
    "any array await blob bool boolean byte bytea bytes char const default dict disabled enabled example "
    "fail failed false float hidden include int integer invalid let list missing new nil no none null number "
    "object off ok omit on optional placeholder raise redacted required return same-origin secretstr self "
    "set static str string tbd text this todo true typeof undefined unknown unset uuid valid varchar void "
    "yes".split()
)

# A value made of these, without a digit, is the name of a variable or a field more often than a secret.
_SECRET_WORDS = ("pass", "pwd", "secret", "token", "key", "cred", "auth")

_PASSWORD_WORDS = (
    *(
        "passw",
        "pw",
        "passphrase",
        "pass_phrase",
        "passcode",
        "psk",
        "kennwort",
        "passe",
        "contrase",
        "senha",
    ),
    *(
        "wachtwoord",
        "парол",
        "密码",
        "密碼",
        "パスワード",
        "비밀번호",
        "hasło",
        "lösenord",
        "parola",
        "şifre",
    ),
)

# Before `pass`: a round of something and no password, as in `first_pass`.
_ROUNDS = (
    *("all", "backward", "each", "final", "first", "forward", "last", "multi", "next", "one", "prev"),
    *("render", "second", "shader", "single", "test", "tests", "third", "two"),
)

# What follows a flag in prose about the flag: "use --token to sign in".
_PROSE_WORDS = frozenset(
    "a an and argument as can flag flags for from if in instead is not on option options or the to via "
    "with".split()
)

_LAST_WORDS = (*_PASSWORD_WORDS, "word", "pass", "secret", "token", "key", "credential")

_OPERATOR_WORDS = frozenset(("and", "else", "for", "if", "in", "is", "not", "or"))

# Longer than this, a bare value is never refused: refusing long values again and again, each within the one
# before, would take quadratic time.
_LONGEST_REFERENCE = 512


def _value(match: re.Match[str]) -> str:
    return match[match.lastindex or 0]


def _has_digit(value: str) -> bool:
    return any(character.isdigit() for character in value)


def _names_a_secret(value: str) -> bool:
    lowered = value.lower()
    return any(word in lowered for word in _SECRET_WORDS)


def _is_words(value: str) -> bool:
    """`user_name`, `settings.value`, `my-secret`: letters and what joins them."""
    return value.replace("_", "").replace(".", "").replace("-", "").isalpha()


def _is_variable(value: str) -> bool:
    """`$NAME`, `${NAME}`, `$(command)`, `%NAME%`, `%s`, `<name>`."""
    if value[0] == "$":
        name = value[1:].partition("/")[0].replace("_", "").replace(":", "")  # `$HOME/x` as well
        return name[:1] in ("", "{", "(") or (name.isalnum() and not name[0].isdigit())
    return (value[0] == "<" and value[-1] == ">") or (value[0] == "%" and value[-1] in "%sd")


def _is_template(value: str) -> bool:
    """`{token}`, `{{ token }}`, `Bearer ${token}`, but not any brace in a password."""
    opened = value.find("{")
    if opened < 0 or value.find("}", opened) < 0:
        return False
    inside = value[opened + 1 :].lstrip("{ %")
    return inside[:1].isalpha() or inside[:1] in ("_", "}", "$") or inside[1:2] == "}"


def _is_reference(value: str) -> bool:
    """A variable, a template, a placeholder or a keyword in the place of a value."""
    if len(value) > _LONGEST_REFERENCE:
        return False
    value = value.strip()
    lowered = value.lower()
    return (
        not value.strip("*.xX-_#?\u2022\u2026")
        or "xxxxxxxx" in lowered
        or (len(value) < 16 and value.endswith(("...", "\u2026")))
        or lowered.rstrip("!?") in _HARMLESS_VALUES  # GraphQL and others end a type so
        or lowered.startswith(("your-", "your_", "your "))
        or _is_variable(value)
        or _is_template(value)
        or any(source in value for source in ("os.environ", "os.getenv", "process.env"))
    )


def _is_path(value: str) -> bool:
    """A file or an address; base64 may begin with a slash too, but seldom lacks its other signs."""
    is_rooted = value.startswith(("/", "./", "../", "~/")) or "://" in value
    return is_rooted and "=" not in value and "+" not in value and not _is_jumble(value)


def is_literal(match: re.Match[str]) -> bool:
    return not _is_reference(_value(match))


_FLAG_SIGNS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"


def is_flag_value(match: re.Match[str]) -> bool:
    """`--token abc` but not `--token TOKEN`, `--max-tokens 4096`, `--token to sign in`."""
    value = _value(match)
    if len(value) > _LONGEST_REFERENCE:
        return True
    before = match.string[max(0, match.start() - 100) : match.start() + 1]
    flag = before[len(before.rstrip(_FLAG_SIGNS)) :]
    if not flag.startswith("--") and not (flag[0] == "-" and before[: -len(flag)][-1:] in (" ", "\t")):
        return False
    if value.lower() in _PROSE_WORDS or _is_reference(value):
        return False
    if value.isdigit():
        return len(value) >= 4 and match["name"].lower().startswith("pass")
    return not (value.isupper() and _is_words(value) and _names_a_secret(value))


def is_argument(match: re.Match[str]) -> bool:
    """`-p hunter2` but not `-p PASSWORD`, `-p "$PW"`, `-p <password>`, and no prose about the command."""
    value = _value(match)
    if value.lower() in _PROSE_WORDS or value[0] == ")" or _is_reference(value):
        return False
    return not (value.isupper() and _is_words(value) and _names_a_secret(value))


def is_openssl_password(match: re.Match[str]) -> bool:
    return is_argument(match) and not _value(match).startswith((":", "/"))


def is_session_value(match: re.Match[str]) -> bool:
    """The id of a session that is no UUID may be all that one needs to be somebody."""
    value = _value(match)
    return is_mixed(match) and not _is_reference(value) and not _is_path(value) and not _is_uuid(value)


def _is_uuid(value: str) -> bool:
    return len(value) == 36 and [len(part) for part in value.split("-")] == [8, 4, 4, 4, 12]


def is_mixed_or_digits(match: re.Match[str]) -> bool:
    return _has_digit(_value(match))


def _longest_random_run(value: str) -> int:
    """Letters and digits between which no word ends, with a digit or capitals among them."""
    longest = 0
    for run in "".join(sign if sign.isalnum() else " " for sign in value).split():
        capitals = sum(letter.isupper() for letter in run[1:])
        if _has_digit(run) or 2 < capitals < len(run) - 3:
            longest = max(longest, len(run))
    return longest


def is_jumble(match: re.Match[str]) -> bool:
    return _is_jumble(_value(match)) and _has_digit(_value(match))


def is_vendor_token(match: re.Match[str]) -> bool:
    """Generated tokens have a long run with digits in it; `xai-grok-4-fast-reasoning` has none."""
    value = match[match.lastindex or 0]
    longest = _longest_random_run(value)
    digits = sum(sign.isdigit() for sign in value)
    is_mixture = not value[6:].islower() and not value[6:].isupper()
    is_likely = (is_mixture and digits > (longest < 8)) or (len(value) >= 28 and digits >= 4)
    return len(value) >= 20 and (longest >= 12 or (longest >= 6 and is_likely and digits > 0))


def is_on_the_next_line(match: re.Match[str]) -> bool:
    """`password: >-` and a value, but not the body of a function or the first key of a block."""
    value = _value(match)
    if _is_about(match) or _is_reference(value) or _is_path(value):
        return False
    if _is_quoted(match):
        strong = _is_password_name(match["name"]) or "secret" in match["name"].lower()
        return len(value) >= 3 and _is_quoted_secret(value, match["name"], strong)
    if value.endswith(":") or value[0] in "-@":
        return False
    return looks_made_up(value) or (bool(match["block"]) and not _is_words(value))


def is_defined(match: re.Match[str]) -> bool:
    """`#define WIFI_PASS "hunter2"` but not `#define PASS_TEXT "Enter the password"`."""
    value = _value(match)
    line = match.string[max(0, match.start() - 100) : match.start()].rpartition("\n")[2]
    if "define" not in line or _is_about(match) or len(value) < 6 or " " in value:
        return False
    return not _is_reference(value) and _is_quoted_secret(value, match["name"], True)


def is_hashed(match: re.Match[str]) -> bool:
    """`hash("hunter2")` but not `hash("sha256")`."""
    return is_mixed(match) and not _value(match).lower().startswith(_TECHNICAL)


def is_fallback(match: re.Match[str]) -> bool:
    """`process.env.SECRET || "hunter2"` but not `password or "Enter it"`."""
    value = _value(match)
    if _is_about(match) or len(value) < 6 or " " in value or _is_reference(value) or _is_path(value):
        return False
    return _is_quoted_secret(value, match["name"], _is_password_name(match["name"]) or _names_a_secret(value))


def is_sibling(match: re.Match[str]) -> bool:
    """The `value` of a `name` that says secret."""
    value = _value(match)
    if len(value) < 3 or _is_about(match) or _is_reference(value) or _is_path(value) or _is_pass(match):
        return False
    following = match.string[match.end() : match.end() + 1]
    if following in ("(", "[") or " " in value or _is_words(value) or not _has_digit(value) or len(value) < 6:
        is_likely = (_is_words(value) and len(value) > 7) or looks_made_up(value)
        is_password = _is_password_name(match["name"]) and _is_quoted(match)
        return (is_password and is_likely) or (_is_jumble(value) and following not in ("(", "["))
    return not value.replace(".", "").isdigit()


def is_here_string(match: re.Match[str]) -> bool:
    """`gh secret set X <<< value`: the command says whether it is one."""
    start = match.string.rfind("\n", max(0, match.start() - 300), match.start()) + 1
    command = match.string[max(start, match.start() - 300) : match.start()]
    is_about_secrets = _names_a_secret(command) or "login" in command or "sudo -S" in command
    return is_about_secrets and "chpasswd" not in command and is_argument(match)


def is_output_of_a_secret(match: re.Match[str]) -> bool:
    """What `kubectl get secret ... | base64 -d` prints, or a program that made a password."""
    is_telling = match[0][:4].lower() not in ("base", "new ", "gene")  # else only the text before tells
    before = match.string[max(0, match.start() - 200) : match.start()]
    return (is_telling or _names_a_secret(before)) and _has_digit(_value(match))


def is_typed_into_a_field(match: re.Match[str]) -> bool:
    """`page.fill("#password", "hunter2")`, but not `("password", "text")`."""
    value = _value(match)
    before = match.string[max(0, match.start() - 60) : match.start()].rpartition("\n")[2].lower()
    is_typing = bool(match["call"]) or any(verb in before for verb in ("fill", "type", "keys", "setvalue"))
    return is_typing and _is_quoted_secret(value, "password", True) and not _is_reference(value)


def is_in_a_line_about_private_keys(match: re.Match[str]) -> bool:
    start = match.string.rfind("\n", max(0, match.start() - 200), match.start()) + 1
    return (
        "private"
        in match.string[max(start, match.start() - 200) : match.end() + 60].partition("\n")[0].lower()
    )


def is_card_number(match: re.Match[str]) -> bool:
    """By its check digit."""
    digits = [int(sign) for sign in match[0] if sign.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (
        13 <= len(digits) <= 19 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and match[0][0] in "3456"
    )


def is_url_password(match: re.Match[str]) -> bool:
    value = _value(match)
    is_name = value.lower() in ("password", "passwd", "pass", "pwd") or value.isupper()
    return not _is_reference(value) and not (is_name and _names_a_secret(value))


def is_login_password(match: re.Match[str]) -> bool:
    value = _value(match)
    is_likely = is_mixed(match) and len(value) >= 8 and not _is_path(value) and not _is_date(value)
    return (is_likely or looks_made_up(value)) and not _is_reference(value)


def is_webhook(match: re.Match[str]) -> bool:
    return sum(sign.isdigit() for sign in _value(match)) > 1 and is_vendor_token(match)


def is_auth_value(match: re.Match[str]) -> bool:
    """`_auth = dXNlcjpwdw==` but not `self._auth = self._build_auth(auth)`."""
    value = _value(match)
    is_base64 = not value.islower() and not value.isupper() and "." not in value and len(value) >= 12
    is_call = match.string[match.end() : match.end() + 1] in ("(", "[")
    return (is_base64 or is_mixed(match)) and not is_call and not _is_reference(value)


def is_key_value(match: re.Match[str]) -> bool:
    value = _value(match)
    is_dotted = "." in value and not any(sign in value for sign in _SIGNS)
    return is_mixed(match) and (not is_dotted or sum(sign.isdigit() for sign in value) > 3)


def is_login_argument(match: re.Match[str]) -> bool:
    value = _value(match)
    if " " in value:  # an app password: four groups of four letters
        return True
    return _has_digit(value) and looks_made_up(value) and not _is_reference(value) and not _is_path(value)


def is_signing_key(match: re.Match[str]) -> bool:
    """`jwt.sign(claims, "my-secret")`, but not `createHmac("RSA-SHA256", ...)`."""
    value = _value(match)
    is_algorithm = value[:3].upper() in ("RSA", "SHA", "HS2", "HS5")
    is_phrase = _names_a_secret(value) and ("-" in value or "_" in value)
    is_likely = looks_made_up(value) or _has_digit(value) or is_phrase
    return is_likely and not is_algorithm and not _is_reference(value) and not _is_path(value)


def is_made_up(match: re.Match[str]) -> bool:
    return looks_made_up(_value(match))


def is_element(match: re.Match[str]) -> bool:
    """`<password>x</password>`; where an attribute has the name, the text must look made up."""
    value = _value(match).strip()
    if not value or _is_about(match) or _is_reference(value) or _is_path(value):
        return False
    before = match.string[max(0, match.start() - 60) : match.start()]
    opened = before.rpartition("<")[2]
    is_named = "<" in before and not opened.strip(_NAME_SIGNS) and "/" not in opened
    if is_named and _is_password_name(match["name"]) and match.string[match.end("suffix")] == ">":
        return " " not in value or not _names_a_secret(value)
    is_word = not _has_digit(value) or _is_word_with_number(value)
    return " " not in value and (not is_word or _longest_random_run(value) >= 20)


_NAME_SIGNS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-"


def is_loose(match: re.Match[str]) -> bool:
    """In a sentence: 'the password is Tr0ub4dor&3', but not '... is stored hashed'."""
    value = _value(match)
    glue = match["glue"]
    is_quoted = bool(match["quote"].strip("("))
    following = match.string[match.end() : match.end() + 1]
    if following in ("(", "[", "=") or value[0] == "-" or _is_pass(match) or _is_about(match):
        return False
    is_argument = bool(match["call"]) or glue.rstrip().endswith(",")
    if _is_reference(value) or _is_path(value) or (is_argument and not is_quoted):
        return False
    if not is_quoted and (
        any(sign in value for sign in "()[]{}")
        or (value.find("=") > 2 and value.partition("=")[0].isidentifier())
    ):
        return False
    before = match.string[max(0, match.start() - 40) : match.start()].rpartition("\n")[2]
    if is_argument and "env" in before and _is_password_name(match["name"]):
        return _is_quoted_secret(value, match["name"], True)  # os.getenv("DB_PASSWORD", "hunter2")
    if is_argument:
        return len(value) >= 10 and looks_made_up(value)
    return looks_made_up(value, is_quoted=is_quoted) or _is_told(match, value, glue.split())


# Before a number these are no passwords: "the password is sha256", "... is base64 encoded".
_TECHNICAL = tuple(
    "aes argon2 base bcrypt blake crypt des3 ed25519 http ip log4j md4 md5 node oauth os2 p256 pbkdf2 php "
    "pkcs python rc4 rfc rsa scrypt sha step table utf version win x509".split()
)
_IS = frozenset("is was ist war lautet est es era jest \u00e9 \u00e8 and und with mit use using".split())
_CHANGED = frozenset("changed set reset rotated updated ge\u00e4ndert gesetzt".split())


def _is_told(match: re.Match[str], value: str, glue: list[str]) -> bool:
    """'The password is hunter2', 'use password hunter2': a sentence that can mean nothing else."""
    if not _is_password_name(match["name"]) or match["suffix"] or len(glue) > 8:
        return False
    before = match.string[max(0, match.start() - 20) : match.start()].split()
    is_changed = glue[-1:] in (["to"], ["auf"]) and not _CHANGED.isdisjoint(glue)
    says_so = is_changed or (glue or before or [""])[-1].lower() in _IS or glue[-1:] == ["\u662f"]
    if not says_so or not (_HARMLESS_SUFFIXES - _CHANGED).isdisjoint(glue):
        return False
    is_word = value[0].isalpha() and value[-1].isdigit() and value.lower().rstrip("0123456789") not in _NOUNS
    return is_word and len(value) > 6 and not value.lower().startswith(_TECHNICAL)


_NOUNS = frozenset(
    "column field file group line node option part password role row section user value".split()
)


def looks_made_up(value: str, *, is_quoted: bool = False) -> bool:
    """A password or a key to the eye: signs or digits where no word and no identifier has them."""
    letters = sum(character.isalpha() for character in value)
    if letters < 2 or len(value) < 6 or "://" in value or "()" in value or _is_date(value):
        return False
    if "@" in value and "." in value.partition("@")[2]:
        return False  # an address
    has_sign = any(sign in value.strip(_SIGNS) for sign in _SIGNS) and not any(
        sign in value for sign in '(){}[]"'
    )
    if not _has_digit(value):
        return _is_jumble(value) or (
            has_sign and len(value) >= 8 and not _is_words(value.translate(_NO_JOINTS))
        )
    if has_sign or _is_passphrase(value) or _is_generated(value) or _is_jumble(value):
        return True
    return not _is_word_with_number(value) or (
        is_quoted and letters >= 3 and (value.isalnum() or len(value) >= 8)
    )


_SIGNS = "!#$%^&*+?~"

_NO_JOINTS = {ord(sign): None for sign in "+&*"}


def _is_generated(value: str) -> bool:
    """`Hq7-vPz2-mmX9`: a digit and both cases in most parts."""
    parts = value.replace("_", "-").split("-")
    mixed = [part for part in parts if part.isalnum() and not part.isalpha() and not part.isdigit()]
    has_cases = any(not part.islower() and not part.isupper() and not part[:1].isupper() for part in mixed)
    return len(mixed) > 1 and len(mixed) * 2 > len(parts) and has_cases


_SHORT_WORDS = frozenset(
    "an as at be by db do go he hi id if in io ip is it js me my no of ok on or os so to ui up us we".split()
)


def _is_jumble(value: str) -> bool:
    """`hwJMYnHCuBlC3`: capitals where no word begins."""
    pairs = [
        value[place : place + 2]
        for place in range(len(value) - 1)
        if value[place].isupper()
        and value[place + 1].islower()
        and not value[place + 2 : place + 3].islower()
    ]
    return len(value) > 9 and sum(pair.lower() not in _SHORT_WORDS for pair in pairs) > 1


def _is_passphrase(value: str) -> bool:
    """`thunder-walnut-5701-puffin`, `banjo-gecko-cactus60`"""
    stem = value.rstrip("0123456789")
    number = value[len(stem) :]
    is_attached = len(number) > 1 and stem[-1:].isalpha()
    parts = [*stem.split("-"), number] if is_attached else value.split("-")
    words = [part for part in parts if part.isalpha()]
    numbers = [part for part in parts if part.isdigit()]
    is_whole = len(words) + len(numbers) == len(parts) and len(words) > 1 + is_attached and len(numbers) == 1
    return is_whole and len(words) + len(numbers[0]) > 3 and min(map(len, words)) > 3


def _is_date(value: str) -> bool:
    return value[:4].isdigit() and value[4:5] == "-" and value[5:7].isdigit() and value[7:8] == "-"


def _is_word_with_number(value: str) -> bool:
    """`sha256`, `OAuth2`, `v1.2.3-beta4`, `8-character`, `utf8mb4`: technical words, versions, names."""
    is_long = len(value) > 11 and not value.islower() and not value.isupper()
    word, _, number = value.partition(".")
    if is_long and word.isalpha() and number.isdigit() and len(number) > 2:
        return False  # `mapleCopper.6021`: no attribute and no version
    for sign in "-_./:+,'":
        value = value.replace(sign, " ")
    for part in value.split():
        groups = len("".join(character if character.isdigit() else " " for character in part).split())
        digits = sum(character.isdigit() for character in part)
        if (
            not part.isalnum()
            or groups > 1
            or (groups == 1 and digits != len(part) and digits > 1 and len(part) > 9)
        ):
            return False
        if len(part) >= 20 and not part.isalpha():
            return False
        if is_long and part[0].isalpha() and part[-3:].isdigit():
            return False  # `Maple_Copper602`
    return True


def is_header_value(match: re.Match[str]) -> bool:
    """`Authorization: Bearer xyz` but not `Authorization: Bearer token` or `... Basic auth is on`."""
    value = _value(match)
    if _is_reference(value):
        return False
    is_followed_by_prose = match.string[match.end() : match.end() + 1] == " "
    return not (_is_words(value) and (_names_a_secret(value) or is_followed_by_prose))


def is_raw_header_value(match: re.Match[str]) -> bool:
    """`Authorization: 5fc9...` without a scheme: nothing but the look of it tells it from a word."""
    value = _value(match)
    if _is_endless(match):
        return True
    digits = sum(character.isdigit() for character in value)
    letters = sum(character.isalpha() for character in value)
    capitals = sum(character.isupper() for character in value)
    is_jumble = capitals * 4 > len(value) and capitals < letters  # seldom so in AuthorizationV2Handler
    looks_random = letters >= 3 and (digits >= 3 or (digits > 0 and is_jumble))
    return looks_random and not _is_reference(value) and not _is_path(value)


def is_environment_value(match: re.Match[str]) -> bool:
    """`ENV DB_PASSWORD hunter2` but not `ENV DB_PASSWORD_FILE x` or `ENV TOKEN is what ...`."""
    value = _value(match)
    if value.lower() in _PROSE_WORDS or _is_harmless_suffix(match["suffix"] or ""):
        return False
    return not _is_reference(value) and not _is_path(value)


def is_encoded_value(match: re.Match[str]) -> bool:
    """Base64 in a Kubernetes secret, but not `type: Opaque` or `app: postgres`."""
    value = _value(match)
    is_word = value.islower() or value.istitle() or value.isdigit()
    return len(value) % 4 == 0 and not is_word and match["name"] not in ("name", "namespace")


def is_mixed(match: re.Match[str]) -> bool:
    """Keys of 20 and more letters and digits: `PRIMARY_KEY=customer_account_number` is none."""
    value = _value(match)
    return _has_digit(value) and any(character.isalpha() for character in value)


def looks_random(match: re.Match[str]) -> bool:
    """Generated keys have digits; `sk-learn-contrib-examples` has none."""
    return _has_digit(_value(match))


def _is_harmless_suffix(suffix: str) -> bool:
    """Does `_type`, `TypeName` or `-file.path` after a secret word say that no secret follows?"""
    if not suffix.isupper():
        suffix = "".join(f"_{letter}" if letter.isupper() else letter for letter in suffix)
    segments = suffix.lower().replace("-", "_").replace(".", "_").split("_")
    return not _HARMLESS_SUFFIXES.isdisjoint(segments)


def _is_quoted(match: re.Match[str]) -> bool:
    return match.string[match.start(match.lastindex or 0) - 1] in "\"'`"


def _is_endless(match: re.Match[str]) -> bool:
    """A bare value too long to be a reference, and to be refused and searched again."""
    return not _is_quoted(match) and len(_value(match)) > _LONGEST_REFERENCE


def kind_of(name: str) -> str:
    """What a name says its value is."""
    lowered = name.lower()
    if "pass" in lowered or _is_password_name(lowered):
        return "password"
    for kind in ("secret", "token", "key"):
        if kind in lowered:
            return kind
    return "credential"


def _is_password_name(name: str) -> bool:
    return any(word in name.lower() for word in _PASSWORD_WORDS)


def _is_about(match: re.Match[str]) -> bool:
    """Does what follows the last secret word of the name say that the value is no secret: `token_count`?"""
    if not match["suffix"]:
        return False
    name = match["name"] + match["suffix"]
    lowered = name.lower()
    last = max(
        lowered.rfind(word) + len(word) for word in (match["name"].lower(), *_LAST_WORDS) if word in lowered
    )
    return _is_harmless_suffix(name[max(last, len(match["name"])) :])


def _is_pass(match: re.Match[str]) -> bool:
    """`pass` on its own is a word of tests; `DB_PASS`, `ftp_pass` and `user bob pass` are not."""
    before = match.string[max(0, match.start() - 40) : match.start()].lower()
    return match["name"].lower() == "pass" and before[-1:] not in ("_", "-") and "user" not in before


def is_assigned(match: re.Match[str]) -> bool:
    """Tell `password = "hunter2"` from `password = read()`, `token: str` and `tokens: 1532`."""
    if match["name"].lower() == "pass":
        return _is_assigned_pass(match)
    if "arn:aws" in match.string[max(0, match.start() - 60) : match.start()]:
        return False
    return _is_assigned(match, is_password=_is_password_name(match["name"] + match["suffix"]))


def _is_assigned(match: re.Match[str], is_password: bool) -> bool:
    value = _value(match)
    name = match["name"]
    is_quoted = _is_quoted(match)
    if _is_endless(match):
        return True
    if len(value) < 3 or not any(character.isalnum() for character in value):
        return False
    if _is_about(match) or _is_reference(value) or _is_path(value):
        return False
    if value.replace(".", "").replace(",", "").isdigit():
        return is_password and len(value) >= 4
    # `export API_TOKEN=abc`: in a shell or an .env file a bare word is a literal.
    is_environment = name.isupper() and match["operator"] == "="
    if is_quoted:
        is_strong = is_password or is_environment or "secret" in name.lower()
        return _is_quoted_secret(value, name, is_strong)
    return _is_bare_secret(match, value, is_password, is_environment)


def _is_assigned_pass(match: re.Match[str]) -> bool:
    """Tell `DB_PASS=hunter2` from `pass: 12 of 12`, `PASS: test_login` and `first_pass = shader2`."""
    value = _value(match)
    name = match["name"]
    operator = match["operator"]
    if _is_endless(match):
        return True
    before = match.string[max(0, match.start() - 80) : match.start()].lower()
    stem = before.rstrip("_-.")
    is_part = len(stem) < len(before) or before[-1:].isalpha()
    if stem.endswith(_ROUNDS) or (match["suffix"] and not (is_part and name.isupper())):
        return False
    if name.isupper() and operator == "=":
        return _is_assigned(match, is_password=True)
    is_login = "user" in before or "login" in before or "smtp" in before
    could_be_key = (" " not in value and is_mixed(match)) or _is_app_password(value)
    if _is_quoted(match):
        is_compared = operator.strip("* \t") not in ("=", ":", ":=", "=>")
        is_likely = could_be_key or (not is_compared and (is_login or (is_part and name.isupper())))
        return is_likely and _is_assigned(match, is_password=True)
    # Bare, and so the end of a test report as likely as a line of YAML.
    if value.isdigit() or not (is_part or (is_login and name.islower()) or operator == "="):
        return False
    is_tight = operator in ("=", ":", ": ")
    return (could_be_key or is_login) and _is_assigned(match, is_password=is_tight)


def _is_quoted_secret(value: str, name: str, is_strong: bool) -> bool:
    if FILLER in value:
        return True  # a part of it was a secret, so is the rest
    if _is_after_a_string(value):
        return False
    if _has_digit(value) or _is_app_password(value):
        return True
    if value.lower() == name.lower() or _is_label(value) or value[0] == "\u00bf":
        return False  # `CONF_PASSWORD = "password"` names a field
    is_title = " " in value and not _is_password_name(name) and value.replace(" ", "").isalpha()
    is_identifier = "_" in value and value.isidentifier()  # SECRET_KEY = "aws_secret_access_key"
    if is_title or ((" " in value or is_identifier) and _names_a_secret(value)):
        return False  # "secretKey": "Geheimer Schlüssel"; a label or a message: "Password is required"
    # `token = "IDENT"`, `credentials: "same-origin"`: a weak name needs a value that could be a key.
    could_be_key = len(value) >= 20 and " " not in value and not value.islower() and not value.isupper()
    return is_strong or could_be_key


def _is_app_password(value: str) -> bool:
    """Google's: `abcd efgh ijkl mnop`"""
    return len(value) == 19 and value.islower() and [len(part) for part in value.split()] == [4, 4, 4, 4]


_LABELS = ("pass", "kenn", "cont", "senh", "wach", "паро", "hasł", "löse")


def _is_label(value: str) -> bool:
    """`Passwort`, `Contraseña`"""
    return value.isalpha() and len(value) < 12 and value[:4].lower() in _LABELS


def _is_after_a_string(value: str) -> bool:
    """In `input("Password: ").strip()` and `"token=" + value` the quote ends a string, it opens none."""
    rest = value.lstrip("),;]}")
    if len(rest) < len(value):
        return rest[:1] in ("", " ", ".", ":", "\\")
    return value[0] == " " and (value[1] in "+%.&|,)]}=<>?:" or value.split(maxsplit=1)[0] in _OPERATOR_WORDS)


def _is_bare_secret(match: re.Match[str], value: str, is_password: bool, is_environment: bool) -> bool:
    core = value.lstrip("&*!@%?-")
    following = match.string[match.end() : match.end() + 1]
    is_call_or_subscript = following in ("(", "[")
    if is_call_or_subscript or core.startswith(("self.", "this.")) or core[:1] in ("", ":"):
        return False
    if match["operator"].strip("* \t") not in ("=", ":", ":=", "=>"):
        return False
    if is_password and _is_parameter(match):
        return True
    if "." in core and (_names_a_secret(core) or _is_words(core)):
        return False  # an attribute
    is_environment = is_environment or _is_bare_client_secret(match, core, following)
    if not is_environment and _is_words(core) and not _is_jumble(core):
        return is_password and _is_bare_word_password(match, core, following)
    return is_environment or is_password or _could_be_bare_key(core)


def _is_parameter(match: re.Match[str]) -> bool:
    """In `host=x password=abc user=y` no code is near; the arguments of a call have commas."""
    before = match.string[max(0, match.start() - 80) : match.start()]
    after = match.string[match.end() : match.end() + 40]
    if match["operator"] != "=" or after[:1] not in ("", " ", '"', "'", "\n"):
        return False
    previous = before.rpartition(" ")[0].rpartition(" ")[2] if before[-1:] == " " else ""
    follows_one = previous.partition("=")[2] != "" and previous[-1] not in ",(="
    name, equals, _ = after[1:].partition("=")
    return follows_one or (after[:1] == " " and equals == "=" and name.isidentifier())


def _is_bare_client_secret(match: re.Match[str], value: str, following: str) -> bool:
    """`client_secret=hunter2abc`: tight, with a digit, and not the argument of a call."""
    is_tight = "secret" in match["name"].lower() and match["operator"] == "=" and following not in (",", ")")
    is_name = _names_a_secret(value) and not _is_jumble(value)
    return is_tight and len(value) >= 6 and _has_digit(value) and not is_name


def _is_bare_word_password(match: re.Match[str], word: str, following: str) -> bool:
    """A word alone is a variable or a type, unless a line of configuration or a query ends with it."""
    before = match.string[max(0, match.start() - 40) : match.start()]
    is_unpacking = before.rstrip("_abcdefghijklmnopqrstuvwxyz").endswith(", ")  # user, password = pair
    if is_unpacking or _names_a_secret(word) or word.istitle():
        return False
    if following == ";":
        return match["operator"] == "="  # a connection string; a statement has spaces
    return following in ("", "\n", "\r", "\\", '"', "'", "&")


def _could_be_bare_key(value: str) -> bool:
    """Not `oauth2_state`, `tls-cert-2`, `Ed25519PrivateKey`: names with a number in them."""
    if len(value) < 8 or not any(character.isalpha() for character in value):
        return False
    letters = "".join(character for character in value if not character.isdigit())
    if len(value) - len(letters) <= 5 and value.isidentifier() and _names_a_secret(value):
        return False
    return len(value) - len(letters) > 2 or not value.islower() or not _is_words(letters)
