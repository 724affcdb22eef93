"""The ways in which records of declared layouts are read give the same rows: straight from the bytes, by columns, and
from a file of which no more than a part is in memory."""

import io
from pathlib import Path

import numpy as np
import pytest

import lanescope
from devices.cuda.declared.producers import WRITERS, Shape
from devices.cuda.helpers import simulate
from devices.cuda.test_large import differing, tables
from lanescope.devices.cuda import decoder as decoding
from lanescope.devices.cuda.emit import batches
from lanescope.devices.cuda.formats import word_source
from lanescope.devices.cuda.formats.declared import catalog, direct, geometry, lane_decoding, record_list
from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.encode import encode, example
from lanescope.devices.cuda.formats.declared.reader import DeclaredBuffer
from lanescope.devices.cuda.formats.declared.vectors import vectors
from lanescope.devices.cuda.formats.lanes import STEP_BACK
from lanescope.errors import LanescopeError
from lanescope.source import Reader

SHIPPED = Path(catalog.__file__).parent / "shipped"
DIRECT = (
    "flashinfer-v2",
    "flashinfer-v2-clock",
    "mirage-mpk",
    "mirage-transpiler",
    "quack",
    "tirx-v1",
    "triton-distributed",
)
ROWS = ("slices", "instants")
#: Records of two words, with a timestamp of a whole word.
WIDE = """
name = "wide"
source = "this test"
lanes = [["block", "4"]]
kind = ["type", {"0" = "begin", "1" = "end", "2" = "instant"}]
id = "event"
time = "timestamp"
capacity = "max_events"

[params]
max_events = "size // 64"

[record]
at = "16 * (block + 4 * k)"
size = 16
fields = {event = [0, 16], type = [16, 3], tag = [19, 5], timestamp = [64, 64]}
views = {word = [0, 64]}
empty = "word == 0"
agree = "tag == block"

[clock]
bits = 64

[example]
sizes = {buffer = 512}

[example.fields]
event = "65535 - k"
type = "k % 2"
tag = "block"
timestamp = "1761000000000000000 + 50 * k - block"
"""


def codes_of(declaration):
    return {value: lane_decoding.CODES[name] for value, name in declaration.kind[1].items()} if declaration.kind else {}


def is_direct(declaration):
    codes = codes_of(declaration)
    return bool(codes) and direct.roles_of(declaration, codes, lane_decoding.UNREADABLE) is not None


def test_layouts_of_fields_are_read_straight_from_the_bytes():
    assert {name for name in catalog.shipped() if is_direct(catalog.load(name))} >= set(DIRECT)


def decoded(declaration, arrays, params, limit=1 << 40):
    """Everything that a buffer says of lanes and rows, part by part; None where the file is refused."""
    data = {name: np.frombuffer(content, np.uint8) for name, content in arrays.items()}
    try:
        buffer = DeclaredBuffer(declaration, Arrays(data, dict.fromkeys(data, 0)), params)
        found = {}
        for part in buffer.parts(limit):
            made = buffer.decode(part, split=True, step_back=STEP_BACK)
            for name in ROWS:
                rows = getattr(made, name)
                for column, values in rows.columns.items():
                    found.setdefault(f"{name}.{column}", []).extend(values.tolist())
                found.setdefault(f"{name}.lane", []).extend(rows.lane.tolist())
                index = rows["begin_index" if name == "slices" else "index"]
                found.setdefault(f"{name}.slot", []).extend(buffer.slots_of(rows.lane, index).tolist())
            for column, values in {**made.gaps, **made.summary}.items():
                values = values + part[0] if column == "lane" else values
                found.setdefault(column, []).extend(values.tolist())
        summary = {name: np.array(found[name]) for name in ("missing", "instants", "unmatched")}
        found["stats"] = list(buffer.stats(summary))
        grid, lanes = buffer.grid, buffer.lanes
        for name in ("block", "group", "sm", "capacity", "offered", "lost", "counted"):
            values = getattr(grid, name)
            found[name] = None if values is None else values.tolist()
        found["more"] = lanes.is_full.tolist(), lanes.anchor is not None and lanes.anchor.tolist(), buffer.cut
        found["counters"] = None if buffer.counters is None else buffer.counters.tolist()
        for name in ROWS if buffer.event_ids is not None else ():
            found[f"{name}.event"] = buffer.event_ids[found[f"{name}.event"]].tolist()
    except LanescopeError as error:
        return str(error)
    # Resolution is judged again when all parts are known.
    found.pop("slices.flags")
    return found


