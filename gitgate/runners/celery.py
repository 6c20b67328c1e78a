"""Runners: a queue of Celery's, in Redis or RabbitMQ. A message is a doorbell: it carries an address, a gate's id and a commit,
and whether somebody began with it who gives no sign of life.

The claim in Git decides who acts. So a message that is lost is found by a sweep, one that comes twice finds the claim taken, and an
old one finds the gate closed. That is why it is acknowledged before the agent starts: brokers give what takes long to somebody else.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from ..config import Settings
from ..errors import Failure, Usage
from .runner import AnsweredGate, Order

TASK, SWEEP, QUEUE = "gitgate.resume", "gitgate.sweep", "gitgate"
PRIORITIES = {"urgent": 9, "high": 6, "normal": 3, "low": 0}
HIGHEST = 9
# What a sweep sends counts for nothing after so long, by the reader's clock: clocks of two machines may differ by hours.
EXPIRES = 86400.0
BROKERS = ("redis", "rediss", "amqp", "amqps")
KINDS = ("agent", "priority", "repository")
EXTRA = "pip install 'git-gate[celery]'"


class QueueRunner:
    """Runner that sends each gate to a worker's queue. `expires`: after so many seconds a message no longer counts."""

    name = "celery"
    hands_out = True

    def __init__(self, expires: float | None = None) -> None:
        self.expires = expires

    def start(self, order: Order) -> str:
        """Send each gate to its queue, and return which queue that was."""
        from kombu.exceptions import OperationalError

        app, queue = make_app(order.settings), QUEUE
        for one in order.answered:
            queue = queue_for(order, one)
            try:
                app.send_task(
                    TASK,
                    (order.address, one.id, one.commit, one.stalled),
                    queue=queue,
                    priority=priority_at(order.settings, one.priority),
                    expires=self.expires,
                    ignore_result=True,
                )
            except (OperationalError, OSError) as silent:
                where = app.connection().as_uri()  # it hides the password
                raise Failure(
                    f"the broker {where} does not answer: {silent}", hint="git config gitgate.queue.broker"
                ) from silent
        return f"queue {queue}"


def make_app(settings: Settings) -> Any:
    """Return Celery, set up for this machine's broker."""
    try:
        from celery import Celery
    except ImportError as missing:
        raise Failure("Celery is not installed", hint=EXTRA) from missing
    app = Celery("gitgate", set_as_current=False)
    app.conf.update(
        broker_url=broker_of(settings),
        task_default_queue=QUEUE,
        task_queue_max_priority=HIGHEST,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        # The message is a doorbell: attempts are counted in Git.
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        # An idle worker takes the gate behind a long one. Celery offers it for Redis alone.
        worker_disable_prefetch=is_redis(settings),
        broker_connection_retry_on_startup=True,
        broker_connection_timeout=4,
        task_publish_retry_policy={"max_retries": 2, "interval_start": 0.2},
        broker_transport_options={
            "priority_steps": list(range(HIGHEST + 1)),
            "queue_order_strategy": "priority",
            "socket_connect_timeout": 4,
        }
        if is_redis(settings)
        else {},
    )
    return app


def broker_answers(app: Any) -> str:
    """Return why the broker cannot be reached; empty where it can."""
    from kombu.exceptions import OperationalError

    try:
        with app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=5)
    except (OperationalError, OSError) as silent:
        return f"it does not answer: {silent}"
    return ""


def need_broker(settings: Settings) -> None:
    """Refuse to go on unless the broker answers."""
    app = make_app(settings)
    silent = broker_answers(app)
    if silent:
        raise Failure(
            f"the broker is {app.connection().as_uri()}, and {silent}", hint="git config gitgate.queue.broker"
        )


def broker_of(settings: Settings) -> str:
    broker = settings.text("queue.broker")
    if not broker:
        raise Usage(
            "no broker is set that hands out answers",
            hint="git config gitgate.queue.broker redis://HOST:6379/0",
        )
    kind, is_address, _ = broker.partition("://")
    if not is_address or kind not in BROKERS:
        raise Usage(
            f"gitgate.queue.broker is of no known kind: {kind if is_address else 'no address'}; expected one of {', '.join(BROKERS)}",
            hint="git config gitgate.queue.broker redis://HOST:6379/0",
        )
    return broker


def is_redis(settings: Settings) -> bool:
    return broker_of(settings).startswith("redis")


def priority_at(settings: Settings, name: str) -> int:
    """Return a priority as the broker counts: for Redis 0 is the most urgent, for RabbitMQ the least."""
    number = PRIORITIES.get(name, PRIORITIES["normal"])
    return HIGHEST - number if is_redis(settings) else number


def queue_for(order: Order, one: AnsweredGate) -> str:
    """Return the queue by the first rule of `gitgate.queue.route` that fits. Workers with what the agent needs read it."""
    what = {"agent": one.agent, "priority": one.priority, "repository": order.address}
    for kind, pattern, queue in read_routes(order.settings):
        if fnmatchcase(what[kind], pattern):
            return queue
    return QUEUE


def read_routes(settings: Settings) -> list[tuple[str, str, str]]:
    """Return the rules as (kind, pattern, queue), in their order. An address may have both separators in it."""
    found = []
    for word in settings.text("queue.route").split():
        left, equals, queue = word.rpartition("=")
        kind, colon, pattern = left.partition(":")
        if kind not in KINDS or not (equals and colon and pattern and queue):
            raise Usage(
                f"gitgate.queue.route: {word!r} is no rule; expected agent:NAME=QUEUE, priority:NAME=QUEUE or repository:ADDRESS=QUEUE",
                hint="git config gitgate.queue.route 'agent:codex=codex'",
            )
        found.append((kind, pattern, queue))
    return found


def read_addresses(settings: Settings) -> list[str]:
    """Return the patterns of `gitgate.queue.repositories`.

    Whoever can write to the broker names a repository, so only addresses that fit a pattern are taken.
    """
    return settings.text("queue.repositories").split()


def is_served(settings: Settings, address: str) -> bool:
    return any(fnmatchcase(address, pattern) for pattern in read_addresses(settings))
