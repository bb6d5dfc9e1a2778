"""What a contributor must do, and must not: sentences of the repository's own documents, quoted.

Nothing is put together here, so what is said is what the repository says. Anybody may have written it: a
sentence that asks for something to be run is left out.
"""

from __future__ import annotations

import re

from backstory.claude_md.read.documents import (
    OBLIGING,
    README,
    TEMPLATE,
    TO_BE_RUN,
    for_developers,
    sentences,
)
from backstory.claude_md.read.files import ProjectFiles
from backstory.model import Fact

_ASIDE = re.compile(
    r"\b(?:bugs?|issues?|questions?|conduct|security|vulnerab\w*|translat\w*|locali[sz]\w*"
    r"|sponsor\w*|donat\w*|releas\w*|publish\w*"
    r"|maintainers?|financial|communit\w*|feature requests?|report\w*|suggest\w*|getting help"
    r"|support|contact|credits|usage|install\w*"
    r"|download\w*|upgrad\w*|faq|features?|deploy\w*|hosting|how to use|configuration|review(?:ing|ers?)?)\b",
    re.IGNORECASE,
)
_OBLIGES = re.compile(
    r"\b(?:must(?! have)|do not|don't|never|should(?:n't)?|make sure|ensure|be sure|required?"
    r"|need(?:s|ed)? to|always|only accept|will not"
    r"|won't|not accept|instead of|rather than|cannot|can't|has to|have to|by hand|manually"
    r"|not allowed|prohibited|expected to|forbidden|we (?:use|follow)|uses?|follows?"
    r"|please (?:add|run|use|write|include|update|keep|follow|do not|don't|sign|target|base))\b",
    re.IGNORECASE,
)
_STRONG = re.compile(
    r"\b(?:must|do not|don't|never|should not|not accept|required|always|by hand|will not|cannot"
    r"|prohibited|forbidden|make sure|ensure)\b",
    re.IGNORECASE,
)
_CHATTY = re.compile(
    r"\b(?:I|I'm|we'd|we'll|feel free|happy|thank|welcome|sorry|hesitate|worry|sweat|appreciat\w+"
    r"|love to|respectful\w*|kind|patient"
    r"|have to ask|need to ask|no need|jump|above|below|following|demand|first orientation|familiar)\b"
)
TOPICS = {
    "ai": re.compile(r"\bA\.?I\b|\bLLMs?\b|[Gg]enerative|[Cc]opilot|ChatGPT"),
    "branch": re.compile(
        r"\b(?:against|from|target\w*|to|into|off|on|base[sd]? (?:on|off)) (?:the )?[`'\"]?"
        r"(?:main|master|dev|develop|development|next|trunk|canary|staging)[`'\"]? (?:branch)"
        r"|(?=.*\b(?:branch|PRs?|pull requests?|merge)\b).*(?:target\w*|against) (?:the )?`[\w/-]+`"
    ),
    "generated": re.compile(r"(?:re|auto-?)?generated\b|\bregenerate\b|by hand|vendored", re.IGNORECASE),
    "changelog": re.compile(
        r"\b[Cc]hange ?log\b|CHANGELOG|CHANGES\b|[Cc]hangesets?\b|[Rr]elease notes?\b|news ?fragment"
        r"|towncrier"
    ),
    "commits": re.compile(
        r"[Cc]onventional [Cc]ommits|[Ss]igned?[- ]off|Signed-off-by|\bDCO\b|\bCLA\b"
        r"|[Cc]ontributor [Ll]icense"
    ),
    "discuss": re.compile(
        r"(?=.*\b(?:pull requests?|PRs?|features?|changes?|patch|implement\w*|contribut\w*|work)\b)(?:"
        r"\b(?:issue|discuss\w*|proposal|RFC)\b.{0,80}\b(?:before|first|prior)\b"
        r"|\b(?:before|prior to)\b.{0,80}\b(?:issue|discuss\w*|proposal|RFC)\b)",
        re.IGNORECASE,
    ),
}
PER_TOPIC = {"ai": 2, "branch": 1, "generated": 2, "changelog": 1, "commits": 1, "discuss": 1}
# In the middle of a thought, or only the announcement of one.
_AMID = re.compile(
    r"(?:but|also|however|and|so|then|or|otherwise|they|it|this|these|that|those|we have"
    r"|note that there is)\b",
    re.IGNORECASE,
)
_THOSE = re.compile(r"\b(?:these|those|such)\b", re.IGNORECASE)
_PATH = re.compile(r"`[\w.*-]*[/.][\w./*-]+`")
_BY_HAND = re.compile(r"by hand|manually|not (?:be )?(?:edit|commit|modif)|regenerate", re.IGNORECASE)
_ASKED = re.compile(
    r"(?:add|update|run|include|ensure|write|note|document)\b", re.IGNORECASE
)  # an item of a template
_ACTS = re.compile(
    r"`|\b(?:run|execute|install|download|fetch|send|upload|read|open|visit|append|push|call|start|delete"
    r"|invoke|paste|tell)\b",
    re.IGNORECASE,
)
LEAST, SHORT, LONGEST_RULE = 25, 120, 200  # characters of a sentence


