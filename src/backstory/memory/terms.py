"""Words as the keyword index sees them. Pure.

SQLite's tokenizer splits at everything that is no letter or digit, so `max_retry_count` and
`src/auth/jwt.py` are found by their parts already. It knows nothing of `getUserById`, nor that maxRetryCount
is the same name, nor where a word ends in Chinese. The `terms` column adds what is missing, and a query gets
the same treatment.
"""

from __future__ import annotations

import re
import time

STOPWORDS = frozenset(
    "a about also am an and any are as at be because been being but by can could d did didn do does doesn don"
    " for from had has have he her hers him his how i if in into is isn it its just ll m me more most my no"
    " not of on or other our re s she should so some t than that the their them then there these they this to"
    " too us ve very was wasn we were what when where which who why will with would you your".split()
)
MAX_TERMS = 2_000
LONGEST = 64  # characters of a term; what is longer is no name

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_NAME = re.compile(r"[A-Za-z0-9]++(?:[_-]++[A-Za-z0-9]++)*+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WORD = re.compile(r"\w+")
_BYLINE = re.compile(
    r"\[[^\]\n]{0,40}\d[^\]\n]{0,40}\] {1,3}([^\W\d_][\w.'-]{0,40}(?: [^\W\d_][\w.'-]{0,40}){0,2}): "
)
_ASKS = re.compile(r"[?？]\s*(?:\[[^\]]*\]\s*)?$")


def words(text: str) -> list[str]:
    return _WORD.findall(text)


def count_words(text: str) -> int:
    """How long a text is. Chinese has no spaces, so two signs count as a word."""
    found = len(words(text))
    return found + sum(len(run) // 2 for run in _CJK_RUN.findall(text))


def index_terms(text: str) -> str:
    """What is indexed beside the text itself."""
    found: dict[str, None] = {}
    for name in dict.fromkeys(_NAME.findall(text)):
        if name[1:].islower() and name.isalpha():
            continue  # a plain word, as nearly all are
        found.update(dict.fromkeys(_other_spellings(name)))
        if len(found) >= MAX_TERMS:
            break
    for word in words(text) if _CJK_RUN.search(text) else ():
        if not _CJK_RUN.search(word):
            continue
        found.update((part.lower(), None) for part in _CJK_RUN.split(word) if part)
        for run in _CJK_RUN.findall(word):
            found.update(dict.fromkeys((*bigrams(run), run[-1])))  # the last sign, for those who ask for one
        if len(found) >= MAX_TERMS * 2:
            break
    return " ".join(found)


def query_terms(query: str) -> list[str]:
    """The FTS5 phrases of which any may match: the query's words without those that every text has."""
    found: dict[str, None] = {}
    for word in words(query):
        for run in _CJK_RUN.findall(word):
            found.update((f'"{pair}"' if len(pair) > 1 else f'"{pair}"*', None) for pair in bigrams(run))
        found.update((f'"{part.lower()}"', None) for part in _CJK_RUN.split(word) if part)
    for name in _NAME.findall(query):
        found.update((f'"{term}"', None) for term in _other_spellings(name) + _parts(name))
    telling = [term for term in found if term.strip('"') not in STOPWORDS]
    if not telling and len(found) > 1:  # `to be or not to be` is somebody's words, `the of and` is nobody's
        return [f'"{" ".join(words(query)).lower()}"']
    return telling or list(found)


def query_pairs(query: str) -> list[tuple[str, str]]:
    """Words that stand side by side in the query, unless both are stopwords: together they say more."""
    spoken = [word.lower() for word in words(query) if not _CJK_RUN.search(word)]
    beside = zip(spoken, spoken[1:])  # noqa: B905, RUF007  itertools is one more import for a hook
    pairs = [pair for pair in beside if not (pair[0] in STOPWORDS and pair[1] in STOPWORDS)]
    return list(dict.fromkeys(pairs))


def bigrams(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def line_terms(text: str, kind: str, at: int) -> str:
    """What is indexed beside a memory's text: its terms and, unless it states a date or is a mere trace, its
    day. The day is one word, so that 2026-11-15 in a query finds it; the month is in words."""
    if kind == "tool" or _BYLINE.match(text):
        return index_terms(text)
    return f"{index_terms(text)} {time.strftime('%Y%m%d %B %Y', time.gmtime(at / 1000)).lower()}".strip()


def author_of(text: str) -> str | None:
    """Who said it, from a leading `[date] Name:`."""
    found = _BYLINE.match(text)
    return found[1] if found else None


def bare(text: str) -> str:
    """The text without that."""
    found = _BYLINE.match(text)
    return text[found.end() :] if found else text


def is_question(text: str) -> bool:
    """Does it end in asking? A remark in brackets may follow."""
    return _ASKS.search(text[-400:]) is not None


def _parts(name: str) -> list[str]:
    """The words an identifier is made of: `getUserById` is get, user, by and id."""
    parts = [part.lower() for part in _HUMP.findall(name)]
    if len(parts) < 2 or len(name) > LONGEST or not ("_" in name or any(sign.isupper() for sign in name[1:])):
        return []  # `utf8`: a word with a number, nobody looks for its halves
    return [part for part in parts if len(part) > 1]


def _other_spellings(name: str) -> list[str]:
    """What the tokenizer does not see: the humps of a camel, and a name of several pieces in one word."""
    pieces = [piece for piece in name.replace("-", "_").split("_") if piece]
    joined = ["".join(pieces).lower()] if len(pieces) > 1 and len(name) <= LONGEST else []
    return joined + [part for piece in pieces for part in _parts(piece)]
