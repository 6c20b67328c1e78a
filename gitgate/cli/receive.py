"""Command line: the hooks of a repository that others push to, started by git itself, without the rest of the command line.

Whoever pushes waits for `pre-receive`: it loads what it needs to judge the push, and nothing to talk with people. All of it
late, once Python was told not to look for garbage: what is loaded is needed to the end.
Run as `python -P -m gitgate.cli.receive NAME [LINE]`; the other lines are on standard input.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from . import BY_KIND, DONE, FAILURE

if TYPE_CHECKING:
    from ..context import Desk
    from ..model.gate import Gate
    from ..sharing.pushers import Doorkeeper
    from ..store.git.refs import Update

MOST_REASONS = 20
POLICY_SETTINGS = ("policyfile", "protectedbranch", "requiresigned", "requestermayanswer")


def pre_receive(env: Mapping[str, str], data: bytes) -> int:
    """Refuse a push that would change or lose a gate, and say which ref and why."""
    from pathlib import Path

    from ..store.git import Git

    # Git starts a receiving hook in the repository, whatever kind of repository that is.
    place = Path(os.path.normpath(Path.cwd() / env.get("GIT_DIR", ".")))
    git = Git(place, env)
    git.env["GIT_DIR"] = str(place)
    config = git.begin("config", "--list", "-z")
    reader = git.pipe("cat-file", "--batch")  # They start while we load what reads them.
    from functools import partial

    from ..config import load_settings
    from ..context import read_git_config
    from ..exchange.entering import decode, parse_updates, receiving_desk
    from ..sharing import refusals

    text = decode(data)
    desk = receiving_desk(git, "0" * len(text.partition(" ")[0]), reader)
    desk.settings = load_settings(env, read_git_config(config), None)
    from ..text import one_line

    keeper = doorkeeper(desk, env) if has_policy(desk) else None
    beyond = keeper.against if keeper is not None else partial(against_unruled, desk, env)
    answered: list[Gate] = []
    updates = parse_updates(text)
    # What is only archived, words that came late among it, resumes nobody.
    tips = {update.new for update in updates}

    def judge(gate: Gate, old: str | None) -> str:
        resumes = gate.actionable and gate.opened.delivery == "resume" and gate.tip in tips
        answered.extend([gate] if resumes else [])
        return beyond(gate, old)

    refused = refusals(desk, updates, judge, keeper.against_runner if keeper is not None else None)
    if not refused and any(os.access(f"{place}/{update.ref}.lock", os.F_OK) for update in updates):
        free(desk)
    if answered and not refused:
        foretell(desk, answered, updates)
    desk.close()
    for ref, reason in list(refused.items())[:MOST_REASONS]:
        print(f"gate: {ref}: {one_line(reason)}", file=sys.stderr)  # A clone reads each line by itself.
    if len(refused) > MOST_REASONS:
        print(f"gate: and {len(refused) - MOST_REASONS} more", file=sys.stderr)
    return FAILURE if refused else DONE


def against_unruled(desk: Desk, env: Mapping[str, str], gate: Gate, old: str | None) -> str:
    """Return why a gate's new events are refused where there is no policy: then only those may answer whom it is for."""
    from ..exchange.entering import against_events

    why = against_events(desk, gate, old)
    return why or (doorkeeper(desk, env).against_strangers(gate, old) if gate.holds_to else "")


def free(desk: Desk) -> None:
    """Finish or free what a killed git left locked long ago.

    Such a lock stops this push; the next attempt gets through.
    """
    from ..sharing.branches import finish_cut_off

    finish_cut_off(desk, lambda words: print(f"gate: {words}", file=sys.stderr))


def foretell(desk: Desk, answered: Sequence[Gate], updates: Sequence[Update]) -> None:
    """Print whether the answers of this push resume their agents.

    Whoever answers is told now: what acts on the answer later has nobody to talk to.
    """
    from ..gates.agency import foretold

    for line in foretold(desk, answered, updates):
        print(line, file=sys.stderr)


def has_policy(desk: Desk) -> bool:
    """Return whether there may be a policy. Where there is surely none, the code that reads it is not loaded."""
    from ..config import FILE
    from ..document import may_have
    from ..errors import BrokenRecord
    from ..store.git.objects import PlumbingObjects
    from ..store.git.refs import HEAD

    objects = desk.records.objects
    if any(f"gitgate.{name}" in desk.settings.git for name in POLICY_SETTINGS):
        return True
    if not isinstance(objects, PlumbingObjects) or desk.settings.git.get("core.bare") == "false":
        return True
    try:
        tip = desk.refs.get(HEAD)
        if tip is None:
            return desk.refs.may_have("refs/heads/")
        tree = objects.ask(f"{tip}^{{tree}}").payload
        return f" {FILE}\0".encode() in tree and may_have(objects.ask(f"{tip}:{FILE}").payload, "policy")
    except BrokenRecord:
        # It is too large, which has to be said; or HEAD is not there, and it may stand on another branch, if there is one.
        return desk.refs.may_have("refs/heads/")


