"""How a project configures its agents: as the protected branch has it, and not as the agent's own branch has."""

from __future__ import annotations

import json

import pytest

from gitgate.agents.agent import AgentSettings
from gitgate.errors import Failure
from gitgate.gates.agency import settings_for_start
from gitgate.policy.project import InForce, configures, in_force, permissions, without_doubt
from gitgate.store.work import snapshot
from support.resuming import Seat

RULES = {"allow": ["Bash(make test)"], "deny": ["Bash(rm:*)", "Read(./.env)"], "ask": ["WebFetch"]}


def publish(seat: Seat, text: str) -> None:
    """Commit the settings on the protected branch."""
    seat.clone.write(".claude/settings.json", text)
    seat.clone.git("add", "-A")
    seat.clone.git("commit", "-q", "-m", "Say what agents may do")
    seat.clone.git("push", "-q", "origin", "main")


def test_the_protected_branchs_rules(ann: Seat) -> None:
    """Rules on tools, and nothing that is a program or widens where they hold."""
    more = {**RULES, "defaultMode": "bypassPermissions", "additionalDirectories": ["/"]}
    publish(ann, json.dumps({"permissions": more, "hooks": {"Stop": []}, "env": {"A": "b"}}))
    assert permissions(ann.desk, "claude") == RULES
    assert permissions(ann.desk, "codex") == {}


def test_an_agents_own_branch_says_nothing(ann: Seat) -> None:
    """Neither its working tree nor its commits."""
    publish(ann, json.dumps({"permissions": RULES}))
    ann.clone.git("checkout", "-q", "-b", "topic")
    ann.clone.write(".claude/settings.json", json.dumps({"permissions": {"allow": ["Bash"]}}))
    assert permissions(ann.desk, "claude") == RULES
    ann.clone.git("commit", "-q", "-a", "-m", "Let me do anything")
    assert permissions(ann.desk, "claude") == RULES


def test_none(ann: Seat) -> None:
    """A project without settings has no rules."""
    assert permissions(ann.desk, "claude") == {}
    publish(ann, json.dumps({"model": "opus", "permissions": {"deny": []}}))
    assert permissions(ann.desk, "claude") == {}


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"permissions": []}', '{"permissions": {"deny": "Bash"}}', '{"permissions": {"deny": [1]}}'],
)
def test_what_cannot_be_read_starts_nothing(ann: Seat, text: str) -> None:
    """What it forbids cannot be known."""
    publish(ann, text)
    with pytest.raises(Failure, match=r"\.claude/settings\.json cannot be read"):
        permissions(ann.desk, "claude")


@pytest.mark.parametrize(
    "name",
    [
        *(
            ".claude/settings.json",
            ".claude/hooks/x.sh",
            ".claude",
            "src/.claude/skills/a/SKILL.md",
            ".mcp.json",
        ),
        *("CLAUDE.md", "src/deep/CLAUDE.md", "claude.MD", ".Claude/settings.json", "CLAUDE.local.md"),
        *("AGENTS.md", "src/AGENTS.override.md", ".codex/config.toml"),
    ],
)
def test_what_configures_an_agent(name: str) -> None:
    """Wherever it is, and however a system that does not tell them apart spells it."""
    assert configures(name.encode())


@pytest.mark.parametrize(
    "name", ["claude/settings.json", "MY-CLAUDE.md", "CLAUDE.md.txt", "src/mcp.json", "x"]
)
def test_what_does_not(name: str) -> None:
    assert not configures(name.encode())


def stands(seat: Seat, *, ours: bool = True) -> InForce:
    desk = seat.desk
    with in_force(desk, desk.repo, ours=ours) as project:
        return project


