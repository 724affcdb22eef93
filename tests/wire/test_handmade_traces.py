"""Traces of CTF 1.8 by hand, each with what random ones lack, as babeltrace2 reads them or as they are known to be."""

import struct

import pytest

from wire import foreign
from wire.lttng_session import BIN
from wire.tsdl_writer import MAGIC, Bits

needs_babeltrace = pytest.mark.skipif(not (BIN / "bt2-python").exists(), reason="no bt2: make test-tools")

TYPES = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; } := u8; typealias integer { size = 16; align = 8; } := u16;
typealias integer { size = 32; align = 8; } := u32; typealias integer { size = 64; align = 8; } := u64;
"""
TRACE = "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };\n"
UUID = bytes.fromhex("2a6422d06cee11e08c08cb07d7b3a564")

MIXED = f"""{TYPES}{TRACE}stream {{ id = 0; event.header := struct {{ u32 id; }}; }};
event {{ id = 7; name = "m"; stream_id = 0; fields := struct {{
  integer {{ size = 32; align = 8; byte_order = be; }} a;
  integer {{ size = 16; align = 8; byte_order = network; signed = true; }} b;
  floating_point {{ exp_dig = 8; mant_dig = 24; byte_order = be; align = 8; }} c;
  floating_point {{ exp_dig = 11; mant_dig = 53; align = 64; byte_order = native; }} d; u8 e;
  enum : integer {{ size = 8; align = 8; signed = true; }} {{ N = -5 ... -1, ZERO, ONE, X = 100, Y }} f; }}; }};
"""
CLOCKS = f"""{TYPES}trace {{ major = 1; minor = 8; uuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564"; byte_order = le;
  packet.header := struct {{ u32 magic; u8 uuid[16]; u32 stream_id; }}; }};
