"""Support: lines as people and agents write them for a shell, and what somebody makes of them who would get past a rule.

`harmless` and `hostile` give as many as are wanted, the same ones for the same seed. All of them were written for these tests: after the scripts of this
repository, recipes of make and npm, and what agents type.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

# Filled with a name each: files, folders, branches, programs.
PLAIN = r"""
ls -la %s
cat %s | head -50
sed -n '1,120p' %s
sed -i 's/old_name/new_name/g' %s %s
grep -rn "def %w" %s | head -20
grep -rln '%w' --include='*.py' . | xargs sed -i 's/%w/%w/'
rg -n "class %w\b" %s -A 3
find . -name '*.%e' -not -path './node_modules/*' | head
find %s -type f -name "*.pyc" -delete
find . -type d -name __pycache__ -exec rm -r {} +
git status --short && git diff --stat
git diff HEAD~1 -- %s | cat
git log --oneline -20 -- %s
git log --format='%%h %%an %%s' main..%b | head -30
git add -A && git commit -m "%m"
git commit -q -F - <<'EOF'\n%m\n\n- %m\n- `%w` stays as it is\nEOF
git commit -m "$(cat <<'EOF'\n%m\n\nIt's done with "%w" & $HOME.\nEOF\n)"
git checkout -b %b origin/main
git rev-parse --abbrev-ref HEAD
git diff $(git merge-base HEAD main) --name-only | grep '\.%e$' | wc -l
cd "$(git rev-parse --show-toplevel)" && make test
git show HEAD:%s > /tmp/before.%e && diff /tmp/before.%e %s; true
git stash && git pull --rebase && git stash pop
for f in %s %s; do echo "== $f"; wc -l "$f"; done
for f in $(git ls-files '*.%e'); do grep -L '%w' "$f"; done
for i in $(seq 1 5); do curl -fsS http://localhost:8080/health && break; sleep 1; done
for d in */; do (cd "$d" && [ -f package.json ] && npm test --silent); done
while read -r name rest; do printf '%%s\n' "$name"; done < %s
while ! nc -z localhost 5432; do sleep 0.5; done
if [ -f %s ]; then . %s; else echo "no %s" >&2; fi
if ! command -v %w >/dev/null 2>&1; then echo missing; exit 1; fi
[[ -d %s ]] || mkdir -p %s
test -n "$CI" && echo "in CI: $CI"
case "$1" in start) echo start ;; stop|halt) echo stop ;; *) echo "usage: $0" ;; esac
python3 -m pytest -q tests/%s -k "%w and not %w" 2>&1 | tail -20
python -m pytest -x --tb=short -n 4 | tee /tmp/out.txt
python3 - <<'EOF'\nimport json\nfor line in open("%s"):\n    print(json.loads(line)["%w"])\nEOF
python3 -c "import sys; print(sys.version); print('%w' if 1 else \"x\")"
source .venv/bin/activate && pip install -q -e '.[dev]'
. .venv/bin/activate; ruff check . && mypy
.venv/bin/python -m pip list --outdated | awk '{print $1}'
PYTHONPATH=. python scripts/%w.py --out %s > %w.log 2>&1 &
PY=.venv/bin/python; $PY -m %w --help | head
npm ci && npm run build --if-present
npm run lint -- --fix && npm test -- --watch=false
npx tsc --noEmit -p tsconfig.json 2>&1 | head -40
npx -y prettier --write "src/**/*.%e"
NODE_ENV=test node --test test/*.test.js
yarn install --frozen-lockfile && yarn workspace %w build
pnpm -r --filter "./packages/*" run test
rimraf dist && mkdirp dist && cp -r src/* dist/
cross-env NODE_ENV=production webpack --config %s
tsc && node dist/%w.js | grep -v DEBUG
docker compose up -d %w && docker compose logs --tail=50 %w
docker build -t %w:dev --build-arg VERSION="$(git describe --always)" .
docker run --rm -v "$PWD":/src -w /src %w:dev npm test
docker ps --format '{{.Names}}' | grep %w
kubectl get pods -n %w -o wide | grep -v Running
kubectl -n "$NS" logs deploy/%w --tail=100
kubectl describe pod "$(kubectl get pods -o name | head -1)"
terraform fmt -check -recursive && terraform validate
terraform -chdir=infra plan -input=false -out=plan.bin
terraform init -backend=false >/dev/null
aws s3 ls s3://%w-bucket/ --recursive | tail -5
gh pr view --json title,body -q '.title + "\n" + .body'
gh api repos/{owner}/{repo}/pulls --jq '.[].number'
curl -sS -H "Authorization: Bearer $TOKEN" https://api.example.org/%w | jq '.items[] | {id, name}'
curl -fsSL https://example.org/%w.tar.gz | tar xz -C /tmp
jq -r '.scripts | to_entries[] | "\(.key)=\(.value)"' package.json
cat > %s <<'EOF'\nexport const %w = () => `${x}`;\nif (a && b) { $(run) }\nEOF
cat <<EOF > %s\nname: %w\nuser: $USER\ndate: $(date -u +%%F)\nEOF
tee -a %s >/dev/null <<'EOF'\n%w = "it's"\nEOF
echo "export PATH=\"$HOME/.local/bin:$PATH\"" >> ~/.bashrc
export PATH="$HOME/.cargo/bin:$PATH"; cargo build --release 2>&1 | grep -E '^(warning|error)' | sort | uniq -c
cargo test --workspace -- --nocapture %w
go test ./... -run 'Test%w' -count=1 -race
go vet ./... && gofmt -l . | tee /dev/stderr | wc -l
mvn -q -DskipTests package && java -jar target/%w.jar --version
make -j"$(nproc)" CFLAGS="-O2 -Wall" %w
make -C docs html SPHINXOPTS="-W"
echo "building %w" && mkdir -p build && cc -c -o build/%w.o %s
"$CC" $CFLAGS -o build/%w build/*.o
for t in tests/*.sh; do echo "$t"; ./run-test "$t" || exit 1; done
curl -LsSf https://example.org/install.sh | sh
set -euo pipefail; trap 'rm -f "$tmp"' EXIT; tmp=$(mktemp); sort %s > "$tmp"; mv "$tmp" %s
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT && cd "$tmp" && git init -q
x=$(wc -l < %s); if (( x > 100 )); then echo "long: $x"; fi
total=0; for n in 1 2 3; do total=$((total + n)); done; echo "$total"
arr=(a b c); for x in "${arr[@]}"; do echo "${x^^}"; done; echo "${#arr[@]}"
name=${1:-%w}; echo "${name%%.*} ${name##*/} ${name//-/_}"
IFS=, read -r a b <<< "x,y"; echo "$b $a"
diff <(sort %s) <(sort %s) | head
paste <(cut -f1 %s) <(cut -f2 %s) > /tmp/out
time ./scripts/%w.sh --fast 2>/dev/null
timeout 60 python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & sleep 1; kill %%1
nohup ./server > server.log 2>&1 &
sudo apt-get update -qq && sudo apt-get install -y --no-install-recommends jq
sudo systemctl restart %w && journalctl -u %w -n 50 --no-pager
env -u NODE_OPTIONS LC_ALL=C sort -u %s
nice -n 10 tar czf /tmp/%w.tgz --exclude=.git .
find . -name '*.%e' -print0 | xargs -0 grep -l '%w'
find . -name '*.log' -mtime +7 -exec gzip {} \;
git ls-files -z | xargs -0 -n1 dirname | sort | uniq -c | sort -rn | head
ps aux | grep -v grep | grep %w | awk '{print $2}'
awk -F: '$3 >= 1000 {print $1 ": " $NF}' /etc/passwd
perl -pi -e 's/\bfoo\b/%w/g' %s
sed -e '/^#/d' -e 's/ *$//' -e '$!N;s/\n/ /' %s
printf '%%-20s|%%s\n' "%w" "$(date)" | column -t -s'|'
(cd %s && npm pack --dry-run 2>&1 | tail -5)
{ echo '# %w'; cat %s; } > /tmp/new && mv /tmp/new %s
! grep -q 'LATER' %s || echo "still to do"
test "$(git config user.name)" = "%w" && echo same
ls *.{js,ts} 2>/dev/null | wc -l; mkdir -p src/{api,web,db}/test
rm -f %s %s; rm -rf node_modules/.cache build/*.o
cp -n .env.example .env; ln -sf ../%s current
echo "terraform apply is for people" # terraform apply
# git push, then kubectl delete
echo 'npm publish' | cat
grep -n "git push" -r docs | head -3
psql "$DATABASE_URL" -c 'select count(*) from %w;'
psql -At <<SQL\nselect '%w' from x where y = '$1';\nSQL
sqlite3 app.db ".tables" | tr ' ' '\n' | sort
openssl rand -hex 16 | tee %s
export FOO=1 BAR="two words"; echo "$FOO-$BAR"
eval set -- "a b"; shift; echo "$#"
function %w_ok() { local x=$1; [ -n "$x" ] && echo "$x"; }; %w_ok yes
log() { printf '[%%s] %%s\n' "$(date +%%T)" "$*" >&2; }; log "%m"
cd web && npm run dev -- --port 3001 & wait
uv run pytest -q tests/%s && uv run ruff check --fix .
poetry run python -m %w; poetry show --tree | head
bundle exec rspec spec/%s --format progress
ssh -o BatchMode=yes build@host 'uname -a && df -h /'
rsync -avz --delete dist/ deploy@host:/srv/%w/
du -sh * | sort -h | tail -5; df -h .
history | tail -20; which -a python3 node
read -r -p "go on? " yn; [[ $yn == [Yy]* ]] || exit 1
select x in a b; do echo "$x"; break; done
until curl -sf localhost:3000 >/dev/null; do sleep 1; done; echo up
bash scripts/%w.sh --dry-run "$@" | tee -a log
bash -c 'set -e; for i in 1 2; do echo $i; done'
sh -c "cd %s && ls -1 | wc -l"
xargs -a %s -I{} cp {} /tmp/
""".strip().split("\n")
FILES = "src/app.py README.md lib/core.ts tests/test_api.py package.json docs/guide.md config/prod.yml data/in.csv Makefile".split()
NAMES = "parse_date billing render worker users config main total fetch api".split()
BRANCHES = "fix/login feature/search topic-12 release/2.x".split()
ENDS = "py ts js md go rs".split()
MESSAGES = (
    "Fix the login",
    "Teach it to push, and to apply",
    "Say why; then stop",
    "Do not run npm publish by hand",
    "Use $HOME",
)
# What a repository may have a person asked for.
RULES = (
    "terraform apply*", "terraform destroy*", "npm publish*", "git push*", "git reset --hard*", "kubectl delete*", "kubectl apply*", "docker push*",
    "aws s3 rm*", "gh pr merge*", "rm -rf /*", "helm upgrade*", "./deploy.sh*", "alembic upgrade*", "sudo reboot*",
)  # fmt: skip


def filled(line: str, dice: random.Random) -> str:
    """A line with names in it."""
    out, parts = [], line.split("%")
    out.append(parts[0])
    choices: dict[str, Sequence[str]] = {"s": FILES, "w": NAMES, "b": BRANCHES, "e": ENDS, "m": MESSAGES}
    place = 1
    while place < len(parts):
        part = parts[place]
        if not part and place + 1 < len(parts):
            out.append("%" + parts[place + 1])
            place += 2
            continue
        chosen = choices.get(part[:1])
        out.append(dice.choice(chosen) + part[1:] if chosen else "%" + part)
        place += 1
    return "".join(out).replace("\\n", "\n") if "<<" in line else "".join(out)


def harmless(count: int, seed: int = 0) -> Iterator[str]:
    """Lines that run nothing of the rules."""
    dice = random.Random(seed)  # noqa: S311 - repeatable is what is wanted
    for number in range(count):
        line = filled(PLAIN[number % len(PLAIN)], dice)
        way = dice.randrange(6)
        if way == 0 and "<<" not in line and not line.startswith("#"):
            line = f"cd {dice.choice(NAMES)} && {line}"
        elif way == 1 and not line.endswith("&"):
            other = filled(dice.choice(PLAIN), dice)
            line = f"{line}\n{other}"
        elif way == 2 and "\n" not in line:
            line = f"set -e; {line}"
        yield line


# Ways to write two words that a shell takes for `terraform apply`, or may take for it.
SPELT = (
    "terraform apply", "terraform   apply -auto-approve", "/stubs/terraform apply", "'terraform' \"apply\"", "ter\"ra\"form ap''ply", "\\terraform app\\ly", "terra\\\nform ap\\\nply",
    "$'terraform' apply", "$'\\x74erraform' $'\\141pply'", "$\"terraform\" apply", "terraform a{pply,}", "{terraform,apply}", "/stubs/terrafor? apply", "/stubs/terra* apply",
    "/stubs/terrafor[l-n] apply", "$T apply", "${T} apply", "\"$T\" \"$A\"", "$T $A", "terraform $A", "${T:-x} apply", "${N:-terraform} apply", "$TA", "$(echo terraform) apply",
    "`echo terraform` apply", "$(printf 'terra%s' form) $A", "terra${F} apply", "${T/x/y} ap${P}", "${L#arm} apply", "\"${R[@]}\"", "${R[0]} ${R[1]}", "$1 apply", "\"$@\"", "2>/dev/null terraform apply",
    ">o terraform apply", "terraform 2>&1 apply", "terraform &>o apply", "A[0]=1 terraform apply", "A=(1 2) B=x terraform apply", "{x}>o terraform apply", "<<<x terraform apply",
    "terraform $(:) apply", "terraform ${N} apply", "$N terraform apply", "\"/stubs/\"terraform apply", "../../stubs/terraform apply", "~+/../../stubs/terraform apply", "terraform ${A}", "${!V} apply",
    "terraform <(:) apply", "~nobody/../stubs/terraform apply",
)  # fmt: skip
# Where such a command may stand. `@` is the command, `^` stands for it in single quotes.
WRAPPED = (
    "@", "@", "@", "true; @", "true && @", "false || @", "true | @", "@ | cat", "! @", "@ &", "(@)", "{ @; }", "( (@) )", "((@) )", "time @", "time -p @", "if true; then @; fi", "if @; then :; fi",
    "while @; do break; done", "until ! @; do break; done", "for i in 1 2; do @; done", "for ((i=0;i<1;i++)); do @; done", "case x in (y) :;; x|z) @;; esac", "case x in x) @ ;& *) : ;; esac", "[[ x == x ]] && @",
    "[[ -n $(@) ]]", "(( 1 )) && @", "f() { @; }; f", "function f { @; }; f", "f() ( @ ); f", "f() { \"$@\"; }; f @", "coproc @; wait", "coproc C { @; }; wait", "echo $(@)", "echo \"$(@)\"", "echo `@`", "echo \"a $(echo \"b $(@)\")\"",
    "cat <(@)", "echo x > >(@)", "echo ${N:-$(@)}", "echo $((1 + $(@ | wc -l)))", "x=$(@)", "x=(1 $(@))", "X[$(@)0]=1", "cat <<E\n$(@)\nE", "cat <<E\nx\nE\n@", "cat <<'E' && @\nx\nE", "cat <<-E\n\tx\n\tE\n@", "cat <<E\nx\\\nE\nE\n@", "bash <<E\n@\nE",
    "bash <<'E'\n@\nE", "bash <<< ^", "sh -s <<< ^", "echo ^ | sh", "echo ^ | bash -s", "bash <(echo ^)", ". <(echo ^)", "source /dev/stdin <<< ^", "bash -c ^", "bash -c -x ^", "bash -ec ^", "sh -c ^", "bash -o pipefail -c ^", "bash --norc -c ^ a b",
    "bash -c \"$(echo ^)\"", "eval ^", "eval @", "trap ^ EXIT", "trap ^ USR1; kill -USR1 $$", "exec @", "command @", "command -p @", "builtin command @", "env @", "env A=1 B=2 C=3 D=4 E=5 F=6 G=7 H=8 I=9 J=1 K=2 L=3 M=4 N=5 @", "env -u X @",
    "env -S ^", "nohup @", "timeout 2 @", "timeout -k 1 2 @", "timeout --sig=KILL 2 @", "nice @", "nice -n 5 @", "ionice -c 3 @", "setsid -w @", "stdbuf -oL @", "flock /tmp/l @", "flock /tmp/l -c ^", "xargs -n1 @ </dev/null", "echo x | xargs @",
    "echo apply | xargs terraform", "echo apply | xargs -I% terraform %", "echo x | xargs -I% sh -c ^", "find . -maxdepth 0 -exec @ \\;", "find . -maxdepth 0 -execdir env @ {} +", "find . -maxdepth 0 -exec sh -c ^ \\;", "setpriv @", "script -qc ^ /dev/null",
    "hash -p /stubs/terraform ls; ls apply", "shopt -s expand_aliases\nalias t=terraform\nt apply", "shopt -s expand_aliases\nalias t=^\nt", "PS4='$(@)'; set -x; :", "N() { @; }\nN", "echo x; @ # y", "# x\n@", "echo \\#; @", "echo '#' && @",
    "read A <<< apply; terraform $A", "printf -v Z terraform; $Z apply", "for Z in terraform; do $Z apply; done", "set -- terraform apply; \"$@\"", "set -- terraform; $1 apply", ": terraform; $_ apply", "IFS=x; Z=terraformxapply; $Z",
    "Z='$(terraform apply)'; : ${Z@P}", "chrt -b 0 @", "taskset 1 @", "env 'BASH_FUNC_ls%%=() { terraform apply; }' bash -c ls", "cd /stubs; ./terraform apply", "select z in a; do @; break; done <<< 1", "echo ^ > s.sh; @",
    "Z=echo; false && Z=terraform; terraform apply", "Z=terraform && $Z apply", "export Z=terraform; $Z apply", "declare Z=terraform; $Z apply", "Z=terraform; (Z=echo); $Z apply", "Z=terraform; Z=echo | :; $Z apply", "false && Z=echo; ${Z:-terraform} apply",
)  # fmt: skip
BEFORE = "T=terraform A=apply F=form P=ply L=armterraform N= V=T TA='terraform apply'; R=(terraform apply); set -- terraform apply\n"
PIECES = (
    "'", '"', "\\", "$", "`", "(", ")", "{", "}", "[", "]", ";", "&", "|", "<", ">", "\n", " ", "#", "!", "=", "*", "?", "~", "$(", "${", "<<E\n", "\nE\n", "<<<", "&&", "||", ";;", "in ", "do ", "done ", "fi ",
    "then ", "esac ", "\\\n", "2>&1 ", "time ", "! ", "{ ", "; }", "function f ", "f() ", "coproc ", "eval ", "x=1 ", "$N", '"$N"', "$(:)", ": ", "\t", "((", "))", "[[ ", " ]]", "$'", "<(", "@",
)  # fmt: skip


def hostile(count: int, seed: int = 0) -> Iterator[str]:
    """Lines of which many run `terraform apply`, in whatever way; some are damaged."""
    dice = random.Random(seed)  # noqa: S311 - repeatable is what is wanted
    for number in range(count):
        spelt = SPELT[number % len(SPELT)] if number % 2 else dice.choice(SPELT)
        line = spelt
        for _ in range(dice.choice((1, 1, 2))):
            around = dice.choice(WRAPPED)
            quoted = line.replace("'", "'\\''")
            line = around.replace("@", line, 1).replace("^", f"'{quoted}'", 1)
        if dice.randrange(4) == 0:
            for _ in range(dice.choice((1, 1, 2, 4))):
                line = damaged(line, dice)
        yield (BEFORE if dice.randrange(8) else "") + line


def damaged(line: str, dice: random.Random) -> str:
    """A line with a piece put in, taken out, or doubled."""
    place, way = dice.randrange(len(line) + 1), dice.randrange(4)
    if way < 2:
        return line[:place] + dice.choice(PIECES) + line[place:]
    if way == 2:
        return line[:place] + line[place + dice.randrange(1, 4) :]
    return line[:place] + line[place : place + dice.randrange(1, 12)] + line[place:]
