"""Near duplicates: the same fact told twice, with another comma, article, case or order of two clauses.

Merging two facts loses one of them, keeping one fact twice costs a row. So, when in doubt, two facts. A text
is brought into a normal form: its words in order, without case, punctuation and the few words that may come
and go. Two texts are near when they agree in it, and also in every number, name, identifier and negation.
Nothing is stemmed, since `users` is not `user`; and order counts, since who calls whom is a fact.

    near      'Before a release, run the tests.'   'run tests before release'
    not near  'the port is 8080'                   'the port is 8081'
    not near  'tabs over spaces'                   'spaces over tabs'

A database finds candidates by the simhash of the normal form: texts near each other are within `NEAR`
bits, and hashes within three bits share at least one of four bands.
"""

from __future__ import annotations

import re
import unicodedata
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NEAR = 3  # bits of 64

# May come and go without changing a fact. 'was', 'will', 'just', 'that', 'all' and prepositions may not.
SMALL = frozenset("a an the is are be please actually basically simply also very".split())

# A clause that begins with one of these may stand at either end of its sentence.
OPENERS = frozenset(
    "after although as at because before during for from if in on once since to under unless until when "
    "whenever while with within without".split()
)

# Words that turn a fact around, or into another one.
FLIPS = frozenset(
    "not no never none nothing neither nor cannot without unless except instead only on off true false "
    "yes enable disable enabled disabled enables disables allow deny allowed denied allows denies always "
    "sometimes before after until since add remove added removed adds removes increase decrease increased "
    "decreased increases decreases min max minimum maximum sync async synchronous asynchronous public "
    "private left right up down upper lower first last http https open closed close start stop started "
    "stopped push pull read write in out to from over under above below more less most least all any some "
    "each every old new next previous client server input output internal external required optional "
    "valid invalid safe unsafe pass fail passed failed passes fails success failure end mutable immutable "
    "include exclude included excluded and or was were will may might must should can could would "
    "than".split()
)

# Written in capitals by some and in small letters by others; other words in capitals are identifiers.
ACRONYMS = frozenset(
    "API APIS CI CD CLI CPU CSS CSV DB DNS GPU GUI HTML ID IDS IDE JSON JWT ORM PDF PR PRS RAM REST SDK "
    "SQL SSH SSL TLS TODO TOML UI URL URLS UTC UUID UX VPN XML YAML".split()
)

# Misspellings that are no words themselves, so that to correct one never changes a fact.
TYPOS = dict(
    pair.split(":")
    for pair in (
        "accross:across acheive:achieve adress:address agressive:aggressive alot:lot "
        "apparantly:apparently arguement:argument authentification:authentication availible:available "
        "becuase:because begining:beginning beleive:believe calender:calendar commited:committed "
        "comming:coming compatability:compatibility completly:completely concurency:concurrency "
        "configuraton:configuration definately:definitely dependancy:dependency dependancies:dependencies "
        "diffrent:different enviroment:environment enviroments:environments existant:existent "
        "explicitely:explicitly fucntion:function funtion:function heigth:height immediatly:immediately "
        "implemention:implementation independant:independent intial:initial lenght:length libary:library "
        "maintainance:maintenance mesage:message migraton:migration neccessary:necessary necesary:necessary "
        "occured:occurred occurence:occurrence ocurred:occurred paramter:parameter paramters:parameters "
        "persistant:persistent prefered:preferred prefrence:preference priviledge:privilege recieve:receive "
        "recieved:received recieves:receives recomend:recommend refered:referred reponse:response "
        "repositry:repository responce:response retreive:retrieve seperate:separate seperated:separated "
        "seperately:separately seperator:separator similiar:similar succesful:successful "
        "successfull:successful succesfully:successfully suported:supported "
        "threshhold:threshold transfered:transferred truely:truly usefull:useful "
        "verison:version wich:which"
    ).split()
)

