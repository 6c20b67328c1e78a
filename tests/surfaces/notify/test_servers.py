"""On a plain server, reached over a real sshd or http: a push opens a gate, and somebody else hears of it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.acts.asking import AskWishes, ask
from gitgate.model.gate import Question
from gitgate.questions.drafts import Draft
from support.resuming import Seat, until
from support.servers import HttpServer, ssh_server
from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import SECRET, Listener, send

pytestmark = [pytest.mark.slow, pytest.mark.server, pytest.mark.timeout(900)]

ROUNDS = int(os.environ.get("GITGATE_TEST_ROUNDS", "60"))
SEED = int(os.environ.get("GITGATE_TEST_SEED", "1"))
GATES = 200


@pytest.fixture
def server(bare: Clone, cli: Command, listener: Listener) -> Clone:
    """With our hook, and an address that is told."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    bare.git("config", "gitgate.notify", f"webhook {listener.url}")
    bare.git("config", "gitgate.notify.secret", SECRET)
    return bare


def heard(listener: Listener) -> float:
    """When the first notification had come."""
    until(lambda: bool(listener.got))
    return time.monotonic()


def test_over_ssh_it_is_heard_within_seconds(
    server: Clone,
    clone_of: Callable[..., Clone],
    listener: Listener,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Command,
) -> None:
    """From `git gate ask` on one machine to the notification of the server's hook; told once, by the server alone."""
    ann = clone_of(server, "ann")
    with ssh_server(tmp_path / "ssh") as sshd:
        monkeypatch.setenv("GIT_SSH_COMMAND", sshd.command)
        ann.git("remote", "set-url", "origin", sshd.url(server.path))
        for _ in range(3):
            listener.got.clear()
            began = time.monotonic()
            gate = cli("ask", "Which?", "-o", "A", "-o", "B", "-q", cwd=ann.path, code=0).line
            asked = time.monotonic()
            sys.stdout.write(
                f"\nheard {heard(listener) - began:.2f} s after it was typed over ssh, {asked - began:.2f} s of them the ask\n"
            )
            assert [one["gate"]["id"] for one in listener.said] == [gate]
        cli("sync", cwd=ann.path, code=0)
        cli("notify", "send", cwd=server.path, code=0)
    assert len(listener.got) == 1


def test_over_http_it_is_heard_too(
    server: Clone, clone_of: Callable[..., Clone], listener: Listener, web: HttpServer, cli: Command
) -> None:
    """Where the hook is a child of the web server's."""
    server.git("config", "http.receivepack", "true")
    ann = clone_of(server, "ann")
    ann.git("remote", "set-url", "origin", web.url(server.path))
    gate = cli("ask", "Which?", "-q", cwd=ann.path, code=0).line
    heard(listener)
    assert [one["gate"]["id"] for one in listener.said] == [gate]


def test_an_address_that_is_down_delays_nobody(
    server: Clone, clone_of: Callable[..., Clone], tmp_path: Path, cli: Command
) -> None:
    """Its program hangs; asking and answering are over meanwhile, and the push with them."""
    hangs = tmp_path / "hangs"
    hangs.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 90\n")
    hangs.chmod(0o755)
    server.git("config", "--replace-all", "gitgate.notify", f"command {hangs}")
    ann = clone_of(server, "ann")
    gate = cli("ask", "Which?", "-q", cwd=ann.path, code=0).line
    until((tmp_path / "pid").exists)
    said = cli("respond", gate, "Postgres", cwd=ann.path, code=0).err
    assert "pushed to origin" in said
    os.kill(int((tmp_path / "pid").read_text()), 0)  # it hangs still


def test_the_branchs_address_is_told_once_whoever_knows_it(
    server: Clone, clone_of: Callable[..., Clone], listener: Listener, home: Path, cli: Command
) -> None:
    """Three clones and the server have it from the protected branch; and each clone's worker looks as well."""
    server.git("config", "--unset-all", "gitgate.notify")
    ann, bob, eve = (clone_of(server, name) for name in ("ann", "bob", "eve"))
    # Apprise's own kind of JSON goes to http on loopback, which no webhook of the branch may.
    text = f'notify:\n  - address: "json://127.0.0.1:{listener.port}/x"\n'
    ann.commit("rules", **{".gitgate.yml": text})
    ann.git("push", "-q", "origin", "main")
    for clone in (bob, eve):
        clone.git("fetch", "-q", "origin")
    gate = cli("ask", "Which?", "-q", cwd=ann.path, code=0).line
    heard(listener)
    for clone in (ann, bob, eve):
        cli("sync", "-q", cwd=clone.path, code=0)
        cli("worker", "--once", "-q", cwd=clone.path, code=0)
        cli("notify", "send", cwd=clone.path, code=0)
    assert len(listener.got) == 1
    assert gate[:6] in json.dumps(listener.said)


@pytest.mark.thorough
def test_killed_at_random_none_is_lost(
    alone: Seat, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 gates, and a sender that is killed in each of 60 rounds, at any moment: every gate is told, and once more at the most
    for each kill, under the same id.
    """
    alone.clock = time.time
    desk = alone.desk
    draft = Draft((Question("answer", "Which?", "text"),), agent="scripted")
    gates = {ask(desk, draft, AskWishes(push=False, work=False)).gate.id for _ in range(GATES)}
    alone.clone.git("config", "gitgate.notify", f"webhook {listener.url}")
    alone.clone.git("config", "gitgate.notify.secret", SECRET)
    listener.delay = 0.05
    chosen = random.Random(SEED)  # noqa: S311 - draws when to kill
    kills = 0
    for _ in range(ROUNDS):
        sender = subprocess.Popen(
            [sys.executable, "-P", "-m", "gitgate", "-C", str(alone.clone.path), "hook", "notify"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        # Some are killed before they have sent anything.
        before = len(listener.got) - (chosen.random() < 0.2)
        end = time.monotonic() + 20
        while len(listener.got) == before and sender.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(chosen.uniform(0, 0.1))
        if sender.poll() is None:
            kills += 1
            os.killpg(sender.pid, signal.SIGKILL)
            sender.wait()
    listener.delay = 0.0
    time.sleep(0.3)  # what was on its way when the last one was killed
    assert send(alone).next_at is None
    told = Counter((one["gate"]["id"], name) for one, name in zip(listener.said, listener.ids, strict=True))
    assert {gate for gate, _ in told} == gates
    assert len(told) == GATES  # a repeat has the same id
    assert kills > ROUNDS // 2
    sys.stdout.write(f"\n{kills} kills, {sum(told.values()) - GATES} messages came again\n")
    assert sum(told.values()) - GATES <= kills
    assert send(alone).sent == 0
