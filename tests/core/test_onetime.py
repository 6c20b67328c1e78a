"""One key signs one text: any other text, any other part, and it is nobody's signature."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gitgate.core import onetime
from gitgate.core.lease import repeated

SEED = b"s" * 32


@given(st.binary(), st.integers(1, 1000))
def test_a_signature_is_of_its_key_and_text(text: bytes, number: int) -> None:
    """It leads to the public key; with another text, or by another number, to something else."""
    signature = onetime.sign(SEED, number, text)
    assert onetime.signer(signature, text) == onetime.public_key(SEED, number)
    assert onetime.signer(signature, text + b"!") != onetime.public_key(SEED, number)
    assert onetime.signer(signature, text) != onetime.public_key(SEED, number + 1)


@given(st.binary(), st.integers(0, onetime.PARTS - 1), st.integers(1, 3))
def test_a_part_that_is_digested_further_is_no_signature_of_another_text(
    text: bytes, part: int, steps: int
) -> None:
    """Whoever has one can go on along each part, and that leads to no text's numbers: those that count would go back."""
    signature = onetime.sign(SEED, 1, text)
    at = part * onetime.SIZE
    further = (
        signature[:at] + repeated(signature[at : at + onetime.SIZE], steps) + signature[at + onetime.SIZE :]
    )
    assert onetime.signer(further, text) != onetime.public_key(SEED, 1)
    before = onetime.numbers(text)
    for other in (text + b"1", text + b"2"):
        assert any(new < old for new, old in zip(onetime.numbers(other), before, strict=True))


@given(st.binary(max_size=3000))
def test_other_bytes_are_nobodys_signature(bytes_: bytes) -> None:
    """Too short, too long, or merely of the right length."""
    right = len(bytes_) == onetime.PARTS * onetime.SIZE
    assert (onetime.signer(bytes_, b"x") == "") == (not right)
    assert onetime.signer(bytes_, b"x") != onetime.public_key(SEED, 1)