_MASK = (1 << 64) - 1
_QUOTED = r"\"[^\"]*\"|(?<!\w)'[^'\n]*'(?!\w)"
_TYPOGRAPHY = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "«": '"', "»": '"', "…": "...", "`": '"'}
)
_BULLETS, _DASHES = ("-", "*", "\u2022"), ("-", "--", "\u2013", "\u2014", "...")
_ENDS_A_SENTENCE = frozenset(".!?;")
_STOP, _COMMA = ".", ","
_MARKS, _OPENING, _CLOSING = ".,;:!?", ("(", "[", "{"), (")", "]", "}")


def simhash(text: str) -> int:
    """64 bits, signed as SQLite has them, alike where two texts share words and pairs of words."""
    words = _normal_form(text)
    shingles = {*words, *(" ".join(words[index : index + 2]) for index in range(len(words) - 1))}
    # All hashes as one long integer: a bit of each of them is counted in one go, not hash by hash.
    joined = int.from_bytes(b"".join(_mixed(shingle).to_bytes(8, "little") for shingle in shingles), "little")
    every_64th = int.from_bytes(b"\1\0\0\0\0\0\0\0" * len(shingles), "little")
    value = 0
    for bit in range(64):
        if (joined >> bit & every_64th).bit_count() * 2 > len(shingles):
            value |= 1 << bit
    return value - (1 << 64) if value >> 63 else value


def distance(a: int, b: int) -> int:
    """How many of the 64 bits differ."""
    return ((a ^ b) & _MASK).bit_count()


def bands(value: int) -> tuple[int, int, int, int]:
    """Four times 16 bits. Three differing bits spoil three bands at most, so one is left to search by."""
    value &= _MASK
    return value & 0xFFFF, value >> 16 & 0xFFFF, value >> 32 & 0xFFFF, value >> 48


def is_near(a: str, b: str) -> bool:
    """Do the two texts tell the same?"""
    words = _normal_form(a)
    if words != _normal_form(b) or not same_facts(a, b):
        return False
    return distance(simhash(a), simhash(b)) <= NEAR and (bool(words) or a.split() == b.split())


def same_facts(a: str, b: str) -> bool:
    """Does every number, name, identifier, path, quoted word and negation occur equally often in both?

    Words that are none of these are not compared here.
    """
    (exact_a, facts_a), (exact_b, facts_b) = _facts(a), _facts(b)
    return all(exact_a.get(fact, 0) == exact_b.get(fact, 0) for fact in facts_a | facts_b)


def _facts(text: str) -> tuple[dict[str, int], set[str]]:
    """How often each token occurs, as written and also in small letters, and which of them are facts."""
    text = unicodedata.normalize("NFC", text).translate(_TYPOGRAPHY)
    counts: dict[str, int] = {}
    facts: set[str] = set()
    for token in _tokens(text):
        for key in (token, " " + token.casefold()):
            counts[key] = counts.get(key, 0) + 1
        facts.update(_as_facts(token))
    for quoted in re.findall(_QUOTED, text):
        words = quoted[1:-1].split()
        if len(words) == 1:
            facts.update(_tokens(quoted))  # with quotes or without, it is the same word
        else:
            whole = '"' + " ".join(words)
            counts[whole] = counts.get(whole, 0) + 1
            facts.add(whole)
    return counts, facts - {_STOP, _COMMA}


def _as_facts(token: str) -> Iterator[str]:
    """The token itself where each letter counts, in small letters after a space where its case does not."""
    folded = token.casefold()
    if not token.replace("-", "").replace("'", "").isalpha() or token.startswith("-"):
        yield token  # digits, dots, slashes, underscores, signs
    elif token.isupper() and len(token) > 1 and token not in ACRONYMS:
        yield token
    elif token[0].islower() and token != folded:
        yield token  # camelCase
    elif token[0].isupper() or folded in FLIPS:
        yield " " + folded  # a name, the first word of a sentence, a negation


