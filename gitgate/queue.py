"""A worker of Celery's: `celery -A gitgate.queue worker` acts on the answers of many repositories, `celery -A gitgate.queue beat` has
it look every minute for what no message told of.

What a worker may do is its machine's settings alone: a message names an address, a gate and a commit, and is believed in nothing.
"""

from __future__ import annotations

import os
import re
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from celery import signals
from celery.utils.log import get_task_logger
from kombu.exceptions import OperationalError

from . import config
from .agents import without_caller
from .claims import Claimant, HeldByAnother
from .context import Desk, machine_settings, open_desk
from .context.targets import summaries
from .errors import Conflict, GateError, tells_of_full_disk
from .gates.leases import RENEW_AT, boottime, look_at_leases
from .model import RESUMING, is_id
from .resumption import cache
from .resumption.cache import CacheTerms
from .resumption.calls import hand_out
from .resumption.pool import Pool, WatchedRepository
from .resumption.run import Resumed, log_of
from .runners.celery import EXPIRES, QUEUE, SWEEP, TASK, QueueRunner, is_served, make_app, read_addresses
from .store import private_folder

SWEEP_EVERY = 60.0

environment = without_caller(config.environment())
settings = machine_settings(environment)
app: Any = make_app(settings)
app.conf.update(
    worker_concurrency=settings.number("maxAgents"),
    beat_schedule={
        "look": {"task": SWEEP, "schedule": SWEEP_EVERY, "options": {"queue": QUEUE, "expires": EXPIRES}}
    },
)
log = get_task_logger("gitgate")
stopping = threading.Event()


def terms() -> CacheTerms:
    return CacheTerms(
        cache.cache_home(environment), settings.seconds("queue.keep") or 0, settings.number("queue.disk")
    )


# When the main process is told to end, or is killed, its children hear of it by this pipe: they hand back what they hold.
ends: list[int] = []


def open_pipe(**_: Any) -> None:
    ends[:] = os.pipe()


def close_pipe(**_: Any) -> None:
    if len(ends) > 1:
        with suppress(OSError):  # A scheduler that is started beside the worker has it closed already.
            os.close(ends.pop())


def watch_pipe(**_: Any) -> None:
    close_pipe()

    def wait_for_end() -> None:
        os.read(ends[0], 1)
        stopping.set()

    threading.Thread(target=wait_for_end, daemon=True).start()


signals.worker_init.connect(open_pipe)
signals.worker_shutting_down.connect(close_pipe)
signals.beat_embedded_init.connect(close_pipe)
signals.worker_process_init.connect(watch_pipe)


