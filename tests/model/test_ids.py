"""Ids: made from what the question says, easy to read out, never repeated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate import model


@given(st.binary())
def test_an_id_is_ten_letters_without_look_alikes(data: bytes) -> None:
    """Whatever the question is; the same question, the same id."""
    found = model.gate_id(data)
    assert found == model.gate_id(data)
    assert model.is_id(found)
    assert model.is_prefix(found)
    assert all(model.is_prefix(found[:size]) for size in range(4, 10))
    assert not set(found) & set("01lo")


def test_ids_use_all_their_bits() -> None:
    """Ten thousand questions, ten thousand ids, every letter at every place."""
    found = {model.gate_id(b"%d" % number) for number in range(10_000)}
    assert len(found) == 10_000
    assert all(len({name[place] for name in found}) == len(model.ALPHABET) for place in range(model.LENGTH))


@pytest.mark.parametrize(
    "text", ["", "abc", "abcdefghjkm", "ABCD", "abc1", "abco", "ab/d", "../a", "abcdé", "abcd\n", "-abc"]
)
def test_what_is_no_prefix(text: str) -> None:
    """Too short, too long, other letters, paths."""
    assert not model.is_prefix(text)
    assert not model.is_id(text)


def test_a_prefix_is_no_id() -> None:
    """Only all ten letters are."""
    assert not model.is_id("abcdefghj")
    assert model.is_id("abcdefghjk")


@given(st.binary(), st.binary())
def test_a_file_is_called_by_what_it_says(one: bytes, other: bytes) -> None:
    """The same words are the same file."""
    assert (model.file_name(one) == model.file_name(other)) == (one == other)
    assert model.file_name(one).isalnum()
