"""What is installed: wheel and source distribution, their metadata, the manual, the versions."""

from __future__ import annotations

import email
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from streamdp import __version__
from streamdp.cli import COMMANDS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = {
    name.lower().replace("_", "-"): Version(version)
    for name, version in re.findall(
        r"^([\w-]+)==(\S+)$",
        (ROOT / "deploy" / "packaging" / "constraints.txt").read_text(),
        re.MULTILINE,
    )
}


def built(target: str, source: Path, folder: Path, commit: str = "") -> Path:
    """What hatchling makes of sources, in the present environment."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)],
        cwd=source,
        env={**os.environ, "STREAMDP_COMMIT": commit},
        check=True,
        capture_output=True,
    )
    (made,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


def test_the_changelog_says_each_thing_of_a_version_once() -> None:
    """Merges leave no section twice, none of another name, and no line twice."""
    text = (ROOT / "streamdp" / "CHANGELOG.md").read_text()
    versions = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert __version__ in versions[0].splitlines()[0]
    allowed = ["Added", "Fixed", "Changed", "Deprecated", "Removed", "Security"]
    for version in versions:
        sections = re.findall(r"^### (\w+)", version, re.MULTILINE)
        assert sections == [each for each in allowed if each in sections]
        lines = [line for line in version.splitlines() if line.startswith(("- ", "| "))]
        assert len(lines) == len(set(lines))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source distribution, which is built from the checkout."""
    pytest.importorskip("hatchling", reason="pip install hatchling")
    folder = tmp_path_factory.mktemp("dist")
    with tarfile.open(built("sdist", ROOT, folder, commit="c0ffee")) as archive:
        # Python before 3.11.4 knows no filters; from 3.12 on, none at all is a warning.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)  # noqa: S202 - our own archive
    return built("wheel", folder / f"streamdp-{__version__}", folder)


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        return email.message_from_bytes(archive.read(f"streamdp-{__version__}.dist-info/METADATA"))


def test_the_metadata_say_what_it_is_and_what_it_needs(wheel: Path) -> None:
    told = metadata(wheel)
    assert told["Version"] == __version__
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Description-Content-Type"] == "text/markdown"
    for field in ("Summary", "Keywords", "Author", "Requires-Python"):
        assert told[field], field
    assert len(told.get_all("Classifier", ())) >= 10
    assert set(told.get_all("Provides-Extra", ())) == set(PROJECT["optional-dependencies"])


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    files = subprocess.run(
        ["git", "ls-files", "streamdp"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    if not files:
        pytest.skip("no checkout")
    assert {name for name in names if name.startswith("streamdp/")} == {
        *files,
        "streamdp/commit.txt",
    }
    others = {name for name in names if not name.startswith(("streamdp/", "streamdp-"))}
    assert not others


def test_the_installed_command_runs_apart_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """It says its commit, and a demonstration it wrote is valid."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")  # noqa: S202  built a moment ago
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "STREAMDP_COMMIT": ""}

    def said(*words: str) -> str:
        command = [sys.executable, "-P", "-m", "streamdp", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        ).stdout

    assert said("--version") == f"{__version__} (c0ffee)\n"
    said("init", "--demo")
    assert "air_time" in said("validate")


def test_the_manual_has_every_command(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        name = f"streamdp-{__version__}.data/data/share/man/man1/streamdp.1"
        text = archive.read(name).decode()
    for command in COMMANDS:
        assert f".SS streamdp {command} " in text
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "FILES"):
        assert f".SH {heading}\n" in text
    if shutil.which("groff"):
        groff = ["groff", "-man", "-ww", "-z", "-Tutf8"]
        checked = subprocess.run(groff, input=text, capture_output=True, text=True)
        assert not checked.stderr


def test_a_checkout_says_its_commit() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    command = [sys.executable, "-m", "streamdp", "--version"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert told.startswith(f"{__version__} ({head[:12]}")


def test_the_constraints_pin_all_that_is_required() -> None:
    """Each requirement of the package and of its extras, within its bounds."""
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"]]
    for extra in ("accounting", "mariadb", "plot", "postgres", "spark", "web"):
        asked += extras[extra]
    for requirement in map(Requirement, asked):
        assert PINS[requirement.name.lower()] in requirement.specifier, requirement


def test_no_line_of_the_constraints_names_an_address() -> None:
    for name in ("constraints.txt", "hashes.txt", "build.txt"):
        assert "//" not in (ROOT / "deploy" / "packaging" / name).read_text()


def test_every_pin_has_its_hashes() -> None:
    """The image installs the pins of the constraints, and what builds it, by hash."""
    for name in ("hashes.txt", "build.txt"):
        text = (ROOT / "deploy" / "packaging" / name).read_text().replace(" \\\n", " ")
        found = {}
        for line in re.findall(r"^[^#\s].*$", text, re.MULTILINE):
            pin, *hashes = line.split()
            project, _, version = pin.partition("==")
            found[project.lower().replace("_", "-")] = Version(version)
            assert hashes
            assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes)
        if name == "hashes.txt":
            assert found == PINS
        else:
            assert {"pip", "hatchling"} <= found.keys()


@pytest.mark.long
def test_it_installs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """With all it asks for, by hash, as the image does; then it releases four days."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    packaging = ROOT / "deploy" / "packaging"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    asked = tmp_path / "asked.txt"
    asked.write_text(f"streamdp[web,postgres] @ file://{wheel} --hash=sha256:{digest}\n")
    pip = [str(tmp_path / "venv/bin/pip"), "install", "-q", "--require-hashes"]
    subprocess.run([*pip, "-r", str(packaging / "build.txt")], check=True, cwd=tmp_path)
    pinned = ["-c", str(packaging / "hashes.txt"), "-r", str(asked)]
    subprocess.run([*pip, *pinned], check=True, cwd=tmp_path)
    command = str(tmp_path / "venv/bin/streamdp")
    subprocess.run([command, "init", "--demo"], check=True, cwd=tmp_path)
    path = tmp_path / "config.yaml"
    path.write_text(path.read_text().replace("end: 2014-01-01", "end: 2013-01-05"))
    ran = subprocess.run([command, "run", "--once"], check=True, cwd=tmp_path, capture_output=True)
    assert b"4 released" in ran.stdout + ran.stderr
    assert (tmp_path / "venv/share/man/man1/streamdp.1").exists()


def test_the_manual_page_needs_what_its_hook_asks_for_alone() -> None:
    """A build of its own has no other package: no command imports one before it runs."""
    code = (
        "import sys\n"
        "known = sys.stdlib_module_names | {'click', 'numpy', 'streamdp', 'man'}\n"
        "class Build:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] not in known and name[0] != '_':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Build())\n"
        "sys.path[:0] = ['deploy/packaging', '.']\n"
        "from man import page\n"
        "assert '.SH COMMANDS' in page()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-500:]