def loaded(name):
    return catalog.read(WIDE, "wide.layout.toml") if name == "wide" else catalog.load(name)


@pytest.mark.parametrize("name", [*DIRECT, "wide"])
def test_the_bytes_read_like_the_columns(name, monkeypatch):
    declaration = loaded(name)
    assert is_direct(declaration)
    seen = set()
    for vector in vectors(declaration):
        got = decoded(declaration, vector.arrays, vector.params)
        with monkeypatch.context() as patch:
            patch.setattr(lane_decoding, "roles_of", lambda *_: None)
            want = decoded(declaration, vector.arrays, vector.params)
        assert got == want, vector.label
        seen |= set() if isinstance(want, str) else {stat for stat, count, _ in want["stats"] if count}
    assert "cuda_corrupt_record" in seen


@pytest.mark.parametrize("name", [*catalog.shipped(), "wide"])
def test_parts_of_the_lanes_give_what_all_lanes_give(name):
    declaration = loaded(name)
    cuts = 0
    for vector in vectors(declaration):
        got = decoded(declaration, vector.arrays, vector.params, limit=3)
        want = decoded(declaration, vector.arrays, vector.params)
        assert got == want, vector.label
        cuts += 1
    assert cuts > 10


FAULTS = dict.fromkeys(("two_writers", "clock_step", "holes", "corrupt", "crossing", "stray_ends"), 1)
SIMULATED = {
    "tirx-v1": {"layout": "tirx", **FAULTS},
    "flashinfer-v2": {"layout": "flashinfer2", "holes": 1, "corrupt": 1},
}


@pytest.mark.parametrize("name", SIMULATED)
@pytest.mark.parametrize("seed", [3, 8])
def test_a_simulated_buffer_has_the_same_rows_either_way(name, seed, tmp_path, monkeypatch):
    simulation = simulate(seed, blocks=12, tiles=40, **SIMULATED[name])
    path = tmp_path / "buffer.npy"
    path.write_bytes(next(iter(simulation.files.values())))
    layout = str(SHIPPED / f"{name}.toml")
    straight = lanescope.open(path, "cuda", layout=layout)
    with monkeypatch.context() as patch:
        patch.setattr(lane_decoding, "roles_of", lambda *_: None)
        assert not differing(straight, lanescope.open(path, "cuda", layout=layout))
    # The reader that is written by hand finds the same slices; it tells launches apart, and these have but one.
    known = tables(lanescope.open(path, "cuda", layout={"tirx-v1": "tirx"}.get(name, "flashinfer2")))
    assert tables(straight)["slices"] == known["slices"]
    assert len(straight.slices) > 500
    stats = {row["name"]: row["count"] for row in known["stats"]}
    own = {row["name"]: row["count"] for row in tables(straight)["stats"]}
    assert own["cuda_corrupt_record"] == stats["cuda_corrupt_record"]


def saved(name, folder):
    """A file of the example of a layout with several arrays, or of its only one; and its parameters."""
    arrays, params = example(catalog.load(name))
    path = folder / f"{name}.bin"
    if len(arrays) == 1:
        path.write_bytes(bytes(arrays["buffer"]))
    else:
        path = path.with_suffix(".npz")
        into = io.BytesIO()
        np.savez(into, **{key: np.frombuffer(bytes(data), np.uint8) for key, data in arrays.items()})
        path.write_bytes(into.getvalue())
    return path, dict(params)


