"""Test bed: the README as a script, and a machine on which nothing is but git, Python and what every shell has."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
# What any system with a shell has. Not here: ssh, gpg, man, less, node, tmux, pip, and whatever else the machine may have.
SHELL = (
    "sh bash env cat chmod cp cut date dirname basename echo false grep head ls mkdir mktemp mv rm rmdir sed sleep sort tail test"
    " touch tr true uname wc"
).split()
PERSON = {"user.name": "Ada Lovelace", "user.email": "ada@example.org", "init.defaultBranch": "main"}


def block_after(words: str) -> list[str]:
    """The commands of the first block below these words, each as it stands there, comments included."""
    text = README.read_text(encoding="utf-8")
    assert text.count(words) == 1, f"README.md has {words!r} {text.count(words)} times"
    found = re.search(r"^```sh\n(.*?)^```", text.partition(words)[2], re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1].splitlines()


def fenced(page: str, language: str, number: int = 0) -> str:
    """The first block of that language, or a later one."""
    return str(re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[number])


def dialogue(page: str) -> list[tuple[str, str, list[str]]]:
    """The page's console: who types, what, and the lines that they are told."""
    told = re.findall(r"^(\w*)\$ (.*)\n((?:(?!\w*\$ ).*\n)+)", fenced(page, "console"), re.MULTILINE)
    return [(who, words, lines.splitlines()) for who, words, lines in told]


def bare_machine(folder: Path) -> dict[str, str]:
    """An empty home, and a PATH with git, Python, a shell and git gate alone: the environment, all of it."""
    home, programs = folder / "empty-home", folder / "programs-of-readme"
    home.mkdir()
    programs.mkdir()
    for name in ("git", *SHELL):
        found = shutil.which(name, path="/usr/bin:/bin:/usr/local/bin")
        assert found is not None, name
        (programs / name).symlink_to(found)
    (programs / "python3").symlink_to(sys.executable)
    # What `pipx install` leaves: one link.
    (programs / "git-gate").symlink_to(Path(sys.executable).parent / "git-gate")
    return {"HOME": str(home), "PATH": str(programs), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1"}


def program(env: Mapping[str, str], name: str, text: str) -> Path:
    """Put one more program there."""
    place = Path(env["PATH"].split(":")[0]) / name
    place.write_text(text, encoding="utf-8")
    place.chmod(0o755)
    return place


def tell(way: str, seconds: float) -> None:
    """For the log of CI, which runs these one after the other and shows what they say."""
    sys.stdout.write(f"\nthe README's way with {way}: {seconds:.1f} s\n")
