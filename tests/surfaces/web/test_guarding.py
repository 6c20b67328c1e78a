"""Surfaces: what does not come from a page of ours, or from somebody who is logged in, does nothing."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import socket
import stat
import threading
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from gitgate.acts.answering import Responded
from gitgate.acts.asking import AskWishes, ask
from gitgate.context import Desk
from gitgate.context.logins import NAME, Logins, RateLimit
from gitgate.errors import Usage
from gitgate.model.gate import Question
from gitgate.questions.drafts import Draft
from gitgate.surfaces import web
from gitgate.surfaces.web import MOST_BODY, WebAddress, read_form, read_proxies
from gitgate.surfaces.web.site import WebSite, open_socket, serve_site
from support import PATIENCE
from support.resuming import Seat
from support.signing import make_key, publish_policy
from support.testbed.repositories import Clone

from .conftest import PORT, PROXY, FormBrowser, asked, made_site

TEXT = Question("answer", "Which?", "text")


FOREIGN: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"origin": "http://evil.example"}, {}),
    ({"origin": "null"}, {}),
    ({"origin": "http://127.0.0.1:9999"}, {}),
    ({"sec_fetch_site": "cross-site"}, {}),
    ({"sec_fetch_site": "same-site"}, {}),
    ({"host": "evil.example"}, {}),
    ({"host": f"127.0.0.1.evil.example:{PORT}"}, {}),
    ({"content_type": "text/plain"}, {}),
    ({"content_type": "multipart/form-data; boundary=x"}, {}),
    ({}, {"form": ""}),
    ({}, {"form": "0" * 64}),
    ({}, {"form": "\u00e9"}),
    ({}, {"note": "x" * MOST_BODY}),
    ({}, {f"q{n}": "x" for n in range(600)}),
]


def test_a_request_that_no_page_of_ours_sends_is_refused(alone: Seat, browser: FormBrowser) -> None:
    """From another site, by another name of this machine, without the form's own word, or too large."""
    gate = asked(alone, TEXT)
    form = {**browser.get(f"/g/{gate.id}").form, "q0.": "yes"}
    for headers, changed in FOREIGN:
        reply = browser.post(f"/g/{gate.id}/answer", {**form, **changed}, **headers)
        assert reply.status in (400, 403, 413, 415, 421), (headers, list(changed))
    assert alone.now(gate).state == "awaiting"
    assert browser.answer(gate, q0_="yes").status == 303


@pytest.mark.slow
@pytest.mark.parametrize("deed", ["comment", "later", "stop"])
def test_a_remark_that_no_page_of_ours_sends_is_refused(
    alone: Seat, site: WebSite, browser: FormBrowser, deed: str
) -> None:
    """Nor does one do anything that is only looked at, has another name, or comes from a stranger or by another login."""
    gate = asked(alone, TEXT)
    form = {**browser.get(f"/g/{gate.id}").form_of(deed), "text": "2h"}
    for headers, changed in FOREIGN:
        reply = browser.post(f"/g/{gate.id}/{deed}", {**form, **changed}, **headers)
        assert reply.status in (400, 403, 413, 415, 421), (headers, list(changed))
    query = urlencode(form, doseq=True)
    assert [browser.get(f"/g/{gate.id}/{path}").status for path in (deed, f"{deed}?{query}")] == [404, 404]
    assert browser.post(f"/g/{gate.id}/withdraw", form).status == 404
    assert FormBrowser(site).post(f"/g/{gate.id}/{deed}", form).status == 401
    assert FormBrowser(site).log_in().post(f"/g/{gate.id}/{deed}", form).status == 403
    site.logins.new_login(site.address.origin)
    link = site.logins.new_link(gate.id).removeprefix(site.address.origin)
    anybody = FormBrowser(site)
    assert f'id="{deed}"' not in anybody.get(link).text
    bound = {**form, "form": anybody.get(link).form["form"]}
    assert anybody.post(f"{link}/{deed}", bound).status == 401
    assert anybody.post(f"/g/{gate.id}/{deed}", bound).status == 401
    assert len(alone.now(gate).history) == 1
    assert browser.post(f"/g/{gate.id}/{deed}", form).status == 303


