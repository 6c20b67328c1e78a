"""Command line: `git gate completion SHELL`, and what a shell asks the command while somebody types.

`_GIT_GATE_COMPLETE=bash_source git-gate` prints the same script, as other click programs do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import Usage
from .terminal.screen import Screen, verb

if TYPE_CHECKING:
    from click.shell_completion import ShellComplete

PROGRAM = "git-gate"
VARIABLE = "_GIT_GATE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")

# `git gate …` is completed by git's own completion, which calls a function of the verb's name.
BASH = """
_git_gate() {
    local at=1 completion response type value
    while [[ $at -lt $COMP_CWORD && ${COMP_WORDS[at]} != gate ]]; do
        at=$((at + 1))
    done
    local words=(git-gate "${COMP_WORDS[@]:at+1}")
    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((COMP_CWORD - at)) _GIT_GATE_COMPLETE=bash_complete git-gate)
    while IFS=',' read -r type value; do
        case $type in
            dir) COMPREPLY=(); compopt -o dirnames 2>/dev/null ;;
            file) COMPREPLY=(); compopt -o default 2>/dev/null ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done <<< "$response"
}
"""
ZSH = """
_git-gate() {
    words[1]=git-gate
    _git_gate_completion
}
"""
FISH = """
function _git_gate_within_git
    set -l words (string replace -r '^.*?\\\\bgate\\\\b' 'git-gate' -- (commandline -cp))
    env _GIT_GATE_COMPLETE=fish_complete COMP_WORDS="$words" COMP_CWORD=(commandline -t) git-gate | string replace -r '^plain,' ''
end

complete --no-files --command git --condition '__fish_seen_subcommand_from gate' --arguments '(_git_gate_within_git)'
"""
WITHIN_GIT = {"bash": BASH, "zsh": ZSH, "fish": FISH}
SOURCE = {
    "bash": 'put this into ~/.bashrc:  eval "$(git-gate completion bash)"',
    "zsh": 'put this into ~/.zshrc, after compinit:  eval "$(git-gate completion zsh)"',
    "fish": "once:  git-gate completion fish > ~/.config/fish/completions/git-gate.fish",
}


@click.command("completion")
@click.argument("shell", required=False, metavar="[bash|zsh|fish]")
@verb
def completion_command(screen: Screen, shell: str | None) -> None:
    """Shell completion of verbs, options and gate ids, for `git-gate` and `git gate`: prints what to source.

    \b
    git gate completion bash
    """
    import sys

    name = shell or screen.env.get("SHELL", "").rpartition("/")[2]
    if name not in SHELLS:
        raise Usage(
            f"{name!r} is not a shell that is known; expected {', '.join(SHELLS)}",
            hint="git gate completion bash",
        )
    screen.emit("completion", {"shell": name, "script": script(name)}, script(name))
    if sys.stdout.isatty():
        screen.say(SOURCE[name])


def script(shell: str) -> str:
    """Click's script for `git-gate`, and ours for `git gate`."""
    return talker(shell, click.Group()).source().rstrip("\n") + "\n" + WITHIN_GIT[shell].rstrip("\n")


def talker(shell: str, verbs: click.Command) -> ShellComplete:
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is None:
        raise Usage(f"{shell!r} is not a shell that is known; expected {', '.join(SHELLS)}")
    return found(verbs, {}, PROGRAM, VARIABLE)


def answer_shell(instruction: str, verbs: click.Command) -> int:
    """What a shell wants: `bash_source` the script, `bash_complete` the words that fit."""
    shell, _, wish = instruction.partition("_")
    if shell not in SHELLS or wish not in ("source", "complete"):
        raise Usage(
            f"{VARIABLE}={instruction}: expected SHELL_source or SHELL_complete, for {', '.join(SHELLS)}"
        )
    click.echo(script(shell) if wish == "source" else talker(shell, verbs).complete())
    return 0
