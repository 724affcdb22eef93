"""Put news into CHANGELOG.md, and give the package a version: `release.py news`, `release.py version X.Y.Z`.

News are files of ``news``, one a change: ``NAME.added.md``, ``NAME.changed.md`` or ``NAME.fixed.md``, each with the
text of its line. ``news`` puts them at the top of their sections under *Unreleased*, and removes the files. ``version``
does so too, gives these sections the version and the date of today, and writes the version where the package and its
citation have it. It commits and publishes nothing. ``check`` changes nothing, and fails where a file of ``news`` is
wrong.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Kinds of changes, in the order of their sections; the former take part in the name of a file.
KINDS = {"added": "### Added", "changed": "### Changed", "fixed": "### Fixed"}
UNRELEASED = "## Unreleased"
WIDTH = 132
#: Where the version stands: file, and the line with a group for what comes before it and one for what follows.
PLACES = {
    "src/lanescope/__init__.py": r'(?m)^(__version__ = ")[^"]+(")$',
    "CITATION.cff": r"(?m)^(version: )\S+()$",
}


class WrongNewsError(Exception):
    """A file of news, or a version, that cannot be taken."""


def news(root: Path) -> dict[str, list[Path]]:
    """Return the files of news of each kind, by name.

    Raises:
        WrongNewsError: a file has another kind, nothing in it, or more than one paragraph.
    """
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for path in sorted((root / "news").glob("*")):
        if path.name == "README.md":
            continue
        parts = path.name.split(".")
        if len(parts) != 3 or parts[1] not in KINDS or parts[2] != "md":
            raise WrongNewsError(f"news/{path.name}: not NAME.KIND.md (KIND is one of {', '.join(KINDS)})")
        text = path.read_text().strip()
        if not text or "\n\n" in text or text.startswith(("#", "-")):
            raise WrongNewsError(f"news/{path.name}: not one paragraph of text")
        found[parts[1]].append(path)
    return found


def with_news(changelog: str, lines: dict[str, list[str]]) -> str:
    """Return the text of CHANGELOG.md with lines at the top of their sections under *Unreleased*.

    Args:
        changelog: the text, with a heading *Unreleased*.
        lines: texts by kind; sections that are not there yet are made.
    """
    head, found, rest = changelog.partition(f"{UNRELEASED}\n")
    if not found:
        raise WrongNewsError(f"CHANGELOG.md: no heading {UNRELEASED!r}")
    cut = re.search(r"(?m)^## ", rest)
    body, tail = (rest[: cut.start()], rest[cut.start() :]) if cut else (rest, "")
    sections = dict.fromkeys(KINDS.values(), "")
    before, *parts = re.split(r"(?m)^(### .+)\n", body)
    if before.strip():
        raise WrongNewsError(f"CHANGELOG.md: text between {UNRELEASED!r} and its first section")
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        if sections.get(heading):
            raise WrongNewsError(f"CHANGELOG.md: two sections {heading!r} under {UNRELEASED!r}")
        sections[heading] = text.strip("\n")
    for kind, texts in lines.items():
        new = [textwrap.fill(" ".join(text.split()), WIDTH, initial_indent="- ", subsequent_indent="  ",
                             break_long_words=False, break_on_hyphens=False) for text in texts]  # fmt: skip
        sections[KINDS[kind]] = "\n".join(filter(None, [*new, sections[KINDS[kind]]]))
    body = "".join(f"\n{heading}\n\n{text}\n" for heading, text in sections.items() if text)
    return f"{head}{UNRELEASED}\n{body}" + (f"\n{tail}" if tail else "")


def collect(root: Path) -> int:
    """Put the news into CHANGELOG.md and remove their files; return how many there were."""
    files = news(root)
    changelog = root / "CHANGELOG.md"
    changelog.write_text(with_news(changelog.read_text(), {k: [p.read_text() for p in v] for k, v in files.items()}))
    for path in (paths := [path for kind in files.values() for path in kind]):
        path.unlink()
    return len(paths)


def release(root: Path, version: str, day: datetime.date) -> None:
    """Give the package a version, and what is unreleased its heading.

    Raises:
        WrongNewsError: the version is not of three numbers, is not later than the present one, or has nothing new.
    """
    if not re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", version):
        raise WrongNewsError(f"{version}: not a version of three numbers")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text()
    if any(line.split()[1] == version for line in text.splitlines() if line.startswith("## ")):
        raise WrongNewsError(f"{version}: CHANGELOG.md has it already")
    texts = {}
    for name, pattern in PLACES.items():
        former = (root / name).read_text()
        places = list(re.finditer(pattern, former))
        if len(places) != 1:
            raise WrongNewsError(f"{name}: {len(places)} places of the version")
        (place,) = places
        present = former[place.end(1) : place.start(2)]
        # The first version is in the code before it is released.
        if numbers(version) < numbers(present):
            raise WrongNewsError(f"{version}: before {present} of {name}")
        texts[name] = f"{former[: place.end(1)]}{version}{former[place.start(2) :]}"
    collected = with_news(text, {kind: [path.read_text() for path in paths] for kind, paths in news(root).items()})
    head, _, rest = collected.partition(f"{UNRELEASED}\n")
    if not re.match(r"\n### ", rest):
        raise WrongNewsError(f"{version}: nothing is new")
    collect(root)
    changelog.write_text(f"{head}{UNRELEASED}\n\n## {version} - {day.isoformat()}\n{rest}")
    for name, text in texts.items():
        (root / name).write_text(text)


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version."""
    return tuple(map(int, version.split(".")))


def main() -> int:
    """Do as the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="fail where a file of news is wrong")
    commands.add_parser("news", help="put the news into CHANGELOG.md")
    commands.add_parser("version", help="give the package a version").add_argument("version")
    given = parser.parse_args()
    try:
        if given.command == "check":
            print(f"{sum(map(len, news(ROOT).values()))} news")
        elif given.command == "news":
            print(f"{collect(ROOT)} news are in CHANGELOG.md")
        else:
            release(ROOT, given.version, datetime.datetime.now(tz=datetime.UTC).date())
            print(f"{given.version}: see the difference, commit it, and tag it v{given.version}")
    except WrongNewsError as error:
        print(f"release.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
