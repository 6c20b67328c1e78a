"""Core: readers of single fields that every kind of document shares."""

from __future__ import annotations

import re

from ..errors import Usage
from .field import Field, Plain
from .times import format_time, parse_duration, parse_time

MOST_TEXT = 256 * 1024
DIGEST = re.compile(r"[0-9a-f]{64}")
OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def words(item: Field, name: str, most: int = 1000) -> str:
    found = item.get(name)
    return "" if found is None else found.text(most=most)


def texts(item: Field, name: str, most: int = 1000) -> tuple[str, ...]:
    found = item.get(name)
    return () if found is None else tuple(entry.text(most=most) for entry in found.items())


def one_of(item: Field, name: str, allowed: tuple[str, ...], otherwise: str) -> str:
    found = item.get(name)
    return otherwise if found is None else found.one_of(allowed)


def digest(item: Field, name: str) -> str:
    """A SHA-256 in hexadecimal; empty where there is none."""
    found = item.get(name)
    text = "" if found is None else found.text(most=64)
    if found is not None and not DIGEST.fullmatch(text):
        found.fail("expected 64 digits of a SHA-256")
    return text


def oid(item: Field, name: str) -> str | None:
    found = item.get(name)
    return None if found is None else commit_id(found)


def oids(item: Field, name: str) -> tuple[str, ...]:
    found = item.get(name)
    return () if found is None else tuple(commit_id(entry) for entry in found.items())


def commit_id(field: Field) -> str:
    text = field.text(most=64)
    return text if OID.fullmatch(text) else field.fail("expected a full commit id")


def moment(field: Field) -> str:
    """A time in the one form that compares as text: whole seconds in UTC."""
    text = field.text(most=40)
    try:
        plain = format_time(parse_time(text)) == text
    except Usage:
        plain = False
    return text if plain else field.refuse("a time in UTC such as 2030-01-31T14:05:00Z")


def duration(field: Field) -> int:
    """Seconds, with the place in the error where they are none."""
    text = field.text(most=40)
    try:
        return parse_duration(text)
    except Usage as wrong:
        field.fail(wrong.message)


def mapping(item: Field, name: str) -> dict[str, Plain]:
    found = item.get(name)
    return {} if found is None else {key: field.plain() for key, field in found.mapping().items()}