def test_nobody_who_is_not_logged_in_sees_or_does_anything(alone: Seat, site: WebSite) -> None:
    gate = asked(alone, TEXT, title="A secret plan")
    stranger = FormBrowser(site, {f"gitgate-{PORT}": "guessed"})
    for reply in (
        stranger.get("/"),
        stranger.get(f"/g/{gate.id}"),
        stranger.post(f"/g/{gate.id}/answer", {"q0.": "yes", "seen": gate.tip}),
        stranger.get("/login?token=guessed"),
    ):
        assert reply.status == 401
        assert "secret" not in reply.text
    assert alone.now(gate).state == "awaiting"


def test_a_login_link_works_once_and_not_for_ever(site: WebSite, tmp_path: Path) -> None:
    word, _ = site.logins.new_login()
    assert FormBrowser(site).request("HEAD", f"/login?token={word}").status == 401
    first, second = FormBrowser(site), FormBrowser(site)
    assert [one.get(f"/login?token={word}").status for one in (first, second)] == [200, 401]
    assert [one.get("/").status for one in (first, second)] == [200, 401]
    now = [1_780_000_000.0]
    logins = Logins(tmp_path / "others", lambda: now[0])
    late, _ = logins.new_login()
    now[0] += 3601
    assert logins.redeem(late) is None


def test_a_form_of_another_login_is_refused(alone: Seat, site: WebSite, browser: FormBrowser) -> None:
    gate = asked(alone, TEXT)
    form = FormBrowser(site).log_in().get(f"/g/{gate.id}").form
    assert browser.post(f"/g/{gate.id}/answer", {**form, "q0.": "yes"}).status == 403


def test_logging_out_ends_the_session_on_our_side(site: WebSite, browser: FormBrowser) -> None:
    """Also one that somebody has copied; other browsers stay logged in until all are ended."""
    other = FormBrowser(site).log_in()
    others = site.logins.form_word(other.cookies[f"gitgate-{PORT}"])
    assert browser.post("/logout", {"form": others}).status == 403
    own = site.logins.form_word(browser.cookies[f"gitgate-{PORT}"])
    assert browser.post("/logout", {"form": own}, content_type="application/json").status == 415
    assert browser.post("/logout", {"form": own, "x": "x" * MOST_BODY}).status == 413
    assert browser.post("/logout", {"form": own}).status == 401
    assert (browser.get("/").status, other.get("/").status) == (401, 200)
    Logins(site.logins.folder, site.logins.clock).end_all()
    assert other.get("/").status == 401


def test_what_is_kept_logs_nobody_in(site: WebSite, browser: FormBrowser) -> None:
    """A file for this account alone, with digests in it."""
    place = site.logins.place
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    text = place.read_text("utf-8")
    assert browser.cookies[f"gitgate-{PORT}"] not in text
    assert place.name == NAME
    for word in json.loads(text)["sessions"]:
        assert FormBrowser(site, {f"gitgate-{PORT}": word}).get("/").status == 401


def test_a_thousand_requests_are_too_many(site: WebSite, browser: FormBrowser) -> None:
    """Of a stranger sooner than of somebody who is logged in, who is not held up by the stranger."""
    stranger = FormBrowser(site)
    codes = [stranger.get("/login?token=guess").status for _ in range(1000)]
    assert 429 in codes[:70]
    assert codes.count(429) > 900
    assert browser.get("/").status == 200
    now = [0.0]
    limit = RateLimit(3, 1, lambda: now[0])
    assert [limit.allows("a") for _ in range(4)] == [True, True, True, False]
    assert limit.allows("b")
    now[0] = 2.0
    assert [limit.allows("a") for _ in range(3)] == [True, True, False]


ELSEWHERE = (
    "/s/../site.py",
    "/s/..%2f..%2fsite.py",
    "/s/%2e%2e/site.py",
    "//evil.example/",
    "/s//etc/passwd",
    "/s/web.css/../../site.py",
    "/g/../../x",
    "/g/abc%00",
    "/g/" + "a" * 500,
    "/s/site.py",
    "/g/abcd/answer/more",
    "/\\evil.example",
)


