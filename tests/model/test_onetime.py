"""One key signs one text: any other text, any other part, and it is nobody's signature."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gitgate.model import lease
from gitgate.model.lease import repeated

SEED = b"s" * 32


@given(st.binary(), st.integers(1, 1000))
def test_a_signature_is_of_its_key_and_text(text: bytes, number: int) -> None:
    """It leads to the public key; with another text, or by another number, to something else."""
    signature = lease.sign(SEED, number, text)
    assert lease.signer(signature, text) == lease.public_key(SEED, number)
    assert lease.signer(signature, text + b"!") != lease.public_key(SEED, number)
    assert lease.signer(signature, text) != lease.public_key(SEED, number + 1)


@given(st.binary(), st.integers(0, lease.PARTS - 1), st.integers(1, 3))
def test_a_part_that_is_digested_further_is_no_signature_of_another_text(
    text: bytes, part: int, steps: int
) -> None:
    """Whoever has one can go on along each part, and that leads to no text's numbers: those that count would go back."""
    signature = lease.sign(SEED, 1, text)
    at = part * lease.SIZE
    further = signature[:at] + repeated(signature[at : at + lease.SIZE], steps) + signature[at + lease.SIZE :]
    assert lease.signer(further, text) != lease.public_key(SEED, 1)
    before = lease.numbers(text)
    for other in (text + b"1", text + b"2"):
        assert any(new < old for new, old in zip(lease.numbers(other), before, strict=True))


@given(st.binary(max_size=3000))
def test_other_bytes_are_nobodys_signature(bytes_: bytes) -> None:
    """Too short, too long, or merely of the right length."""
    right = len(bytes_) == lease.PARTS * lease.SIZE
    assert (lease.signer(bytes_, b"x") == "") == (not right)
    assert lease.signer(bytes_, b"x") != lease.public_key(SEED, 1)
