"""Surfaces: Gitea's and Forgejo's API. What differs from GitHub's is here; the rest shows that the seam holds."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from .client import GitHub, pull_request_of
from .forge import PullRequest
from .web import ForgeFailed

PAGE = 50


@dataclass
class Gitea(GitHub):
    """One repository on Gitea. Its comments and reactions have GitHub's shapes, at GitHub's paths below /api/v1."""

    name: str = "gitea"
    robot: str = "gitea-actions"

    def find_pull_requests(self, branch: str) -> list[PullRequest]:
        """It cannot be asked by branch, so all open ones are read."""
        items = self.web.pages(f"{self.base}/pulls", {"state": "open", "limit": PAGE})
        found = [pull_request_of(item, self.repository) for item in items]
        return [item for item in found if item.branch == branch and not item.foreign]

    def may_write(self, login: str) -> bool:
        """`owner` is one more word of Gitea's."""
        path = f"{self.base}/collaborators/{quote(login, safe='')}/permission"
        try:
            said = self.web.get(path).value
        except ForgeFailed as refused:
            if refused.status in (403, 404):
                return False
            raise
        return said.get("permission") in ("owner", "admin", "write")

    def dispatch(self, gate: str, commit: str) -> str:
        body = {"ref": self.default_branch(), "inputs": {"gate": gate, "commit": commit}}
        self.web.send("POST", f"{self.base}/actions/workflows/gitgate.yml/dispatches", body)
        return f"{self.site}/actions"
