"""GitLab's adapter by itself, before a stand-in that a client which others made can speak to as well."""

from __future__ import annotations

import os

import gitlab
import pytest

from gitgate.context import open_desk
from gitgate.errors import Failure
from gitgate.surfaces.forge.hosts import Forge
from gitgate.surfaces.forge.hosts.connect import connect, find_place, token_and_source
from gitgate.surfaces.forge.hosts.gitlab import GitLab, edited_at
from gitgate.surfaces.forge.hosts.web import ForgeFailed, Web
from support.forges.gitlab import GitLabForge
from support.testbed.repositories import Clone

from .conftest import THREAD

HEAD, OTHER = "a" * 40, "b" * 40


@pytest.fixture
def hub(forge: GitLabForge) -> GitLab:
    forge.open_merge(THREAD, "feature", HEAD, author="ada")
    return GitLab(Web(forge.api, "bot-token"), forge.repository, forge.site)


def test_it_is_a_forge(hub: GitLab) -> None:
    """Whatever serves any forge can be given it."""
    forge: Forge = hub
    assert forge.fetch_self() == "project_42_bot_1a2b"
    assert (forge.default_branch(), forge.is_ours("Group/Inner/Project")) == ("main", True)


def test_another_client_reads_and_writes_the_same(hub: GitLab, forge: GitLabForge) -> None:
    """python-gitlab finds what we posted, and we what it posted: the stand-in speaks as GitLab does to others, too."""
    ours = hub.post_comment(THREAD, "Which?")
    other = gitlab.Gitlab(forge.server, private_token="ada-token", keep_base_url=True)
    merge = other.projects.get(forge.repository).mergerequests.get(THREAD)
    assert merge.notes.get(ours.number).body == "Which?"
    theirs = merge.notes.create({"body": "/answer Postgres"})
    theirs.awardemojis.create({"name": "tada"})
    found = hub.fetch_comment(theirs.id, thread=THREAD)
    assert found is not None
    assert (found.body, found.author.login, found.edited) == ("/answer Postgres", "ada", False)
    assert [one.number for one in hub.fetch_comments(THREAD)] == [ours.number, theirs.id]


def test_all_pages_are_read(hub: GitLab, forge: GitLabForge) -> None:
    """An answer on a later page is an answer too."""
    for number in range(230):
        forge.write(THREAD, "ada", f"talk {number}")
    assert len(hub.fetch_comments(THREAD)) == 230


def test_merge_requests_by_branch_commit_and_number(hub: GitLab, forge: GitLabForge) -> None:
    """A fork's is foreign; one that was merged or closed is found when those are asked for."""
    forge.open_merge(8, "feature", OTHER, project=99)
    forge.open_merge(9, "feature", OTHER)
    forge.merges[9]["state"] = "merged"
    forge.commits[HEAD] = [THREAD, 9]
    assert [one.number for one in hub.find_pull_requests("feature")] == [THREAD]
    assert [(one.number, one.merged) for one in hub.find_pull_requests("feature", closed=True)] == [(9, True)]
    assert [one.number for one in hub.find_pull_requests_with(HEAD)] == [THREAD]
    assert {one.number: one.foreign for one in hub.list_pull_requests()} == {THREAD: False, 8: True}
    found = hub.fetch_pull_request(THREAD)
    assert found is not None
    assert (found.head, found.author, found.open) == (HEAD, "ada", True)
    assert hub.fetch_pull_request(77) is None


def test_a_status_goes_on_and_is_not_said_twice(hub: GitLab) -> None:
    """That it waits still is refused by GitLab, and no trouble; `failure` has another name there."""
    url = f"{hub.site}/-/merge_requests/7"
    assert hub.fetch_status(HEAD) == ("", "")
    hub.set_status(HEAD, "pending", "waiting for an answer: one", url)
    hub.set_status(HEAD, "pending", "waiting for an answer: two", url)
    assert hub.fetch_status(HEAD) == ("pending", "waiting for an answer: one")
    hub.set_status(HEAD, "failure", "one stopped", url)
    assert hub.fetch_status(HEAD) == ("failure", "one stopped")
    hub.set_status(HEAD, "pending", "waiting for an answer: three", url)
    assert hub.fetch_status(HEAD) == ("pending", "waiting for an answer: three")