@pytest.mark.parametrize("name", catalog.shipped())
def test_a_file_that_is_not_read_whole_has_the_same_rows(name, tmp_path, monkeypatch):
    path, params = saved(name, tmp_path)
    options = {"layout": str(SHIPPED / f"{name}.toml"), "layout_params": params or None}
    # Tracks that only some lanes need are numbered as they come, batch by batch.
    monkeypatch.setattr(batches, "PART_RECORDS", 5)
    whole = lanescope.open(path, "cuda", **options)
    monkeypatch.setattr(decoding, "WHOLE_BYTES", 0)
    monkeypatch.setattr(word_source, "PIECE_WORDS", 16)
    monkeypatch.setattr(geometry, "READ_AHEAD", 64)
    monkeypatch.setattr(record_list, "FEW_RECORDS", 0)
    monkeypatch.setattr(record_list, "PIECE_RECORDS", 3)
    large = lanescope.open(path, "cuda", **options)
    # What has to be in memory as a whole all the same is reported.
    more = {row["name"] for row in large.stats.rows()} - {row["name"] for row in whole.stats.rows()}
    assert more == ({"cuda_read_whole"} if name in READ_WHOLE else set())
    assert differing(large, whole) == (["stats"] if name in READ_WHOLE else [])


#: Layouts whose records are all of one lane.
READ_WHOLE = {"npkit"}
#: Layouts whose lanes lie one behind the other, and parameters of a file that is larger than their examples.
IN_ROWS = {
    "quack": (120 * (40 + 8 * 64), {"max_events": 64, "warps": 2}),
    "cutez": (120 * 8 * 64, {"segment": 64, "warps": 2}),
    "nuggets-compact": (120 * 8 * (1 + 64), {"max_events": 64}),
}
#: The same, of writers: in archives of several arrays, or with records that have to be put in order.
WRITTEN = (
    "cutedsl-trace-static",
    "ikp",
    "iris",
    "megakernels",
    "mori",
    "nanotrace-static",
    "nuggets-legacy",
    "thunderkittens",
    "tileops",
    "tt-metal",
)


def lane_by_lane(name, folder):
    """A file of a layout whose lanes lie one behind the other, and its options."""
    declaration, (size, params) = catalog.load(name), IN_ROWS[name]
    made = encode(declaration, sizes={"buffer": size}, params=params, fields=declaration.example.fields)
    path = folder / "buffer.bin"
    path.write_bytes(bytes(made["buffer"]))
    return path, {"layout": name, "layout_params": params}


@pytest.mark.parametrize("name", [*SIMULATED, *IN_ROWS, *WRITTEN])
def test_no_more_than_a_part_of_a_file_is_in_memory(name, tmp_path, monkeypatch):
    if name in SIMULATED:
        simulation = simulate(5, blocks=12, tiles=160, layout=SIMULATED[name]["layout"])
        path = tmp_path / "buffer.npy"
        path.write_bytes(next(iter(simulation.files.values())))
        options = {"layout": str(SHIPPED / f"{name}.toml")}
    elif name in WRITTEN:
        made = WRITERS[name][0](Shape(blocks=250, groups=2, capacity=32, regions=14, top=False))
        path = tmp_path / f"buffer.{'npz' if len(made.arrays) > 1 else 'bin'}"
        path.write_bytes(made.file())
        options = {"layout": name, "layout_params": made.params}
    else:
        path, options = lane_by_lane(name, tmp_path)
    whole = lanescope.open(path, "cuda", **options)
    sizes = []
    read = Reader.at

    def at(self, offset, size):
        sizes.append(size)
        return read(self, offset, size)

    monkeypatch.setattr(decoding, "WHOLE_BYTES", 0)
    monkeypatch.setattr(word_source, "PIECE_WORDS", 512)
    monkeypatch.setattr(word_source, "_BEGINNING", 4096)
    monkeypatch.setattr("lanescope.source.npy.MAX_HEADER", 4096)
    monkeypatch.setattr(geometry, "READ_AHEAD", 64)
    monkeypatch.setattr(batches, "PART_RECORDS", 1500)
    monkeypatch.setattr(record_list, "FEW_RECORDS", 0)
    monkeypatch.setattr(record_list, "PIECE_RECORDS", 1500)
    with monkeypatch.context() as patch:
        patch.setattr(Reader, "at", at)
        large = lanescope.open(path, "cuda", **options)
        rows = {name: list(table.rows()) for name, table in large.tables().items()}
    assert path.stat().st_size > 60_000
    assert max(sizes) <= 8 * 1500 * (4 if name in WRITTEN else 1) + 4096 + 12
    assert rows["slices"] == list(whole.slices.rows())
    assert not differing(large, whole)
