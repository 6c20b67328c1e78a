#!/bin/sh
# ask-human.sh QUESTION [text|yesno|select] [OPTION,OPTION,…]   (written by `git gate init --script`)
# Asks a person and waits; the answer goes to standard output, talk to standard error.
# Exit: 0 answered or yes, 3 no, 9 closed without an answer, 124 the deadline passed, 2 wrong usage, 1 anything else.
set -eu

usage() {
  echo "usage: ask-human.sh QUESTION [text|yesno|select] [OPTION,OPTION,...]" >&2
  exit 2
}

[ $# -ge 1 ] && [ $# -le 3 ] && [ -n "$1" ] || usage
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

if command -v git-gate >/dev/null 2>&1; then
  exec git-gate ask --wait "$@" -- "$question"
fi
program=$(git config --type=path --get gitgate.program 2>/dev/null) || program=
if [ -z "$program" ]; then
  echo "ask-human.sh: git gate is not installed here: pip install git-gate" >&2
  exit 1
fi
exec "$program" ask --wait "$@" -- "$question"
