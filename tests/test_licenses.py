"""Licenses of what lanescope brings along: each package that an install may fetch, with all extras, has one we accept.

The judge is the metadata of the installed packages, so a new release of a dependency that changes its license, or gets
a dependency of its own with another one, fails here.
"""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

#: Permissive ones, and MPL-2.0 and PSF-2.0, which ask nothing of a program that uses the package unchanged.
ACCEPTED = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CNRI-Python",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "PSF-2.0",
    "Zlib",
}
#: Older metadata, in words. What says only "BSD" has two or three clauses.
WORDS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
#: No license in the metadata, or none that a license list names: what the license file in the package says.
READ = {
    "resvg-py": ("Permission is hereby granted, free of charge", "MIT"),
    "pyelftools": ("public domain", "CC0-1.0"),
}


def installed():
    """Return the packages that lanescope may bring along, by name, and the names of those that are not installed."""
    wanted = [Requirement(text) for text in PROJECT["dependencies"]]
    wanted += [Requirement(text) for extra in PROJECT["optional-dependencies"].values() for text in extra]
    found, missing = {}, set()
    asked = {(canonicalize_name(one.name), extra) for one in wanted for extra in {"", *one.extras}}
    todo = list(asked)
    while todo:
        name, extra = todo.pop()
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            missing.add(name)
            continue
        for text in found[name].requires or []:
            one = Requirement(text)
            if one.marker and not one.marker.evaluate({**default_environment(), "extra": extra}):
                continue
            new = {(canonicalize_name(one.name), part) for part in {"", *one.extras}} - asked
            asked |= new
            todo += new
    return found, missing


FOUND, MISSING = installed()


def licenses(package):
    """Return the names of a package's licenses, as a list of licenses has them; empty where it states none."""
    said = package.metadata
    if expression := said.get("License-Expression"):
        return set(re.split(r" (?:AND|OR|WITH) |[()]", expression)) - {""}
    words = [text.rpartition(" :: ")[2] for text in said.get_all("Classifier", []) if text.startswith("License ::")]
    short = (said.get("License") or "").strip()
    return {WORDS.get(text, text) for text in (words or ([short] if short and "\n" not in short else []))}


def license_texts(package):
    """Return the texts of the license files in a package, in one line each."""
    paths = [path for path in package.files or [] if re.search(r"licen[sc]e|copying", path.name, re.IGNORECASE)]
    return [" ".join(path.locate().read_text(errors="replace").split()) for path in paths]


def test_all_that_an_install_may_fetch_is_here():
    assert not MISSING
    assert {"numpy", "duckdb", "distributed", "mcp", "viztracer"} <= FOUND.keys()


@pytest.mark.parametrize("name", sorted(FOUND))
def test_a_package_has_a_license_that_we_accept(name):
    if name in READ:
        phrase, spdx = READ[name]
        assert any(phrase.lower() in text.lower() for text in license_texts(FOUND[name]))
        assert spdx in ACCEPTED
        return
    stated = licenses(FOUND[name])
    assert stated
    assert stated <= ACCEPTED


@pytest.mark.parametrize("word", ["GPL-3.0-only", "MIT AND GPL-2.0-or-later", "LicenseRef-Proprietary"])
def test_other_licenses_are_refused(word):
    assert not licenses(SimpleNamespace(metadata={"License-Expression": word})) <= ACCEPTED
