"""What an extra brings works in an environment that has it, and what the others bring is asked for by the command that installs it.

extras.py ENVIRONMENT EXTRA     an environment with git gate and that extra alone
"""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FORM = '{"type": "object", "properties": {"port": {"type": "integer"}}}'
KEY = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
WITHIN = 60.0
# What a client of the Model Context Protocol says first.
HELLO = """{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
 {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}"""
# For each extra: settings, the command (after `git gate`), and the words by which it is seen to work. GATE is one that waits.
PROBES: dict[str, tuple[dict[str, str], tuple[str, ...], str]] = {
    "forms": ({}, ("ask", "Port?", "--type", "form", "--schema", "form.json", "--json"), '"schema"'),
    "age": ({"gitgate.sessionRecipients": KEY}, ("doctor",), "git gate --help opens its page"),
    "forge": ({"remote.origin.url": "https://github.com/a/b"}, ("github", "show", "GATE"), "Which?"),
    "notify": ({"gitgate.notify": "json://127.0.0.1:9/x"}, ("notify", "test"), "did not take it"),
    "desk": ({}, ("desk",), "Which?"),
    "mcp": ({}, ("mcp",), '"serverInfo"'),
    "web": ({}, ("serve", "--desk", "--port", "0"), "http://127.0.0.1:"),
    "celery": ({}, ("worker", "--queue"), "no broker is set"),
}


def heard(
    argv: list[str], cwd: Path, env: dict[str, str], wanted: str, *, terminal: bool, told: bytes = b""
) -> str:
    """What a command says until it ends, or until `wanted` stands there; one that stays is ended then."""
    ours, its = pty.openpty() if terminal else os.pipe()
    reads, writes = os.pipe()
    os.write(writes, told)
    source = its if terminal else reads
    running = subprocess.Popen(argv, cwd=cwd, env=env, stdin=source, stdout=its, stderr=its)
    os.close(its)
    os.close(reads)
    said, end = b"", time.monotonic() + WITHIN
    try:
        while time.monotonic() < end and not (wanted and wanted.encode() in said):
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                new = os.read(ours, 65536)
            except OSError:  # a terminal whose program has ended
                break
            if not new:
                break
            said += new
    finally:
        running.terminate()
        running.wait()
        os.close(ours)
        os.close(writes)
    return said.decode("utf-8", "replace")


def main(environment: Path, has: str) -> int:
    with tempfile.TemporaryDirectory() as room:
        top = Path(room, "repository")
        top.mkdir()
        env = {
            "HOME": room,
            "PATH": f"{environment / 'bin'}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "xterm",
        }

        def git(*words: str) -> str:
            done = subprocess.run(
                ["git", *words], cwd=top, env=env, check=True, capture_output=True, text=True
            )
            return done.stdout.strip()

        git("init", "-q", "-b", "main")
        git("config", "user.name", "Ada")
        git("config", "user.email", "ada@example.org")
        git("commit", "-q", "--allow-empty", "-m", "one")
        (top / "form.json").write_text(FORM, encoding="utf-8")
        gate = git("gate", "ask", "Which?", "-q")
        wrong = []
        for extra, (settings, words, works) in PROBES.items():
            for key, value in settings.items():
                git("config", key, value)
            asks = f"pip install 'git-gate[{extra}]'"
            argv = ["git", "gate", *(gate if word == "GATE" else word for word in words)]
            wanted = works if extra == has else asks
            told = HELLO.replace("\n", "").encode() + b"\n" if extra == "mcp" else b""
            said = heard(argv, top, env, wanted, terminal=extra == "desk", told=told)
            brought = works in said  # by what another extra needs as well
            if (extra == has and asks in said) or (wanted not in said and not brought):
                wrong.append(f"{' '.join(argv)}: expected {wanted!r}, found:\n{said}")
            for key in settings:
                git("config", "--unset", key)
    sys.stdout.write("".join(f"with {has} alone: {words}\n" for words in wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
