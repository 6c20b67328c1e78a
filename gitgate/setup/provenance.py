"""Setup: which commit of which repository this git gate came from: as pip noted it, from its checkout, or from its build.

pip notes an address that it installed from (PEP 610), and nothing of an index. So the build writes its commit into the
package, and the address beside it is `version.REPOSITORY`. Nothing is guessed: a commit that only this machine has is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ..errors import Failure
from ..sharing.addresses import GITHUB, read_address
from ..store.git.process import Git
from ..version import REPOSITORY
from .guidance import TEXTS, text_of

UNNAMED = "OWNER/"
BUILT = "commit"
COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
TWO_NAMES = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
ONE_HOST = re.compile(r"[\w.-]+(:[0-9]+)?", re.ASCII)


@dataclass(frozen=True)
class Source:
    """A repository with our reusable workflows, at a commit, on a server of GitHub's. `noted`: pip said so itself."""

    repository: str
    commit: str
    host: str = GITHUB
    noted: bool = True


def installed_from(env: Mapping[str, str]) -> Source | None:
    """Where this installation came from, as surely as it can be known; None where nothing says so."""
    said = direct_url()
    commit = str((said.get("vcs_info") or {}).get("commit_id", ""))
    if commit:
        return source_at(str(said.get("url", "")), commit)
    if (said.get("dir_info") or {}).get("editable"):
        return checked_out(Path(unquote(urlsplit(str(said.get("url", ""))).path)), env)
    return None if said.get("dir_info") else built_from(TEXTS, REPOSITORY)


def direct_url() -> dict[str, Any]:
    """What pip noted beside the package."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        said = json.loads(distribution("git-gate").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def source_at(address: str, commit: str) -> Source | None:
    place = read_address(address)
    right = TWO_NAMES.fullmatch(place.path) and ONE_HOST.fullmatch(place.host)
    return Source(place.path, commit, place.host) if right and COMMIT.fullmatch(commit) else None


def checked_out(top: Path, env: Mapping[str, str]) -> Source | None:
    """A checkout that is installed as it stands: its commit, where its origin has it."""
    git = Git(top, env)
    if not (top / ".git").exists():
        return None
    address = git.run("remote", "get-url", "origin", check=False).out.decode("utf-8", "replace").strip()
    commit = git.run("rev-parse", "--verify", "HEAD", check=False).out.decode("ascii", "replace").strip()
    found = source_at(address, commit)
    if found is None:
        return None
    if not git.run("branch", "--remotes", "--contains", commit, check=False).out.strip():
        raise Failure(
            f"git gate runs from {top}, whose commit {commit[:10]} is on no branch of its origin: no job could fetch it",
            hint=f"git -C {top} push",
        )
    return found


def built_from(texts: Path, repository: str) -> Source | None:
    """What a wheel says of its build; a copy whose address nobody has set names none."""
    commit = text_of(texts / BUILT).strip()
    if not COMMIT.fullmatch(commit) or repository.startswith(UNNAMED):
        return None
    return Source(repository, commit, noted=False)