def test_no_path_leads_anywhere_else(browser: FormBrowser) -> None:
    for path in ELSEWHERE:
        reply = browser.get(path)
        assert (reply.status, "location" in reply.headers) == (404, False), path


def test_every_reply_says_what_a_browser_may_do_with_it(
    alone: Seat, site: WebSite, browser: FormBrowser
) -> None:
    """Pages, refusals, redirections and files alike; no page has a script, a style or a handler in it."""
    gate = asked(alone, TEXT)
    replies = [
        browser.get("/"),
        browser.get(f"/g/{gate.id}"),
        browser.get("/s/web.css"),
        browser.get("/nothing"),
        FormBrowser(site).get("/"),
        browser.request("PUT", "/"),
        browser.answer(gate, q0_="yes"),
    ]
    assert [reply.status for reply in replies] == [200, 200, 200, 404, 401, 405, 303]
    for reply in replies:
        assert reply.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in reply.headers["content-security-policy"]
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"
        assert " style=" not in reply.text
        assert " on" not in reply.text.partition("<body>")[2].partition("<main")[0]
    assert list(browser.cookies) == [f"gitgate-{PORT}"]


URL = "https://gates.example.org"


def behind(seat: Seat, folder: Path) -> WebSite:
    return made_site(
        seat, folder, url=URL, proxies=read_proxies("X-Forwarded-User", f"{PROXY}, 2001:db8::/64")
    )


def through(site: WebSite, login: str, peer: str = PROXY, **more: str) -> FormBrowser:
    return FormBrowser(site, peer=peer, sent={"host": "gates.example.org", "x-forwarded-user": login, **more})


def test_a_proxys_header_counts_from_that_proxy_alone(alone: Seat, tmp_path: Path) -> None:
    """From anybody else it is a forged one; two of them, or words that are no login, are nobody."""
    site = behind(alone, tmp_path / "logins")
    assert [
        through(site, "ada", peer).get("/").status for peer in (PROXY, f"::ffff:{PROXY}", "2001:db8::5")
    ] == [200] * 3
    for peer in ("127.0.0.1", "::1", "192.0.2.8", "", "unix", "2001:db9::1"):
        assert through(site, "ada", peer).get("/").status == 401
    for login in ("", " ", "a" * 201, "ada <ada@example.com>", "ada\x00", "\u202eada"):
        assert through(site, login.encode("utf-8").decode("latin-1")).get("/").status == 401
    for name in ("x_forwarded_user", "x-forwarded-users"):
        stranger = FormBrowser(site, peer=PROXY, sent={"host": "gates.example.org", name: "ada"})
        assert stranger.get("/").status == 401
    word, _ = site.logins.new_login()
    assert (
        FormBrowser(site, peer=PROXY, sent={"host": "gates.example.org"}).get(f"/login?token={word}").status
        == 401
    )


def test_whom_a_proxy_names_answers_by_the_policy(alone: Seat, tmp_path: Path) -> None:
    """In their name, with their login as evidence; who is not listed may not, whatever git's own identity there is."""
    alone.clone.commit(
        "policy",
        **{
            ".gitgate.yml": "policy:\n  people:\n    bob: {login: bob}\n  rules:\n    - name: bob answers\n      who: [bob]\n"
        },
    )
    alone.clone.git("config", "gitgate.protectedBranch", alone.clone.git("branch", "--show-current").strip())
    site, gate = behind(alone, tmp_path / "logins"), asked(alone, TEXT)
    origin = {"origin": URL}
    mallory, bob = through(site, "mallory"), through(site, "bob")
    form = mallory.get(f"/g/{gate.id}").form
    refused = mallory.post(f"/g/{gate.id}/answer", {**form, "q0.": "yes"}, **origin)
    assert (refused.status, "mallory" in refused.text) == (403, True)
    assert bob.post(f"/g/{gate.id}/answer", {**form, "q0.": "yes"}, **origin).status == 403
    for deed in ("later", "stop"):
        told = {**mallory.get(f"/g/{gate.id}").form_of(deed), "text": ["2h"]}
        assert mallory.post(f"/g/{gate.id}/{deed}", told, **origin).status == 403
        assert bob.post(f"/g/{gate.id}/{deed}", told, **origin).status == 403
    assert len(alone.now(gate).history) == 1
    for deed in ("comment", "later"):
        told = {**bob.get(f"/g/{gate.id}").form_of(deed), "text": ["2h"]}
        assert bob.post(f"/g/{gate.id}/{deed}", told, **origin).status == 303
        assert getattr(alone.now(gate).history[-1].event, "by", "") == "bob"
    own = bob.get(f"/g/{gate.id}").form
    assert bob.post(f"/g/{gate.id}/answer", {**own, "q0.": "yes"}, **origin).status == 303
    found = alone.now(gate).answer
    assert found is not None
    said = found.answer
    assert (said.by, said.evidence["login"], said.via) == ("bob", "bob", "web")