def act_on_message(task: Any, address: str, gate: str, commit: str, stalled: bool) -> str:
    """Act on one answer, if nobody else does. Return the result in a word for the log."""
    if not is_served(settings, address):
        log.warning("refused: gitgate.queue.repositories of this machine does not name %s", address)
        return "refused"
    if not is_id(gate) or not re.fullmatch(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", commit):
        log.warning("refused: no gate's id and commit")
        return "refused"
    try:
        cache.require_room(terms())
        return act_in_cache(task, address, gate, commit, watch=stalled is True)
    except Conflict as taken:
        log.info("%s", taken.message)
        return "taken"
    except (GateError, OSError) as failed:
        if not tells_of_full_disk(failed):
            log.warning("%s: %s; %s", gate, failed, getattr(failed, "hint", ""))
            return "not possible here"
        log.warning("%s is left to another worker: %s; %s", gate, failed, cache.make_room(terms()))
        again(task, address, gate, commit, True)
    finally:
        tidy_own_cache()
    # Who comes back at once takes the same message again, before a worker that has room does.
    stopping.wait((settings.seconds("leaseTerm") or 120) * RENEW_AT)
    return "no room here"


def act_in_cache(task: Any, address: str, gate: str, commit: str, *, watch: bool) -> str:
    """Act on a gate in this machine's repository for that address, and then erase the gate from it."""
    place = cache.open_cache(terms(), address, environment)
    desk = open_desk(place, environment)
    try:
        if not cache.bring_gate(desk, gate):
            log.info("%s is over", gate)
            return "over"
        done = act(place, desk, gate, watch=watch)
        if done.handed_back:
            again(task, address, gate, commit, False)
        elif not done.asked_again:
            cache.clear_gate(desk, gate)
        return done.result
    finally:
        desk.close()


def tidy_own_cache() -> None:
    """Tidy this machine's cache after an answer. A sweep runs on one machine, and each has a cache of its own."""
    with suppress(GateError, OSError):
        cache.tidy_cache(terms(), environment, time.time(), log.info)


def act(place: Path, desk: Desk, gate: str, *, watch: bool) -> Resumed:
    """Act on a gate to its end, with the attempts that the settings allow.

    Where it cannot be begun here, that is noted, and another worker may. With `watch`, stay while somebody's lease does
    not move: its holder may be gone, and then the claim is taken over at the end of its term.
    """
    pool, left = pool_of(place, desk), float("inf")
    while True:
        try:
            return pool.act(gate)
        except HeldByAnother as held:
            # Looked at as often as it is renewed: else it would not count as watching where a network lies between.
            pause = min(held.left + 0.1, pool.who.term * RENEW_AT * 0.9)
            if not watch or held.left >= left or stopping.wait(pause):
                raise
            left = held.left
        except GateError as failed:
            pool.leave(gate, failed)
            raise


def pool_of(place: Path, desk: Desk) -> Pool:
    def opener() -> Desk:
        return open_desk(place, environment)

    who = Claimant("celery", term=desk.settings.seconds("leaseTerm") or 120, monotonic=boottime)
    return Pool(opener, who, log.info, stopping, log=lambda gate: log_of(desk, gate))


def again(task: Any, *words: object) -> None:
    """Send the message once more, for whichever worker is free then. If the broker is silent, the sweep finds the gate."""
    try:
        where = task.request.delivery_info or {}
        task.apply_async(
            words,
            queue=where.get("routing_key") or QUEUE,
            priority=where.get("priority"),
            retry=False,
        )
    except (OperationalError, OSError) as silent:
        log.warning("the broker does not answer; the next sweep finds it: %s", silent)


def sweep() -> int:
    """Look into every repository for answers that nobody acts on and deadlines that passed, then take away what is old."""
    refused = 0
    try:
        cache.require_room(terms())
        addresses = served() if is_time_to_look() else []
    except (GateError, OSError) as full:
        log.warning("no look at the repositories: %s; %s", full, getattr(full, "hint", ""))
        return 1
    for address in addresses:
        try:
            place = cache.open_cache(terms(), address, environment)
            desk = open_desk(place, environment)
            try:
                cache.bring_policy(desk)
                WatchedRepository(desk, pool_of(place, desk), log.info).look()
                running = [one for one in summaries(desk) if one.state == RESUMING]
                look_at_leases(desk, running, within=desk.network_timeout, every=True)
                refused += hand_out(desk, QueueRunner(EXPIRES), log.info)
            finally:
                desk.close()
        except (GateError, OSError) as silent:
            refused += 1
            log.warning("%s: %s", address, silent)
    tidy_own_cache()
    return refused


def is_time_to_look() -> bool:
    """Not again at once on one machine: sweeps that nobody had time for come one after the other when somebody has."""
    mark, pause = (
        private_folder(terms().root) / "swept",
        (settings.seconds("leaseTerm") or 120) * RENEW_AT / 2,
    )
    with suppress(FileNotFoundError):
        if 0 <= time.time() - mark.stat().st_mtime < pause:
            return False
    mark.touch()
    return True


def served() -> list[str]:
    """The addresses that are named in full, and those of the repositories that are here already."""
    named = [address for address in read_addresses(settings) if not set(address) & set("*?[")]
    here = [address for place in cache.caches(terms()) if (address := cache.address_in(place))]
    return [address for address in dict.fromkeys((*named, *here)) if is_served(settings, address)]


resume = app.task(name=TASK, bind=True)(act_on_message)
look = app.task(name=SWEEP)(sweep)
