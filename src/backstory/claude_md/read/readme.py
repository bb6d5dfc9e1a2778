"""What a project is, in its README's own words."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from backstory.claude_md.read.documents import Block, is_to_be_told, readme, sentences
from backstory.claude_md.read.files import ProjectFiles

_NOT_ABOUT_IT = re.compile(
    r"\b(?:install|usage|using|getting started|quick ?start|licen[cs]e|contribut|sponsor|support"
    r"|contents?|badges|links|news"
    r"|announce|backers|changelog|change log|release|require|prerequisite|screenshots?|credits"
    r"|acknowledg|author|communit"
    r"|example|faq|security|versions?|upgrad|migrat|roadmap|download|demo|develop|hacking|test|build"
    r"|syntax|config)",
    re.IGNORECASE,
)
_NOTICE = re.compile(
    r"\W*(?:note|warning|important|caution|attention|deprecat|notice|update|announcement|disclaimer"
    r"|tip|heads up|new!|beta\b"
    r"|this (?:repo(?:sitory)?|project|package|branch) (?:has|is (?:no longer|not|archived"
    r"|deprecated|in maintenance|under|a work)))",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:you|we|i|because)\b|(?:read|visit|check|see|please|contributions?|click|download|join|follow"
    r"|looking for|more (?:info|about"
    r"|details)|for more|full doc|if you"
    r"|we(?:'re| are) (?:hiring|looking)|star|support us|thanks|special thanks|sponsored|brought to"
    r"|built (?:with|by)|made with"
    r"|english\b|documentation\b|website\b|chat\b|to get started|you can (?:find|read|try)|try it"
    r"|begin by|here(?: is|'s| are)"
    r"|the rest of this|these instructions|this (?:readme|document|page|file)\b|table of|copyright"
    r"|licensed|translations?\b"
    r"|for (?:guides|more|detail|full|instruct"
    r"|documentation|help|a ))",
    re.IGNORECASE,
)
_DEFINES = re.compile(
    r"(?:an?|the|this|these|our|my|your|all|simple|fast|modern|lightweight|[\w-]+ing)\b"
    r"|[`{]?[\w@][\w .,/&'+()`*:#{}-]{0,60}?[`}]?,? (?:is|are|provides?|lets|allows|helps?|gives"
    r"|implements|contains|offers|enables|makes"
    r"|generates|aims|supports)\b|[A-Z][\w-]*,?(?: [\w/-]+,?){1,8} (?:for|to|in|that|which|with|built"
    r"|written|of)\b",
    re.IGNORECASE,
)
_OF_SOMEBODY = re.compile(
    r"^\W*(?:your?|we|i|because|while|if|when|once|to|in addition|also|show)\b|^\(|\b(?:your|we)\b",
    re.IGNORECASE,
)
_IS = re.compile(r"(?:\S+ ){1,4}(?:is|are) (?:an?|the)\b")
# Of a README's paragraph, the sentences that say nothing about the project.
_LEGAL = re.compile(
    r"copyright|licen[cs]ed?\b|\(c\)|^\W*see |read online|available (?:here|to read|at|from)|click here",
    re.IGNORECASE,
)
_DATA = re.compile(r"[\w-]+: [^:]{1,80} [\w-]+: ")  # of a book, a thesis: "Pages: 770 Publisher: ..."
_PLACEHOLDER = re.compile(
    r"This README would normally document|Everything you need to build a Svelte project"
    r"|This template (?:provides a minimal setup|should help get you started)"
    r"|(?:This is a .{0,80} project|This project was) (?:bootstrapped|generated|created) with"
    r"|To make it easy for you to get started with GitLab|A new Flutter project",
    re.IGNORECASE,
)
SEVERAL_WORDS = 4
LONGEST_HTML = 6_000


def description(project: ProjectFiles, stated: str = "") -> str:
    """What a project is: as the first words of its README say, else its manifest, else a later part of its
    README."""
    found = readme(project)
    stated = stated if is_to_be_told(stated) else ""
    if not found or not found.blocks:
        return stated
    first = list(_candidates(_first_part(found.blocks)))[:6]
    later = list(_candidates(found.blocks))[:6]
    if later and _PLACEHOLDER.match(later[0]):
        return stated
    defined = next(filter(_defines, first or later), "")
    if defined or len(stated.split()) >= SEVERAL_WORDS:
        return defined or stated
    told = [said for said in first[:1] if "://" not in said and not _OF_SOMEBODY.search(said)]
    return next(iter((*told, *filter(_defines, later))), stated or _title(found.blocks))


def introduction(project: ProjectFiles, most: int) -> str:
    """The first prose of a README, if it is the first thing there; of a folder nobody explains more."""
    found = readme(project, most)
    said = next(_candidates(_first_part(found.blocks)), "") if found else ""
    return "" if _PLACEHOLDER.match(said) else said


def _first_part(found: Sequence[Block]) -> list[Block]:
    """Under the title, and what stands above it."""
    title = next((block.heading for block in found if block.heading), "")
    return [block for block in found if block.heading in ("", title)]


def _defines(said: str) -> bool:
    plain = re.sub(r" \([^()]*\)", "", said)  # how it is pronounced
    return _DEFINES.match(plain) is not None and not _OF_SOMEBODY.match(said)


def _title(found: Sequence[Block]) -> str:
    """The heading at the top, where it says more than a name."""
    title = found[0].heading if found else ""
    return (
        title
        if is_to_be_told(title) and 2 < len(title.split()) < 12 and _NOT_ABOUT_IT.search(title) is None
        else ""
    )


def _candidates(found: Sequence[Block]) -> Iterator[str]:
    first = list(dict.fromkeys(block.heading for block in found))[:3]
    notice = False
    for block in found:
        notice = block.kind == "quote" and (notice or block.text.startswith("[!"))
        if notice or block.heading not in first or _NOT_ABOUT_IT.search(block.heading):
            continue
        if block.kind in ("paragraph", "quote"):
            yield from _told(block.text)
        elif block.kind == "html":
            for part in _from_html(block.text):
                yield from _told(part)


def _told(text: str) -> Iterator[str]:
    text = re.sub(r"\[!\w+\]|\]\[\w*\]|[\[\]]", "", text).strip(" *_-—–•·|")
    if (
        len(text.split()) < SEVERAL_WORDS
        or _DATA.match(text)
        or _NOTICE.match(text)
        or (_ASKS.match(text) and not _IS.match(text))
    ):
        return
    if text.count("•") + text.count(" | ") + text.count(" / ") + text.count("·") > 2:
        return  # a row of links
    whole = (
        part
        for part in sentences(text)
        if not part.endswith(":") and not (_LEGAL.search(part) and not _IS.match(part))
    )
    said = next(whole, "")
    if is_to_be_told(said) and sum(sign.isascii() for sign in said) > 0.8 * len(said):
        yield said


def _from_html(text: str) -> Iterator[str]:
    """The paragraphs in HTML, without links and pictures: there these are badges and menus."""
    text = re.sub(
        r"<!--.*?(?:-->|\Z)|<(a|picture|script|style|h[1-6]|table)\b.*?</\1>",
        " ",
        text[:LONGEST_HTML],  # what is never closed is looked for up to the end, each time
        flags=re.DOTALL | re.IGNORECASE,
    )
    for part in re.split(
        r"</?(?:p|div|center|blockquote|details|summary|li|ul)\b[^>]*>", text, flags=re.IGNORECASE
    ):
        yield (
            " ".join(html.unescape(re.sub(r"<[^>]*>?", " ", part)).split())
            .replace(" .", ".")
            .replace(" ,", ",")
        )
