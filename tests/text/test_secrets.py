"""Secrets are found by their shape, their name and their file, and nothing else is garbled."""

from __future__ import annotations

import random
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.text.secrets import find_secrets, redact, secret_name, secret_values

RANDOM = random.Random(7)  # noqa: S311  made-up tokens, assembled here so that no file holds the shape of one


def made(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(RANDOM.choice(letters) for _ in range(length))


HEX = "0123456789abcdef"
TOKENS = {
    "github token": "ghp" + "_" + made(36),
    "fine grained": "github_" + "pat_" + made(22) + "_" + made(59),
    "gitlab token": "glpat" + "-" + made(20),
    "slack token": "xoxb" + "-123456789012-1234567890123-" + made(24),
    "anthropic key": "sk-" + "ant-api03-" + made(93),
    "openai key": "sk-" + "proj-" + made(60),
    "older openai key": "sk-" + made(48),
    "stripe key": "sk_" + "live_" + made(24),
    "google key": "AI" + "za" + made(35),
    "npm token": "npm" + "_" + made(36),
    "pypi token": "pypi" + "-AgEIcHlwaS5vcmc" + made(80),
    "hugging face token": "hf" + "_" + made(34),
    "aws access key": "AK" + "IA" + made(16, string.ascii_uppercase + "234567"),
    "json web token": "ey" + "J" + made(30) + ".ey" + "J" + made(60) + "." + made(43),
    "databricks token": "da" + "pi" + made(32, HEX),
    "digitalocean token": "dop" + "_v1_" + made(64, HEX),
    "age key": "AGE-" + "SECRET-KEY-1" + made(58, string.ascii_uppercase + string.digits),
    "vault token": "hv" + "s." + made(90),
    "sendgrid key": "SG" + "." + made(22) + "." + made(43),
}
KEY_BODY = "\n".join(made(64, string.ascii_letters + string.digits + "+/") for _ in range(6))
BEGIN, END = "-----BEGIN OPENSSH PRIVATE " + "KEY-----", "-----END OPENSSH PRIVATE " + "KEY-----"


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("place", ["{}", "token: {}", '{{"a":"{}"}}', "see ({}), please", "x={}\n"])
def test_a_token_of_a_known_shape_is_redacted_wherever_it_stands(name: str, place: str) -> None:
    """The token goes, what surrounds it stays."""
    token = TOKENS[name]
    clean = redact(place.format(token))
    assert token not in clean
    assert "[redacted: " in clean
    before, after = place.format("\0").split("\0")
    assert clean.startswith(before)
    assert clean.endswith(after)


@pytest.mark.parametrize(
    "text",
    [
        f"{BEGIN}\n{KEY_BODY}\n{END}\n",
        f"{BEGIN}\n{KEY_BODY}",
        "\n".join(f"{n:>6}→{line}" for n, line in enumerate([BEGIN, *KEY_BODY.split("\n"), END], 1)),
        repr(f"{BEGIN}\n{KEY_BODY}\n{END}\n"),
    ],
    ids=["whole", "cut short", "numbered listing", "escaped"],
)
def test_no_line_of_a_private_key_survives(text: str) -> None:
    """However the key is printed, none of its body is left."""
    clean = redact(f"before\n{text}\nafter")
    assert all(line not in clean for line in KEY_BODY.split("\n"))
    assert clean.startswith("before\n")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("DB_PASSWORD=hunter2\n", "hunter2"),
        ("A=1\nexport API_TOKEN='s3cr3t-enough'\n", "s3cr3t-enough"),
        ("     4\tSTRIPE_KEY=abcdefgh\n", "abcdefgh"),
        ('password: "9fK2xQ7vLm4Zt1Wd"', "9fK2xQ7vLm4Zt1Wd"),
        ('{"client_secret": "9fK2xQ7v-Lm4Zt1Wd8"}', "9fK2xQ7v-Lm4Zt1Wd8"),
        ("postgres://app:pa55word@db.internal/x", "pa55word"),
        ("Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789abcdef"),
        ("authorization: basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        (
            "aws_secret_access_key = wJa1rXUtnF/EMI7MDENGbPxRfiCYzQKEYab\n",
            "wJa1rXUtnF/EMI7MDENGbPxRfiCYzQKEYab",
        ),
        ("AccountKey=" + "aB3/" * 20 + "==;", "aB3/" * 20),
    ],
)
def test_a_value_that_stands_beside_a_secret_name_is_redacted(text: str, secret: str) -> None:
    """The name stays, so that a reader sees what was there."""
    clean = redact(text)
    assert secret not in clean
    assert clean.split("[redacted")[0] == text.split(secret, maxsplit=1)[0]


@pytest.mark.parametrize(
    "text",
    [
        "password = os.environ['DB_PASSWORD']",
        "token = settings.github.token_for_user1",
        "API_KEY=$API_KEY\nDB_PASSWORD=${SECRET}\nTOKEN=<your token>\nA_TOKEN=changeme\n",
        "secret: your-secret-goes-here-1234",
        "max_tokens: 12345678901234567890123",
        "token = generate_token(user_id, 1234567890)",
        "https://example.org/a:b@c https://user@example.org/",
        "postgres://app:${PASSWORD}@db/x",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "integrity sha512-" + made(86) + "==",
        "from tokenize import tokenizer; key = 'primary'",
        "the secret to a good token is that the password is a passphrase",
        "token_path: /home/someone/.config/app/token_file_1",
        "risk-" + made(40),
    ],
)
def test_code_that_reads_a_secret_and_placeholders_are_left_alone(text: str) -> None:
    """Garbling an agent's source text would make it write the mark back into the code."""
    assert redact(text) == text


