"""What `./just release` writes: `python deploy/release.py check|raise|sbom VERSION`.

`check` says whether this version can follow, `raise` writes it into pyproject.toml and CHANGELOG.md, and `sbom` prints
the bill of materials (CycloneDX 1.6): what an installation with every extra consists of, from requirements/serve.lock.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

ROOT = Path(__file__).parents[1]
PROJECT, CHANGELOG, LOCK = ROOT / "pyproject.toml", ROOT / "CHANGELOG.md", ROOT / "requirements" / "serve.lock"
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_IN_PROJECT = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)
_UNRELEASED = re.compile(r"^## Unreleased\n(?P<changes>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_LOCKED = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?: ; (?P<marker>[^\\\n]+?))? \\\n(?P<hashes>(?: +--hash.*\n?)+)",
    re.MULTILINE,
)


class CannotRelease(Exception):
    """This version cannot be released now; the message says why and what to do."""


def require_next(version: str, project: str, changelog: str) -> None:
    """Check that `version` may be the next one.

    Raises:
        CannotRelease: it is not a version, is older than the present one or was released, or nothing has changed.
    """
    present = _numbers(_IN_PROJECT.findall(project)[0])
    if _numbers(version) < present:
        raise CannotRelease(f"{version} is older than {'.'.join(map(str, present))}, which pyproject.toml has.")
    if re.search(rf"^## {re.escape(version)} ", changelog, re.MULTILINE):
        raise CannotRelease(f"CHANGELOG.md says that {version} has been released.")
    unreleased = _UNRELEASED.search(changelog)
    if unreleased is None or not unreleased["changes"].strip():
        raise CannotRelease("CHANGELOG.md has nothing under `## Unreleased`: say there what is new for users.")


def raised(version: str, project: str, changelog: str, today: date) -> tuple[str, str]:
    """Return both files with the new version and its date."""
    heading = f"## Unreleased\n\n## {version} ({today.isoformat()})\n"
    return (
        _IN_PROJECT.sub(f'version = "{version}"', project, count=1),
        _UNRELEASED.sub(lambda found: heading + found["changes"], changelog, count=1),
    )


def bill_of_materials(version: str, project: str, lock: str) -> dict[str, Any]:
    """Return a CycloneDX document: Geomill, and each locked package with its hashes, without times or random ids."""
    described = tomllib.loads(project)["project"]
    parts = list(_components(lock))
    name = described["name"]
    this = {
        "type": "application",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "description": described["description"],
        "purl": f"pkg:pypi/{name}@{version}",
        "licenses": [{"license": {"id": described["license"]}}],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, f'{name} {version} {lock}')}",
        "version": 1,
        "metadata": {"component": this},
        "components": parts,
        "dependencies": [{"ref": this["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def _components(lock: str) -> Iterator[dict[str, Any]]:
    for found in _LOCKED.finditer(lock):
        name, version, marker, hashes = found.group("name", "version", "marker", "hashes")
        url = f"pkg:pypi/{name}@{version}"
        files = [[{"alg": "SHA-256", "content": digest}] for digest in re.findall(r"sha256:([0-9a-f]{64})", hashes)]
        component: dict[str, Any] = {
            "type": "library",
            "bom-ref": url,
            "name": name,
            "version": version,
            "purl": url,
            "externalReferences": [{"type": "distribution", "url": url, "hashes": hashes} for hashes in files],
        }
        if marker:
            component["properties"] = [{"name": "geomill:marker", "value": marker}]
        yield component


def _numbers(version: str) -> tuple[int, ...]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise CannotRelease(f"{version} is not a version of the form X.Y.Z.")
    return tuple(map(int, found.groups()))


def main(verb: str, version: str) -> None:
    """Do one of the three.

    Raises:
        CannotRelease: see `require_next`.
    """
    project, changelog = PROJECT.read_text(encoding="utf-8"), CHANGELOG.read_text(encoding="utf-8")
    match verb:
        case "check":
            require_next(version, project, changelog)
        case "raise":
            project, changelog = raised(version, project, changelog, datetime.now(UTC).date())
            PROJECT.write_text(project, encoding="utf-8")
            CHANGELOG.write_text(changelog, encoding="utf-8")
        case "sbom":
            print(json.dumps(bill_of_materials(version, project, LOCK.read_text(encoding="utf-8")), indent=1))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except CannotRelease as error:
        sys.exit(str(error))
