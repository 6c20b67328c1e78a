"""A secret that only the name beside it tells; and all that stands in such a place and is none."""

from __future__ import annotations

import time

import pytest

from gitgate.store.work import word_rules
from gitgate.text.secrets import named_secret


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("notes.txt", "password = hunter2"),
        ("notes", "the server\nPassword: Tr0ub4dor&3\n"),
        ("setup.md", "    db_password = correcthorsebattery"),
        ("settings.py", 'PASSWORD = "hunter2"'),
        ("settings.py", "conn = connect(user='me', password='correcthorse')"),
        ("settings.py", 'config["client_key"] = "a8f3-22b1-99"'),
        ("config.ini", "passwd=correcthorse"),
        ("config.yml", "database:\n  password: correcthorse  # the old one\n"),
        ("config.toml", "api_key = 'abcd1234efgh'"),
        ("app.json", '{"user": "me", "password": "hunter2"}'),
        ("app.js", "const apiKey = 'abc-123-def-456';"),
        ("main.go", 'password := "correcthorse"'),
        ("app.rb", 'options = { :secret => "s3kr1t" }'),
        ("run.sh", "export db_pass=correcthorse"),
        ("check.py", 'if password == "letmein9":'),
        ("nota.txt", "contraseña = caballo7"),
        ("dos.ini", "user=me\r\npassword=hunter2\r\n"),
    ],
)
def test_a_value_beside_a_telling_name(path: str, text: str) -> None:
    """In the quotes that the language wants, or without where none are wanted."""
    assert named_secret(text, path, word_rules()).startswith("a value named ")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "password = os.environ['DB_PASSWORD']"),
        ("a.py", 'password = os.environ.get("DB_PASSWORD", "")'),
        ("a.py", "password = getpass.getpass()"),
        ("a.py", "self.password = password"),
        ("a.py", "def login(user: str, password: str = '') -> None:"),
        ("a.py", 'raise ValueError("the password: it is wrong")'),
        ("a.py", 'SECRET_NAME = "web-tls-1"'),
        ("a.py", 'FIELD = {"password": "Password"}'),
        ("a.py", 'password_file = "/run/secrets/db1"'),
        ("a.py", 'reset = {"secret": "secret_key"}'),
        ("a.py", 'key: "_PrivateKey", private_key: "_RSAPrivateKey"'),
        ("a.ts", "interface Login { password: string; apiKey?: string }"),
        ("a.js", "const password = process.env.PASSWORD;"),
        ("a.js", "const secret = `${prefix}-1`;"),
        ("a.html", '<input type="password" name="password" id="pw1">'),
        ("de.json", '{"password": "Passwort", "forgot": "Passwort vergessen?"}'),
        ("c.yml", "password: ${DB_PASSWORD}\nsecret: {{ vault.db }}\npasswd: <password>\nsecret:\n"),
        ("c.yml", "password: changeme\napi_key: your-api-key-1\npwd: xxxxxxxx9\nsecret: null\n"),
        (
            "c.yml",
            "secretName: web-tls\npassword: 12345678\nauth_key: 9d2f7c1e-0000-4000-8000-1234567890ab\n",
        ),
        ("c.ini", 'password =\npassword = ""\n# password = \n'),
        ("c.ini", "password = abcdefgh\npassword = 0123456789"),
        ("README.md", "password: the word that you were given\nsecret: string\nkey: value"),
        ("README.md", "Set `password` to yours. The secret: be kind."),
        ("lib/secretary.txt", "secretary = Ada2"),
        ("tests/test_login.py", 'password = "s3cr3t-pw"'),
        ("a.sh", "pwd=$(pwd)\npassword=$1\n"),
    ],
)
def test_what_is_none(path: str, text: str) -> None:
    """Read from elsewhere, a placeholder, empty, a type, a label, a name of something, made up for a test."""
    assert named_secret(text, path, word_rules()) == ""


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("artifactory token", 'token "AK' + "C" + "a1B2" * 4 + '"'),
        ("discord token", "M" + "a1B2c3" * 4 + "." + "x" * 6 + "." + "y" * 27),
        ("mailchimp key", "0a1b2c3d" * 4 + "-us12"),
        ("gitlab token", "glso" + "at-" + "a1B2" * 6),
        ("square key", "sq0" + "csp-" + "a" * 43),
        ("telegram token", "12345678" + ":" + "A" * 35),
    ],
)
def test_tokens_that_our_own_shapes_lack(kind: str, text: str) -> None:
    assert named_secret(f"see {text} there", "notes.txt", word_rules()) == kind


@pytest.mark.parametrize(
    "text",
    ["password" * 8_000, "password = " * 6_000, "password='" * 6_000, ("password" + "=" * 60 + "\n") * 900, "1" * 65_000,
     "key_" * 16_000 + "=1", "M" + "a" * 65_000, "0a1b2c3d" * 8_000, ("secret: " + "a" * 900 + "\n") * 70, "\n" * 65_000,
     ("password" + " " * 900 + "\n") * 70],
    ids=range(11),
)  # fmt: skip
def test_hostile_text_takes_no_longer(text: str) -> None:
    """As much as is read of a file, made to have patterns go back and forth."""
    started = time.process_time()
    named_secret(text, "c.ini", word_rules())
    assert time.process_time() - started < 2


def test_no_secret_is_repeated() -> None:
    """The reason that stands in the question names what it is called, never what it is."""
    assert "hunter2" not in named_secret("password_of_hunter = hunter2", "c.ini", word_rules())