def obligations(project: ProjectFiles) -> tuple[Fact, ...]:
    """The sentences of documents for contributors that oblige, by topic, the strongest of each first."""
    found: dict[str, list[tuple[float, int, Fact]]] = {topic: [] for topic in TOPICS}
    seen: set[str] = set()
    for document in for_developers(project):
        is_readme = README.fullmatch(document.path) is not None
        if not is_readme and not OBLIGING.search(document.path):
            continue
        for block in document.blocks:
            if block.kind not in ("paragraph", "item", "quote"):
                continue
            is_aside = _ASIDE.search(block.heading) is not None
            if is_readme and not re.search(
                r"contribut|develop|hack|style|polic", block.heading, re.IGNORECASE
            ):
                continue
            for text in sentences(re.sub(r"^\[[ xX]?\]\s*", "", block.text)):
                rule = _rule(text, document.path)
                if is_aside and rule and rule[1].kind != "discuss":
                    continue  # how to report a bug; but what is to be agreed before a change stands there too
                if rule and rule[1].text not in seen:
                    seen.add(rule[1].text)
                    found[rule[1].kind].append((-rule[0], len(seen), rule[1]))
    return tuple(
        rule
        for topic, those in found.items()
        for _, _, rule in sorted(those, key=lambda one: one[:2])[: PER_TOPIC[topic]]
    )


def _rule(text: str, source: str) -> tuple[float, Fact] | None:
    is_sentence = (
        LEAST <= len(text) <= LONGEST_RULE
        and not text.endswith((":", "?", ")", "i.e.", "e.g."))
        and "://" not in text
    )
    if not is_sentence or _CHATTY.search(text) or TO_BE_RUN.search(text) or _AMID.match(text):
        return None
    topic = next((name for name, pattern in TOPICS.items() if pattern.search(text)), "")
    is_strong = _STRONG.search(text) is not None
    is_template = TEMPLATE.search(source) is not None
    is_asked = is_template and _ASKED.match(text) is not None
    if topic == "ai" and (_ACTS.search(text) or not is_strong):
        return None  # it may ask for care, and never for something to be done
    if topic == "discuss" and _THOSE.search(text):
        return None  # of which it spoke before
    holds = {
        "": False,
        "branch": True,
        "discuss": not is_template,
        "generated": bool(_PATH.search(text) or _BY_HAND.search(text)),
    }.get(topic, is_asked or (_OBLIGES.search(text) is not None and not is_template))
    worth = 2.0 * is_strong + min(text.count("`") // 2, 2) + (len(text) < SHORT) * 0.5
    return (worth, Fact(text, source, topic)) if holds else None
