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

_PASSWORD_WORDS = ("passw", "pwd", "passphrase")

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
        name = value[1:].replace("_", "").replace(":", "")
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
        or lowered in _HARMLESS_VALUES
        or lowered.startswith(("your-", "your_", "your "))
        or _is_variable(value)
        or _is_template(value)
        or any(source in value for source in ("os.environ", "os.getenv", "process.env"))
    )


def _is_path(value: str) -> bool:
    """A file or an address; base64 may begin with a slash too, but seldom lacks its other signs."""
    is_rooted = value.startswith(("http://", "https://", "/", "./", "../", "~/"))
    return is_rooted and "=" not in value and "+" not in value


def is_literal(match: re.Match[str]) -> bool:
    return not _is_reference(_value(match))


def is_flag_value(match: re.Match[str]) -> bool:
    """`--token abc` but not `--token TOKEN`, `--max-tokens 4096`, `--token to sign in`."""
    value = _value(match)
    if value.lower() in _PROSE_WORDS or _is_reference(value):
        return False
    if value.isdigit():
        return len(value) >= 4 and match["name"].startswith("pass")
    return not (value.isupper() and _is_words(value) and _names_a_secret(value))


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


def is_assigned_secret(match: re.Match[str]) -> bool:
    """Tell `password = "hunter2"` from `password = read()`, `token: str` and `tokens: 1532`."""
    return _is_assigned(match, is_password=match["name"].lower().startswith(_PASSWORD_WORDS))


def _is_assigned(match: re.Match[str], is_password: bool) -> bool:
    value = _value(match)
    name = match["name"]
    is_quoted = _is_quoted(match)
    if _is_endless(match):
        return True
    if len(value) < 3 or not any(character.isalnum() for character in value):
        return False
    if _is_harmless_suffix(match["suffix"]) or _is_reference(value) or _is_path(value):
        return False
    if value.replace(".", "").replace(",", "").isdigit():
        return is_password and len(value) >= 4
    # `export API_TOKEN=abc`: in a shell or an .env file a bare word is a literal.
    is_environment = name.isupper() and match["operator"] == "="
    if is_quoted:
        is_strong = is_password or is_environment or "secret" in name.lower()
        return _is_quoted_secret(value, name, is_strong)
    return _is_bare_secret(match, value, is_password, is_environment)


def is_assigned_pass(match: re.Match[str]) -> bool:
    """Tell `DB_PASS=hunter2` from `pass: 12 of 12`, `PASS: test_login` and `first_pass = shader2`."""
    value = _value(match)
    name = match["name"]
    operator = match["operator"]
    if _is_endless(match):
        return True
    before = match.string[max(0, match.start() - 80) : match.start()].lower()
    stem = before.rstrip("_-.")
    is_part = len(stem) < len(before) or len(name) > len("pass12") or name.startswith("Pass")
    if stem.endswith(_ROUNDS) or (match["suffix"] and not (is_part and name.isupper())):
        return False
    if name.isupper() and operator == "=":
        return _is_assigned(match, is_password=True)
    is_login = "user" in before or "login" in before or "smtp" in before
    could_be_key = " " not in value and is_mixed(match)
    if _is_quoted(match):
        is_compared = operator.strip() not in ("=", ":", ":=", "=>")
        is_likely = could_be_key or (not is_compared and (is_login or (is_part and name.isupper())))
        return is_likely and _is_assigned(match, is_password=True)
    # Bare, and so the end of a test report as likely as a line of YAML.
    if value.isdigit() or not (is_part or (is_login and name.islower()) or operator == "="):
        return False
    is_tight = operator in ("=", ":", ": ")
    return (could_be_key or is_login) and _is_assigned(match, is_password=is_tight)


def _is_quoted_secret(value: str, name: str, is_strong: bool) -> bool:
    if MARKER in value:
        return True  # a part of it was a secret, so is the rest
    if _is_after_a_string(value):
        return False
    if _has_digit(value):
        return True
    if value.lower() == name.lower():
        return False  # `CONF_PASSWORD = "password"` names a field
    if " " in value and _names_a_secret(value):
        return False  # a label or a message: "Password is required"
    # `token = "IDENT"`, `credentials: "same-origin"`: a weak name needs a value that could be a key.
    could_be_key = len(value) >= 20 and " " not in value and not value.islower() and not value.isupper()
    return is_strong or could_be_key


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
    if match["operator"].strip() not in ("=", ":", ":=", "=>"):
        return False
    if is_password and _is_parameter(match):
        return True
    if "." in core and (_names_a_secret(core) or _is_words(core)):
        return False  # an attribute
    is_environment = is_environment or _is_bare_client_secret(match, core, following)
    if not is_environment and _is_words(core):
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
    return is_tight and len(value) >= 6 and _has_digit(value) and not _names_a_secret(value)


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