def _normal_form(text: str) -> list[str]:
    """The words in order, in small letters; a clause that was put first is back behind its sentence."""
    words: list[str] = []
    sentence: list[str] = []
    for token in (*_tokens(unicodedata.normalize("NFC", text)), _STOP):
        if token == _COMMA and sentence[-1:] in ([], [_COMMA]):
            continue
        if token != _STOP:
            folded = token.casefold()
            sentence.append(TYPOS.get(folded, folded))
        elif sentence:
            words += [*([_STOP] if words else []), *_unfronted(sentence)]
            sentence = []
    return words


def _unfronted(sentence: list[str]) -> list[str]:
    """'before release , run tests' as 'run tests before release'. Commas elsewhere may come and go, save
    where one tells to which side a clause belongs: 'use A, in tests use B', 'use A in tests, use B'."""
    if sentence[-1:] == [_COMMA]:
        sentence = sentence[:-1]
    if sentence.count(_COMMA) == 1 and sentence[0] in OPENERS:
        comma = sentence.index(_COMMA)
        return [*sentence[comma + 1 :], *sentence[:comma]]
    following = [*sentence[1:], ""]
    pairs = zip(sentence, following, strict=True)
    return [word for word, after in pairs if word != _COMMA or after in OPENERS]


def _tokens(text: str) -> Iterator[str]:
    """Words as they are written, contractions apart, small words left out, with commas and stops between."""
    for line in text.translate(_TYPOGRAPHY).split("\n"):
        starts = True
        for index, part in enumerate(line.split()):
            if index == 0 and part in _BULLETS:
                yield _STOP
                continue
            if part in _DASHES:
                continue
            word, mark = _stripped(part)
            for piece in _apart(word):
                is_name = piece.isupper() and not (piece == "A" and starts)  # 'plan A'
                if is_name or piece.casefold() not in SMALL:
                    yield piece
            if mark == "?":
                yield mark  # to ask for something is not to say it
            starts = mark in _ENDS_A_SENTENCE
            if mark:
                yield _STOP if starts else _COMMA
        yield _COMMA  # the end of a line may be nothing, or tell where a clause belongs


def _stripped(part: str) -> tuple[str, str]:
    """A word without the punctuation around it, and the mark that followed it."""
    if part in (".", ".."):
        return part + "/", ""  # a folder
    word = part.rstrip(_MARKS)
    if word[-1:] in _CLOSING and _OPENING[_CLOSING.index(word[-1])] not in word[1:]:
        word = word[:-1].rstrip(_MARKS)
    marks = [mark for mark in part[len(word) :][:8] if mark in ".,;!?"]
    if word[:1] in _OPENING and _CLOSING[_OPENING.index(word[0])] not in word:
        word = word[1:]
    if len(word) > 4 and word[:2] == word[-2:] == "**":
        word = word[2:-2]
    return word.strip("\"'"), marks[0] if marks else ""


def _apart(word: str) -> tuple[str, ...]:
    """don't: do not; it's: it; we've: we have. An owner loses the 's, and the rest stays as it is."""
    lowered = word.lower()
    if lowered in ("can't", "cannot", "won't"):
        return ("will" if lowered == "won't" else "can", "not")
    if lowered.endswith("n't"):
        return word[:-3], "not"
    for ending, meaning in (("'s", ""), ("'re", ""), ("'m", ""), ("'ve", "have"), ("'ll", "will")):
        if lowered.endswith(ending) and len(word) > len(ending):
            return (word[: -len(ending)], meaning) if meaning else (word[: -len(ending)],)
    return (word,) if word else ()


def _mixed(shingle: str) -> int:
    """64 bits, the same on every machine. CRCs with two seeds differ by a constant only, so the second one
    reads backwards, and multiplication spreads what regularity is left."""
    raw = shingle.encode("utf-8", "surrogatepass")
    value = zlib.crc32(raw) | zlib.crc32(raw[::-1]) << 32
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31
