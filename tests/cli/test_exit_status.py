"""The page of exit statuses has all that commands return, and each is returned for what the page gives."""

import re
from pathlib import Path

import pytest

import lanescope.cli
from lanescope import errors

PAGE = Path(__file__).parents[2] / "docs/reference/exit-status.md"
LISTED = {int(status): text for status, text in re.findall(r"^\| (\d+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)}


def test_the_page_has_the_status_of_each_error_and_signal():
    of_errors = {
        kind.exit_status
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.LanescopeError)
    }
    from lanescope.cli import signals

    of_signals = {lanescope.cli.EndedBySignal(number).status for number in signals.ENDING}
    assert set(LISTED) == {0, 1} | of_errors | of_signals


def statuses(call, monkeypatch):
    """Provoke each status by a command."""
    yield 0, call("info", "run.blink").status
    yield 1, call("check", "lossy.blink").status
    yield 0, call("check", "lossy.blink", "--fail-on", "never").status
    yield 2, call("check", "run.blink", "--nonsense").status
    yield 2, call("no-such-command").status
    yield 2, call("convert", "run.blink", "-o", "run.blink").status
    yield 3, call("info", "missing.bin").status
    Path("zeros.bin").write_bytes(bytes(4096))
    yield 3, call("info", "zeros.bin").status
    yield 4, call("summary", "lossy.blink", "--strict").status
    yield 4, call("check", "lossy.blink", "--strict").status

    def raising(error):
        def run(args):
            raise error

        return run

    for status, error in ((70, RuntimeError("no")), (130, KeyboardInterrupt()), (143, lanescope.cli.EndedBySignal(15))):
        with monkeypatch.context() as patch:
            patch.setattr("lanescope.cli.commands.info.run", raising(error))
            yield status, call("info", "run.blink").status
    with monkeypatch.context() as patch:
        patch.setattr("lanescope.cli.commands.info.run", raising(lanescope.cli.EndedBySignal(1)))
        yield 129, call("info", "run.blink").status


@pytest.mark.usefixtures("run_file", "lossy_file")
def test_commands_end_as_the_page_has_it(call, monkeypatch):
    found = list(statuses(call, monkeypatch))
    assert [expected for expected, _ in found] == [status for _, status in found]
    assert {status for status, _ in found} == set(LISTED)
