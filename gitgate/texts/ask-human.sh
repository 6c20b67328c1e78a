#!/bin/sh
# ask-human.sh QUESTION [text|yesno|select] [OPTION,OPTION,…]   (written by `git gate init --script`)
# Asks a person and waits; the answer goes to standard output (of yesno: yes or no), talk to standard error.
# ASK_HUMAN_TIMEOUT=5m closes the question after so long; ASK_HUMAN_AGENT=NAME says who asks, ASK_HUMAN_PRIORITY=high how pressing it is.
# Exit: 0 answered or yes, 3 no, 9 closed without an answer, 124 the deadline passed, 2 wrong usage, 1 anything else.
set -eu

usage() {
  echo "usage: ask-human.sh QUESTION [text|yesno|select] [OPTION,OPTION,...]" >&2
  exit 2
}

case $# in 1 | 2 | 3) [ -n "$1" ] || usage ;; *) usage ;; esac
question=$1
options=${3:-}
type=${2:-}
[ -n "$type" ] || type=$([ -n "$options" ] && echo select || echo text)

case $type in
  text | input) set -- --type text ;;
  yesno | confirmation | approval) set -- --type approval ;;
  select | choice)
    [ -n "$options" ] || usage
    set -- --type choice --options "$options"
    ;;
  *) usage ;;
esac
# What nobody answers in time is closed by itself, also where this script was ended: nobody is asked for nothing.
[ -z "${ASK_HUMAN_TIMEOUT:-}" ] || set -- "$@" --timeout "$ASK_HUMAN_TIMEOUT" --on-timeout stuck
[ -z "${ASK_HUMAN_AGENT:-}" ] || set -- "$@" --agent "$ASK_HUMAN_AGENT"
[ -z "${ASK_HUMAN_PRIORITY:-}" ] || set -- "$@" --priority "$ASK_HUMAN_PRIORITY"

program=$(command -v git-gate) || program=$(git config --type=path --get gitgate.program 2>/dev/null) || program=
if [ -z "$program" ]; then
  echo "ask-human.sh: git gate is not installed here; in a clone of its repository: pipx install '.[forms]'" >&2
  exit 1
fi
[ "$type" = yesno ] || exec "$program" ask --wait "$@" -- "$question"

code=0
answer=$("$program" ask --wait "$@" -- "$question") || code=$?
newline='
'
case $answer in
  approved | "approved$newline"*) answer=yes${answer#approved} ;;
  rejected | "rejected$newline"*) answer=no${answer#rejected} ;;
esac
[ -z "$answer" ] || printf '%s\n' "$answer"
exit "$code"
