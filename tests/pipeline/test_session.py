"""Opening captures: recognition, options, batches."""

import numpy as np
import pytest

import lanescope
from lanescope.errors import InputError, UsageError
from lanescope.families import registry
from lanescope.families.family import Family, Format
from lanescope.families.options import Option
from lanescope.pipeline import detection, session
from lanescope.source import Capture, Detection
from lanescope.trace import TimeBase, Trace, TraceBuilder


class ToyDecoder:
    """Every byte is a slice of that length, one after the other."""

    def __init__(self, capture, options):
        self.capture, self.scale = capture, options["scale"]
        self.builder = TraceBuilder(TimeBase())
        self.lane = self.builder.track("lane", kind="lane", role="core")
        self.end = 0

    def feed(self, data):
        dur = np.frombuffer(data, np.uint8).astype(np.int64) * self.scale
        ends = self.end + np.cumsum(dur)
        self.end = int(ends[-1])
        self.builder.append("slices", track_id=self.lane, ts=ends - dur, dur=dur, name="byte")
        return [self.builder.batch()]

    def finish(self):
        main = self.capture.main
        made = self.builder.input(
            capture="toy", path=main.path, size=main.size, sha256=main.sha256, family="toy", format="toy-1"
        )
        self.builder.add_accounting(
            input_id=made, layer=0, unit="byte", unit_bytes=1, total=main.size, decoded=main.size
        )
        return [self.builder.finish()]


def toy_family(name, score=95, *, detect=None):
    """Return a family that recognises what begins with T."""

    def recognise(head):
        return Detection(score if head.data[:1] == b"T" else 0, "toy-1", "begins with T")

    form = Format("toy-1", detect or recognise, ToyDecoder, is_streaming=True)
    return Family(name, name, (form,), options=(Option("scale", int, "factor", 1),))


@pytest.fixture
def families(monkeypatch):
    """Return a function that replaces all families by toys."""

    def replace(*devices, foreign=(), begins=(b"T",), plugin_families=()):
        monkeypatch.setattr(registry, "DEVICES", tuple(family.name for family in devices))
        monkeypatch.setattr(registry, "FOREIGN", {family.name: begins for family in foreign})
        monkeypatch.setattr(registry, "BUILTIN", (*registry.DEVICES, *registry.FOREIGN))
        monkeypatch.setattr(registry, "plugin_families", lambda: plugin_families)
        named = {family.name: family for family in (*devices, *foreign, *plugin_families)}

        def family(name):
            if name not in named:
                raise UsageError(f"unknown device family {name!r}")
            return named[name]

        monkeypatch.setattr(registry, "family", family)

    return replace


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "run.toy"
    file.write_bytes(b"T" + bytes(range(200)))
    return file


def test_open_gives_the_whole_trace_and_batches_its_pieces(families, path):
    families(toy_family("toy"))
    path.write_bytes(b"T" + bytes([1]) * (2 << 20))
    whole = lanescope.open(path)
    pieces = list(lanescope.iter_batches(path))
    assert len(whole.slices) == (2 << 20) + 1
    assert len(pieces) == 4
    assert sum(len(piece.slices) for piece in pieces) == len(whole.slices)
    joined = Trace.concat(pieces)
    assert (joined.slices["ts"] == whole.slices["ts"]).all()
    assert joined.slices["id"].tolist() == list(range(len(whole.slices)))


def test_readers_of_other_tools_files_are_asked_when_no_device_family_knows_a_file(families, path):
    def unasked(head):
        raise AssertionError("asked")

    def known_to():
        with detection.capture(path) as opened:
            return detection.detect_family(opened)[0].name

    families(toy_family("device", 60), foreign=[toy_family("other", detect=unasked)])
    assert known_to() == "device"
    families(toy_family("device", 10), foreign=[toy_family("other", 80)], plugin_families=[toy_family("plugin", 99)])
    assert known_to() == "other"
    path.write_bytes(b"\xef\xbb\xbf \r\n" + path.read_bytes())
    families(foreign=[toy_family("other", detect=lambda head: Detection(80, "toy-1", "white space before it"))])
    assert known_to() == "other"


def test_readers_of_other_tools_files_are_not_asked_where_the_beginning_cannot_be_theirs(families, path, monkeypatch):
    families(foreign=[toy_family("other", 80)], begins=(b"{", b"["))
    monkeypatch.setattr(registry, "family", lambda name: pytest.fail(f"{name} is imported"))
    with pytest.raises(InputError, match="unrecognized format"):
        lanescope.open(path)


