"""The lock that jobs install from: complete, of hashes alone, and held against what a registry gives."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from support.forges.jobs import ACTION, ALONE, LOCKED, NAMED, PIP, TOP, WORKFLOWS, is_own_checkout, load

GATE = TOP / ".github/requirements/gate.txt"
LOCKS = [*sorted(GATE.parent.iterdir()), TOP / ".ci/lowest.txt"]
LINE = re.compile(
    r"([a-z0-9][a-z0-9-]*)==([\w.]+)( ; [\w' .<>=]+| ; [\w' .<>=!]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)"
)
INSTALLS = f"{PIP} {LOCKED} -r .github/requirements/gate.txt"
ITSELF = f"{PIP} {ALONE} ."


def locked(path: Path) -> dict[str, str]:
    """Each package and its version; of two for different Pythons the last."""
    return {name: version for name, version, _, _ in LINE.findall(path.read_text())}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_each_line_is_a_version_with_hashes(path: Path) -> None:
    """Nothing else: no registry, no option, no address."""
    text = path.read_text()
    assert LINE.sub("", text) == text.splitlines(keepends=True)[0]
    assert text.startswith("# ")
    assert len(locked(path)) > 15


@pytest.mark.parametrize(
    ("path", "extras"),
    [
        (GATE, ["all"]),
        (GATE.parent / "test.txt", ["test"]),
        (GATE.parent / "dev.txt", ["dev", "fuzz", "docs"]),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_what_the_project_asks_for_is_locked(path: Path, extras: list[str]) -> None:
    """In a version that it takes, and what builds it as well; so nothing has to be fetched besides."""
    said = tomllib.loads((TOP / "pyproject.toml").read_text())
    wanted = [*said["build-system"]["requires"], *said["project"]["dependencies"]]
    optional = said["project"]["optional-dependencies"]
    while extras:
        for each in optional[extras.pop()]:
            asked = Requirement(each)
            if asked.name == "git-gate":
                extras.extend(asked.extras)
            else:
                wanted.append(each)
    found = locked(path)
    for each in wanted:
        asked = Requirement(each)
        assert asked.specifier.contains(found[asked.name.lower()]), each


def test_the_oldest_are_what_the_project_says() -> None:
    """The tests on lower bounds run on those."""
    asked = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["dependencies"]
    found = locked(TOP / ".ci/lowest.txt")
    for each in asked:
        name, _, version = each.partition(">=")
        assert f"{found[name.lower()]}.0".startswith(version)


# the jobs


def steps_of(path: Path) -> list[list[dict[str, Any]]]:
    said = load(path)
    each = [said["runs"]] if "runs" in said else said["jobs"].values()
    return [one["steps"] for one in each if "steps" in one]


@pytest.mark.parametrize("path", [*sorted(WORKFLOWS.glob("*.yml")), ACTION], ids=lambda path: path.name)
def test_what_a_job_installs_is_locked_or_here(path: Path) -> None:
    """Each call of pip: by hashes and without building, or the checkout alone and nothing from anywhere."""
    calls = [
        line
        for steps in steps_of(path)
        for step in steps
        for line in str(step.get("run", "")).splitlines()
        if "pip" in line
    ]
    assert calls
    for line in calls:
        assert LOCKED in line or ALONE in line or line == NAMED


@pytest.mark.parametrize("name", ["agent.yml", "answer.yml", "resume.yml", "sweep.yml"])
def test_the_lock_is_that_of_the_named_commit(name: str) -> None:
    """It is there before anything of the caller's repository, which the agent's branch may be."""
    for steps in steps_of(WORKFLOWS / name):
        first, python, packages, ours, named, own = steps[:6]
        assert first["with"] == {
            "repository": "${{ inputs.source }}",
            "ref": "${{ inputs.source-commit }}",
            "persist-credentials": False,
        }
        assert python["uses"].startswith("actions/setup-python@")
        assert (packages["run"], ours["run"], named["run"]) == (INSTALLS, ITSELF, NAMED)
        assert (ours["if"], named["if"]) == ("inputs.package == ''", "inputs.package != ''")
        assert is_own_checkout(own)
        assert own["with"]["persist-credentials"] is False


# what pip makes of it


def wheel(folder: Path, name: str, version: str = "1.0", *, needs: str = "", text: str = "") -> str:
    """A package that can be installed, and its hash."""
    place = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    asks = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        f"{name}.py": text,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{asks}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    hashes = (
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(said.encode()).digest()).decode().rstrip('=')},{len(said)}\n"
        for path, said in files.items()
    )
    with zipfile.ZipFile(place, "w") as out:
        for path, said in files.items():
            out.writestr(path, said)
        out.writestr(f"{about}/RECORD", "".join(hashes) + f"{about}/RECORD,,\n")
    return hashlib.sha256(place.read_bytes()).hexdigest()


def run_line(line: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A step's line in a checkout, with the packages of a folder as its registry."""
    given = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder / "registry"),
        "PIP_TARGET": str(folder / "installed"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SOURCE": str(folder / "checkout"),
    }
    return subprocess.run(
        ["bash", "-ec", line],
        cwd=folder / "checkout",
        env={**os.environ, **given, **more},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout whose lock has one package, and a registry that has it.

    Some of its files are called as what Python and pip load: whoever ran one of them would leave the file `ran`.
    """
    (tmp_path / "registry").mkdir()
    (tmp_path / "checkout/.github/requirements").mkdir(parents=True)
    for name in ("pip", "runpy", "json", "sitecustomize"):
        (tmp_path / f"checkout/{name}.py").write_text("open('ran', 'w').close()\n")
    lock(tmp_path, "left", wheel(tmp_path / "registry", "left"))
    return tmp_path


def lock(folder: Path, name: str, digest: str) -> None:
    place = folder / "checkout/.github/requirements/gate.txt"
    place.write_text(f"{name}==1.0 \\\n    --hash=sha256:{digest}\n")


@pytest.mark.slow
@pytest.mark.parametrize("line", [INSTALLS, INSTALLS.replace("-r ", '-r "$SOURCE"/')])
@pytest.mark.needs("bash")
def test_what_the_lock_names_is_installed(folder: Path, line: str) -> None:
    """It, and nothing of the folder runs."""
    said = run_line(line, folder)
    assert said.returncode == 0, said.stderr
    assert (folder / "installed/left.py").exists()
    assert not (folder / "checkout/ran").exists()


def swapped(folder: Path) -> None:
    """The same name and version with other contents."""
    wheel(folder / "registry", "left", text="open('ran', 'w')")


def brings_another(folder: Path) -> None:
    """A package that needs one that the lock does not have."""
    lock(folder, "left", wheel(folder / "registry", "left", needs="right"))
    wheel(folder / "registry", "right")


def only_source(folder: Path) -> None:
    """A release that has to be built here, whose build would run what it likes."""
    (folder / "registry/left-1.0-py3-none-any.whl").unlink()
    place = folder / "registry/left-1.0.tar.gz"
    place.write_bytes(b"not looked at")
    lock(folder, "left", hashlib.sha256(place.read_bytes()).hexdigest())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (swapped, "DO NOT MATCH THE HASHES"),
        (brings_another, "right"),
        (only_source, "No matching distribution found for left==1.0"),
    ],
)
@pytest.mark.needs("bash")
def test_what_the_lock_does_not_name_is_not_installed(folder: Path, attack: Any, words: str) -> None:
    attack(folder)
    said = run_line(INSTALLS, folder)
    assert said.returncode != 0
    assert words in said.stderr
    assert not (folder / "installed").exists() or not any((folder / "installed").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.needs("bash")
def test_a_named_package_is_held_to_its_hash(folder: Path, swap: bool) -> None:
    """Where one is given; what it needs is not looked for."""
    digest = wheel(folder / "registry", "mine", needs="right")
    wheel(folder / "registry", "right")
    if swap:
        wheel(folder / "registry", "mine", needs="right", text="open('ran', 'w')")
    said = run_line(NAMED, folder, PACKAGE=f"mine==1.0 --hash=sha256:{digest}")
    assert (said.returncode != 0) is swap
    assert ("DO NOT MATCH THE HASHES" in said.stderr) is swap
    found = [place.name for place in (folder / "installed").glob("*.py")]
    assert found == ([] if swap else ["mine.py"])
    assert not (folder / "checkout/ran").exists()


@pytest.mark.slow
@pytest.mark.needs("bash")
def test_the_checkout_is_installed_and_nothing_fetched(folder: Path) -> None:
    """Neither what it needs nor what builds it, though a registry has both."""
    wheel(folder / "registry", "right")
    wheel(folder / "registry", "hatchling", "99.0")
    (folder / "checkout/pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling>=98"]\nbuild-backend = "there"\nbackend-path = ["."]\n'
        '[project]\nname = "mine"\nversion = "1.0"\ndependencies = ["right"]\n'
    )
    (folder / "checkout/there.py").write_text(
        "import shutil\n"
        "def build_wheel(folder, *_):\n"
        "    name = 'mine-1.0-py3-none-any.whl'\n"
        "    shutil.copy(f'../made/{name}', folder)\n"
        "    return name\n"
    )
    (folder / "made").mkdir()
    wheel(folder / "made", "mine", needs="right")
    said = run_line(ITSELF, folder)
    assert said.returncode == 0, said.stderr
    assert sorted(found.name for found in (folder / "installed").glob("*.py")) == ["mine.py"]
    assert not (folder / "checkout/ran").exists()