def test_values_of_the_environment_are_hidden_however_they_are_printed() -> None:
    """Plain, with escaped newlines, in a URL, and line by line."""
    value = 'first "line" of it 123\nand a second long line of it'
    text = (
        f"{value}|"
        + value.replace("\n", "\\n").replace('"', '\\"')
        + "|first%20%22line%22%20of%20it%20123%0Aand%20a%20second%20long%20line%20of%20it|and a second long line of it"
    )
    assert redact(text, [value]) == "|".join(["[redacted: environment]"] * 4)


def test_a_longer_value_wins_over_one_that_it_contains() -> None:
    assert redact("x abcdefgh12345 x", ["abcdefgh", "abcdefgh12345"]) == "x [redacted: environment] x"


def test_secret_values_are_those_of_secret_names_and_known_shapes() -> None:
    """Paths, words, numbers too short and the working directory are no secrets."""
    token = TOKENS["github token"]
    environment = {
        "MY_API_KEY": "abcdefgh1",
        "GITHUB_TOKEN": "longenough",
        "PGPASSWORD": "hunter2",
        "DATABASE_URL": "postgres://u:p4ss@h/d1",
        "DATABASE_DSN": "postgres://u:pa55word@h/d",
        "GIT_CONFIG_KEY_0": "http.extraheader",
        "GIT_CONFIG_VALUE_0": "AUTHORIZATION: basic " + "QWxhZGRpbjpvcGVu",
        "HIDDEN": f"--with {token}",
        "AWS_SECRET_ACCESS_KEY": "/" + "aB3dE5gH7" * 4 + "abc",
        "PWD": "/home/somebody/place",
        "OLDPWD": "somewhere-else",
        "SSH_AUTH_SOCK": "/tmp/ssh-abc/agent.1",
        "TOKEN_FILE": "some-file-name",
        "EMPTY_TOKEN": "",
        "A_SECRET": "enabled",
        "SHORT_KEY": "abc",
        "PATH": "/usr/bin:/bin",
        "EDITOR": "ordinary-editor",
    }
    assert secret_values(environment) == {
        "abcdefgh1",
        "longenough",
        "hunter2",
        "pa55word",
        "postgres://u:pa55word@h/d",
        "QWxhZGRpbjpvcGVu",
        token,
        "/" + "aB3dE5gH7" * 4 + "abc",
    }


@given(st.text(max_size=300), st.lists(st.text(string.ascii_letters + string.digits, min_size=8), max_size=3))
def test_redaction_leaves_no_value_and_changes_nothing_twice(text: str, values: list[str]) -> None:
    """What was redacted once stays as it is."""
    values = [value for value in values if value not in "[redacted: environment]"]
    once = redact(text.join(["", *values, ""]), values)
    assert all(value not in once for value in values)
    assert redact(once, values) == once


@given(st.text(max_size=500))
def test_every_span_lies_within_the_text(text: str) -> None:
    assert all(0 <= span.start < span.end <= len(text) for span in find_secrets(text))


@pytest.mark.parametrize(
    "text",
    ["password" * 60_000, "a" * 500_000, "1" * 500_000, "token=" + "A_" * 250_000, "A_" * 250_000, "-----BEGIN " * 45_000,
     "eyJ" + "a" * 500_000, ("eyJ" + "a" * 20) * 20_000, "://a:" * 100_000, "secret: '" * 50_000, "\n" * 500_000,
     (BEGIN + "\n") * 14_000, "authorization: bearer " * 20_000, "key " * 120_000 + "token"],
    ids=range(14),
)  # fmt: skip
def test_hostile_text_takes_linear_time(text: str) -> None:
    """Half a megabyte made to make patterns backtrack is done in a moment."""
    started = time.process_time()
    redact(text)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".env.local",
        "config/prod.env",
        ".ENV",
        "a/b/id_rsa",
        "id_ed25519",
        "deploy_id_ed25519",
        "server.pem",
        "tls.key",
        "cert.p12",
        ".npmrc",
        ".pypirc",
        ".netrc",
        ".git-credentials",
        ".aws/credentials",
        "home/.aws/credentials",
        ".docker/config.json",
        ".kube/config",
        "credentials.json",
        "client_secret_1.apps.json",
        "secrets.yaml",
        "config/secrets.yml",
        "app-secrets.prod.json",
        "service-account.json",
        "service_account-key.json",
        "terraform.tfstate",
        "terraform.tfstate.backup",
        "prod.tfvars",
        ".htpasswd",
        "vault.kdbx",
        "config/master.key",
        ".pgpass",
        "windows\\.env",
    ],
)
def test_files_that_usually_hold_secrets_are_known_by_name(path: str) -> None:
    assert secret_name(path)


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        ".env.sample",
        ".env.template",
        "config/.env.dist",
        "id_rsa.pub",
        "id_ed25519.pub",
        "environment.py",
        "env.py",
        "src/secrets.py",
        "docs/secrets.md",
        "keyboard.c",
        "monkey.py",
        "credentials.py",
        "config.json",
        "secrets.example.yaml",
        "test_secrets.py",
        "tokens.css",
        "public.pem.md",
        "envelope",
        ".envoy",
        "a/config",
        "key.txt",
    ],
)
def test_samples_sources_and_public_keys_are_not(path: str) -> None:
    assert not secret_name(path)
