"""Text: the programs that a shell line would run: what stands in it, and what shells, wrappers and builtins run of their own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from .expansion import GAPS, MADE, MADE_SPLIT, ONE, SPLIT, SPLITS
from .grammar import Simple, read
from .words import NAME, Budget, Unreadable, budget_for, crude

Words = tuple[str, ...]
# Commands that a command runs, each with whether it is sure that one stands there.
Starts = Iterable[tuple[Words, bool]]

MOST_NESTED = 12
LONG_VALUE = 8

SHELLS = frozenset("sh bash dash ash zsh ksh mksh rbash fish busybox-sh".split())
SHELL_VALUES = frozenset(("--rcfile", "--init-file"))
STANDARD_INPUT = re.compile(r"-|/dev/stdin|/dev/fd/\d+|/proc/(?:self|\d+)/fd/\d+")
# What may stand before a command.
LEADS = r"(?:if|then|elif|else|while|until|do|\{|!)\Z|\w+="
GAP = re.compile("[\ufdd0-\ufdd3]")


@dataclass(frozen=True)
class Wrapper:
    """Wrapper: a program that runs another one. It lists the options with a value, how many words precede the command,
    whether assignments may, and whether there are options that are not listed, so that any of these may take a
    value.
    """

    values: frozenset[str] = frozenset()
    operands: int = 0
    assigns: bool = False
    closed: bool = True


def wrapper(values: str = "", operands: int = 0, *, assigns: bool = False, closed: bool = True) -> Wrapper:
    return Wrapper(frozenset(values.split()), operands, assigns, closed)


WRAPPERS = {
    "sudo": wrapper("-u -g -h -p -C -D -R -r -t -T -U --user --group --host --prompt --chdir --chroot --role --type --other-user", assigns=True),
    "doas": wrapper("-u -C -a"),
    "env": wrapper("-u -C -S --unset --chdir --split-string", assigns=True),
    "cross-env": wrapper(assigns=True),
    "dotenv": wrapper("-f -e --file", closed=False),
    "exec": wrapper("-a"),
    "builtin": wrapper(), "nohup": wrapper(), "setsid": wrapper(), "noglob": wrapper(), "nocorrect": wrapper(), "chronic": wrapper(),
    "time": wrapper("-f -o --format --output"),
    "nice": wrapper("-n --adjustment"),
    "ionice": wrapper("-c -n -p -P -u --class --classdata"),
    "chrt": wrapper("-T -P -D", 1), "taskset": wrapper("", 1),
    "timeout": wrapper("-s -k --signal --kill-after", 1), "gtimeout": wrapper("-s -k --signal --kill-after", 1),
    "stdbuf": wrapper("-i -o -e --input --output --error"),
    "flock": wrapper("-w -E --wait --timeout --conflict-exit-code", 1),
    "chroot": wrapper("", 1), "repeat": wrapper("", 1), "envdir": wrapper("", 1), "setuidgid": wrapper("", 1), "gosu": wrapper("", 1),
    "su-exec": wrapper("", 1), "faketime": wrapper("-f", 1), "setarch": wrapper("", 1),
    "busybox": wrapper(), "toybox": wrapper(),
    "xargs": wrapper("-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var"),
    "watch": wrapper("-n -q --interval --equexit"),
    "sshpass": wrapper("-p -f -d -P"),
    "ssh": wrapper("-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w", 1),
    **dict.fromkeys(
        "setpriv unshare nsenter runuser su systemd-run systemd-inhibit strace ltrace perf valgrind gdb script parallel sem unbuffer rlwrap "
        "cpulimit prlimit softlimit chpst bwrap firejail proot fakeroot fakechroot torsocks proxychains proxychains4 caffeinate arch "
        "xvfb-run dbus-run-session dumb-init tini catchsegv hyperfine entr watchexec nodemon concurrently npx bunx pnpx uvx "
        "tmux screen nix-shell start-stop-daemon daemonize logsave mispipe ts-node-dev pkexec sg newgrp expect sudoedit machinectl".split(),
        wrapper(closed=False),
    ),
}  # fmt: skip
# Programs of which one verb runs the words after it.
RUN_VERBS = {
    **dict.fromkeys("uv poetry pipenv pdm hatch rye pipx conda mamba micromamba deno bun npm pnpm yarn".split(), frozenset(("run", "exec", "x", "dlx", "tool"))),
    **dict.fromkeys("docker podman nerdctl kubectl oc docker-compose podman-compose lxc".split(), frozenset(("run", "exec", "debug"))),
    **dict.fromkeys("aws-vault direnv mise asdf rbenv pyenv nodenv chamber op doppler infisical bundle nix vault sops heroku flyctl fly".split(), frozenset(("exec", "run", "x", "shell", "develop", "exec-env", "exec-file", "ssh"))),
    "git": frozenset(("bisect", "submodule", "rebase", "filter-branch", "difftool", "mergetool")),
}  # fmt: skip
# A value of one of these is run as a shell line, sooner or later.
TEXT_VARIABLES = frozenset(
    "PS0 PS1 PS4 PROMPT_COMMAND EDITOR VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_SSH_COMMAND GIT_SSH "
    "GIT_ASKPASS SSH_ASKPASS GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND SUDO_EDITOR FCEDIT RSYNC_RSH".split()
)
# These set a variable whose name is one of their words.
SETTERS = frozenset(
    "read readarray mapfile printf getopts wait let declare typeset local export readonly".split()
)
# With `-n` the variable that these name stands for another one.
REFERRERS = frozenset(("declare", "typeset", "local"))
FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))


@dataclass(frozen=True)
class LineCommand:
    """Program with its arguments, as a line may run it. `sure`: it is in a command's place, not somewhere behind a
    wrapper whose options are not known.
    """

    words: Words
    sure: bool = True
    writes: Words = ()
    reads: Words = ()

    @property
    def known(self) -> bool:
        """Return whether the program's name is known."""
        return bool(self.words) and GAP.search(self.words[0]) is None


