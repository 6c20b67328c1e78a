"""Lines of a shell: which programs they would run, and which patterns name them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.text.lines import could_be, find_doubts, names
from gitgate.text.lines.programs import read_line
from gitgate.text.lines.words import MOST_TEXT
from gitgate.text.patterns import of_text

APPLY = "terraform apply*"

RUN_IT = [
    "terraform apply", "terraform  \t apply -auto-approve", "cd infra && terraform apply", "TF_LOG=1 terraform apply", "/usr/bin/terraform apply",
    "./terraform apply", "~/bin/terraform apply", '"$HOME"/bin/terraform apply', "terraform.exe apply", "TERRAFORM apply",
    # redirections, wherever they stand
    "2>/dev/null terraform apply", ">log terraform apply", "terraform 2>&1 apply", "terraform >log apply", "<in terraform apply", "{fd}>log terraform apply",
    "terraform &>log apply", ">&2 terraform apply", ">|log terraform apply", "<>f terraform apply", "terraform apply<<<x", "2>&1>log terraform apply",
    # assignments
    "A[0]=1 terraform apply", "A[1 + 2]+=x terraform apply", "A=(x y) terraform apply", "A+=1 B='x y' terraform apply", "A=$(date) terraform apply",
    # quotes, escapes, continued lines
    'ter"raf"orm apply', "t''erraform a'p'ply", "\\terraform apply", "terra\\\nform app\\\nly", "$'terraform' apply", "$'\\x74erraform' apply",
    "$'\\164erraform' $'a\\u0070ply'", '$"terraform" apply', "'terraform' \"apply\"", "terraform\\\n apply", "&& terraform apply".removeprefix("&& "),
    # lists, pipes, groups
    "true; terraform apply", "true & terraform apply", "false || terraform apply", "yes | terraform apply", "yes |& terraform apply", "! terraform apply",
    "(terraform apply)", "( (terraform apply) )", "((terraform apply) )", "{ terraform apply; }", "true\nterraform apply", "ls #x\nterraform apply", "ls \\#x; terraform apply",
    "time terraform apply", "time -p terraform apply", "time -f %e terraform apply", "true &\\\n& terraform apply", "coproc terraform apply", "coproc T { terraform apply; }",
    # compound commands
    "if true; then terraform apply; fi", "if terraform apply; then :; fi", "if :; then :; elif terraform apply; then :; else :; fi", "while terraform apply; do :; done",
    "until :; do terraform apply; done", "for f in a b; do terraform apply; done", "for ((i=0;i<3;i++)); do terraform apply; done", "for f; do terraform apply; done",
    "select x in a; do terraform apply; done", "case x in a) :;; (x|y) terraform apply;; esac", "case $(terraform apply) in x) ;; esac", "case x in x) : ;& y) terraform apply\nesac",
    "[[ -f x ]] && terraform apply", "[[ $(terraform apply) ]]", "[[ x =~ ^(a|b)$ && y ]] || terraform apply", "(( x > 1 )) && terraform apply", "if [ x = ']' ]; then terraform apply; fi",
    # functions
    "function f { terraform apply; }", "f() { terraform apply; }", "f ()\n{ terraform apply\n}; f", "function f() ( terraform apply )", "f() if :; then terraform apply; fi",
    'echo() { terraform "$@"; }; echo apply',
    # substitutions
    "echo $(terraform apply)", 'echo "$(terraform apply)"', "echo `terraform apply`", 'echo "`terraform apply`"', "echo `echo \\`terraform apply\\``", "diff <(terraform apply) x",
    "tee >(terraform apply)", "echo ${x:-$(terraform apply)}", 'echo "${x:-`terraform apply`}"', "echo $(( $(terraform apply) + 1 ))", "a=$(terraform apply)", "a=(1 $(terraform apply))",
    "A[$(terraform apply)]=1", "echo $[ $(terraform apply) ]", "echo >$(terraform apply)", "for x in $(terraform apply); do :; done", "echo $( (terraform apply) )",
    'echo "${x#"$(terraform apply)"}"', "echo ${x/a/$(terraform apply)}", "echo \"a $(echo \"b $(terraform apply)\")\"",
    # here-documents
    "cat <<E\n$(terraform apply)\nE", "cat <<E\nx\nE\nterraform apply", "cat <<'E' && terraform apply\nx\nE", "cat <<-E\n\tx\n\tE\nterraform apply", "bash <<E\nterraform apply\nE",
    "bash <<'E'\nterraform apply\nE", "sh -s <<< 'terraform apply'", "cat <<E\nx\\\\\nE\nterraform apply", "cat <<E\nE\\\n\nterraform apply".replace("\\\n\n", "\n"),
    "cat <<E1; cat <<E2\na\nE1\nb\nE2\nterraform apply", "cat <<\"E F\"\nx\nE F\nterraform apply", "source /dev/stdin <<< 'terraform apply'",
    # expansions of words
    "{terraform,apply}",  "terraform a{pply,}", "/usr/bin/terrafor? apply", "/usr/bin/terra* apply", "/usr/bin/terrafor[m] apply", 'terrafor["m"] apply',
    "a=terraform; $a apply", "a='terraform apply'; $a", 'a=terraform && "$a" apply', "a=terra; ${a}form apply", "a=apply; terraform $a", "export a=terraform; $a apply",
    "$X apply", "terraform $Y", 'terraform "$Y" x', "$X terraform apply", "terraform $X apply", "terra$X apply", "terraform a$X", "${x:-terraform} apply", "$(which terraform) apply",
    "x=armterraform; ${x#arm} apply", "read a <<< terraform; $a apply", "printf -v a terraform; $a apply", "for a in terraform; do $a apply; done", "set -- terraform; $1 apply",
    "a=(terraform apply); \"${a[@]}\"", "a=echo; false && a=terraform; $a apply", "false && a=echo; terraform apply", ": terraform; $_ apply", "a=b; b=terraform; ${!a} apply",
    "f() { \"$@\"; }; f terraform apply",  "x='$(terraform apply)'; : ${x@P}",
    # programs that run others
    "env " + " ".join(f"A{n}=1" for n in range(13)) + " terraform apply", "env -i -u X terraform apply", "env -S 'terraform apply'", "env -iS 'terraform apply'", "env - terraform apply",
    "sudo -u x -E terraform apply", "sudo -nu x terraform apply", "sudo --us x terraform apply", "sudo -s terraform apply", "doas terraform apply", "nohup terraform apply &",
    "timeout -k 5 10 terraform apply", "timeout --sig KILL 10 terraform apply", "timeout 10 -- terraform apply", "nice -n 5 terraform apply", "nice -5 terraform apply", "ionice -c2 terraform apply",
    "setsid -w terraform apply", "stdbuf -oL terraform apply", "command terraform apply", "command -p -- terraform apply", "builtin command terraform apply", "exec -a x terraform apply",
    "exec terraform apply", "flock /tmp/l terraform apply", "flock -n /tmp/l -c 'terraform apply'", "watch -n 1 terraform apply", "watch 'terraform apply'", "ssh -p 22 host terraform apply",
    "ssh host 'cd x && terraform apply'", "xargs terraform", "echo apply | xargs -n1 terraform", "xargs -I % terraform %", "xargs -I{} sh -c 'terraform apply'", "xargs env terraform",
    "find . -exec terraform apply {} \\;", "find . -name x -execdir terraform apply {} +", "find . -ok sh -c 'terraform apply' ';'", "find . -exec true \\; -exec terraform apply \\;",
    "fd x -x terraform apply", "parallel terraform ::: apply", "parallel 'terraform apply {}'", "chroot / terraform apply", "busybox sh -c 'terraform apply'", "su -c 'terraform apply' x",
    "script -c 'terraform apply'", "strace -f -o x terraform apply", "unshare -r terraform apply", "tmux new-session -d 'terraform apply'", "nix-shell -p x --run 'terraform apply'",
    "aws-vault exec prod -- terraform apply", "docker run --rm -v x:/x img terraform apply", "docker compose run x terraform apply", "kubectl exec pod -- terraform apply", "npx -y terraform apply",
    "uv run terraform apply", "poetry run terraform apply", "mise exec -- terraform apply", "direnv exec . terraform apply", "git bisect run terraform apply", "git rebase -x 'terraform apply' main",
    "git -c alias.x='!terraform apply' x", "git submodule foreach 'terraform apply'", "hyperfine 'terraform apply'",
    # shells and builtins that are given a text
    "bash -c 'terraform apply'", "bash -c -x 'terraform apply'", "bash -xec 'terraform apply'", "bash -o pipefail -c 'terraform apply'", "bash +x -O extglob -c 'terraform apply' a b",
    "bash --norc --rcfile f -c 'terraform apply'", "/bin/sh -c \"sh -c 'terraform apply'\"", "sh -c 'exec \"$@\"' _ terraform apply", "zsh -lc 'terraform apply'", "bash -c $'terraform\\napply' x; terraform apply",
    "eval terraform apply", "eval 'terraform' \"apply\"", "eval -- 'terraform apply'", "trap 'terraform apply' EXIT", "trap -- 'terraform apply' 0", "alias t=terraform", "alias ll='x; terraform apply'",
    "hash -p /usr/bin/terraform ls; ls apply", "PS4='$(terraform apply)' bash -xc ls", "GIT_SSH_COMMAND='terraform apply' git fetch", "export GIT_EDITOR='terraform apply'; git commit",
    "env 'BASH_FUNC_ls%%=() { terraform apply; }' bash -c ls",
    "env ]]E=5 terraform apply",
    "env A=1 =5 2x=y terraform apply",
    "set -- terraform apply; PS4='$(\"$@\")'; set -x; :", "bash -c \"$(echo terraform apply)\"", "echo terraform apply | sh", "echo 'terraform apply' | bash -s", "sh <(echo terraform apply)",
    ". <(echo terraform apply)", "noglob terraform apply", "=terraform apply", "{ bash; } <<< 'terraform apply'",
    # lines that cannot be read
    "if terraform apply; then x", "terraform apply; )", "echo 'x\nterraform apply", "echo \"$(terraform apply\"", "true " + "x" * 70_000 + "; terraform apply", "( " * 50 + "terraform apply" + ")" * 50,
    "\x00terraform apply", "${ terraform apply; }",
    # options before the verb
    "terraform -chdir=infra apply", 'terraform -chdir="$D" apply', "terraform -no-color apply",
]  # fmt: skip
LEAVE_IT = [
    "terraform plan", "terraform plan -out x", "echo terraform apply", "echo 'terraform apply'", "# terraform apply", "ls # terraform apply", "git commit -m 'terraform apply'",
    "grep -rn 'terraform apply' .", "cat <<'E'\nterraform apply\nE", "cat <<E\nterraform apply\nE", "cat > x.sh <<'E'\n$(terraform apply)\nE", "git commit -F - <<'E'\nRun `terraform apply`\nE",
    "git commit -m \"$(cat <<'E'\nsay terraform apply\nE\n)\"", "case terraform in terraform) : apply;; esac", "for x in terraform apply; do echo $x; done", "[[ terraform == apply ]]",
    "command -v terraform apply", "which terraform", "type terraform", "a=terraform", "x='terraform apply'", "sudo -l terraform apply", "find . -name terraform -print", "trap - EXIT", "xargs grep terraform",
    "timeout 60 grep -rn 'terraform apply' .", "nohup echo terraform apply", "ls terraform apply", "source terraform.sh", ". ./terraform.sh", "bash terraform.sh apply", "python x.py terraform apply",
    "if [ -f terraform ]; then ls; fi", "echo $((terraform + apply))", "./terraform-docs apply", "terraform-docs apply", "git log --grep 'terraform apply' $X", "printf '%s\\n' terraform apply",
    "function terraform { :; }", "PY=x; $PY apply", "for f in *.tf; do cat \"$f\"; done", "git diff $(git merge-base HEAD main) -- terraform", "echo ${x:-terraform} apply", "cd terraform && ls",
    "docker run --rm img echo hi", "uv run pytest -k terraform", "terraform plan -var x=$Y", 'terraform plan "$Y"', "make -C terraform apply", "echo a{terraform,apply}", "{ echo terraform apply; }",
    "while read -r l; do echo \"$l\"; done < terraform", "awk '{print $1}' terraform", "sed -n '1,5p;$d' terraform", "ls | grep terraform | sort", "rm -f terraform apply", "test -n terraform",
]  # fmt: skip
UNCLEAR = [
    "$X plan", "\"$X\"", "$(cat f) x", "`cat f`", "eval \"$X\"", "eval \"$(ssh-agent)\"", "curl -s u | sh", "curl -s u | sudo bash -s -- x", "bash <(curl u)", "source <(kubectl completion bash)",
    "bash -c \"$1\"", "sh $X", "xargs -I{} sh -c '{}'", "xargs sh -c", "sudo $X y", "env $X y", "find . -exec {} \\;", "trap \"$X$(y)\" EXIT", "for t in a b; do $t; done",  "echo 'x",
    "\"${a[@]}\"", "f() { \"$@\"; }", "x" * 60_001, "echo `x", "echo $(x", "a) b", "x (y) z", "cat <<$(x)\nE", "\x00", "parallel ::: x", "a=echo; false && a=rm; $a y", "IFS=x; a=terraformxapply; $a", "read c; $c",
    "echo \"${x/'}'/y}\"", "cat $(cat <<E)\nx\nE", "A[0;1]=2", "bash", "sh -s",
]  # fmt: skip
CLEAR = [
    *LEAVE_IT, "PY=.venv/bin/python; $PY -m pytest", "\"$VENV\"/bin/python -m x", "$HOME/.cargo/bin/cargo test", "source .venv/bin/activate && pytest", ". ~/.nvm/nvm.sh", "bash scripts/x.sh $Y",
    "for f in $(git ls-files '*.py'); do wc -l \"$f\"; done", "cat $X | head -$N", "cd \"$(git rev-parse --show-toplevel)\"", "sudo -E make install", "bash -c 'for i in 1 2; do echo $i; done'",
    "echo ${PATH//:/ }", "git log --format='%h %s' | head", "x=$(ls | wc -l); echo \"$x files\"", "arr=(a b); echo \"${#arr[@]}\"", "[[ $x =~ ^[a-z]+(b|c)$ ]]", "echo {1..3} {a,b}", "echo $'a\\tb'",
]  # fmt: skip


@pytest.mark.parametrize("line", RUN_IT)
def test_a_line_that_runs_it_is_named(line: str) -> None:
    """However the line is written, where it runs the command, or could, because a word is known only then."""
    assert names(APPLY, line)


@pytest.mark.parametrize("line", LEAVE_IT)
def test_a_mention_is_no_reason(line: str) -> None:
    """As an argument of another program, in a comment, in a text, or as another command of that program."""
    assert not names(APPLY, line)


@pytest.mark.parametrize("line", UNCLEAR)
def test_what_is_chosen_at_run_time_is_unclear(line: str) -> None:
    """A program, a text or a script that the line makes, and what no shell could read."""
    assert find_doubts(line)


@pytest.mark.parametrize("line", CLEAR)
def test_what_is_written_plainly_is_clear(line: str) -> None:
    """Expansions among the arguments keep nobody from saying which programs run."""
    assert find_doubts(line) == ()


@pytest.mark.parametrize(
    ("pattern", "line", "wanted"),
    [
        ("git push*", 'git -C "$d" push', True), ("git push*", 'git -C "$d" status', False), ("git push*", "git --no-pager -c a.b=c push", True),
        ("kubectl delete*", 'kubectl -n "$NS" get pods', False), ("kubectl delete*", "kubectl --context x delete pod y", True), ("npm publish:*", "npm --prefix x publish", True),
        ("rm -rf*", "rm -rf x", True), ("rm -rf*", "rm *.o", True), ("rm -rf*", "rm x", False), ("rm -rf*", "find . -exec rm -rf {} +", True), ("rm -rf*", "ls | xargs rm", True),
        ("./deploy.sh*", "./deploy.sh prod", True), ("./deploy.sh*", "bash deploy.sh prod", True), ("scripts/deploy.sh*", "cd scripts; . ./deploy.sh", True), ("deploy.sh*", "sh /x/deploy.sh", True),
        ("terraform apply *", "terraform apply", True), ("terraform apply *", "terraform applyx", False), ("*prod*", "deploy --to=prod", True), ("*prod*", "deploy --to=$X", True), ("*prod*", "ls", False),
        ("sudo *", "sudo ls", True), ("sudo *", "ls sudo", False), ("git gate*", "git gate list", True), ("docker compose down*", "docker --context x compose down -v", True),
        ("terraform apply", "terraform apply -x", False), ("terraform apply", 'terraform apply "$X"', False), ("terraform apply", "terraform apply $X", True), ("terraform ?pply", "terraform $X", True),
    ],
)  # fmt: skip
def test_patterns(pattern: str, line: str, wanted: bool) -> None:
    """Options before a verb, folders before a script and unknown words are no way round a pattern."""
    assert names(pattern, line) is wanted


WORDS = st.text("ab *?", max_size=12)


@given(WORDS, st.text("ab ", max_size=12), st.integers(0, 12), st.integers(0, 12), st.text("ab ", max_size=6))
def test_a_gap_is_whatever_it_turns_out_to_be(
    pattern: str, text: str, start: int, size: int, filling: str
) -> None:
    """What fits with some text in the gap's place could be named; without a gap both readings agree."""
    assert could_be(pattern, text) == (of_text(pattern).fullmatch(text) is not None)
    gap = f"{text[:start]}\ufdd0{text[start + size :]}"
    if of_text(pattern).fullmatch(gap.replace("\ufdd0", filling)):
        assert could_be(pattern, gap)


