"""Build: writes the commit into the package, so that `git gate init --github` can pin its workflows to what was installed.

Only from a checkout without changes. A wheel that is made of a source distribution takes the file that is there already.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "gitgate/texts/commit"


class Commit(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version == "editable" or not (root / ".git").exists():
            return
        if self.git("status", "--porcelain"):
            return
        self.folder = tempfile.TemporaryDirectory()
        written = Path(self.folder.name, "commit")
        written.write_text(self.git("rev-parse", "HEAD") + "\n", encoding="ascii")
        build_data["force_include"][str(written)] = PLACE

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", "-C", self.root, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()
