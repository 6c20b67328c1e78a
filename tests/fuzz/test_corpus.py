"""Fuzz: every kept input again, without the fuzzer; long ones made of them; and that a wrong one would be noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fuzz.keep import keep
from fuzz.mutate import mutated
from fuzz.targets import TARGETS, Target
from fuzz.watch import SECONDS, Finding, watched
from gitgate.errors import Failure

every_parser = pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
LONG = 60_000
# What a text is made longer with: each of these once cost more than it should, in one parser or another.
PARTS = (
    b" ",
    b"`",
    b"\n",
    b"(",
    b"{",
    b'"',
    b"*",
    b"- ",
    b"a: ",
    b"<!--",
    b"9",
    b"\\",
    b"$(",
    b"/x",
    b"\xc2\x85",
)


@every_parser
def test_what_was_kept_is_read_or_refused(target: Target) -> None:
    """At once, with an error of ours if with any, and with nothing written."""
    kept = sorted(target.corpus.iterdir())
    assert len(kept) > 2
    slow = {
        place.name: took for place in kept if (took := watched(target.check, place.read_bytes())) > SECONDS
    }
    assert slow == {}


@every_parser
@pytest.mark.slow
@pytest.mark.thorough
def test_long_ones_take_no_longer(target: Target) -> None:
    """The longest of the corpus with one part of it repeated, at its beginning, in the middle and at the end."""
    seed = max((place.read_bytes() for place in target.corpus.iterdir()), key=len)
    for part in PARTS:
        for place in (0, len(seed) // 2, len(seed)):
            data = seed[:place] + part * (LONG // len(part)) + seed[place:]
            assert watched(target.check, data) < SECONDS, (part, place)


def write(data: bytes) -> None:
    Path("written").write_bytes(data)


def start(_data: bytes) -> None:
    subprocess.run([sys.executable, "--version"], capture_output=True)


def put_into_the_environment(_data: bytes) -> None:
    os.environ["FUZZ"] = "x"


def refuse_without_a_word(_data: bytes) -> None:
    raise Failure(" ")


@pytest.mark.parametrize("check", [write, start, put_into_the_environment, refuse_without_a_word])
def test_what_none_may_do_is_noticed(check: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing that the fuzzer says of writes would mean anything."""
    monkeypatch.setenv("FUZZ", "")
    with pytest.raises(Finding):
        watched(check, b"x")


def test_only_our_own_errors_are_answers() -> None:
    """Python's are let out, and end the fuzzer; ours are an answer like any other."""

    def broken(data: bytes) -> None:
        int(data)

    def refused(data: bytes) -> None:
        raise Failure("no")

    with pytest.raises(ValueError, match="invalid literal"):
        watched(broken, b"x")
    assert watched(refused, b"x") < SECONDS


def test_inputs_are_changed_in_ways_of_their_own() -> None:
    """The same way for the same seed, within their length; most are left to the fuzzer."""

    def all_of_them() -> list[bytes]:
        return [mutated(b"some words", 500, seed, lambda _data, _most: b"usual") for seed in range(400)]

    usual = all_of_them()
    assert 200 < usual.count(b"usual") < 399
    assert max(len(data) for data in usual) == 500
    assert usual == all_of_them()


def test_only_what_goes_elsewhere_is_kept(tmp_path: Path) -> None:
    """The smaller of two that take the same steps, and nothing that is long."""
    (tmp_path / "text").write_bytes(b"hello")
    fresh = [b"/approve", b"/approve and more", b"/stop" * 1000]
    assert keep(TARGETS["reply"].check, fresh, tmp_path) == 1
    assert {place.read_bytes() for place in tmp_path.iterdir()} == {b"hello", b"/approve"}