clock {{ name = a; freq = 1000000000; offset = 5; absolute = true; }};
clock {{ name = b; freq = 1000; offset_s = 2; offset = 500; absolute = true;
  uuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a565"; }};
stream {{ id = 1; event.header := struct {{ integer {{ size = 32; align = 8; map = clock.a.value; }} timestamp; }}; }};
event {{ name = "only a"; stream_id = 1; fields := struct {{ u8 x; }}; }};
stream {{ id = 2; event.header := struct {{ u8 id;
  integer {{ size = 16; align = 8; map = clock.b.value; }} timestamp; }};
  event.context := struct {{ integer {{ size = 32; align = 8; signed = true; }} vtid; }}; }};
event {{ id = 3; name = "b3"; stream_id = 2; fields := struct {{ string s; }}; }};
event {{ id = 255; name = "b255"; stream_id = 2; }};
"""
BITS = """/* CTF 1.8 */
typedef integer { size = 5; align = 1; signed = true; } five;
struct bits { integer { size = 1; align = 1; } one; five f; integer { size = 11; align = 1; base = x; } e; };
trace { major = 1; minor = 8; byte_order = le; };
event { name = bare; fields := struct { struct bits b; integer { size = 8; align = 8; } c; } align(32); };
"""
LOST = f"""{TYPES}{TRACE}clock {{ name = c; freq = 1000000000; }};
typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := ts;
stream {{ id = 0; packet.context := struct {{ ts timestamp_begin; ts timestamp_end; u64 content_size; u64 packet_size;
    u64 events_discarded; u64 packet_seq_num; }}; event.header := struct {{ ts timestamp; }}; }};
event {{ name = "t"; fields := struct {{ u32 x; }}; }};
"""
NESTED = f"""{TYPES}{TRACE}stream {{ id = 0; event.header := struct {{ u8 id; }}; }};
event {{ id = 1; name = "n"; stream_id = 0; fields := struct {{ string a[3]; u8 n; string b[n]; u8 m;
  floating_point {{ exp_dig = 8; mant_dig = 24; align = 8; }} c[m]; struct {{ u8 k; u8 v[k]; }} d[2];
  struct {{ enum : u8 {{ P, Q, "weird name" = 9 }} t; variant <t> {{ u8 P; string Q; }} v; }} e[n];
  integer {{ size = 8; align = 8; encoding = UTF8; }} text[n];
  integer {{ size = 8; align = 8; encoding = ASCII; }} fixed[4];
  integer {{ size = 64; align = 8; base = binary; }} big;
  integer {{ size = 64; align = 8; signed = 1; }} negative; }}; }};
"""
#: Lengths and tags of all scopes. Version 2.0.4 of babeltrace2 aborts at it.
SCOPES = f"""{TYPES}trace {{ major = 1; minor = 8; byte_order = be;
  packet.header := struct {{ u32 magic; u32 stream_id; u8 hl; }}; }};
stream {{ id = 0;
  packet.context := struct {{ u64 packet_size; u64 content_size; u8 plen; enum : u8 {{ A = 1, B = 2 }} ptag;
    variant <ptag> {{ u8 A; struct {{ u16 x; string s; }} B; }} pv; }};
  event.header := struct {{ u16 id; u8 hlen; }};
  event.context := struct {{ u8 clen; u8 v[clen]; enum : u8 {{ A = 1, B = 2 }} ctag;
    variant <ctag> {{ u8 A; u32 B; }} w; }}; }};
event {{ id = 0; name = "s"; stream_id = 0; context := struct {{ u8 own; u16 ow[own]; }}; fields := struct {{
  u8 a[trace.packet.header.hl]; u8 b[stream.packet.context.plen]; u8 c[stream.event.header.hlen];
  u8 d[stream.event.context.clen]; u8 e[event.context.own];
  struct {{ u8 n; struct {{ u8 m; u8 q[m]; string t; }} deep[n]; }} nest;
  u8 last; u8 f[event.fields.last]; u8 g[2][3]; }}; }};
"""


def head(stream=0, uuid=b""):
    return struct.pack("<I", MAGIC) + uuid + struct.pack("<I", stream)


def counted(body, begin, end, discarded, number):
    size = 8 * (8 + 48 + len(body))
    return head() + struct.pack("<6Q", begin, end, size, size, discarded, number) + body


def ticks(*times):
    return b"".join(struct.pack("<QI", time, time) for time in times)


def bit_fields():
    bits = Bits()
    for one, five, eleven in ((1, 5, 1000), (0, 31, 2047), (1, 0, 0)):
        for value, size in ((one, 1), (five, 5), (eleven, 11)):
            bits.put(value, size, False)
        bits.align(8)
        bits.put(7, 8, False)
        bits.align(32)
    return bits.bytes()


MIXED_BODY = (
    struct.pack("<I4x", 7) + struct.pack(">Ihf", 0x01020304, -2, 1.5) + bytes(6) + struct.pack("<dBb", 2.25, 9, -3)
)
CASES = {
    "mixed": (MIXED, {"s": head() + MIXED_BODY}),
    "clocks": (
        CLOCKS,
        {
            "one": head(1, UUID) + b"".join(struct.pack("<IB", time, time % 7) for time in (1, 5, 0xFFFFFFFF, 3, 9)),
            "two": head(2, UUID)
            + b"".join(struct.pack("<BHi", 3, time, 7) + b"x%d\0" % time for time in (1, 65535, 2))
            + struct.pack("<BHi", 255, 9, 8),
            "empty": b"",
        },
    ),
    "bits": (BITS, {"s": bit_fields()}),
    "lost": (
        LOST,
        {
            "s": counted(ticks(10, 20), 5, 25, 0, 0)
            + counted(b"", 26, 30, 4, 1)
            + counted(ticks(40, 41), 35, 45, 4, 3)
            + counted(ticks(60), 55, 65, 9, 4)
        },
    ),
    "nested": (
        NESTED,
        {
            "s": head()
            + b"\1a\0bc\0\0\2x\0yy\0\2"
            + struct.pack("<ff", 1.5, -2)
            + bytes((1, 7, 2, 8, 9, 0, 5, 1))
            + b"zz\0hiab\0c"
            + struct.pack("<Qq", 2**64 - 1, -(2**63))
        },
    ),
}


def saved(folder, text, files):
    folder.mkdir()
    (folder / "metadata").write_text(text)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@needs_babeltrace
@pytest.mark.parametrize("case", CASES)
def test_traces_by_hand_are_read_as_babeltrace2_reads_them(case, tmp_path):
    folder = saved(tmp_path / case, *CASES[case])
    theirs = foreign.babeltrace(folder)[str(folder)]
    assert theirs["error"] is None
    assert theirs["events"]
    foreign.same_events(foreign.events(folder), theirs["events"])
    if case == "lost":
        assert theirs["discarded"] == {"events": 9, "packets": 1}


def test_lengths_and_tags_of_all_scopes(tmp_path):
    body = struct.pack(">HB", 0, 3) + bytes((2, 8, 9, 1, 42, 1)) + struct.pack(">H", 500)
    body += bytes((1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 1, 5)) + b"ab\0" + bytes((2, 6, 7, 0, 2, 21, 22, *range(6)))
    size = 8 * (9 + 18 + 5 + len(body))
    content = struct.pack(">IIBQQBBH", MAGIC, 0, 2, size + 40, size, 1, 2, 77) + b"hi\0" + body + bytes(5)
    [(ns, cycles, name, fields)] = foreign.events(saved(tmp_path / "t", SCOPES, {"s": content}))
    assert (ns, cycles, name) == (None, None, "s")
    assert fields["packet"]["pv"] == {"": {"x": 77, "s": "hi"}}
    assert fields["common"] == {"clen": 2, "v": [8, 9], "ctag": 1, "w": {"": 42}}
    assert fields["own"] == {"own": 1, "ow": [500]}
    assert fields["fields"] == {
        "a": [1, 2],
        "b": [3],
        "c": [4, 5, 6],
        "d": [7, 8],
        "e": [9],
        "nest": {"n": 2, "deep": [{"m": 1, "q": [5], "t": "ab"}, {"m": 2, "q": [6, 7], "t": ""}]},
        "last": 2,
        "f": [21, 22],
        "g": [[0, 1, 2], [3, 4, 5]],
    }