@dataclass(frozen=True)
class Doubt:
    """Doubt about what a command runs. `spelt`: the command as written, where only the environment chooses what it
    runs.
    """

    why: str
    spelt: str = ""


@dataclass(frozen=True)
class Line:
    """Programs that a line may run. `doubts`: why it is unknown what else it runs. `open`: some words of a program
    that runs other programs are not known.
    """

    text: str
    runs: tuple[LineCommand, ...]
    doubts: tuple[Doubt, ...] = ()
    open: bool = False

    @property
    def unclear(self) -> str:
        """First reason why it is unknown what the line runs; empty where it is known."""
        return self.doubts[0].why if self.doubts else ""

    @property
    def crude(self) -> str:
        return crude(self.text)


@lru_cache(maxsize=16)
def read_line(text: str) -> Line:
    """Return the programs that a line may run. No line is an error: of an unreadable one only the words are known."""
    try:
        search = Search(budget_for(text))
        search.add_text(text)
        return Line(text, tuple(search.runs), search.found_doubts(), search.open)
    except (Unreadable, RecursionError) as wrong:
        return Line(text, tuple(rough(text)), (Doubt(f"it cannot be read: {wrong}"),), open=True)


def rough(text: str) -> Iterator[LineCommand]:
    """Yield possible commands of a line that cannot be read: it is cut at every operator, and quotes are removed."""
    for part in re.split(r"[;&|()<>`\n]+", crude(text)):
        words = part.split()
        first = next((n for n, word in enumerate(words) if not re.match(LEADS, word)), len(words))
        if first < len(words):
            yield LineCommand((bare(words[first]), *words[first + 1 :]), sure=False)


def bare(word: str) -> str:
    """Return a program's name without its folder."""
    return word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")


