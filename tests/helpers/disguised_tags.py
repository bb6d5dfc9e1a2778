"""Tags that a model could take for ours or for its client's, written in ways that a plain search misses, and
a folder of its own to find them: it shares nothing with the code it judges."""

from __future__ import annotations

import random
import re
import unicodedata

FORMS = 200
CLIENT = ("system-reminder", "command-name", "local-command-stdout", "task-notification")

# What looks like a letter and is another one.
LOOKALIKES = {
    "a": "аɑα",
    "b": "ьʙƀ",
    "c": "сϲᴄ",
    "d": "ԁđ",
    "e": "еɛ",
    "k": "кκᴋ",
    "l": "ӏł",
    "m": "мᴍ",
    "n": "ոɴ",
    "o": "оοօø0",
    "r": "гʀ",
    "s": "ѕꜱ",
    "t": "тτŧ",
    "u": "սᴜ",
    "y": "уүγ",
}
OPENING = "<<<＜﹤‹〈⟨❮˂ᐸ≮"
CLOSING = ">>>＞﹥›〉⟩❯"
SLASH = "///／∕⁄⧸"
# Unseen between letters; the soft hyphen, marks on letters, variation selectors and tags of flags among them.
UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u0301\u0336\u180e\ufe0f\U000e0041\U000e0101\u3164"
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
CONTROLS = [
    "\x00",
    "\x07",
    "\x08",
    "\x1b[0m",
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x1b]8;;http://x\x1b\\",
    "\x1b(B",
]
CONTROLS += ["\x7f", "\x90", "\x9b", "\x9d", *BIDI]
SPACE = [
    " ",
    "  ",
    "\n",
    "\t",
    "\r",
    "\r\n",
    "\u00a0",
    "\u2003",
    "\u3000",
    "\u2028",
    "\u2029",
    "\x85",
    "\x0b",
    "\x0c",
]


def forms(tag: str = "backstory", count: int = FORMS, seed: int = 15) -> list[str]:
    """So many ways to write the closing and the opening tag; the plain ones are the first three."""
    chance = random.Random(seed)  # noqa: S311
    made = [f"</{tag}>", f"<{tag}>", f'<{tag} source="backstory x">']
    while len(made) < count:
        form = _form(tag, chance)
        made += [form] if form not in made else []
    return made


def _form(tag: str, chance: random.Random) -> str:
    ways = [
        one for one in ("case", "width", "lookalike", "unseen", "space", "control") if chance.random() < 0.4
    ]
    letters = [_letter(letter, ways, chance) for letter in tag]
    between = [_between(ways, chance) for _ in range(len(tag) + 3)]
    strange = "width" in ways or "lookalike" in ways
    opening = chance.choice(OPENING) if strange else "<"
    slash = "" if chance.random() < 0.25 else chance.choice(SLASH) if strange else "/"
    closing = chance.choice(CLOSING) if strange else ">"
    inside = "".join(letter + gap for letter, gap in zip(letters, between, strict=False))
    return f"{opening}{between[-1]}{slash}{between[-2]}{inside}{between[-3]}{closing}"


def _letter(letter: str, ways: list[str], chance: random.Random) -> str:
    if "case" in ways and chance.random() < 0.5:
        letter = letter.upper()
    if "width" in ways and chance.random() < 0.5 and letter.isalpha():
        places = [0xFF21, 0x1D400, 0x24B6] if letter.isupper() else [0xFF41, 0x1D41A, 0x24D0]
        return chr(chance.choice(places) + ord(letter) - ord("A" if letter.isupper() else "a"))
    if "lookalike" in ways and chance.random() < 0.5:
        return chance.choice(LOOKALIKES.get(letter.lower(), letter))
    return letter


def _between(ways: list[str], chance: random.Random) -> str:
    made = ""
    for way, signs in (("unseen", UNSEEN), ("space", SPACE), ("control", CONTROLS)):
        if way in ways and chance.random() < 0.25:
            made += chance.choice(signs)
    return made


# --- the judge ----------------------------------------------------------------------------------------------

_TO_LATIN = {ord(sign): letter for letter, signs in LOOKALIKES.items() for sign in signs}
_TO_LATIN |= {ord(sign): "<" for sign in OPENING} | {ord(sign): "/" for sign in SLASH}


class _Seen(dict[int, int | None]):
    """Each sign that was asked about, or None for one that is not seen."""

    def __missing__(self, code: int) -> int | None:
        sign = chr(code)
        unseen = unicodedata.category(sign)[0] in "CMZ" or sign in "\u3164\u1160"
        self[code] = None if unseen else code
        return self[code]


_SEEN = _Seen()


def folded(text: str) -> str:
    """Text as a reader sees it who minds no case, width, accent, blank or sign that is not seen."""
    text = re.sub(r"\x1b\[[0-9;]*[a-zA-Z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\(B", "", text)
    text = unicodedata.normalize("NFKD", text.translate(_TO_LATIN)).casefold().translate(_TO_LATIN)
    return text.translate(_SEEN)


def count(text: str, tag: str = "backstory") -> int:
    """How many tags of that name a reader sees in a text."""
    return len(re.findall(f"</*{tag}", folded(text)))


def unruly(text: str) -> list[str]:
    """What in a text drives a terminal, ends a line unasked, turns the direction of writing or hides."""
    found = re.findall(
        "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\U000e0000-\U000e007f]|\r(?!\n)", text
    )
    return found + re.findall(f"[{BIDI}]", text)
