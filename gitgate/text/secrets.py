"""Text: what a secret looks like, by its shape, by the name that holds it, and by the file it lives in.

Pure. Used before anything leaves the machine: a saved session is redacted with it, and an untracked file that looks
secret stays behind. Shapes are matched in linear time, because the text may come from anyone and be megabytes long.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote

MARK = "[redacted: {}]"
SHORTEST_VALUE = 6


class Span(NamedTuple):
    """Place of a secret in a text: `text[start:end]`."""

    start: int
    end: int
    kind: str


class Shape(NamedTuple):
    """Kind of a secret. The pattern runs only where one of `hints` (lower case) occurs: most texts hold none of them.

    `doubt` is what a match may be instead: nothing, a placeholder, or (for a value that follows a name) code.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: str
    doubt: str = ""


def _shape(kind: str, hints: str, pattern: str, *, doubt: str = "") -> Shape:
    return Shape(kind, tuple(hints.split()), pattern, doubt)


# A token never starts in the middle of a longer word: base64 and hashes would match otherwise.
_W = r"(?<![A-Za-z0-9_])"
_NAMES = r"pass(?:word|wd|phrase)?|secret|token|api_?key|access_?key|private_?key|auth_?key|encryption_?key|credentials?"
_NAMED = rf"(?i:(?:{_NAMES})(?:[_-]?(?:id|key|value|hash))?)"