def test_options_are_checked_and_handed_on(families, path):
    families(toy_family("toy"))
    assert lanescope.open(path, scale=3).slices["dur"][0] == 3 * ord("T")
    assert lanescope.open(path, scale="3").slices["dur"][0] == 3 * ord("T")
    with pytest.raises(UsageError, match=r"unknown option 'scal' for toy \(available: scale\)"):
        lanescope.open(path, scal=3)
    with pytest.raises(UsageError, match="invalid value 'x' for --scale"):
        lanescope.open(path, scale="x")


def test_two_families_within_ten_points_are_a_tie(families, path):
    families(toy_family("a", 95), toy_family("b", 86))
    with pytest.raises(
        UsageError, match=r"ambiguous format: a \(begins with T\) or b \(begins with T\); use --family NAME"
    ):
        lanescope.open(path)
    assert len(lanescope.open(path, family="b").slices) == 201
    families(toy_family("a", 95), toy_family("b", 85))
    assert len(lanescope.open(path).slices) == 201


def test_a_score_below_50_is_a_no(families, path):
    families(toy_family("toy", 49))
    with pytest.raises(InputError, match="unrecognized format; use --family NAME"):
        lanescope.open(path)
    families(toy_family("toy", 50))
    lanescope.open(path)


def test_plugins_detect_what_no_builtin_family_does(families, path):
    families(toy_family("mine", 0), plugin_families=(toy_family("theirs"),))
    with Capture(path) as capture:
        family, match = session.detect_family(capture)
    assert (family.name, match.score, match.format) == ("theirs", 95, "toy-1")
    assert [tuple(found) for found in lanescope.detect(path)] == [("theirs", 95, "toy-1", "begins with T")]


def test_probe_lists_the_surest_first(families, path):
    families(toy_family("a", 20), toy_family("b", 90), toy_family("c", 0))
    assert [(found.family, found.score) for found in lanescope.detect(path)] == [("b", 90), ("a", 20)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty \\(0 bytes\\); check that"),
        (bytes(9), "contains only zero bytes"),
        (bytes(70_000) + b"x", "starts with 65,536 zero bytes"),
        (b"words", "unrecognized format"),
    ],
)
def test_unknown_content_has_a_one_line_message(families, path, content, message):
    families(toy_family("toy"))
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        lanescope.open(path)


def test_an_empty_capture_is_refused_whatever_the_user_says(families, path):
    families(toy_family("toy"))
    path.write_bytes(b"")
    with pytest.raises(InputError, match="is empty"):
        lanescope.open(path, family="toy")
    with pytest.raises(UsageError, match="unknown device family 'nope'"):
        lanescope.open(path, family="nope")


def test_files_are_closed_whatever_happens(families, path, monkeypatch):
    toy = toy_family("toy")
    families(toy)
    opened = []
    make = Capture.__init__
    monkeypatch.setattr(Capture, "__init__", lambda self, *a, **k: (make(self, *a, **k), opened.append(self))[0])
    next(lanescope.iter_batches(path)).slices  # noqa: B018 (and no more of them)
    lanescope.open(path)
    with pytest.raises(UsageError):
        lanescope.open(path, nope=1)
    assert len(opened) == 3
    for capture in opened:
        with pytest.raises(ValueError, match="closed"):
            capture.main.head()


def test_progress_is_told_in_bytes(families, path):
    toy = toy_family("toy")
    path.write_bytes(b"T" + bytes([1]) * (2 << 20))
    told = []
    with Capture(path) as capture:
        list(session.decode(capture, toy, {}, progress=lambda done, size: told.append((done, size))))
    size = (2 << 20) + 1
    assert told == [(1 << 20, size), (2 << 20, size), (size, size)]


def test_merge_takes_traces(families, path, tmp_path):
    families(toy_family("toy"))
    trace = lanescope.open(path)
    assert lanescope.merge([trace]) is trace
    other = tmp_path / "other.toy"
    other.write_bytes(b"Tx")
    with pytest.raises(lanescope.MergeError, match="no common clock"):
        lanescope.merge(iter([trace, lanescope.open(other)]))


def failing(name):
    """Return a family whose detection has a fault."""

    def detect(head):
        raise KeyError("magic")

    return toy_family(name, detect=detect)


def test_a_family_whose_probe_raises_hides_no_other_one(families, path):
    families(failing("bad"), toy_family("good"), plugin_families=(failing("worse"),))
    assert len(lanescope.open(path).slices) == 201
    assert [tuple(found) for found in lanescope.detect(path)] == [
        ("good", 95, "toy-1", "begins with T"),
        ("bad", 0, "", "its detection failed: KeyError: 'magic'"),
        ("worse", 0, "", "its detection failed: KeyError: 'magic'"),
    ]
    path.write_bytes(b"words")
    with pytest.raises(InputError, match=r"family 'bad' could not look at it: .*; device family 'worse' could not"):
        lanescope.open(path)