def test_a_pipeline_is_started_in_ones_own_name(hub: GitLab, forge: GitLabForge) -> None:
    """On the default branch, with the gate and the commit as inputs, which can be nothing else; who may not is told what is missing."""
    mine = GitLab(Web(forge.api, "ada-token"), forge.repository, forge.site)
    assert mine.dispatch("7k2fw9c3ab", HEAD) == f"{forge.site}/-/pipelines/700"
    made = forge.pipelines[0]
    assert (made["user"]["username"], made["ref"]) == ("ada", "main")
    assert made["given"]["inputs"] == {"gitgate": "answer", "gate": "7k2fw9c3ab", "commit": HEAD}
    forge.join("eve", 20, token="eve-token")
    with pytest.raises(ForgeFailed) as refused:
        GitLab(Web(forge.api, "eve-token"), forge.repository, forge.site).dispatch("", "")
    assert "docs/gitlab.md" in refused.value.hint


def test_places_that_gitlab_has_not(hub: GitLab) -> None:
    """Comments stand on merge requests alone: issues have the same numbers there."""
    with pytest.raises(ForgeFailed, match="merge request alone"):
        hub.fetch_comments(HEAD)
    assert hub.fetch_comment(300) is None
    assert hub.fetch_comments_since("2026-01-01T00:00:00Z", 3) is None


@pytest.fixture
def elsewhere(repo: Clone, monkeypatch: pytest.MonkeyPatch, forge: GitLabForge) -> Clone:
    """A person's clone, and none of a job's variables."""
    for name in forge.env:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", "for another forge")
    return repo


@pytest.mark.parametrize(
    ("address", "settings", "api"),
    [
        ("https://gitlab.com/group/inner/project.git", {}, "https://gitlab.com/api/v4"),
        ("git@gitlab.com:group/project.git", {}, "https://gitlab.com/api/v4"),
        ("https://git.example.org/a/b/c/d", {"forge": "gitlab"}, "https://git.example.org/api/v4"),
        ("http://localhost:8929/group/project.git", {"forge": "gitlab"}, "http://localhost:8929/api/v4"),
    ],
)
def test_where_it_is(elsewhere: Clone, address: str, settings: dict[str, str], api: str) -> None:
    """gitlab.com by its name, another by the setting, and groups within groups; what is meant for GitHub is told to neither."""
    elsewhere.git("remote", "add", "origin", address)
    for name, value in settings.items():
        elsewhere.git("config", f"gitgate.{name}", value)
    desk = open_desk(elsewhere.path, os.environ)
    place = find_place(desk)
    assert place is not None
    assert (place.kind, place.api) == ("gitlab", api)
    assert token_and_source(desk, place) == ("", "")
    with pytest.raises(Failure) as missing:
        connect(desk)
    assert missing.value.hint == "set GITGATE_GITLAB_TOKEN or GITLAB_TOKEN"
    desk.close()


def test_what_a_token_lacks_is_said_in_gitlabs_words(forge: GitLabForge) -> None:
    """And where more stands about it."""
    with pytest.raises(ForgeFailed) as refused:
        GitLab(Web(forge.api, "nobodys"), forge.repository, forge.site).default_branch()
    assert "the token is not valid" in refused.value.hint


@pytest.mark.parametrize(
    ("at", "by", "edited"),
    [
        (None, None, ""),
        ("2026-06-01T10:00:09Z", None, ""),
        ("2026-06-01T10:00:05Z", None, "2026-06-01T10:00:05Z"),
        ("2026-06-01T10:00:09Z", {"id": "gid://gitlab/User/4"}, "2026-06-01T10:00:09Z"),
    ],
)
def test_who_edited_a_note_tells_whether_anybody_did(at: str | None, by: object, edited: str) -> None:
    """The time alone does not: it is the last change where nobody edited. Where the editor's account is gone, an older time tells."""
    note = {"updatedAt": "2026-06-01T10:00:09Z", "lastEditedAt": at, "lastEditedBy": by}
    assert edited_at(note) == edited
