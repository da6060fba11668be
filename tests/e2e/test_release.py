"""`./just release X.Y.Z` releases a clean checkout that passes its checks, and nothing else."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JUST = Path(sys.prefix) / "bin" / "just"
WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a"}
PREPARED = 'release VERSION DIRECTORY="dist": (environment "dev")'
"""It would bring the environment of this test run to what the clone says."""
MAKE = 'just distribution "$1" "${2-dist}"'
"""What it makes is tested with what is installed from it."""
CHECK = re.compile(r"^check: .*$", re.MULTILINE)

pytestmark = pytest.mark.xdist_group("release")  # one clone for all


class Checkout:
    """A clone with stubs for its checks and builds, which take minutes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(directory)], check=True)
        justfile = directory / "justfile"
        text = CHECK.sub("check:\n    @test ! -e ../fails", justfile.read_text(encoding="utf-8"))
        assert PREPARED in text
        assert MAKE in text
        text = text.replace(MAKE, 'test ! -e ../breaks; echo distribution "$1" "${2-dist}" >../made')
        justfile.write_text(text.replace(PREPARED, "release VERSION DIRECTORY='dist':"))
        self.git("commit", "--quiet", "--all", "--message", "tests: check nothing")

    def git(self, *arguments: str) -> str:
        """Run Git; return its output."""
        return self._run(("git", *arguments), check=True).stdout

    def release(self, version: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run the recipe."""
        return self._run((str(JUST), "release", version, "../released"), check=False, **variables)

    @property
    def state(self) -> tuple[str, str, str]:
        """The state that a refused release must not change."""
        return self.git("rev-parse", "HEAD"), self.git("tag"), self.git("diff")

    def _run(self, command: Sequence[str], *, check: bool, **variables: str) -> "subprocess.CompletedProcess[str]":
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "VIRTUAL", "JUST"))}
        venv = os.path.relpath(sys.prefix, self.directory)
        environment = {**kept, **WHO, "GIT_COMMITTER_EMAIL": "a@example.org", "VENV": venv, **variables}
        return subprocess.run(command, cwd=self.directory, env=environment, capture_output=True, text=True, check=check)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One clone for all tests here, since refusals change nothing."""
    return Checkout(tmp_path_factory.mktemp("release") / "geomill")


def test_what_is_not_committed_is_not_released(checkout: Checkout) -> None:
    """The message says what to do."""
    stray = checkout.directory / "stray"
    stray.touch()
    before = checkout.state
    refused = checkout.release("7.0.0")
    stray.unlink()
    assert (refused.returncode, "git status" in refused.stderr) == (1, True)
    assert checkout.state == before


@pytest.mark.parametrize("step", ["fails", "breaks"], ids=["a check that fails", "files that cannot be built"])
def test_a_failing_step_prevents_a_release(checkout: Checkout, step: str) -> None:
    """Nothing stays changed, so that the release can be tried again."""
    before, failing = checkout.state, checkout.directory.parent / step
    failing.touch()
    assert checkout.release("7.0.0").returncode != 0
    failing.unlink()
    assert checkout.state == before


def test_whoever_is_unknown_to_git_is_told_before_the_checks(checkout: Checkout) -> None:
    """In Git's own words."""
    before = checkout.state
    refused = checkout.release("7.0.0", GIT_COMMITTER_NAME="", GIT_COMMITTER_EMAIL="")
    assert refused.returncode != 0
    assert "ident" in refused.stderr
    assert checkout.state == before


@pytest.mark.parametrize(("version", "why"), [("7.0", "form X.Y.Z"), ("0.0.9", "older than")])
def test_a_version_must_follow_the_last_one(checkout: Checkout, version: str, why: str) -> None:
    """The message says why it does not."""
    refused = checkout.release(version)
    assert (refused.returncode, why in refused.stderr) == (1, True), refused.stderr


def test_a_release_is_a_commit_and_a_tag(checkout: Checkout) -> None:
    """Then the artefacts are built; only a later version can follow."""
    done = checkout.release("7.0.0")
    assert done.returncode == 0, done.stderr
    assert checkout.git("log", "-1", "--format=%s") == "release: 7.0.0\n"
    assert checkout.git("cat-file", "-t", "v7.0.0") == "tag\n"
    project = tomllib.loads((checkout.directory / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == "7.0.0"
    changelog = (checkout.directory / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## Unreleased\n\n## 7\.0\.0 \(\d{4}-\d\d-\d\d\)\n\S", changelog, re.MULTILINE)

    made = (checkout.directory.parent / "made").read_text(encoding="utf-8")
    assert made == "distribution 7.0.0 ../released\n"

    assert "There is a tag v7.0.0 already" in checkout.release("7.0.0").stderr
    assert "nothing under `## Unreleased`" in checkout.release("7.0.1").stderr
