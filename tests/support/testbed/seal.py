"""Test bed: the environment that a test sees, built from nothing, and the network that it does not have."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

# What a process needs to run at all; everything else of the machine stays outside.
KEPT = ("SYSTEMROOT", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
KEPT_PREFIXES = ("PYTEST_", "COVERAGE_", "COV_CORE_")

GLOBAL_CONFIG = """[init]
\tdefaultBranch = main
[user]
\tuseConfigOnly = true
[advice]
\tdetachedHead = false
[gc]
\tauto = 0
[receive]
	autogc = false
[maintenance]
\tauto = false
[protocol "file"]
\tallow = always
"""
LOCAL = ("localhost", "127.0.0.1", "::1", "")
NO_ROUTE = "http://127.0.0.1:9"


# Whoever runs the tests may be an agent's child; a test is not, unless it says so. See `outside/sitecustomize.py`.
OUTSIDE = Path(__file__).parent / "outside"


# Where programs are: this Python's own come first.
PROGRAMS_PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def environment(home: Path) -> dict[str, str]:
    """Every variable of a sealed test whose home is `home`."""
    kept = {name: os.environ[name] for name in os.environ if name in KEPT or name.startswith(KEPT_PREFIXES)}
    return {
        **kept,
        "PATH": PROGRAMS_PATH,
        "HOME": str(home),
        "USER": "tester",
        "LOGNAME": "tester",
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_RUNTIME_DIR": str(home / ".run"),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "PYTHONHASHSEED": "0",
        "PYTHONWARNINGS": "default",
        "PYTHONPATH": str(OUTSIDE),
        **git_environment(home),
        **no_network(),
    }


def git_environment(home: Path) -> dict[str, str]:
    """Git with a configuration of its own, an editor that refuses, and a clock that stands still."""
    return {
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(home.parent),
        "GIT_EDITOR": "false",
        "GIT_SEQUENCE_EDITOR": "false",
        "VISUAL": "false",
        "EDITOR": "false",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
        "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
    }


def no_network() -> dict[str, str]:
    """Processes reach loopback only: a proxy that nobody serves, an ssh that connects to nothing."""
    variables = {
        **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), NO_ROUTE),
        "no_proxy": ",".join(LOCAL[:3]),
    }
    ssh = "ssh -F /dev/null -o BatchMode=yes -o ProxyCommand=false"
    return {**variables, **{name.upper(): value for name, value in variables.items()}, "GIT_SSH_COMMAND": ssh}


def write_global_config(home: Path, more: str = "") -> None:
    (home / ".gitconfig").write_text(GLOBAL_CONFIG + more, encoding="utf-8")


class LoopbackSocket(socket.socket):
    """A socket that refuses to leave the machine, so that a test that tries is seen at once."""

    def connect(self, address: Any) -> None:
        refuse_far(address)
        super().connect(address)

    def connect_ex(self, address: Any) -> int:
        refuse_far(address)
        return super().connect_ex(address)


def refuse_far(address: object) -> None:
    """Raise unless `address` is a local file or on loopback."""
    if isinstance(address, tuple) and str(address[0]) not in LOCAL and not str(address[0]).startswith("127."):
        raise PermissionError(f"tests reach only loopback, not {address[0]}")