@pytest.mark.parametrize(
    ("header", "trusted", "words"),
    [
        ("X-User", "", "believed from the proxies in gitgate.web.trustedProxies alone"),
        ("", "192.0.2.7", "gitgate.web.userHeader no header"),
        ("X User", "192.0.2.7", "no name of a header"),
        ("X-User", "192.0.2.7 everybody", "gitgate.web.trustedProxies: 'everybody'"),
    ],
)
def test_half_a_proxy_is_none(header: str, trusted: str, words: str) -> None:
    with pytest.raises(Usage, match=words):
        read_proxies(header, trusted)
    assert read_proxies("", "") is None


def test_an_address_is_compared_as_browsers_say_it(alone: Seat, tmp_path: Path) -> None:
    """In small letters, without a port that is the usual one."""
    site = made_site(alone, tmp_path / "logins", url="https://Gates.Example.org:443")
    browser = FormBrowser(site, sent={"host": "gates.example.org"}).log_in()
    gate = asked(alone, TEXT)
    form = browser.get(f"/g/{gate.id}").form
    assert browser.post(f"/g/{gate.id}/answer", {**form, "q0.": "yes"}, origin=URL).status == 303
    assert "http://127.0.0.1" in WebAddress("127.0.0.1", 80).origins


def test_a_gates_link_opens_that_gate_alone_for_one_answer(alone: Seat, site: WebSite) -> None:
    """Looking uses nothing up, so that a preview may look; an answer does, and what was no answer does not."""
    gate, other = asked(alone, TEXT), asked(alone, TEXT, title="Another one")
    site.logins.new_login(site.address.origin)
    link = site.logins.new_link(gate.id).removeprefix(site.address.origin)
    before = alone.clone.refs()
    browser = FormBrowser(site)
    pages = [browser.get(link) for _ in range(3)]
    assert [page.status for page in pages] == [200] * 3
    assert browser.request("HEAD", link).status == 200
    assert alone.clone.refs() == before
    for path in ("/", f"/g/{gate.id}", f"/g/{other.id}", "/trail", "/events", f"/g/{gate.id}/answer"):
        assert browser.get(path).status == 401
    form = pages[0].form
    foreign = browser.post(f"{link}/answer", {**form, "q0.": "yes"}, origin="http://evil.example")
    unbound = browser.post(f"{link}/answer", {**form, "q0.": "yes", "form": "0" * 64})
    empty = browser.post(f"{link}/answer", {**form, "q0.": " "})
    assert [foreign.status, unbound.status, empty.status] == [403, 403, 422]
    done = browser.post(f"{link}/answer", {**empty.form, "q0.": "yes"})
    assert (done.status, "The link is used up" in done.text) == (200, True)
    said = alone.now(gate).answer
    assert said is not None
    assert (said.answer.by, said.answer.via, list(said.answer.evidence)) == (
        alone.desk.person(),
        "web",
        ["link"],
    )
    replayed = browser.post(f"{link}/answer", {**form, "q0.": "no"})
    assert [browser.get(link).status, replayed.status] == [401, 401]
    assert alone.now(other).state == "awaiting"
    late = site.logins.new_link(other.id).removeprefix(site.address.origin)
    form = browser.get(late).form
    alone.answer(other, "theirs")
    amended = browser.post(f"{late}/answer", {**form, "q0.": "mine", "amend": "1"})
    assert (amended.status, "<form" in browser.get(late).text) == (409, False)