class Search:
    """Search for the programs that one line may run."""

    def __init__(self, work: Budget) -> None:
        self.work = work
        self.runs: list[LineCommand] = []
        self.doubts: list[Doubt] = []
        self.open = False
        self.depth = 0
        self.spelt = ""

    def add_text(self, text: str, *, sure: bool = True) -> None:
        """Add every program that a text runs as a shell line."""
        if MADE in text or MADE_SPLIT in text:
            self.doubt("a text that is put together when it runs is run as a command")
        elif GAP.search(text):
            self.open = True
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise Unreadable("too deep")
        for command in read(text, self.work, self.depth):
            self.add_command(command, sure=sure)
        self.depth -= 1

    def doubt(self, why: str, *words: str) -> None:
        """Note that it is unknown what a command runs. `words`: those that show it, where its own words do.

        A command in a text that another program runs, or that the line itself makes, is not as it is written.
        """
        made = not words or any(MADE in word or MADE_SPLIT in word for word in words)
        self.doubts.append(Doubt(why, "" if made or self.depth > 1 else self.spelt))

    def found_doubts(self) -> tuple[Doubt, ...]:
        """Return the doubts about the line; none of them as it is written, where it may set a variable under a name that it hides."""
        hidden = bool(self.doubts) and (
            "${!" in crude(self.work.text) or any(map(self.hides_name, self.runs))
        )
        return tuple(Doubt(one.why) for one in self.doubts) if hidden else tuple(self.doubts)

    def hides_name(self, run: LineCommand) -> bool:
        """Return whether a command may set a variable whose name is not in the line."""
        if run.words[:1] == ("printf",):
            words = (
                run.words[1:3] if run.words[1:2] and re.match("-v|-?[\ufdd0-\ufdd3]", run.words[1]) else ()
            )
        elif run.words and run.words[0] in SETTERS:
            words = run.words[1:]
        else:
            return False
        named = [word.partition("=")[0] for word in words]
        refers = run.words[0] in REFERRERS and any(re.match(r"-\w*n", word) for word in words)
        return refers or any(
            GAP.search(name) or not all(self.work.names[each] for each in NAME.findall(name))
            for name in named
        )

    def add_command(self, command: Simple, *, sure: bool = True) -> None:
        if self.depth == 1:
            self.spelt = command.spelt
        for name, value in command.assigned:
            self.add_assigned(name, value)
        words = tuple(word.removeprefix("=") if not n else word for n, word in enumerate(command.words))
        if words:
            self.add_words(words, command, sure=sure)
        elif command.writes or command.reads:
            self.runs.append(LineCommand((), sure, tuple(command.writes), tuple(command.reads)))

    def add_assigned(self, name: str, value: str) -> None:
        if name in TEXT_VARIABLES and value:
            self.add_text(value, sure=False)

    def add_words(self, words: Words, command: Simple, *, sure: bool = True) -> None:
        """Add one command, and the commands that its own words run, from every place where one may begin."""
        todo: list[Iterator[tuple[Words, bool]]] = [iter(((words, sure),))]
        seen: set[tuple[Words, bool]] = set()
        while todo:
            state = next(todo[-1], None)
            if state is None:
                todo.pop()
            elif state[0] and state not in seen:
                seen.add(state)
                self.work.spend(len(state[0]) + sum(map(len, state[0])) // 16)
                todo.append(iter(self.add_one(state[0], command, sure=state[1])))

    def add_one(self, words: Words, command: Simple, *, sure: bool) -> Starts:
        """Add one program; return the words that it runs as other programs."""
        name, unknown = bare(words[0]), is_unknown(words[0])
        writes, reads = tuple(command.writes), tuple(command.reads)
        self.runs.append(LineCommand((words[0] if unknown else name, *words[1:]), sure, writes, reads))
        if unknown:
            self.open = True
            if sure:
                self.doubt("a program that is chosen when it runs", words[0])
            return []
        if name in SHELLS:
            return self.shell(words, command)
        if name in HANDLERS:
            return HANDLERS[name](self, words, command)
        found = WRAPPERS.get(name)
        if found is not None:
            return self.wrapped(words, found, sure=sure)
        if name in RUN_VERBS and RUN_VERBS[name].intersection(words[1:6]):
            self.add_texts(words[2:])
            return ((words[place:], False) for place in range(2, len(words)) if may_begin(words[place]))
        return []

    def wrapped(self, words: Words, how: Wrapper, *, sure: bool = True) -> Starts:
        """Return the places where the command of a wrapper begins."""
        found = self.starts(words, how)
        if not how.closed or len(found) > 1:
            self.add_texts(words[1:])
        return [
            (words[place:], sure and certain)
            for place, certain in found
            if certain or may_begin(words[place])
        ]

    def starts(self, words: Words, how: Wrapper) -> list[tuple[int, bool]]:
        """Return the places where a wrapper's command may begin, in order, and whether each is certain."""
        found = command_starts(words, how)
        if any(SPLITS.intersection(word) for word in words[1 : max(found, default=len(words))]):
            self.open = True
        return sorted(found.items())

    def add_texts(self, words: Words) -> None:
        """Add the commands in words that hold blanks, as these may be lines of a shell, so far as they can be read."""
        for word in words:
            if re.search(r"[\s;|&$`]", word):
                self.attempt(word)

    def attempt(self, text: str) -> None:
        """Add the commands of a text that may be a shell line, and may be anything else."""
        kept, depth = len(self.doubts), self.depth
        try:
            self.add_text(text, sure=False)
        except Unreadable:
            self.open = True
            self.depth = depth
        if len(self.doubts) > kept:
            del self.doubts[kept:]
            self.open = True

    # Programs with rules of their own

    def shell(self, words: Words, command: Simple) -> Starts:
        """Find what a shell runs: a text that it is given, a script, or its standard input."""
        place, text = shell_operand(words)
        if place < 0:
            self.doubt("a shell whose words are chosen when it runs", *words)
            self.add_texts(words[1:])
            return []
        if text:
            if place < len(words):
                self.add_text(words[place])
            return []
        if place < len(words) and not STANDARD_INPUT.fullmatch(words[place]):
            return self.script(words[place:])
        self.fed(command)
        return []

    def script(self, words: Words) -> Starts:
        """Add a script as a program like any other; it is not read."""
        if MADE in words[0] or MADE_SPLIT in words[0]:
            self.doubt("a script that is made when it runs")
            return []
        self.runs.append(LineCommand((bare(words[0]), *words[1:])))
        return []

    def fed(self, command: Simple) -> None:
        """Add the lines that a shell reads, where the text has them; else note a doubt, as they come from elsewhere."""
        for text in command.fed:
            self.add_text(text)
        if command.fed:
            return
        for name in command.reads:
            if MADE in name or MADE_SPLIT in name:
                self.doubt("a shell that runs what another program says")
        if not command.reads:
            self.doubt("a shell that runs what it is given")

    def source(self, words: Words, command: Simple) -> Starts:
        rest = words[2:] if words[1:2] == ("--",) else words[1:]
        if not rest:
            return []
        if STANDARD_INPUT.fullmatch(rest[0]):
            self.fed(command)
            return []
        return self.script(rest)

    def evaluate(self, words: Words, _command: Simple) -> Starts:
        self.add_text(" ".join(words[2:] if words[1:2] == ("--",) else words[1:]))
        return []

    def trap(self, words: Words, _command: Simple) -> Starts:
        rest = words[2:] if words[1:2] == ("--",) else words[1:]
        if rest and rest[0] != "-" and not rest[0].startswith(("-p", "-l")):
            self.add_text(rest[0])
        return []

    def alias(self, words: Words, _command: Simple) -> Starts:
        for word in words[1:]:
            _, equals, text = word.partition("=")
            if equals and text:
                self.add_text(f"{text} {SPLIT}")
        return []

    def hash(self, words: Words, _command: Simple) -> Starts:
        """Find the command of `hash -p FILE NAME`, which makes a name mean a file."""
        return [
            ((words[place + 1], SPLIT), True) for place in range(1, len(words) - 1) if words[place] == "-p"
        ]

    def command(self, words: Words, _command: Simple) -> Starts:
        place = 1
        while place < len(words) and words[place].startswith("-"):
            if re.fullmatch(r"-p*[vV][pvV]*", words[place]):
                return []
            place += 1
        return [(words[place:], True)]

    def env(self, words: Words, _command: Simple) -> Starts:
        """Find what `env` runs: its words; one of its options is a line that it cuts into words."""
        found = self.starts(words, WRAPPERS["env"])
        first = min((place for place, _ in found), default=len(words))
        for place in range(1, first):
            word, after = words[place], words[place + 1 : place + 2]
            split = re.fullmatch(r"(?s)(?:-[i0v]*S|--split-string=?)(.*)", word)
            if split:
                self.add_text(" ".join((split[1] or " ".join(after), *words[first:])))
            name, equals, value = word.partition("=")
            if equals:
                self.add_assigned(name, value)
            if value.startswith("() {"):
                self.attempt(value.removeprefix("()"))
        return ((words[place:], certain) for place, certain in found)

    def find(self, words: Words, _command: Simple) -> Starts:
        """Find what `find` runs: the words behind `-exec` and its like, up to `;` or `+`."""
        found: list[tuple[Words, bool]] = []
        self.open = self.open or any(MADE_SPLIT in word for word in words)
        start = 0
        for place, word in enumerate(words):
            if word in FIND_RUNS:
                start = place + 1
            elif start and (word == ";" or (word == "+" and words[place - 1] == "{}")):
                found.append((filled(words[start:place], "{}"), True))
                start = 0
        return [*found, (filled(words[start:], "{}"), True)] if start else found

    def fd(self, words: Words, _command: Simple) -> Starts:
        for place, word in enumerate(words):
            if word in ("-x", "-X", "--exec", "--exec-batch"):
                return [((*filled(words[place + 1 :], "{}"), SPLIT), True)]
        return []

    def xargs(self, words: Words, _command: Simple) -> Starts:
        """Find what `xargs` runs: its words with more behind them, or with something in place of `{}`."""
        found = self.starts(words, WRAPPERS["xargs"])
        first = min((place for place, _ in found), default=len(words))
        mark = ""
        for place in range(1, first):
            if own := re.fullmatch(r"(?s)-\w*?I(.*)|-i(.*)|--replace(?:=(.*))?", words[place]):
                mark = (
                    own[1]
                    or own[2]
                    or own[3]
                    or (words[place + 1] if own[1] is not None and place + 1 < first else "{}")
                )
        if mark:
            return ((filled(words[place:], mark), certain) for place, certain in found)
        return (((*words[place:], MADE_SPLIT), certain) for place, certain in found)

    def joined(self, words: Words, _command: Simple) -> Starts:
        """Find what a program runs that joins its words to a shell line, here or elsewhere."""
        for place, certain in self.starts(words, WRAPPERS[bare(words[0])]):
            if certain:
                self.add_text(" ".join(words[place:]), sure=False)
            else:
                self.attempt(" ".join(words[place:]))
        return []

    def parallel(self, words: Words, _command: Simple) -> Starts:
        until = next((n for n, word in enumerate(words) if word.startswith(":::")), len(words))
        found = self.starts(words[:until], WRAPPERS["parallel"])
        if not found:
            self.doubt("a program that runs what it is given")
        for place, _ in found:
            self.attempt(" ".join((*filled(words[place:until], "{}"), SPLIT)))
        return []

    def flock(self, words: Words, _command: Simple) -> Starts:
        for place, word in enumerate(words[:-1]):
            if word in ("-c", "--command"):
                self.add_text(words[place + 1])
        return self.wrapped(words, WRAPPERS["flock"])

    def sudo(self, words: Words, _command: Simple) -> Starts:
        """Find what `sudo` runs: its words; with some options by a shell."""
        if words[1:2] and words[1] in ("-l", "--list", "-v", "-k", "-K"):
            return []
        found = self.starts(words, WRAPPERS["sudo"])
        first = min((place for place, _ in found), default=len(words))
        if any(re.fullmatch(r"-\w*[si]\w*|--shell|--login", word) for word in words[1:first]):
            for place, _ in found:
                self.attempt(" ".join(words[place:]))
        return ((words[place:], certain) for place, certain in found)

    def git(self, words: Words, _command: Simple) -> Starts:
        """Find the commands that git itself runs: an alias of the line, and those in arguments of some verbs."""
        for place, word in enumerate(words):
            if word.lower().startswith("alias.") and "=" in word:
                value = word.partition("=")[2]
                self.attempt(value[1:] if value.startswith("!") else f"git {value}")
            elif word in ("-x", "--exec") or word.startswith("--exec="):
                self.attempt(word.partition("=")[2] or " ".join(words[place + 1 : place + 2]))
        if RUN_VERBS["git"].intersection(words[1:6]) and {"run", "foreach", "bisect"}.intersection(words):
            self.add_texts(words[2:])
            return ((words[place:], False) for place in range(3, len(words)) if may_begin(words[place]))
        return []

    def batch(self, _words: Words, command: Simple) -> Starts:
        for text in command.fed:
            self.add_text(text)
        if not command.fed:
            self.open = True
        return []

    def declare(self, words: Words, _command: Simple) -> Starts:
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if equals:
                self.add_assigned(name, value)
        return []


HANDLERS: dict[str, Callable[[Search, Words, Simple], Starts]] = {
    "source": Search.source, ".": Search.source, "eval": Search.evaluate, "trap": Search.trap, "alias": Search.alias, "hash": Search.hash,
    "command": Search.command, "env": Search.env, "find": Search.find, "gfind": Search.find, "fd": Search.fd, "fdfind": Search.fd,
    "xargs": Search.xargs, "gxargs": Search.xargs, "watch": Search.joined, "ssh": Search.joined, "parallel": Search.parallel, "sem": Search.parallel,
    "flock": Search.flock, "sudo": Search.sudo, "git": Search.git, "at": Search.batch, "batch": Search.batch,
    "export": Search.declare, "declare": Search.declare, "typeset": Search.declare, "local": Search.declare, "readonly": Search.declare,
}  # fmt: skip


def is_unknown(word: str) -> bool:
    """Return whether a word in a program's place leaves its name open. A folder may come from the environment."""
    folder, slash, name = word.rpartition("/")
    if GAP.search(name) or MADE_SPLIT in folder:
        return True
    return not slash and not name


def may_begin(word: str) -> bool:
    """Return whether a word may be a program's name. After an unknown option, any such word may begin a command."""
    return bool(word) and not word.startswith("-") and not re.search(r"[\s;|&]", word)


def filled(words: Words, mark: str) -> Words:
    """Return words with an unknown value in place of a mark."""
    return tuple(word.replace(mark, MADE) for word in words)


def command_starts(words: Words, how: Wrapper) -> dict[int, bool]:
    """Return the places where a wrapper's command may begin, and for each whether it is certain."""
    found: dict[int, bool] = {}
    todo: list[tuple[int, int, bool]] = [(1, how.operands, True)]
    seen: set[tuple[int, int, bool]] = set()
    while todo:
        place, operands, sure = state = todo.pop()
        if place >= len(words) or state in seen:
            continue
        seen.add(state)
        word = words[place]
        if word == "--":
            if place + 1 + operands < len(words):
                found[place + 1 + operands] = sure
        elif word.startswith("-"):
            todo += [(after, operands, sure and known) for after, known in after_option(word, place, how)]
        elif how.assigns and re.match(r"[A-Za-z_]\w*=|\w+%%=", word):
            todo.append((place + 1, operands, sure))
        elif how.assigns and "=" in word:
            found[place] = found.get(place, False)
            todo.append((place + 1, operands, sure))
        elif SPLITS.intersection(word):
            # It may be options, an operand, several of these, or nothing.
            found[place] = found.get(place, False) or (sure and not operands)
            todo += [(place + 1, left, False) for left in range(operands + 1)]
        elif operands:
            todo.append((place + 1, operands - 1, sure))
        else:
            found[place] = found.get(place, False) or sure
    return found


def after_option(word: str, place: int, how: Wrapper) -> list[tuple[int, bool]]:
    """Return the places where the words continue after an option, and whether each is certain."""
    if word in how.values:
        return [(place + 2, True)]
    if "=" in word or word[:2] in how.values:
        return [(place + 1, True)]
    if not word.startswith("--") and f"-{word[-1]}" in how.values:
        return [(place + 2, True)]
    shortened = word.startswith("--") and any(value.startswith(word) for value in how.values)
    return [(place + 1, False), (place + 2, False)] if shortened or not how.closed else [(place + 1, True)]


def shell_operand(words: Words) -> tuple[int, bool]:
    """Return the place of a shell's first operand, and whether that is a text to run (`-c`); -1 where it is unknown."""
    place, text, reads = 1, False, False
    while place < len(words):
        word = words[place]
        if (
            GAPS.intersection(word)
            and (SPLITS.intersection(word) or not word.startswith(("/", ".")))
            and not text
        ):
            return (
                (place, False)
                if not SPLITS.intersection(word) and ONE in word and "/" in word
                else (-1, False)
            )
        if word in ("-", "--"):
            place += 1
            break
        if not word.startswith(("-", "+")):
            break
        if word.startswith("--"):
            text = text or word.startswith("--command")
            place += 2 if word in SHELL_VALUES else 1
            continue
        text = text or "c" in word[1:]
        reads = reads or "s" in word[1:]
        place += 1 + word[1:].count("o") + word[1:].count("O")
    return (len(words) if reads and not text else place), text