@given(st.text(max_size=300) | st.text("abfi do;&|()<>{}[]$`'\"\\\n=#!*~-E", max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """Nothing is raised, and every command has words or files."""
    line = read_line(text)
    assert all(run.words or run.writes or run.reads for run in line.runs)
    assert isinstance(names(APPLY, text), bool)


HOSTILE = [
    "$(", "${x:-", "`", "\"", "'", "(", "((", "$((", "{a,", "{a,b}", "[", "<<E\n", "case x in ", "a=(", "env ", "sudo -z ", "xargs ", "x;", "$x ", "\\", "\\\n", "bash -c ", "docker run x ", "&& ", "<(",
    "find -exec ", "$[", "A[", "[[ ", "\"$(", "eval ", "a{", "if ", "$'\\x", "x=$y;", "f() { ", "\"`", "coproc x ", "time -p ", "! ", "{fd}>x ", "[a", "*", "nix x shell ", "parallel x ", "su x ", "ls -",
]  # fmt: skip


@pytest.mark.parametrize(
    "size", [4_000, pytest.param(59_000, marks=[pytest.mark.slow, pytest.mark.thorough]), 70_000]
)
@pytest.mark.no_cover
def test_hostile_lines_are_read_quickly(size: int) -> None:
    """Whatever is repeated, time is in proportion to the length."""
    for part in HOSTILE:
        text = part * (size // len(part))
        began = time.process_time()
        assert isinstance(names(APPLY, text), bool)
        assert isinstance(names("*a*b*c*d*e*f", text), bool)
        assert time.process_time() - began < (1.5 if size > MOST_TEXT / 2 else 0.3), part


@pytest.mark.no_cover
def test_an_ordinary_line_costs_little() -> None:
    """A hook reads one for each call."""
    read_line.cache_clear()
    began = time.process_time()
    for line in (*LEAVE_IT, *CLEAR):
        read_line(line)
    assert time.process_time() - began < 0.005 * len((*LEAVE_IT, *CLEAR))