def doorkeeper(desk: Desk, env: Mapping[str, str]) -> Doorkeeper:
    """Return the judge of who says what, by the policy as this repository's own branch has it."""
    from ..policy import load_book
    from ..sharing.pushers import Doorkeeper, actor_of

    try:
        import pwd

        account = pwd.getpwuid(os.geteuid()).pw_name  # not $USER, which anybody may set
    except (ImportError, KeyError):
        account = ""
    return Doorkeeper(desk, load_book(desk), actor_of(env, account))


def take_calls(desk: Desk) -> None:
    """Delete the refs that were pushed to have us look: we look now, and whoever pushed them may not return to do it."""
    from contextlib import suppress

    from ..errors import GateError
    from ..store.git.refs import WAKE
    from ..store.remote import RefMove

    if desk.refs.may_have(WAKE):
        with suppress(GateError):
            desk.refs.update([RefMove(ref, None, tip) for ref, tip in desk.refs.under(WAKE).items()])


def forget_erased(desk: Desk) -> None:
    """Delete the notes of erased sessions, except for open gates: an archived gate gets no session any more."""
    from contextlib import suppress

    from ..errors import GateError
    from ..store.git.refs import ERASED, OPEN
    from ..store.remote import RefMove

    if not desk.refs.may_have(ERASED):
        return
    with suppress(GateError):
        noted, gates = desk.refs.under(ERASED), desk.refs.under(OPEN)
        gone = {ref: tip for ref, tip in noted.items() if OPEN + ref.removeprefix(ERASED) not in gates}
        desk.refs.update([RefMove(ref, None, tip) for ref, tip in gone.items()])


def post_receive(env: Mapping[str, str], _data: bytes) -> int:
    """Act on what can be acted on now, where somebody allowed that; the push is through already."""
    import signal
    from contextlib import suppress
    from pathlib import Path

    from ..agents import without_caller
    from ..context import open_desk
    from ..gates.recording import tell_people
    from ..sharing.branches import finish_cut_off
    from ..store.git.remembered import RECORDS, remember_here

    with suppress(OSError):
        os.setsid()  # Whoever pushed may be cut off; this goes on.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Until here the shim has held it off.
    # Git starts a hook in the repository itself, whether it has a working tree or not. It is named, because whoever pushes
    # need not be who owns it: git trusted it when it took the push.
    own = Path.cwd()
    desk = open_desk(own.parent if own.name == ".git" else own, {**without_caller(env), "GIT_DIR": str(own)})
    finish_cut_off(desk, lambda words: print(words, file=sys.stderr, flush=True))
    take_calls(desk)
    forget_erased(desk)
    remember_here(desk.repo, desk.refs.under(*RECORDS))
    tell_people(desk)
    if not desk.settings.flag("resumeHere"):
        print("agents are not started here by themselves: git gate init allows it", file=sys.stderr)
        return DONE
    return act_on_calls(desk)


def act_on_calls(desk: Desk) -> int:
    """Act on everything that can be acted on here, then end. Its output is the log."""
    import time

    from ..resumption.calls import answer_calls, hand_out, look_in_turn
    from ..runners import find_runner
    from .process import stop_on_signal  # without click, which nobody types for here

    def say(words: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        print(f"{stamp} {words}", file=sys.stderr, flush=True)

    runner = find_runner(desk.settings.text("runner"))
    if desk.repo.bare and runner.hands_out:
        return FAILURE if hand_out(desk, runner, say, look_in_turn(desk)) else DONE
    with stop_on_signal() as stopping:
        shift = answer_calls(desk, say, stopping)
    return DONE if shift is None or not shift.failed else FAILURE


HOOKS: Mapping[str, Callable[[Mapping[str, str], bytes], int]] = {
    "pre-receive": pre_receive,
    "post-receive": post_receive,
}


def main() -> NoReturn:
    """Run one hook, from git's lines on standard input to an exit code; an error is a refusal with its reason."""
    gc.disable()
    from ..config import environment
    from ..errors import GateError

    try:
        first = [os.fsencode(line) + b"\n" for line in sys.argv[2:]]  # The shim has read it already.
        code = HOOKS[sys.argv[1]](environment(), b"".join(first) + sys.stdin.buffer.read())
    except GateError as failed:
        print(f"gate: {failed.message}", file=sys.stderr)
        code = BY_KIND[failed.kind]
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Freeing each object first would take a tenth of the time.


if __name__ == "__main__":
    main()
