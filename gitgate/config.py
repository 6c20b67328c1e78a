"""Config: what is set, from where, as one frozen value. The only room that reads the environment.

flags > `GITGATE_*` > `git config gitgate.*` > `.gitgate.yml` > the user's own file > defaults. What grants power is read
from the machine's git config or the protected branch alone, never from the branch that an agent works on.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from .document import LIMITS, NamedTuple, dataclass, field, is_blank, near, nearest, replace
from .errors import GateError, UnsupportedSystem, Usage

FILE = ".gitgate.yml"


class Setting(NamedTuple):
    """Setting of the product. `power`: it grants something; neither the environment nor the working tree may set it."""

    name: str
    kind: str
    default: str
    meaning: str
    power: bool = False
    env: str = ""

    @property
    def variable(self) -> str:
        if self.env:
            return self.env
        words = "".join(f"_{c}" if c.isupper() else c.upper() for c in self.name.replace(".", "_"))
        return f"GITGATE_{words}"


SETTINGS = (
    Setting("remote", "text", "", "the remote that gates go to; else the branch's push remote, else origin"),
    Setting("push", "flag", "true", "push after each verb that writes"),
    Setting("publishWork", "flag", "", "push the partial work too; `git gate init` sets it", power=True),
    Setting("initialised", "flag", "false", "`git gate init` was run in this clone", power=True),
    Setting("server", "flag", "false", "this is the shared repository itself", power=True),
    Setting(
        "resumeHere", "flag", "false", "an answer given in this clone resumes the agent here", power=True
    ),
    # GITGATE_SESSION tells a resumed program which conversation it is.
    Setting(
        "session",
        "word:local,push,off",
        "local",
        "what becomes of the agent's saved session",
        env="GITGATE_SAVE_SESSION",
    ),
    Setting("maxAgents", "number", "2", "how many agents are resumed at once on this machine"),
    Setting("sessionRecipients", "text", "", "age or ssh keys that saved sessions are encrypted to"),
    Setting("sessionIdentity", "text", "", "the file with the age or ssh key that opens encrypted sessions"),
    Setting("maxAttempts", "number", "3", "how often a resume is tried before the gate is failed"),
    Setting(
        "retryAfter",
        "duration",
        "30s",
        "the wait before a second attempt; each further one waits twice as long",
    ),
    Setting("leaseTerm", "duration", "2m", "how long a runner may be silent before another takes over"),
    Setting("runner", "word:local,github,command,celery", "local", "what starts a resumed agent"),
    Setting(
        "runnerCommand",
        "text",
        "",
        "with `gitgate.runner command`: the program that hands out an answer, called with GATE ADDRESS COMMIT",
        power=True,
    ),
    Setting(
        "runnerAddress",
        "text",
        "",
        "where other machines reach this repository; else its remote's address, or its path",
        power=True,
    ),
    Setting("queue.broker", "text", "", "the broker of `gitgate.runner celery`: redis://… or amqp://…", True),
    Setting(
        "queue.repositories",
        "text",
        "",
        "the addresses that a worker takes answers of, with spaces between; `*` stands for anything",
        power=True,
    ),
    Setting(
        "queue.route",
        "text",
        "",
        "`agent:NAME=QUEUE`, `priority:NAME=QUEUE`, `repository:ADDRESS=QUEUE`, the first that fits; else the queue `gitgate`",
        power=True,
    ),
    Setting(
        "queue.keep",
        "duration",
        "7d",
        "how long a worker keeps what an agent did not commit, and its logs",
        True,
    ),
    Setting("queue.disk", "number", "20000000000", "how many bytes a worker's repositories may have", True),
    Setting(
        "worktrees",
        "text",
        "",
        "the folder where agents from elsewhere are resumed; else one of your own, on a server one inside",
        power=True,
    ),
    Setting(
        "forge",
        "word:github,gitea,gitlab",
        "",
        "what forge the remote is, where its address does not say so",
        power=True,
    ),
    Setting(
        "forgeAt",
        "text",
        "",
        "the address of the repository on a forge where gates are shown, where the remote is another server",
        power=True,
    ),
    Setting(
        "forgeApi", "text", "", "the address of that forge's API, where it is not the usual one", power=True
    ),
    Setting(
        "workflows",
        "text",
        "",
        "OWNER/REPOSITORY@COMMIT of the workflows that `git gate init --github` calls; for `--gitlab` https://HOST/PROJECT@COMMIT",
        power=True,
    ),
    Setting("forgeIssue", "number", "0", "the issue where gates without a pull request are shown"),
    Setting("forgeCommit", "flag", "false", "gates without a pull request are shown on their commit"),
    Setting(
        "joinAgent", "text", "claude", "the agent that a person talks to about a gate without one", power=True
    ),
    Setting("agentTimeout", "duration", "2h", "how long a resumed agent may run"),
    Setting("timeout", "duration", "", "the deadline of a gate that names none"),
    Setting("onTimeout", "word:stuck,default,remind,defer,fail", "stuck", "what happens at that deadline"),
    Setting(
        "humanEscalation",
        "flag",
        "true",
        "whether people are asked what a flow's agents need, where the flow does not say",
        power=True,
    ),
    Setting(
        "protectedBranch",
        "text",
        "",
        "the branch that the policy is read from; else the default one",
        power=True,
    ),
    Setting("jobBranch", "text", "", "the branch that a job is about: no other one is moved", power=True),
    Setting(
        "requester",
        "text",
        "",
        "who started this job, as `git gate github prepare` found it: whose agent it is",
        power=True,
    ),
    Setting(
        "policyFile",
        "text",
        "",
        "a file of this machine's own with `policy` and `approvals`, beside that of the repository",
        power=True,
    ),
    Setting("priority", "word:urgent,high,normal,low", "normal", "the priority of a gate that names none"),
    Setting("signals", "text", ".agents/signals", "the folder where agents leave signal files (NEEDS_HUMAN)"),
    Setting("sign", "flag", "false", "sign answers with git's signing key"),
    Setting("maxFileSize", "number", "10000000", "untracked files over so many bytes stay out of the work"),
    Setting(
        "fresh",
        "span",
        "1.5s",
        "how long a list on a terminal looks for news of the remote; 0: not at all, as without a terminal",
    ),
    Setting("networkTimeout", "duration", "60s", "how long a push or fetch may take"),
    Setting(
        "archiveAfter", "duration", "", "how long a closed gate stays before `git gate archive` folds it"
    ),
    Setting("color", "word:auto,always,never", "auto", "colour on the terminal"),
    Setting("pager", "flag", "true", "show long output through git's pager"),
    Setting("deskUndo", "span", "5s", "how long a decision at `git gate desk` can be taken back", power=True),
    Setting(
        "notify",
        "text",
        "",
        "how people hear of gates; repeatable: `desktop`, `command PROGRAM ARG…`, `webhook URL`, an Apprise address; `NAME=` before it names it",
        power=True,
    ),
    Setting(
        "notify.to",
        "text",
        "",
        "who hears by these, with commas between; else you, on a server everybody",
        True,
    ),
    Setting(
        "notify.only", "word:urgent,high,normal,low", "low", "they hear of no gate below this priority", True
    ),
    Setting(
        "notify.quiet", "hours", "", "hours in which nobody is told, but of urgent gates: 22:00-07:00", True
    ),
    Setting("notify.secret", "text", "", "what webhooks are signed with: `whsec_` and base64", True),
    Setting(
        "notify.url",
        "text",
        "",
        "the link that is sent, with `{id}` for the gate's; `{link}`: one that opens it at your own desk, for one answer",
        True,
    ),
    Setting(
        "web.userHeader",
        "text",
        "",
        "the header in which a proxy that authenticates names the person, at `git gate serve --desk`",
        power=True,
    ),
    Setting(
        "web.trustedProxies",
        "text",
        "",
        "the addresses and networks of the proxies whose header counts, with spaces between",
        power=True,
    ),
    Setting(
        "notify.shared",
        "flag",
        "false",
        "this clone tells the addresses of the protected branch, where no server of your own does",
        power=True,
    ),
)
BY_NAME = {setting.name: setting for setting in SETTINGS}
# Settings that earlier versions had, and what replaces each. One that is still set does nothing but be named.
GONE = {
    "deskKeys": "the keys of `git gate desk` are fixed",
    "deskTheme": "`T` at `git gate desk` changes between light and dark",
    "package": "`git gate init --github --package`, which the workflow files keep",
    "packageIndex": "`git gate init --github --package-index`, which the workflow files keep",
    "approvalDefaults": "`defaults: true` in a rule of the policy, or in the file that gitgate.policyFile names",
    "requireSigned": "`require_signed: true` in the policy, or in the file that gitgate.policyFile names; nobody answers here meanwhile",
    "requesterMayAnswer": "`requester_may_answer: false` in the policy, or in the file that gitgate.policyFile names; nobody answers here meanwhile",
    "editor": "VISUAL, or EDITOR, names your editor",
    "joinServers": "the MCP servers that a gate names start when a person at `git gate join` says so",
    "notify.detail": "people are told the title of a gate, who asks, and how to open it",
}
# What else git's configuration holds for us: sections with names of the user's own, and what `init --claude` writes down.
SECTIONS = ("agent", "template")
# What `gitgate.notify.` and `gitgate.notify.NAME.` may end in.
OF_NOTIFY = tuple(one.name.partition(".")[2] for one in SETTINGS if one.name.startswith("notify."))
# And `gitgate.queue.`.
OF_QUEUE = tuple(one.name.partition(".")[2] for one in SETTINGS if one.name.startswith("queue."))
# And `gitgate.web.`.
OF_WEB = tuple(one.name.partition(".")[2] for one in SETTINGS if one.name.startswith("web."))
NOTED = ("program",)
# What `gitgate.agent.NAME.` may end in.
OF_AGENT = ("resume", "start", "join", "program", "arguments", "stdin", "projectSettings", "projectServers")
VARIABLES = {"agent": OF_AGENT, "notify": OF_NOTIFY, "queue": OF_QUEUE, "web": OF_WEB}
# What else is in the environment of a job, a hook or an agent that was started again.
OTHER_VARIABLES = frozenset(
    f"GITGATE_{name}"
    for name in """ACTOR AGENT AGENT_ARGUMENTS AGENT_COMMAND AGENT_NAME AGENT_RESUME ANSWER EVENT GATE GITHUB_TOKEN
    GITLAB_TOKEN HOOK_SECONDS ID NOTE OUTCOME PREPARED PROMPT_FILE RUN SESSION SESSION_KEY STEP TASK TERMS TITLE VERDICT WEBHOOK_SECRET WRAPPED""".split()
)
# A variable that is so close to one of ours is a slip; below that it may be anybody's.
CLOSE = 0.88
IN_FILE = ("settings", "policy", "approvals", "notify")


@dataclass(frozen=True)
class Settings:
    """Settings of all layers, read once. The two files are parsed only when a setting is not found before them."""

    env: Mapping[str, str]
    git: Mapping[str, str]
    flags: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Callable[[], Mapping[str, str]], ...] = ()
    trouble: list[str] = field(default_factory=list)
    """What is wrong with the working tree's file, once it was read. An agent can write there: it must not lock anybody out."""

    unread: list[str] = field(default_factory=list)
    """Parts of the working tree's file that nothing reads."""

    @property
    def misspelt(self) -> dict[str, str]:
        """Settings in git's configuration under a name that nothing reads: key → what is wrong with it."""
        known = {name.lower(): name for name in (*BY_NAME, *NOTED, *SECTIONS)}
        wrong = {}
        for key in self.git:
            if instead := replaced_by(key):
                wrong[key] = f"{key} counts no more: {instead}"
            elif key.startswith("gitgate."):
                name, _, rest = key.removeprefix("gitgate.").partition(".")
                variable = rest.rpartition(".")[2]
                ends = VARIABLES.get(name.lower()) if rest else None
                if ends is None and (name.lower() not in known or (name.lower() in SECTIONS) != bool(rest)):
                    wrong[key] = f"there is no setting {key}{close_name(name, known.values())}"
                elif ends is not None and variable.lower() not in map(str.lower, ends):
                    wrong[key] = f"there is no setting {key}{close_name(variable, ends)}"
        return wrong

    @property
    def misnamed(self) -> dict[str, str]:
        """Variables of the environment that count for nothing: variable → what is wrong with it. Others may
        have variables there too, so only near misses of our names are listed, and those that only git's configuration
        may set.
        """
        settings = {one.variable: one for one in SETTINGS}
        wrong = {}
        for name in self.env:
            if not name.startswith("GITGATE_") or name in OTHER_VARIABLES:
                continue
            if name in settings:
                if settings[name].power:
                    wrong[name] = f"{name} does not count: only git's configuration sets that"
            elif near := nearest(name, list(settings), CLOSE):
                wrong[name] = f"nothing reads {name} (did you mean {near}?)"
        return wrong

    def forgiving(self) -> Settings:
        """Return settings for a check-up, which has to finish: errors of a file are noted in `trouble`."""

        def forgiven(read: Callable[[], Mapping[str, str]]) -> Callable[[], Mapping[str, str]]:
            def what_can_be_read() -> Mapping[str, str]:
                try:
                    return read()
                except GateError as failed:
                    if failed.message not in self.trouble:
                        self.trouble.append(failed.message)
                    return {}

            return what_can_be_read

        return replace(self, files=tuple(map(forgiven, self.files)))

    @property
    def warnings(self) -> list[str]:
        """Descriptions of the settings that were made and do not count, as far as they were read until now."""
        return [*self.misspelt.values(), *self.misnamed.values(), *self.trouble, *self.unread]

    def text(self, name: str) -> str:
        setting = BY_NAME[name]
        for layer in self.layers(setting):
            value = layer()
            if value is not None:
                return checked(setting, value, variable=self.variable_of(setting))
        return setting.default

    def variable_of(self, setting: Setting) -> str:
        """Return the environment variable that sets the value; empty where another layer does."""
        named = not setting.power and setting.name not in self.flags and setting.variable in self.env
        return setting.variable if named else ""

    def layers(self, setting: Setting) -> list[Callable[[], str | None]]:
        key = setting.name.lower()

        def from_git() -> str | None:
            return self.git.get(f"gitgate.{key}")

        if setting.power:
            return [lambda: self.flags.get(setting.name), from_git]
        files = [lambda read=read: read().get(setting.name) for read in self.files]
        return [
            lambda: self.flags.get(setting.name),
            lambda: self.env.get(setting.variable),
            from_git,
            *files,
        ]

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in TRUE

    def number(self, name: str) -> int:
        return int(self.text(name))

    def span(self, name: str) -> float:
        """Return a setting in seconds with a fraction."""
        return float(self.text(name).removesuffix("s") or 0)

    def seconds(self, name: str) -> int | None:
        from .text import parse_duration

        text = self.text(name)
        return parse_duration(text) if text else None

    @property
    def pull_request(self) -> int | None:
        """Pull request that this CI job is about, where the forge says so."""
        parts = self.env.get("GITHUB_REF", "").split("/")
        return (
            int(parts[2])
            if parts[:2] == ["refs", "pull"] and len(parts) > 2 and parts[2].isdecimal()
            else None
        )

    @property
    def in_ci(self) -> bool:
        """Return whether any CI runs us: its machine is gone soon. `setup.in_job` means a job with a token."""
        return self.env.get("CI", "").lower() in TRUE

    def identity(self, role: str = "AUTHOR") -> str:
        """Return `Name <email>` of the person at this machine as git would record it; empty when git knows no address:
        then it commits nothing either, and nothing would tell people apart.
        """
        env, git, lower = self.env, self.git, role.lower()
        name = env.get(f"GIT_{role}_NAME") or git.get(f"{lower}.name") or git.get("user.name", "")
        email = env.get(f"GIT_{role}_EMAIL") or git.get(f"{lower}.email") or git.get("user.email", "")
        email = clean_name(email or env.get("EMAIL", ""))
        return f"{clean_name(name) or email.partition('@')[0]} <{email}>" if email else ""


