import pytest

from handler.assembly.blocks import comment, formula, heading, prose, table
from handler.schema import Reason


@pytest.mark.parametrize(
    ("text", "level", "expected"),
    [
        ("7.4 Joints", 2, "## 7.4 Joints"),
        ("## 7.4 Joints", 2, "## 7.4 Joints"),
        ("# Title\non two lines", 1, "# Title on two lines"),
        ("- Title", 2, "## Title"),
        ("#hashtag", 2, "## #hashtag"),
    ],
)
def test_headings(text: str, level: int, expected: str) -> None:
    assert heading(text, level) == expected


@pytest.mark.parametrize(
    ("text", "number", "expected"),
    [
        ("E = mc^2", None, "$$\nE = mc^2\n$$"),
        ("$$\nE = mc^2\n$$", None, "$$\nE = mc^2\n$$"),
        ("$E = mc^2$", None, "$$\nE = mc^2\n$$"),
        ("\\[ E = mc^2 \\]", None, "$$\nE = mc^2\n$$"),
        ("\\( E \\)", None, "$$\nE\n$$"),
        ("a\n\nb", None, "$$\na\nb\n$$"),
        ("$a$ and $b$", None, "$$\n$a$ and $b$\n$$"),
        ("E = mc^2", "(3.1)", "$$\nE = mc^2 \\tag{3.1}\n$$"),
        ("E = mc^2", "\uff083\uff09", "$$\nE = mc^2 \\tag{3}\n$$"),
        ("$", None, "$$\n$\n$$"),
    ],
)
def test_formulas(text: str, number: str | None, expected: str) -> None:
    assert formula(text, number) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<table><tr><td>1</td></tr></table>", "<table><tr><td>1</td></tr></table>"),
        ("<table>\n\n<tr><td>1</td></tr>\n\n</table>", "<table>\n<tr><td>1</td></tr>\n</table>"),
        ("<table><tr><td>1", "<table><tr><td>1\n</table>"),
        ("Prices <table><tr><td>1", "Prices <table><tr><td>1\n</table>"),
        ("<table>\n<td rowspan=2><name> <5</td>\n</table>", "<table>\n<td rowspan=2>&lt;name> <5</td>\n</table>"),
        ("| a | b |\n| --- | --- |\n| 1 | 2 |", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("| a | b |\n| 1 | 2 |", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("a  b\n1  2", "a  b  \n1  2"),
    ],
    ids=[
        "html",
        "blank lines",
        "unclosed",
        "unclosed in a line",
        "names in brackets",
        "pipes",
        "pipes without rule",
        "lines",
    ],
)
def test_tables(text: str, expected: str) -> None:
    assert table(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One line.", "One line."),
        ("Street 1\n12345 Town", "Street 1  \n12345 Town"),
        ("One.\n\nTwo.", "One.\n\nTwo."),
        ("· first\n• second\n- third", "- first\n- second\n- third"),
        ("Intro:\n1. one\n2. two\nafter", "Intro:\n\n1. one\n2. two\n\nafter"),
        ("```python\nif a:\n    b\n\n    c\n```", "```python\nif a:\n    b\n\n    c\n```"),
        ("```python\nif a:", "```python\nif a:\n```"),
        ("see\n```\ncode\n```\nend", "see\n\n```\ncode\n```\n\nend"),
        ("so\n$$\na\nb\n$$\nholds", "so\n\n$$\na\nb\n$$\n\nholds"),
        ('<div align="center">\nFigure 1: **x**\n</div>', '<div align="center">\n\nFigure 1: **x**\n\n</div>'),
        ("1.5 mg dose, 3.14, U.S. policy", "1.5 mg dose, 3.14, U.S. policy"),
        ("Name ________ ....", "Name ________ ...."),
        ("7.4.1 Joints of 3.14 m", "7.4.1 Joints of 3.14 m"),
        ("1.First\n2.Second", "1. First\n2. Second"),
        ("where $ t_{2} $ is", "where $t_{2}$ is"),
        ("from $ 5 to $ 6", "from $ 5 to $ 6"),
        ("set <jndi-name> here", r"set \<jndi-name> here"),
        ("set `<jndi-name>` here", "set `<jndi-name>` here"),
        ("where $a <b$ and x < y", "where $a <b$ and x < y"),
        ("where a <b and c> d", r"where a \<b and c> d"),
        ("x <s y", r"x \<s y"),
        ('<b id="1">bold</b > <br/>', '<b id="1">bold</b > <br/>'),
        ("<div><jndi-name></div>", "<div>&lt;jndi-name></div>"),
        ("H<sub>2</sub>O<br>next", "H<sub>2</sub>O<br>next"),
        ("<!-- printed so -->", r"\<!-- printed so -->"),
        ("```xml\n<jndi-name>\n```", "```xml\n<jndi-name>\n```"),
        ("Temp. -5 °C", "Temp. -5 °C"),
        ("<table><tr><td>1", "<table><tr><td>1\n</table>"),
        ("See <table><tr><td>1", "See <table><tr><td>1\n</table>"),
        ("the tag `<table>` begins", "the tag `<table>` begins"),
    ],
)
def test_prose(text: str, expected: str) -> None:
    assert prose(text) == expected


def test_no_message_ends_a_comment_early() -> None:
    line = comment("page 3: not read", Reason.RENDER_FAILED, "syntax error --> in\nstream -- x")
    assert line == "<!-- page 3: not read - render_failed - syntax error -) in stream - x -->"
    assert line.count("-->") == 1
