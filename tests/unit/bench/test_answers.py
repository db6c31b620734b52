import pytest

from bench.simulator.answers import answer_text, answer_tokens, image_tokens


@pytest.mark.parametrize("table", [False, True])
def test_equal_sizes_get_equal_answers_near_the_density_of_print(table: bool) -> None:
    whole = answer_tokens(table, 1400, 280)
    assert whole == answer_tokens(table, 1400, 280)
    assert 0.2 < whole / image_tokens(1400, 280) < 0.6


def test_a_whole_table_is_closed_and_a_cut_one_is_not() -> None:
    whole = answer_tokens(True, 1400, 560)
    assert answer_text(True, 1400, 560, whole, whole).endswith("</table>")
    cut = answer_text(True, 1400, 560, whole // 2, whole)
    assert not cut.endswith("</table>")
    assert answer_text(True, 1400, 560, whole, whole).startswith(cut)


def test_the_text_is_as_long_as_its_tokens_say() -> None:
    assert abs(len(answer_text(False, 1400, 280, 150, 150)) - 600) < 4