SHAPES = (
    _shape(
        "private key",
        "private",
        # A listing with line numbers, escaped newlines and a key that was cut short are still keys.
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[A-Za-z0-9+/=\s\\:,.|→()]|-(?!----))*(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    _shape("age key", "age-secret-key-", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{50,}"),
    _shape(
        "aws access key", "akia asia abia acca", rf"{_W}(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}}(?![A-Za-z0-9])"
    ),
    _shape(
        "github token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        rf"{_W}(?:gh[pousr]_[A-Za-z0-9]{{30,255}}|github_pat_\w{{30,255}})",
    ),
    _shape(
        "gitlab token", "glpat- gldt- glrt- glcbt- glptt-", rf"{_W}gl(?:pat|dt|rt|cbt|ptt)-[\w.-]{{18,200}}"
    ),
    _shape(
        "slack token",
        "xox xapp-",
        rf"{_W}(?:xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{{10,250}}|xapp-\d-[A-Za-z0-9-]{{10,250}})",
    ),
    _shape(
        "slack webhook",
        "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/+_-]{20,200}",
    ),
    _shape("anthropic key", "sk-ant-", rf"{_W}sk-ant-[A-Za-z0-9_-]{{16,250}}"),
    _shape(
        "openai key",
        "sk-",
        rf"{_W}sk-(?:(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{{20,250}}|[A-Za-z0-9]{{32,64}})(?![A-Za-z0-9])",
    ),
    _shape(
        "stripe key",
        "sk_live_ sk_test_ rk_live_ rk_test_ whsec_",
        rf"{_W}(?:[sr]k_(?:live|test)_[A-Za-z0-9]{{16,250}}|whsec_[A-Za-z0-9]{{24,250}})",
    ),
    _shape(
        "google key",
        "aiza ya29. gocspx-",
        rf"{_W}(?:AIza[\w-]{{35}}|ya29\.[\w-]{{20,500}}|GOCSPX-[\w-]{{20,60}})",
    ),
    _shape("npm token", "npm_", rf"{_W}npm_[A-Za-z0-9]{{36}}"),
    _shape("pypi token", "pypi-", rf"{_W}pypi-[A-Za-z0-9_-]{{50,500}}"),
    _shape("hugging face token", "hf_", rf"{_W}hf_[A-Za-z0-9]{{30,60}}"),
    _shape("sendgrid key", "sg.", rf"{_W}SG\.[\w-]{{16,32}}\.[\w-]{{16,64}}"),
    _shape("twilio key", "sk ac", rf"{_W}SK[0-9a-f]{{32}}(?![0-9a-f])"),
    _shape("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", rf"{_W}do[opr]_v1_[0-9a-f]{{64}}"),
    _shape("vault token", "hvs. hvb. hvr.", rf"{_W}hv[sbr]\.[\w-]{{20,500}}"),
    _shape("databricks token", "dapi", rf"{_W}dapi[0-9a-f]{{32}}"),
    _shape(
        "azure key",
        "accountkey= sharedaccesskey= sig=",
        r"(?:(?:Account|SharedAccess)Key=|[?&]sig=)(?P<secret>[A-Za-z0-9+/%]{32,100}={0,2})",
    ),
    _shape("json web token", "eyj", rf"{_W}eyJ[\w-]{{10,2000}}\.eyJ[\w-]{{10,8000}}\.[\w-]{{10,2000}}"),
    _shape(
        "password in a url",
        "://",
        r"[a-z][a-z0-9+.-]{0,20}://[^\s:/@'\"<>]{0,100}:(?P<secret>[^\s/@'\"<>$\[]{3,200})@",
        doubt="placeholder",
    ),
    _shape(
        "authorization",
        "authorization",
        r"(?i:authorization)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?i:bearer|basic|token|digest|negotiate)\s{1,3}(?P<secret>[\w.~+/=-]{8,4000})",
    ),
    _shape(
        "secret assignment",
        "pass secret token key credential",
        # NAME=value as in an .env file: such a value is a literal whatever it looks like.
        r"(?m)^[ \t]{0,8}(?:\d{1,6}[\t→][ \t]?)?(?:export |set |-e |ENV )?(?=[A-Z0-9_]{3,80}=)"
        r"(?:[A-Z0-9]{1,40}_){0,8}(?:PASS(?:WORD|WD|PHRASE)?|PWD|SECRET|TOKEN|[A-Z]{0,20}KEY|CREDENTIALS?)(?:_[A-Z0-9]{1,20}){0,2}="
        r"[\"']?(?P<secret>[^\s\"'`$<({\[][^\s\"'`]{5,2000})",
        doubt="placeholder",
    ),
    _shape(
        "secret assignment",
        "pass secret token key credential",
        _NAMED
        + r"[\"'`]?\s{0,4}(?::=|=>|[:=])\s{0,4}(?:[\"'`](?P<secret>[^\s\"'`]{16,2000})[\"'`]|(?P<bare>[A-Za-z0-9+/_~=-]{20,2000})(?![\w(.\[]))",
        doubt="code",
    ),
)

_PLACEHOLDER = (
    r"(?i)^(?:[x*.…-]+|<.*>|\$.*|%.*%|\{.*|.*(?:redacted|example|placeholder|change[-_]?me|your[-_]|dummy|not[-_]a[-_](?:key|secret)).*|"
    r"true|false|none|null|undefined|password|secret|required|optional)$"
)
_CODE = r"[(){}\[\]]|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|::|->|^\.{0,2}/|^https?://[^@]*$"


def find_secrets(text: str) -> Iterator[Span]:
    """Yield the secrets in a text, in no particular order; they may overlap."""
    lowered = text.lower()
    for shape in SHAPES:
        if any(hint in lowered for hint in shape.hints):
            for match in re.finditer(shape.pattern, text):
                span = _secret_part(match, shape.kind)
                if _is_secret(text[span.start : span.end], shape.doubt):
                    yield span


def _secret_part(match: re.Match[str], kind: str) -> Span:
    groups = match.groupdict()
    name = next((name for name in ("secret", "bare") if groups.get(name)), None)
    start, end = match.span(name) if name else match.span()
    return Span(start, end, kind)


def _is_secret(value: str, doubt: str) -> bool:
    """Return whether the value is a secret itself, rather than a placeholder for one or code that reads one."""
    if doubt and re.match(_PLACEHOLDER, value):
        return False
    return doubt != "code" or (_is_mixed(value) and not re.search(_CODE, value) and _entropy(value) >= 3.0)


def _is_mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _entropy(value: str) -> float:
    """Return the bits of entropy per character: words repeat letters, keys hardly do."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def redact(text: str, values: Collection[str] = ()) -> str:
    """Return `text` with each secret, and each of `values` however quoted, replaced by a mark that names its kind."""
    spans = sorted([*find_secrets(text), *_find_values(text, values)])
    out: list[str] = []
    done = 0
    for span in spans:
        if span.end <= done:
            continue
        if span.start >= done:
            out += (text[done : span.start], MARK.format(span.kind))
        # else: it overlaps the one before it, whose mark already stands
        done = span.end
    return "".join((*out, text[done:])) if out else text


def _find_values(text: str, values: Collection[str]) -> Iterator[Span]:
    forms = {form for value in values for form in _forms(value)}
    present = sorted((form for form in forms if form in text), key=len, reverse=True)
    if present:
        for match in re.finditer("|".join(map(re.escape, present)), text):
            yield Span(*match.span(), "environment")


def _forms(value: str) -> Iterator[str]:
    """Return a value as tools print it: unchanged, its long lines, with escaped newlines or quotes, in a URL."""
    value = value.strip()
    if len(value) < SHORTEST_VALUE:
        return
    yield value
    yield value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    yield quote(value, safe="")
    yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= 20)


_VARIABLE = (
    r"(?i)(?:^|[_.-])(?:pass(?:word|wd|phrase)?|secrets?|tokens?|(?:[a-z]{0,20})key|keys|credentials?|auth|pat|pwd|dsn|apikey|cookie)(?:[_.-]|\d*$)"
    r"|(?:password|secret|token|apikey)$"
)
_HARMLESS_VARIABLE = r"(?i)(?:^(?:old)?pwd$|^git_config_(?:key|value)_|(?:file|path|sock|dir|home|type|method|name|agent_pid|ttl|url)$)"


def secret_values(environment: Mapping[str, str]) -> frozenset[str]:
    """Return the values to hide: of variables with a secret's name, and secrets of a known shape in any other."""
    found = {value[span.start : span.end] for value in environment.values() for span in find_secrets(value)}
    for name, value in environment.items():
        if (
            re.search(_VARIABLE, name)
            and not re.search(_HARMLESS_VARIABLE, name)
            and _worth_hiding(value.strip())
        ):
            found.add(value.strip())
    return frozenset(value for value in found if len(value) >= SHORTEST_VALUE)


def _worth_hiding(value: str) -> bool:
    """Return whether a value is worth hiding. Short plain words and paths are not: texts are full of them."""
    if _is_path(value) or value.lower() in {"disabled", "enabled", "required", "optional", "password"}:
        return False
    return len(set(value)) >= 4 and (len(value) >= 8 or (len(value) >= SHORTEST_VALUE and _is_mixed(value)))


def _is_path(value: str) -> bool:
    """Return whether a value is a path, and not a base64 key that happens to begin with a slash."""
    return value.startswith(("/", "~", "./")) and not re.search(_DENSE, value)


_DENSE = r"(?=[^/]*[a-z])(?=[^/]*[A-Z])(?=[^/]*[0-9])[^/]{16}"


_SAMPLE = r"(?i)[._-](?:example|sample|template|dist|defaults?)(?:\.\w+)?$"
_FILE = r"""(?ix)
    ^(?:
      \.env(?:\..+)? | env | .+\.env | \.envrc(?:\..+)?
    | .*\.(?:pem|key|p12|pfx|p8|jks|keystore|kdbx?|ppk|ovpn|agekey|tfvars|tfstate|mobileprovision)(?:\.(?:bak|backup|json|old|enc))?
    | .*id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:[._-].+)? (?<!\.pub)
    | \.?(?:npmrc|yarnrc|pypirc|netrc|pgpass|my\.cnf|htpasswd|git-credentials|s3cfg|boto|dockercfg|vault-token|credentials|authinfo(?:\.gpg)?) | _netrc
    | .*(?:credentials?|secrets?|service[-_]?account|client_secret).*\.(?:json|ya?ml|toml|ini|cfg|conf|txt|env|properties|xml)
    | (?:master|secret|secrets|production)\.key | kubeconfig(?:\..+)? | .+\.kubeconfig | key4\.db | logins\.json
    )$"""
_SECRET_PLACES = (
    ".aws/credentials",
    ".docker/config.json",
    ".kube/config",
    ".config/gh/hosts.yml",
    ".cargo/credentials",
)


def secret_name(path: str) -> bool:
    """Return whether a file of this name usually holds secrets; a sample file does not."""
    clean = path.replace("\\", "/").lower()
    name = clean.rsplit("/", 1)[-1]
    if re.search(_SAMPLE, name):
        return False
    places = (f"/{clean}".endswith(f"/{place}") for place in _SECRET_PLACES)
    return bool(re.match(_FILE, name)) or any(places)


MOST_LINE = 1000
LEAST_VALUE = 4
# Files that a shell, an editor or a person reads, in which no value needs quotes.
SCRIPTS = frozenset((".sh", ".bash", ".zsh", ".env", ".envrc", ".service", ".http"))
PROSE = frozenset(("", ".txt", ".md", ".rst", ".adoc", ".log", ".org"))
HINTS = ("pass", "pwd", "secret", "key", "contrase")
# Beside the names of other projects' rules.
MORE_NAMES = ("pass_?phrase",)
# What follows the word where a name is of something about a secret.
ABOUT = (
    r"(?i)(?:file|path|dir|folder|name|names|id|ids|field|header|label|hint|prompt|placeholder|type|kind|len|length|min|max|"
    r"policy|reset|url|uri|env|var|variable|param|class|selector|regex|pattern|format|ref|refs|store|manager|provider|"
    r"version|error|errors|message|text|title|input|prefix|suffix|algorithm|encoding|strength|count|ttl|age|expiry|"
    r"required|enabled|ary|aries|ion|ly)\d?$"
)
NOTHING = frozenset(
    """string str text password passwd pwd secret none null nil true false yes no required optional hidden input object
    integer number boolean bool bytes any undefined changeme change-me changeit invalid missing wrong unknown redacted todo
    tbd default disabled enabled empty confirm reset forgot your-password prompt value""".split()
)
TEMPLATE = (
    r"(?i)^(?:[x*.…•-]+|<.*>?|\$.*|%.*%?|\{.*|\[.*|@.*@|_+.*_+|.*(?:example|placeholder|change[-_]?me|your[-_]|dummy|redacted|"
    r"not[-_]a[-_]|insert[-_]|replace[-_]|todo|fixme|xxxx|\.\.\.).*)$"
)
READ_FROM = r"[\[(]|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|::|->|^[a-z][a-z0-9+.-]{1,15}://|^(?:~|\.{0,2})/"
WORDS = r"_?[A-Za-z]+(?:[-_./: ][A-Za-z]+)*"
UUID = r"(?i)[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"
TRIED_OUT = (
    r"(?i)(?:^|[/_.-])(?:tests?|specs?|fixtures?|mocks?|examples?|samples?|testdata|stories)(?:[/_.-]|$)"
)
IN_A_ROW = ("0123456789" * 2 + "abcdefghijklmnopqrstuvwxyz" * 2, "0123456789abcdef" * 2, "qwertyuiop")


class Token(NamedTuple):
    kind: str
    hint: str
    pattern: str


class WordRules(NamedTuple):
    """Names that precede a secret, the endings of files that need no quotes, and shapes of tokens."""

    named: str
    element: str
    keyword: str
    unquoted: frozenset[str]
    tokens: tuple[Token, ...]


def parse_rules(text: str) -> WordRules:
    """Return the rules in a file: sections of lines; a line that begins with # is a comment."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("[") and line.endswith("]"):
            lines = sections.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            lines.append(line)
    words = "|".join((*sections["keywords"], *MORE_NAMES))
    tokens = (line.split("\t", 2) for line in sections["tokens"])
    return WordRules(
        named=(
            rf"(?i)(?P<name>(?:{words})[\w-]{{0,40}})[\]'\"]{{0,2}}[ \t]{{0,4}}(?P<how>:=|=>|={{1,3}}|!==?|:)[ \t]{{0,4}}@?"
            r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`]{1,300})(?P=quote)|(?P<bare>[^\s\"'`#;,][^\s\"'`;,]{0,300})[ \t]{0,4}[;,]?[ \t]{0,4}(?:[#;].*)?$)"
        ),
        element=rf"(?i)<(?:\w{{1,40}}:)?(?P<name>[\w.-]{{0,40}}(?:{words})[\w-]{{0,40}})(?: [^<>]{{0,300}})?>\s{{0,4}}(?P<quoted>[^<>\s]{{1,300}})\s{{0,4}}</",
        keyword=f"(?i){words}",
        unquoted=frozenset(sections["unquoted"]) | SCRIPTS,
        tokens=tuple(Token(kind, hint, pattern) for kind, hint, pattern in tokens),
    )


def named_secret(text: str, path: str, rules: WordRules) -> str:
    """Return the kind of a secret that a file holds by these rules; empty where it seems to hold none."""
    lowered = text.lower()
    for token in rules.tokens:
        if token.hint in lowered and re.search(token.pattern, text):
            return token.kind
    for line in suspicious_lines(text if len(lowered) == len(text) else lowered, lowered):
        for match in (*re.finditer(rules.named, line), *re.finditer(rules.element, line)):
            if is_secret(match, path, rules):
                return f"a value named {match['name'][:40]}"
    return ""


def suspicious_lines(text: str, lowered: str) -> Iterator[str]:
    """Yield the lines that may hold one of the names, found quickly by parts of them. A program made longer lines."""
    for hint in HINTS:
        done = 0
        while (at := lowered.find(hint, done)) >= 0:
            start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            done = end = len(text) if end < 0 else end
            line = text[start:end]
            if len(line) <= MOST_LINE and any(mark in line for mark in ":=<"):
                yield line.rstrip("\r")


def is_secret(match: re.Match[str], path: str, rules: WordRules) -> bool:
    bare = match.groupdict().get("bare")
    value = match["quoted"] if bare is None else bare
    if re.search(ABOUT, match["name"]) or is_none(value, rules):
        return False
    if re.search(TRIED_OUT, path):  # A made-up one belongs to a test as much as the rest of it.
        return len(value) >= 20 and is_mixed(value)
    kind = name_ending(path)
    if bare is not None:
        return kind in rules.unquoted or (kind in PROSE and (match["how"] == "=" or is_mixed(value)))
    return is_mixed(value) or not value.istitle()


def is_none(value: str, rules: WordRules) -> bool:
    """Return whether a value is no secret: empty, a placeholder, a type, read from elsewhere, or words about one."""
    low = value.lower()
    return (
        len(value) < LEAST_VALUE
        or low in NOTHING
        or not any(letter.isalpha() for letter in value)
        or " " in value.strip()
        or any(low in row for row in IN_A_ROW)
        or bool(re.match(TEMPLATE, value) or re.search(READ_FROM, value) or re.fullmatch(UUID, value))
        or bool(re.fullmatch(WORDS, value) and re.search(rules.keyword, value))
    )


def is_mixed(value: str) -> bool:
    return len(value) >= 6 and any(c.isalpha() for c in value) and not value.replace("-", "").isalpha()


def name_ending(path: str) -> str:
    name = path.rsplit("/", 1)[-1].lower()
    stem, dot, last = name.rpartition(".")
    if not stem:
        return f".{last}" if dot else ""
    return f"{dot}{last}"
