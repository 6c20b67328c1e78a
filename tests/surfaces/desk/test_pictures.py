"""The pictures of the desk in the docs are what it draws: taken again, they are the same to the last character."""

from __future__ import annotations

import re
from html import unescape

import pytest
from desk_pictures import DOCS, pictures

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def test_the_pictures_are_what_the_desk_draws() -> None:
    """Each of them; and they show what the page says: the chosen line, the command, the diff in its colours."""
    taken = pictures()
    assert {name: (DOCS / name).read_text("utf-8") for name in taken} == taken
    words = {
        name: unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", text))).replace("\xa0", " ")
        for name, text in taken.items()
    }
    assert "> " in words["desk-list.svg"]
    assert "$ git gate show c4mx8t" in words["desk-list.svg"]
    assert "+    return store.begin(name)" in words["desk-letter.svg"]
    assert not re.search(r"https?://(?!www\.w3\.org|www\.textualize\.io)", "".join(taken.values()))