HOURS = r"(?a)([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)"
SPAN = r"(?a)\d{1,3}(\.\d{1,3})?s?"
TRUE = frozenset(("1", "true", "yes", "on"))
FALSE = frozenset(("0", "false", "no", "off", ""))


def clean_name(text: str) -> str:
    """Return a name as git writes it: without the characters that end it; a name that is not UTF-8 does not fail."""
    readable = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(c for c in readable if c not in "<>\n\r\0").strip()


def checked(setting: Setting, value: str, *, variable: str = "") -> str:
    """Return `value`, or raise an error that says what was expected. `variable`: the variable that set it."""
    expected = misfit(setting, value)
    if not expected:
        return value
    if variable:
        raise Usage(f"{variable} is {value!r}; expected {expected}", hint=f"unset {variable}")
    raise Usage(
        f"the setting gitgate.{setting.name} is {value!r}; expected {expected}",
        hint=f"git config gitgate.{setting.name} {setting.default or '…'}",
    )


def misfit(setting: Setting, value: str) -> str:
    """Return what was expected where `value` does not fit the setting; else an empty text."""
    kind, _, words = setting.kind.partition(":")
    if kind == "flag" and value.lower() not in TRUE | FALSE:
        return "true or false"
    if kind == "number" and not value.isdecimal():
        return "a whole number"
    if kind == "word" and value not in words.split(","):
        return f"one of {words.replace(',', ', ')}"
    if kind == "span" and not re.fullmatch(SPAN, value):
        return "seconds, such as 1.5s or 0"
    if kind == "hours" and value and not re.fullmatch(HOURS, value):
        return "hours of this machine's clock, such as 22:00-07:00"
    if kind == "duration" and value:
        from .text import NoDuration, parse_duration

        try:
            parse_duration(value)
        except NoDuration as none:
            return none.expected
    return ""


