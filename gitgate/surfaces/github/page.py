"""Surfaces: what waits, as one page for whoever sits at the machine: pure. It holds no script, no form and no picture.

Titles and questions are somebody else's words: they are neutral, escaped, and nothing but text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from ipaddress import ip_address

from ...core.summary import Summary
from ...core.text import one_line

MOST = 500
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
PASSED_ON = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")


def is_local(address: str, headers: Mapping[str, str], port: int) -> bool:
    """Whether it is asked for on this machine, by this machine's own name: neither through a proxy nor by a name of somebody's."""
    if not is_loopback(address) or any(name in headers for name in PASSED_ON):
        return False
    return headers.get("host", "") in {f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")}


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def page(waiting: Sequence[Summary], where: str) -> str:
    """The whole page."""
    rows = "\n".join(row(one) for one in waiting[:MOST])
    more = f"<p>and {len(waiting) - MOST} more: git gate list</p>" if len(waiting) > MOST else ""
    head = "".join(f"<th>{word}" for word in ("gate", "state", "asked at", "by", "branch", "question"))
    table = f"<table>\n<tr>{head}\n{rows}\n</table>\n{more}" if waiting else "<p>nothing waits</p>"
    count = f"{len(waiting)} wait" if len(waiting) != 1 else "1 waits"
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>git gate</title>\n'
        f"<h1>{count} in {text(where)}</h1>\n{table}\n<p>git gate show ID; git gate respond ID</p></html>\n"
    )


def row(one: Summary) -> str:
    cells = (one.id, one.state, one.at, one.agent, one.branch, one.title or one.question)
    return "<tr>" + "".join(f"<td>{text(cell)}" for cell in cells)


def text(words: str) -> str:
    return escape(one_line(words, 200))