def test_a_gates_link_ends_by_time_and_by_one_command(alone: Seat, tmp_path: Path) -> None:
    """What is kept of it opens nothing; behind a proxy there are none."""
    now = [1_780_000_000.0]
    site = made_site(alone, tmp_path / "logins", lambda: now[0])
    gate = asked(alone, TEXT)
    assert site.logins.new_link(gate.id) == ""
    site.logins.new_login(site.address.origin)
    first, second = (site.logins.new_link(gate.id).removeprefix(site.address.origin) for _ in range(2))
    browser = FormBrowser(site)
    assert [browser.get(one).status for one in (first, second, f"{first[:-1]}_", "/l/x")] == [
        200,
        200,
        401,
        401,
    ]
    kept = json.loads(site.logins.place.read_text("utf-8"))["links"]
    assert [browser.get(f"/l/{word[:43]}").status for word in kept] == [401, 401]
    team = behind(alone, tmp_path / "logins")
    assert through(team, "ada").get(first).status == 404
    now[0] += 24 * 3600 + 1
    assert browser.get(first).status == 401
    third = site.logins.new_link(gate.id).removeprefix(site.address.origin)
    site.logins.end_all()
    assert browser.get(third).status == 401


def test_two_who_use_a_link_at_once_give_one_answer(alone: Seat, site: WebSite) -> None:
    """The second comes while the first one's answer is being recorded; what several have to agree on shows how many there were."""
    gate = ask(alone.desk, Draft((TEXT,), agent="scripted", quorum=2), AskWishes()).gate
    site.logins.new_login(site.address.origin)
    link = site.logins.new_link(gate.id).removeprefix(site.address.origin)
    form, late = FormBrowser(site).get(link).form, []

    def words(_desk: Desk, _done: Responded) -> str:
        late.append(FormBrowser(site).post(f"{link}/answer", {**form, "q0.": "theirs"}))
        return "recorded"

    site.words_of = words
    assert FormBrowser(site).post(f"{link}/answer", {**form, "q0.": "mine"}).status == 200
    assert [reply.status for reply in late] == [401]
    assert [vote.answer.values for vote in alone.now(gate).votes] == [{"answer": "mine"}]


def test_a_link_whose_answer_fails_works_again_unless_all_were_ended(tmp_path: Path) -> None:
    logins = Logins(tmp_path / "logins", lambda: 1_780_000_000.0)
    logins.new_login("http://127.0.0.1:1")
    word = logins.new_link("abcd").rpartition("/")[2]

    def fail(meanwhile: Callable[[], object]) -> None:
        with logins.using_link(word):
            assert logins.gate_of(word) is None
            meanwhile()
            raise OSError("the network")

    with pytest.raises(OSError, match="the network"):
        fail(lambda: None)
    assert logins.gate_of(word) == "abcd"
    with pytest.raises(OSError, match="the network"):
        fail(logins.end_all)
    assert logins.gate_of(word) is None