# Of settings that are gone those that made an answer's conditions stricter, and the values that never did. Whoever set one
# relies on it: where it is still set in any other way, no answer counts.
TIGHTENED = {"requireSigned": FALSE, "requesterMayAnswer": TRUE}


def tightened_once(git: Mapping[str, str]) -> list[str]:
    """Return the settings of that kind that git's configuration still has."""
    return [
        name
        for name, harmless in TIGHTENED.items()
        if (value := git.get(f"gitgate.{name.lower()}")) is not None and value.strip().lower() not in harmless
    ]


def replaced_by(key: str) -> str:
    """Return what replaces a setting that is gone, by its key in git's configuration; empty where there is no such setting."""
    name = re.sub(r"^gitgate\.(notify)\..+\.", r"gitgate.\1.", key.lower())
    return next((words for gone, words in GONE.items() if name == f"gitgate.{gone.lower()}"), "")


def close_name(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean maxAgents?)` where one of the names is close; else an empty text."""
    return near(name, list(known))


def refuse_system() -> None:
    """Refuse Windows itself, with any Python, before anything is done: hooks, locks and processes there differ from
    Linux and macOS.
    """
    if sys.platform in ("win32", "cygwin", "msys"):
        raise UnsupportedSystem(
            "git gate runs on Linux and macOS, and on Windows through WSL",
            hint="wsl --install, then install git gate in there, and work in a clone that lies there",
        )


def environment() -> dict[str, str]:
    """Return the process environment, read here and handed on."""
    return dict(os.environ)


def may_hide_git(env: Mapping[str, str]) -> bool:
    """Return whether somebody may have hidden or overridden git's configuration; mostly not, at no further cost."""
    return "GIT_CONFIG_COUNT" in env or env.get("GIT_CONFIG_GLOBAL") == os.devnull


def load_settings(
    env: Mapping[str, str], git: Mapping[str, str], top: Path | None, flags: Mapping[str, str] | None = None
) -> Settings:
    trouble: list[str] = []
    unread: list[str] = []
    files = [] if top is None else [lazily(top / FILE, trouble, unread)]
    home = env.get("XDG_CONFIG_HOME") or (f"{env['HOME']}/.config" if env.get("HOME") else "")
    if home:
        files.append(lazily(Path(home) / "gitgate" / "config.yml", unread=unread))
    return Settings(env, git, flags or {}, tuple(files), trouble, unread)


def lazily(
    path: Path, trouble: list[str] | None = None, unread: list[str] | None = None
) -> Callable[[], Mapping[str, str]]:
    """Return a function that reads the settings in a file at first need: most commands never need it, and YAML is slow
    to import.

    With `trouble`, the error about the file is put there, and the file counts as empty; with `unread`, its other
    parts that nothing reads.
    """
    known: list[Mapping[str, str]] = []

    def read() -> Mapping[str, str]:
        if not known:
            try:
                known.append(read_file(path, unread))
            except GateError as failed:
                if trouble is None:
                    failed.hint = failed.hint or f"mend {path}"
                    raise
                trouble.append(f"{failed.message}; no setting of this file counts")
                known.append({})
        return known[0]

    return read


def read_regular(path: Path, most: int) -> bytes:
    """Return the bytes of a file. Raise FileNotFoundError where there is none, and Usage where it is something else or
    too large: nobody may ever write to a pipe's other end, and a device has none.
    """
    import stat

    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Usage(f"{path} is no file")
            with open(handle, "rb", closefd=False) as file:
                data = file.read(most + 1)
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise
    except OSError as unreadable:
        raise Usage(f"{path} cannot be read: {unreadable.strerror}") from unreadable
    if len(data) > most:
        raise Usage(f"{path} is larger than {most:,} bytes")
    return data


def read_file(path: Path, unread: list[str] | None = None) -> Mapping[str, str]:
    """Return the settings in a file. Its other parts, which nothing reads, are listed in `unread`, without an error."""
    try:
        data = read_regular(path, LIMITS.size)
    except FileNotFoundError:
        return {}

    if is_blank(data):
        return {}
    from .document.codec import parse_document

    root = parse_document(data, str(path))
    if unread is not None:
        strange = [(name, item) for name, item in root.mapping().items() if name not in IN_FILE]
        unread += [
            f"{path}, line {f.line}: nobody reads {f.path}{close_name(name, IN_FILE)}" for name, f in strange
        ]
    section = root.get("settings")
    if section is None:
        return {}
    found: dict[str, str] = {}
    for name, item in section.mapping().items():
        if name in GONE:
            if unread is not None:
                unread.append(f"{path}, line {item.line}: {name} counts no more: {GONE[name]}")
            continue
        if name not in BY_NAME:
            may = ", ".join(one.name for one in SETTINGS if not one.power)
            item.fail(
                f"there is no setting of that name{close_name(name, BY_NAME)}; those that may stand here are {may}",
                hint=f"mend line {item.line} of {path}",
            )
        value = item.value
        text = ("true" if value else "false") if isinstance(value, bool) else str(value)
        try:
            found[name] = checked(BY_NAME[name], text)
        except Usage as wrong:
            item.fail(wrong.message, hint=f"mend line {item.line} of {path}")
    return found
