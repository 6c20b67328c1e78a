"""Store: git begun before it is known what for. What nearly every verb asks first is asked while its code is imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .git import Git
from .refs import OPEN
from .repository import begin_config, begin_discovery, pointers
from .tips import Tips


class Ahead:
    """Questions to git that are under way, as `discover`, the settings and the list ask them. Each is taken once."""

    def __init__(
        self, start: Path, env: Mapping[str, str], *, tips: bool = False, reader: bool = False
    ) -> None:
        git = Git(start, env)
        git.env.update(pointers(env))
        self.start = start
        self.tips = Tips(git, OPEN) if tips else None  # first, because it takes longest
        self.place = begin_discovery(git)
        self.config = begin_config(git)
        self.reader = git.pipe("cat-file", "--batch") if reader else None

    def close(self) -> None:
        for begun in (self.place, self.config, self.tips):
            if begun is not None:
                begun.close()
        if self.reader is not None and self.reader.returncode is None:
            self.reader.communicate()
