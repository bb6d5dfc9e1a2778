"""Reading a shell command into steps: the words of each simple command, and the operators between them. Pure.

It knows as much of the shell as it takes not to mistake a text for a command: quotes, comments, redirections,
here-documents, substitutions. What it does not understand it takes for text. What a substitution would come
to is not known, and neither is the word it stands in.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Step = list["Word"] | str

DEEPEST = 40  # substitutions within each other; what lies deeper is not read
BLANKS = " \t\r"
OPERATORS = ";&|()\n"
REDIRECTIONS = ("<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">")
ENDS = BLANKS + OPERATORS + "<>"  # of a word
PATTERNS = "*?[{"
NO_PATTERNS = frozenset({"{", "[", "{}"})


class Word:
    __slots__ = ("is_known", "pattern_at", "text")

    def __init__(self, text: str, is_known: bool = True, pattern_at: int = -1) -> None:
        self.text = text
        self.is_known = is_known  # else text is only what stands there literally
        self.pattern_at = pattern_at  # where its first unquoted pattern sign stands, or -1

    @property
    def is_pattern(self) -> bool:
        return self.pattern_at >= 0


def read(command: str) -> list[Step]:
    return _Reader(command, 0, 0).read()


class _Reader:
    """One text may have several: each substitution is read by another, which stops where it closes."""

    __slots__ = ("_depth", "_documents", "_groups", "_redirects", "_steps", "_text", "_words", "at")

    def __init__(self, text: str, at: int, depth: int) -> None:
        self.at = at
        self._text = text
        self._depth = depth
        self._groups = 0  # parentheses that are open
        self._steps: list[Step] = []
        self._words: list[Word] = []
        self._redirects = ""  # the sign whose target the next word is
        self._documents: list[tuple[str, bool]] = []  # (delimiter, is indented) of here-documents to come

    def read(self) -> list[Step]:
        is_over = False
        while self.at < len(self._text) and not is_over:
            sign = self._text[self.at]
            if sign in BLANKS:
                self.at += 1
            elif sign == "#":
                self.at = self._find("\n")
            elif sign in "<>" or self._has("&>"):
                self._redirect()
            elif sign in OPERATORS:
                is_over = self._operator(sign)
            else:
                self._argument()
        self._end_command()
        return self._steps

    def _has(self, sign: str) -> bool:
        return self._text.startswith(sign, self.at)

    def _find(self, sign: str) -> int:
        place = self._text.find(sign, self.at)
        return len(self._text) if place < 0 else place

    def _end_command(self) -> None:
        if self._words:
            self._steps.append(self._words)
        self._words = []
        self._redirects = ""

    def _operator(self, sign: str) -> bool:
        """True: it closes the substitution that is read here."""
        operator = sign * 2 if sign in "&|" and self._has(sign * 2) else sign
        self.at += 2 if self._has("|&") else len(operator)
        self._end_command()
        if sign == "\n":
            self._skip_documents()
        elif sign == "(":
            self._groups += 1
        elif sign == ")":
            if self._depth and not self._groups:
                return True
            self._groups = max(0, self._groups - 1)  # a pattern of `case` closes what nobody opened
        self._steps.append(";" if sign == "\n" else operator)
        return False

    def _redirect(self) -> None:
        self.at += self._has("&")
        sign = next(sign for sign in REDIRECTIONS if self._has(sign))
        self.at += len(sign)
        if sign in ("<", ">") and self._has("("):
            self._skip_commands()
        else:
            self._redirects = sign

    def _argument(self) -> None:
        start = self.at
        word = self._word()
        if self._redirects:
            if self._redirects in ("<<", "<<-"):
                self._documents.append((word.text, self._redirects == "<<-"))
            self._redirects = ""
        elif not (self._text[self.at : self.at + 1] in ("<", ">") and self._text[start : self.at].isdigit()):
            self._words.append(word)  # else it is the number of what is redirected

    def _skip_documents(self) -> None:
        for delimiter, is_indented in self._documents:
            while self.at < len(self._text):
                end = self._find("\n")
                line = self._text[self.at : end]
                self.at = end + 1
                if (line.lstrip("\t") if is_indented else line) == delimiter:
                    break
        self._documents = []

    def _word(self) -> Word:
        parts: list[str] = []
        length, is_known, pattern_at = 0, not self._has("~"), -1
        while self.at < len(self._text):
            sign = self._text[self.at]
            if sign == "(" and parts and parts[-1].endswith("="):  # an array: files=(a b)
                self._skip_commands()
                continue
            if sign in ENDS:
                break
            part, is_plain = self._part(sign)
            is_known = is_known and is_plain
            if sign in PATTERNS and pattern_at < 0:
                pattern_at = length
            parts.append(part)
            length += len(part)
        text = "".join(parts)
        return Word(text, is_known, -1 if text in NO_PATTERNS else pattern_at)

    def _part(self, sign: str) -> tuple[str, bool]:
        """(what it says, whether that is all) of the next quoted part of a word, or its next character."""
        if sign == "'":
            self.at += 1
            start, self.at = self.at, self._find("'") + 1
            return self._text[start : self.at - 1], True
        if sign == '"':
            return self._quoted()
        if sign in "$`":
            self._skip_substitution(sign)
            if self._has("'") and self._text[self.at - 1] == "$":  # $'...'
                self.at += 1
                self._skip_to("'")
            return "", False
        if sign == "\\":
            sign = self._text[self.at + 1 : self.at + 2]
            self.at += 1
        self.at += 1
        return "" if sign == "\n" else sign, True

    def _quoted(self) -> tuple[str, bool]:
        parts: list[str] = []
        is_plain = True
        self.at += 1
        while self.at < len(self._text):
            sign = self._text[self.at]
            if sign == '"':
                self.at += 1
                break
            if sign in "$`":
                self._skip_substitution(sign)
                is_plain = False
                continue
            if sign == "\\":
                self.at += 1
                escaped = self._text[self.at : self.at + 1]
                sign = "" if escaped == "\n" else escaped if escaped in '$`"\\' else sign + escaped
            parts.append(sign)
            self.at += 1
        return "".join(parts), is_plain

    def _skip_substitution(self, sign: str) -> None:
        """Over `$(...)`, `${...}` or what stands in backticks; of `$name` the sign is enough."""
        self.at += 1
        if sign == "`":
            self._skip_to("`")
        elif self._has("("):
            self._skip_commands()
        elif self._has("{"):
            self._skip_to("}")

    def _skip_to(self, closing: str) -> None:
        while self.at < len(self._text) and self._text[self.at] != closing:
            self.at += 2 if self._text[self.at] == "\\" else 1
        self.at += 1

    def _skip_commands(self) -> None:
        """From an opening parenthesis to behind the one that closes it."""
        inner = _Reader(self._text, self.at + 1, self._depth + 1)
        if inner._depth > DEEPEST:
            self.at = len(self._text)
        else:
            inner.read()
            self.at = inner.at
