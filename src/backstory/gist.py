"""A session's summary in one line, for wherever a session is only mentioned; how long texts are. Pure."""

from __future__ import annotations

FIELDS = (
    "Request",
    "Investigated",
    "Learned",
    "Completed",
    "Next Steps",
    "Files Read",
    "Files Edited",
    "Notes",
)


def of_summary(text: str, length: int) -> str:
    """What was asked for and what came of it, of a summary as `str(Summary)` writes it; empty where the text
    is not written like that."""
    fields = _fields(text)
    told = [fields.get("Request", ""), fields.get("Completed", "")]
    line = " — ".join(filter(None, told)) or next(iter(fields.values()), "")
    return cut(line, length)


def tokens(text: str) -> int:
    """About how many a model sees in it."""
    return -(-len(text) // 4)


def cut(text: str, length: int) -> str:
    """At most so long, ending at a word where there is one to end at."""
    if len(text) <= length:
        return text
    head = text[: length - 1]
    if not text[length - 1].isspace():
        whole = head.rpartition(" ")[0]
        head = whole if len(whole) > length // 2 else head  # not all languages have spaces
    return head.rstrip(" ,;:.—-") + "…"


def _fields(text: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        name, sign, rest = line.removeprefix("**").partition(":** ")
        if sign and line.startswith("**") and name in FIELDS and name not in found:
            lines = found[name] = [rest]
        else:
            lines.append(line)  # a field may have several
    return {name: words for name, told in found.items() if (words := " ".join(" ".join(told).split()))}