def test_a_login_outlives_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When somebody was seen last is noted now and then, and is no reason to keep them out."""
    now = [1_780_000_000.0]
    logins = Logins(tmp_path / "logins", lambda: now[0])
    session = logins.redeem(logins.new_login()[0])
    assert session is not None

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gitgate.context.logins.write_private", no_room)
    now[0] += 3600
    assert logins.is_known(session)


def test_a_form_that_does_not_arrive_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "SENT_WITHIN", 0.01)

    async def receive() -> MutableMapping[str, Any]:
        await asyncio.Event().wait()
        return {}

    with pytest.raises(web.UnfitBody) as refused:
        asyncio.run(read_form({"headers": [(b"content-type", web.FORM.encode())]}, receive))
    assert refused.value.status == 408


@pytest.mark.slow
@pytest.mark.parametrize(
    "said", [b"", b"GET / HTTP/1.1\r\n", b"GET /s/web.css HTTP/1.1\r\nHost: x\r\n\r\nGET"]
)
def test_who_sends_no_request_does_not_stay(
    site: WebSite, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    """As many connections as the server takes could be opened by anybody on this machine."""
    monkeypatch.setattr("gitgate.surfaces.web.site.SENT_WITHIN", 0.2)
    stopping = threading.Event()
    with open_socket("127.0.0.1", 0) as listening:
        serving = threading.Thread(target=serve_site, args=(site, listening, stopping))
        serving.start()
        try:
            with socket.create_connection(listening.getsockname(), timeout=PATIENCE) as silent:
                silent.sendall(said)
                while silent.recv(65536):
                    pass
        finally:
            stopping.set()
            serving.join(PATIENCE)


@pytest.mark.slow
@pytest.mark.needs("ssh-keygen")
def test_nobodys_key_signs_for_whom_a_proxy_names(bare: Clone, ann: Seat, tmp_path: Path) -> None:
    """The desk runs as Ada, whose key is there. Bob's answer, or his word that it stops, would have her signature."""
    key = make_key(tmp_path / "keys", "ada", "ada@example.org")
    publish_policy(
        bare,
        "policy:\n  people:\n    ada: {email: ada@example.org}\n    bob: {login: bob@example.org}\n"
        "  who: [ada, bob]\n  require_signed: true\n",
        signers=key.line,
    )
    ann.clone.git("fetch", "-q", "origin")
    key.used_by(ann.clone)
    site, gate = behind(ann, tmp_path / "logins"), asked(ann, TEXT)
    bob = through(site, "bob@example.org")
    form = bob.get(f"/g/{gate.id}").form
    for deed, said in (("answer", {"q0.": "yes"}), ("stop", {"text": "not now"})):
        reply = bob.post(f"/g/{gate.id}/{deed}", {**form, **said}, origin=URL)
        assert (reply.status, "sign" in reply.text) == (403, True)
    assert ann.now(gate).state == "awaiting"
    ann.clone.git("config", "gitgate.sign", "true")
    publish_policy(bare, "policy: {}\n", signers=key.line)
    ann.clone.git("fetch", "-q", "origin")
    assert bob.post(f"/g/{gate.id}/comment", {**form, "text": "which?"}, origin=URL).status == 303
    assert "gpgsig" not in ann.clone.git("cat-file", "commit", ann.now(gate).tip)


NOW = 1_780_000_000.0
KEY = hashlib.sha256(b"guessed").hexdigest()
WRONG_NOTES: list[object] = [
    [],
    None,
    "x",
    {"logins": [], "sessions": 5, "links": "x", "key": {}, "address": 7},
    {"logins": {KEY: "later"}, "sessions": {KEY: 5}, "links": {KEY: []}},
    {"logins": {KEY: None}, "sessions": {KEY: {}}, "links": {KEY: {"until": "x", "gate": "a"}}},
    {"sessions": {KEY: {"since": True, "seen": True}}, "links": {KEY: {"until": 9e99, "gate": 5}}},
    {"sessions": {KEY: {"since": float("nan"), "seen": float("nan")}}},
    {"sessions": {KEY: {"since": float("inf"), "seen": float("inf")}}, "logins": {KEY: float("inf")}},
    {"logins": {KEY: {"until": 1}}, "sessions": {KEY: [NOW, NOW]}, "key": None},
]


@pytest.mark.parametrize("said", WRONG_NOTES, ids=range(len(WRONG_NOTES)))
def test_a_note_of_other_kinds_is_none(site: WebSite, said: object) -> None:
    """Nobody is logged in by it, and no page and no command fails of it: what is not as it has to be is left out."""
    place = site.logins.place
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(said))
    stranger = FormBrowser(site, {f"gitgate-{PORT}": "guessed"})
    assert [stranger.get(page).status for page in ("/", "/login?token=guessed", "/l/guessed")] == [
        401,
        401,
        401,
    ]
    place.write_text(json.dumps(said))
    assert FormBrowser(site).log_in().get("/").status == 200
    place.write_text(json.dumps(said))
    assert site.logins.new_link("abcd") == ""
    assert site.logins.end_all() == 0


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_no_note(site: WebSite, kind: str) -> None:
    """A named pipe in its place keeps no page waiting."""
    place = site.logins.place
    place.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(place) if kind == "pipe" else place.mkdir()
    assert FormBrowser(site, {f"gitgate-{PORT}": "guessed"}).get("/").status == 401
