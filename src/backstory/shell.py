"""Reading a shell command line into steps: the simple commands, and the operators between them. Pure.

It knows as much of the shell as it takes not to mistake a text for a command: quotes, comments, redirections,
here-documents, substitutions. What it does not understand it takes for text. What a substitution would come
to is not known, and neither is the word it stands in. What the commands mean is for others to say.
"""

from __future__ import annotations

DEEPEST = 40  # substitutions within each other; what lies deeper is not read
BLANKS = " \t\r"
OPERATORS = ";&|()\n"
REDIRECTIONS = ("<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", ">!", "<", ">")
ENDS = BLANKS + OPERATORS + "<>"  # of a word
PATTERNS = "*?[{"
NO_PATTERNS = frozenset({"{", "[", "{}"})

# What may stand before a command, with those of its short options that a value follows.
BEFORE = {
    "builtin": "",
    "command": "",
    "doas": "u",
    "env": "u",
    "exec": "a",
    "nice": "n",
    "nohup": "",
    "sudo": "CTUghprtu",
    "time": "fo",
    "timeout": "ks",
}
KEYWORDS = frozenset("! { do elif else if then until while".split())


class Word:
    __slots__ = ("is_known", "pattern_at", "text")

    def __init__(self, text: str, is_known: bool, pattern_at: int = -1) -> None:
        self.text = text
        self.is_known = is_known  # else substitutions stand in it as they are written
        self.pattern_at = pattern_at  # where its first unquoted pattern sign stands, or -1

    @property
    def is_pattern(self) -> bool:
        return self.pattern_at >= 0


class Command(list[Word]):
    """The words of a simple command, without its redirections."""

    __slots__ = ("document", "reads", "writes")

    def __init__(self) -> None:
        super().__init__()
        self.document: str | None = None  # the here-document that it reads
        self.reads: list[Word] = []  # what stands behind a `<`: files, texts, `<(...)` as it is written
        self.writes: list[Word] = []  # the files that its output goes to


Step = Command | str


def read(command: str) -> list[Step]:
    return _Reader(command, 0, 0).read()


def without_prefix(words: list[Word]) -> list[Word]:
    """Without what may stand before a command: keywords, assignments, `sudo -u somebody`."""
    at = 0
    while at < len(words):
        name = words[at].text.rpartition("/")[2]
        if name == "command" and [word.text for word in words[at + 1 : at + 2]] in (["-v"], ["-V"]):
            return []  # it only asks where a command is
        if name in BEFORE and words[at].is_known:
            at = _behind_options(words, at + 1, BEFORE[name]) + (name == "timeout")
        elif name in KEYWORDS or _is_assignment(words[at].text):
            at += 1
        else:
            break
    return words[at:]


def _behind_options(words: list[Word], at: int, with_value: str) -> int:
    while at < len(words) and (words[at].text.startswith("-") or _is_assignment(words[at].text)):
        option = words[at].text
        at += 2 if len(option) == 2 and option[1] in with_value else 1
        if option == "--":
            break
    return at


def _is_assignment(word: str) -> bool:
    name, sign, _ = word.partition("=")
    return bool(sign) and name.isascii() and name.isidentifier()


class _Reader:
    """One text may have several: each substitution is read by another, which stops where it closes."""

    __slots__ = ("_command", "_depth", "_documents", "_groups", "_redirects", "_steps", "_text", "at")

    def __init__(self, text: str, at: int, depth: int) -> None:
        self.at = at
        self._text = text
        self._depth = depth
        self._groups = 0  # parentheses that are open
        self._steps: list[Step] = []
        self._command = Command()
        self._redirects = ""  # the sign whose target the next word is
        # here-documents to come: (who reads it, delimiter, is indented)
        self._documents: list[tuple[Command, str, bool]] = []

    def read(self) -> list[Step]:
        is_over = False
        while self.at < len(self._text) and not is_over:
            sign = self._text[self.at]
            if sign in BLANKS:
                self.at += 1
            elif self._has("\\\n"):
                self.at += 2
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
        if self._command or self._command.reads or self._command.writes:
            self._steps.append(self._command)
        self._command = Command()
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
        self._steps.append(operator)
        return False

    def _redirect(self) -> None:
        start = self.at
        self.at += self._has("&")
        sign = next(sign for sign in REDIRECTIONS if self._has(sign))
        self.at += len(sign)
        self._redirects = sign
        if sign in ("<", ">") and self._has("("):
            self._skip_commands()
            self._command.reads.append(Word(self._text[start : self.at], is_known=False))
            self._redirects = ""

    def _argument(self) -> None:
        start = self.at
        word = self._word()
        if self._redirects:
            if self._redirects in ("<<", "<<-"):
                self._command.document = ""
                self._documents.append((self._command, word.text, self._redirects == "<<-"))
            elif ">" not in self._redirects:
                self._command.reads.append(word)
            elif not word.text.isdigit():  # 2>&1
                self._command.writes.append(word)
            self._redirects = ""
        elif not (self._text[self.at : self.at + 1] in ("<", ">") and self._text[start : self.at].isdigit()):
            self._command.append(word)  # else it is the number of what is redirected

    def _skip_documents(self) -> None:
        for command, delimiter, is_indented in self._documents:
            lines = []
            while self.at < len(self._text):
                end = self._find("\n")
                line = self._text[self.at : end]
                self.at = end + 1
                if (line.lstrip("\t") if is_indented else line) == delimiter:
                    break
                lines.append(line)
            command.document = "\n".join(lines)
        self._documents = []

    def _word(self) -> Word:
        parts: list[str] = []
        length, is_known, pattern_at = 0, not self._has("~"), -1
        while self.at < len(self._text):
            sign = self._text[self.at]
            if sign == "(" and parts and parts[-1].endswith("="):  # an array: files=(a b)
                start = self.at
                self._skip_commands()
                parts.append(self._text[start : self.at])
                length += len(parts[-1])
                is_known = False
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
            start = self.at
            self._skip_substitution(sign)
            if self._has("'") and self._text[self.at - 1] == "$":  # $'...'
                self.at += 1
                self._skip_to("'")
            return self._text[start : self.at], False
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
                start = self.at
                self._skip_substitution(sign)
                parts.append(self._text[start : self.at])
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
