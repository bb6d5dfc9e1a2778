"""What the user wants from now on, in a sentence that the user typed and that says so with its first words.

There are few of them, and everything that looks like one is none: what is pasted, quoted, asked, told of
others, or meant for the program that is being written. So all of the form has to be there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from backstory.memory.turn import TYPED, Turn
from backstory.model import Observation
from backstory.synthesis.rules.words import telling

LONGEST = 200  # characters of a prompt
MOST_SENTENCES = 2

_LEAD = re.compile(r"(?:(?:ok|okay|and|also|please|pls|so|but|one more thing)\b[,:]?\s+)+", re.I)
# What an assistant does; what a program does ('always show ...') is mostly about the program.
_DO = (
    "(?:use|run|write|ask|add|keep|commit|push|prefer|answer|edit|mock|create|check|test|format|name|document"
    "|explain|follow|read|update|delete|touch|modify|install|deploy|merge|squash|rebase|reply|respond|speak|tell"
    "|assume|suggest|comment|review|confirm|verify|lint|refactor|put|make|change|amend|guess|invent|hardcode"
    "|skip|disable|build|include|work|start|be|do|give|wait|leave|rename|import|downgrade|upgrade|generate)\\b"
)
_FORMS = re.compile(
    rf"(?:always|never|(?:don'?t|do not) ever) (?:again )?{_DO}"
    r"|(?:from now on|going forward|in (?:the )?future),? (?:please )?"
    rf"(?:(?:always|never|only|don'?t|do not) )*{_DO}"
    rf"|remember to (?:always|never) {_DO}"
    r"|remember that (?!(?:\w+ )?(?:bug|issue|error|time|thing|problem|day|conversation|one|when|if)\b)"
    r".*\b(?:is|are|must|should|can|can'?t|cannot|has|have|needs?|uses?|deploy|don'?t|do|does|doesn'?t|never|always"
    r"|will|only|runs?|lives?|requires?|expects?)\b",
    re.I,
)
_NOT_TYPED = re.compile(r"[^\x20-\x7e\xa1-\u024f\u2019\u2013\u2014…]|[\xad`\"“”«»<>\[\]{}|?]|https?://|: ")
_THIS_TASK = re.compile(
    r"\b(?:until|for now|this (?:time|one|once|case|pr|task|session|commit|file|function|test)|just once"
    r"|today|for the moment|meanwhile|temporarily|(?:if|when|whenever) (?:the|a|an|it|there|they|no|users?)"
    r"|said|says|told|tells|according to|joke|kidding)\b",
    re.I,
)


def preferences(turn: Turn) -> Iterator[Observation]:
    for text, source in turn.prompts:
        if source == TYPED:
            for wish in wishes(text):
                yield Observation("preference", wish, f"The user: {' '.join(text.split())}")


def wishes(prompt: str) -> list[str]:
    """The standing wishes of a prompt that the user typed."""
    said = prompt.strip()
    if len(said) > LONGEST or _NOT_TYPED.search(said) or _THIS_TASK.search(said):
        return []
    sentences = [one.strip() for one in re.split(r"[.!;]+(?:\s+|$)", said) if one.strip()]
    if len(sentences) > MOST_SENTENCES:
        return []
    bare = [_LEAD.sub("", one, count=1) if _LEAD.match(one) else one for one in sentences]
    return [one[:1].upper() + one[1:] for one in bare if _FORMS.match(one) and len(telling(one)) > 1]