def test_all_of_it_is_as_it_is_today(ann: Seat) -> None:
    """What the branch changed, and what it has not caught up on; where it began is its own choice."""
    publish(ann, "{}")
    ann.clone.git("checkout", "-q", "-b", "topic")
    ann.clone.commit("topic", **{"src/CLAUDE.md": "topic\n"})
    ann.clone.git("checkout", "-q", "main")
    publish(ann, '{"model": "opus"}')
    ann.clone.git("checkout", "-q", "topic")
    desk = ann.desk
    with in_force(desk, desk.repo) as project:
        assert (project.replaced, project.doubt) == ((".claude/settings.json", "src/CLAUDE.md"), "")
        assert not (ann.clone.path / "src/CLAUDE.md").exists()
        assert (ann.clone.path / ".claude/settings.json").read_text() == '{"model": "opus"}'
    assert (ann.clone.path / ".claude/settings.json").read_text() == "{}"
    assert (ann.clone.path / "src/CLAUDE.md").read_text() == "topic\n"
    assert ann.clone.git("status", "--porcelain") == ""


def test_a_history_of_its_own(ann: Seat) -> None:
    """A branch that shares nothing with the protected one, or has no commit yet, is compared with it as it is."""
    publish(ann, "{}")
    ann.clone.git("checkout", "-q", "--orphan", "alone")
    ann.clone.write(".claude/settings.json", "planted")
    assert stands(ann).replaced == (".claude/settings.json",)
    ann.clone.commit("alone")
    assert stands(ann).replaced == (".claude/settings.json",)
    assert (ann.clone.path / ".claude/settings.json").read_text() == "planted"


def test_a_persons_own_tree_is_only_looked_at(ann: Seat) -> None:
    """And where it differs, or nobody knows, the project's own settings do not take part."""
    publish(ann, "{}")
    loaded = AgentSettings(project_settings=True, project_servers=True)
    assert without_doubt(loaded, stands(ann, ours=False)) == loaded
    ann.clone.write(".claude/settings.json", "planted")
    project = stands(ann, ours=False)
    assert project.doubt == ".claude/settings.json differs"
    assert without_doubt(loaded, project) == AgentSettings()
    assert (ann.clone.path / ".claude/settings.json").read_text() == "planted"
    ann.clone.git("config", "gitgate.protectedBranch", "nowhere")
    assert "no protected branch" in stands(ann).doubt


def test_an_error_meanwhile_leaves_the_branchs_own(ann: Seat) -> None:
    publish(ann, "{}")
    ann.clone.write(".claude/settings.json", "planted")
    desk = ann.desk

    def fail() -> None:
        with in_force(desk, desk.repo):
            assert (ann.clone.path / ".claude/settings.json").read_text() == "{}"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (ann.clone.path / ".claude/settings.json").read_text() == "planted"


def test_what_cannot_be_taken_back_is_told(ann: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another git holds the index when the agent ends: its outcome counts, and the next to come here takes it back."""
    monkeypatch.setattr(snapshot, "LONGEST_WAIT", 0.1)
    publish(ann, "{}")
    ann.clone.write(".claude/settings.json", "planted")
    said: list[str] = []
    desk = ann.desk
    lock = ann.clone.path / ".git/index.lock"
    with in_force(desk, desk.repo, say=said.append):
        lock.touch()
    assert "stands as on the protected branch yet" in said[-1]
    lock.unlink()
    assert stands(ann).replaced == (".claude/settings.json",)
    assert (ann.clone.path / ".claude/settings.json").read_text() == "planted"


@pytest.mark.parametrize(
    ("machine", "policy", "loads"),
    [
        (None, None, False),
        ("true", None, True),
        (None, "true", True),
        ("false", "true", False),
        ("true", "false", True),
        (None, "false", False),
    ],
)
def test_who_lets_them_take_part(ann: Seat, machine: str | None, policy: str | None, loads: bool) -> None:
    """This machine's own word counts, else the policy on the protected branch; a working tree's does not."""
    if policy:
        ann.clone.commit(
            "policy", **{".gitgate.yml": f"policy: {{agents: {{claude: {{project_settings: {policy}}}}}}}\n"}
        )
        ann.clone.git("push", "-q", "origin", "main")
    if machine:
        ann.clone.git("config", "gitgate.agent.claude.projectSettings", machine)
    ann.clone.write(
        ".gitgate.yml", "policy: {agents: {claude: {project_settings: true, project_servers: true}}}\n"
    )
    found = settings_for_start(ann.desk, "claude")
    assert (found.project_settings, found.project_servers) == (loads, False)
