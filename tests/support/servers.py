"""Test bed: real git servers on loopback. A bare repository by path, by `file://`, by ssh and by http.

Each is started for as long as a `with` lasts, with keys and configuration of its own in a folder of its own.
"""

from __future__ import annotations

import base64
import os
import pwd
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from support import PATIENCE
from support.testbed.command import COMMAND

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def free_port() -> int:
    """One that nobody listens on, below those that the system itself hands out: no connection takes it meanwhile."""
    for _ in range(1000):
        port = 10_000 + secrets.randbelow(20_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@dataclass(frozen=True)
class SshServer:
    """A real sshd of our own; `command` is the `GIT_SSH_COMMAND` of somebody who may log in."""

    port: int
    command: str
    stranger: str
    """The same for somebody without a key."""

    def url(self, path: Path) -> str:
        return f"ssh://{pwd.getpwuid(os.geteuid()).pw_name}@127.0.0.1:{self.port}{path}"


@contextmanager
def ssh_server(
    folder: Path, *, reach: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> Iterator[SshServer]:
    """Run sshd with keys made for the occasion. `reach`: what leads into the network that it is to stand in; `env`: what
    whoever logs in finds in the environment, also in place of what their account would give them.
    """
    if SSHD is None:
        raise AssertionError("sshd is missing: apt-get install openssh-server")
    folder.mkdir(parents=True, exist_ok=True)
    for key in ("host", "user", "other"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(make, check=True, timeout=PATIENCE)
    shutil.copy(folder / "user.pub", folder / "authorized")
    port = free_port()
    (folder / "config").write_text(sshd_config(folder, port, env or {}), encoding="utf-8")
    if os.geteuid() == 0:  # Where sshd gives up its rights; it insists.
        Path("/run/sshd").mkdir(parents=True, exist_ok=True)
    host_key = " ".join((folder / "host.pub").read_text(encoding="utf-8").split()[:2])
    (folder / "known").write_text(f"[127.0.0.1]:{port} {host_key}\n", encoding="utf-8")
    with (folder / "log").open("wb") as log:
        command = [*reach, SSHD, "-D", "-e", "-f", str(folder / "config")]
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for(port, running, folder / "log")
        lead = "".join(f"{shlex.quote(word)} " for word in reach)
        yield SshServer(port, *(lead + ssh_command(folder, key) for key in ("user", "other")))
    finally:
        running.terminate()
        running.wait(PATIENCE)


def sshd_config(folder: Path, port: int, env: Mapping[str, str]) -> str:
    # One line: sshd heeds only the first.
    given = " ".join(f"{name}={value}" for name, value in {"XDG_STATE_HOME": folder / "state", **env}.items())
    return f"""Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile {folder}/pid
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AcceptEnv GIT_PROTOCOL
SetEnv {given}
"""


def ssh_command(folder: Path, key: str) -> str:
    options = {"UserKnownHostsFile": folder / "known", "IdentitiesOnly": "yes", "LogLevel": "ERROR"}
    return f"ssh -F /dev/null -i {folder / key} " + " ".join(f"-o {k}={v}" for k, v in options.items())


def wait_for(port: int, running: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(50 * PATIENCE):
        if running.poll() is not None:
            raise AssertionError(f"the server ended: {log.read_text(encoding='utf-8')}")
        # Asked of its log: it may stand in a network that is not ours.
        if f"Server listening on 127.0.0.1 port {port}" in log.read_text(encoding="utf-8"):
            return
        time.sleep(0.02)
    raise AssertionError(f"nobody listens on {port}")


@dataclass
class HttpServer:
    """`git http-backend` behind a small web server, which counts what it sends."""

    root: Path
    port: int
    secret: str = ""
    """`name:password` that is asked of everybody, if any; of several people, with commas between."""
    read_only: bool = False
    sent: int = 0
    requests: list[str] = field(default_factory=list)

    def url(self, path: Path, *, login: str = "") -> str:
        return f"http://{login}{'@' if login else ''}127.0.0.1:{self.port}/{path.relative_to(self.root)}"


class Backend(BaseHTTPRequestHandler):
    """One request as CGI to `git http-backend`."""

    place: HttpServer

    def do_GET(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        self.answer(self.body())

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def answer(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        self.place.requests.append(f"{self.command} {self.path}")
        if self.login() is None:
            self.say(b"401 Unauthorized", b'WWW-Authenticate: Basic realm="git"\r\n', b"who are you?\n")
        elif self.place.read_only and "git-receive-pack" in self.path:
            self.say(b"403 Forbidden", b"", b"read only\n")
        else:
            self.run(path, query, body)

    def login(self) -> str | None:
        """Who asks; None for who has to say so first."""
        if not self.place.secret:
            return "somebody"
        for secret in self.place.secret.split(","):
            if self.headers.get("Authorization") == f"Basic {base64.b64encode(secret.encode()).decode()}":
                return secret.partition(":")[0]
        return None

    def run(self, path: str, query: str, body: bytes) -> None:
        env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": os.environ.get("HOME", "/"),
            "GIT_CONFIG_GLOBAL": os.environ.get("GIT_CONFIG_GLOBAL", "/dev/null"),
            "GIT_PROJECT_ROOT": str(self.place.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": self.login() or "",
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=env, capture_output=True, timeout=60, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        status = next((line[8:] for line in lines if line.startswith(b"Status: ")), b"200 OK")
        kept = b"".join(line + b"\r\n" for line in lines if line and not line.startswith(b"Status: "))
        self.say(status, kept, content)

    def say(self, status: bytes, head: bytes, content: bytes) -> None:
        length = b"Content-Length: %d\r\n" % len(content)
        whole = b"HTTP/1.0 " + status + b"\r\n" + head + length + b"\r\n" + content
        self.place.sent += len(whole)
        self.wfile.write(whole)

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


@contextmanager
def http_server(root: Path, *, secret: str = "") -> Iterator[HttpServer]:
    """Serve every repository below `root`; with `secret`, only to who knows it."""
    handler = type("Handler", (Backend,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        listening.daemon_threads = True
        handler.place = place = HttpServer(root, listening.server_port, secret)  # type: ignore[attr-defined]
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield place
        finally:
            listening.shutdown()
            thread.join(PATIENCE)


@contextmanager
def git_daemon(root: Path, port: int, reach: Sequence[str] = ()) -> Iterator[None]:
    """`git daemon` for every repository below `root`, pushes included. `reach`: what leads into the network that it stands in."""
    flags = [f"--port={port}", f"--base-path={root}", "--export-all", "--enable=receive-pack", "--reuseaddr"]
    with (root / "daemon.log").open("wb") as log:
        command = [*reach, "git", "daemon", "--verbose", *flags]
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        for _ in range(50 * PATIENCE):
            if b"Ready to rumble" in (root / "daemon.log").read_bytes():
                break
            time.sleep(0.02)
        else:
            raise AssertionError((root / "daemon.log").read_text("utf-8"))
        yield
    finally:
        running.terminate()
        running.wait(PATIENCE)


@contextmanager
def silent_server() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield int(listening.getsockname()[1])


WEBHOOK_SECRET = "0123456789abcdef0123456789abcdef"


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[tuple[str, int]]:
    """`git gate serve` itself, as long as the `with` lasts; it ends cleanly."""
    running = subprocess.Popen(
        [str(COMMAND), "serve", "--port", "0", *flags],
        cwd=folder,
        env={**os.environ, "GITGATE_WEBHOOK_SECRET": WEBHOOK_SECRET},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stdout is not None
        place = urlsplit(running.stdout.readline().strip())
        assert place.hostname is not None
        assert place.port is not None
        yield place.hostname, place.port
    finally:
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err
