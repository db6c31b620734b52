import pytest

from tests.support.recall import character_recall, in_order, longest_rising_run, word_recall


def test_word_recall_counts_each_word_as_often_as_it_is_known() -> None:
    assert word_recall("one one two", "two one") == pytest.approx(2 / 3)
    assert word_recall("", "anything") == 1.0


def test_character_recall_ignores_white_space() -> None:
    assert character_recall("a b", "ba") == 1.0
    assert character_recall("abcd", "ab") == 0.5


def test_lines_out_of_order_do_not_count() -> None:
    assert in_order(["1. a", "2. b", "3. c"], "1. a\n3. c\n2. b") == pytest.approx(2 / 3)
    assert in_order(["1. a", "2. b"], "nothing") == 0.0


def test_longest_rising_run() -> None:
    assert longest_rising_run([3, 1, 2, 2, 5, 4]) == 3
    assert longest_rising_run([]) == 0
