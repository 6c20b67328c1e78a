"""Runners: a job on GitHub. It is asked to start by the person's own token; only ids and commits are sent.

The asking itself is the pull-request surface's, above us, so it is reached as a command; and so is GitHub's own command, for
the token that it keeps.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping

from ..errors import Failure
from ..store.git.programs import our_command
from .runner import Order

DISPATCH_TIMEOUT = 90.0
ANSWER_TIMEOUT = 10.0


class GitHubRunner:
    name = "github"
    hands_out = False  # what such a server's answers start, the server's own workflow starts

    def start(self, order: Order) -> str:
        try:
            done = subprocess.run(
                our_command("github", "dispatch", *order.gates, at=order.directory),
                env=dict(order.env),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=DISPATCH_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired as slow:
            raise Failure("GitHub was not reached in time", hint="git gate github dispatch ID") from slow
        said = done.stderr.decode("utf-8", "replace").strip()
        if done.returncode != 0:
            first, _, hint = said.removeprefix("git gate: ").partition("\n")
            raise Failure(
                first or "GitHub did not start it", hint=hint.strip() or "git gate github dispatch ID"
            )
        return done.stdout.decode("utf-8", "replace").strip()


def gh_token(host: str, env: Mapping[str, str]) -> str:
    """Return the token that `gh auth login` keeps for this host; empty where there is no `gh`, or it has none."""
    return told_by("gh", "auth", "token", "--hostname", host, env=env).strip()


def ssh_host(name: str, env: Mapping[str, str]) -> str:
    """Return the host that ssh's own configuration means by a name; the name itself where it says nothing else."""
    lines = told_by("ssh", "-G", "--", name, env=env).splitlines()  # it connects to nobody
    return next((line.removeprefix("hostname ") for line in lines if line.startswith("hostname ")), name)


def told_by(name: str, *words: str, env: Mapping[str, str]) -> str:
    """Return what a program of the person's prints; empty where there is none, or it fails or takes too long."""
    program = shutil.which(name, path=env.get("PATH"))
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *words],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
