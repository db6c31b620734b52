"""One block of Markdown from one region's text, by what kind of text it is."""

import re

from handler.schema import Reason

_FENCE = re.compile(r"^(```+|~~~+|\$\$(?=$))")
_TABLE = re.compile(r"<table[\s>]")
_BULLET = re.compile(r"^(\s*)[·•▪●]\s*")
_TIGHT_NUMBER = re.compile(r"^(\s*\d{1,3}\.)(?=[^\W\d])")
_LOOSE_MATHS = re.compile(r"(?<![\\$])\$ +([^$\n]*?[\\^_{=][^$\n]*?) *\$(?!\$)")
_VERBATIM = re.compile(r"(`+[^`]*`+|\$[^$]+\$)")
_MARKUP = re.compile(
    r"</?(table|thead|tbody|tfoot|tr|td|th|caption|colgroup|col|div|p|br|hr|sub|sup|b|i|u|s|em|strong|small|big|del|ins|"
    r"span|font|center|img|a|ul|ol|li|dl|dt|dd|h[1-6])"
    r"""(\s+[A-Za-z-]+\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+))*\s*/?>""",
    re.IGNORECASE,
)
"""HTML that formats. A browser takes `<b and c>` for a tag as well; nothing that is printed looks like an attribute."""
_TAG = re.compile(r"<(?=!--|/?[A-Za-z])")
_LIST_ITEM = re.compile(r"^\s*([-*+]|\d{1,3}[.)])\s")
_HTML_TAG_LINE = re.compile(r"^\s*(</?[a-zA-Z][^<>]*>\s*)+$")
_PIPE_ROW = re.compile(r"^\s*\|.*\|\s*$")
_PIPE_RULE = re.compile(r"^\s*\|(\s*:?-+:?\s*\|)+\s*$")
_HEADING_MARK = re.compile(r"^\s*(#{1,6}\s+|[-*]\s+)+")
_DELIMITERS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))
_BRACKETS = (("(", ")"), ("\uff08", "\uff09"), ("[", "]"), ("【", "】"))


def comment(what: str, reason: Reason | None, message: str | None) -> str:
    """An HTML comment, in one line, that no message can end early."""
    parts = [what] + ([reason.value] if reason else []) + ([message] if message else [])
    line = " ".join(" - ".join(parts).split())
    return f"<!-- {re.sub('-{2,}', '-', line).replace('>', ')')} -->"


def heading(text: str, level: int) -> str:
    """A heading, in one line, with one mark only."""
    line = _visible(" ".join(_HEADING_MARK.sub("", text).split()))
    return f"{'#' * level} {line}"


def formula(text: str, number: str | None) -> str:
    """A formula in `$$`, with its printed number as its tag."""
    body = text
    for opening, closing in _DELIMITERS:
        if len(body) >= len(opening + closing) and body.startswith(opening) and body.endswith(closing):
            inner = body[len(opening) : len(body) - len(closing)]
            if opening not in inner and closing not in inner:
                body = inner.strip()
                break
    body = _without_blank_lines(body)
    tag = f" \\tag{{{_bare(number)}}}" if number else ""
    return f"$$\n{body}{tag}\n$$"


def table(text: str) -> str:
    """A table: HTML as it is but for blank lines, which would end the block; pipes with their rule; else lines."""
    if "<table" in text:
        shown = "\n".join(_visible(line, "&lt;") for line in text.split("\n") if line.strip())
        return shown + _missing_ends(text)
    lines = text.split("\n")
    if len(lines) > 1 and all(_PIPE_ROW.match(line) for line in lines):
        if not _PIPE_RULE.match(lines[1]):
            lines.insert(1, "|" + " --- |" * (lines[0].strip().count("|") - 1))
        return "\n".join(lines)
    return prose(text)


def prose(text: str) -> str:
    """Running text: its lines stay lines, code stays code, bullets become Markdown's."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line.strip())
        if fence:
            lines.append(line)
            fence = "" if line.strip() == fence else fence
            continue
        if mark:
            fence = mark.group(1)
            _open_block(lines)
        else:
            line = _tidy(line)
            _separate(lines, line)
        lines.append(line)
    if fence:
        lines.append(fence)
    return "\n".join(lines) + ("" if "```" in text else _missing_ends(text))


def _tidy(line: str) -> str:
    """List marks that Markdown knows, and inline formulas without the inner blanks that keep them from being one."""
    line = _TIGHT_NUMBER.sub(r"\1 ", _BULLET.sub(r"\1- ", line))
    return _visible(_LOOSE_MATHS.sub(r"$\1$", line).rstrip())


def _visible(line: str, escaped: str = "\\<") -> str:
    """What was printed in angle brackets, escaped: a browser would take it for markup and show nothing.

    A line of HTML is not Markdown, so a backslash would not do there.
    """
    if _MARKUP.match(line.lstrip()):
        escaped = "&lt;"

    def shown(bracket: re.Match[str]) -> str:
        return bracket[0] if _MARKUP.match(bracket.string, bracket.start()) else escaped

    parts = _VERBATIM.split(line)
    return "".join(part if index % 2 else _TAG.sub(shown, part) for index, part in enumerate(parts))


def _separate(lines: list[str], line: str) -> None:
    """Keep `line` from running into the one before it: a hard break, or a blank line beside a block."""
    previous = lines[-1] if lines else ""
    if not previous or not line or (_LIST_ITEM.match(previous) and _LIST_ITEM.match(line)):
        return
    if _is_block(previous) or _is_block(line):
        lines.append("")
    else:
        lines[-1] = previous + "  "


def _is_block(line: str) -> bool:
    stripped = line.strip()
    return bool(
        stripped.startswith(("#", "$$", "|", "```", "~~~"))
        or stripped.endswith("$$")
        or _LIST_ITEM.match(line)
        or _HTML_TAG_LINE.match(line)
    )


def _open_block(lines: list[str]) -> None:
    if lines and lines[-1]:
        lines.append("")


def _missing_ends(text: str) -> str:
    """What closes the tables that `text` leaves open; they would swallow the rest of the document."""
    plain = _VERBATIM.sub("", text)
    return "\n</table>" * (len(_TABLE.findall(plain)) - plain.count("</table>"))


def _without_blank_lines(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if line.strip())


def _bare(number: str) -> str:
    """A formula's number without its brackets."""
    number = " ".join(number.split())
    for opening, closing in _BRACKETS:
        if number.startswith(opening) and number.endswith(closing):
            return number[1:-1].strip()
    return number
