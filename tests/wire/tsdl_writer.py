"""Random CTF 1.8 traces: their description, their streams, and the values that were written."""

import random
import struct
import uuid

MAGIC = 0xC1FC1FC1


class Bits:
    """Bits of one packet, in either byte order: those of big-endian integers fill bytes from the top."""

    def __init__(self):
        self.bits, self.count = [], 0

    def align(self, align):
        self.count += -self.count % align

    def put(self, value, size, big):
        value &= (1 << size) - 1
        for number in range(size):
            at = self.count + number
            bit = value >> (size - 1 - number) & 1 if big else value >> number & 1
            place = at // 8 * 8 + (7 - at % 8 if big else at % 8)
            self.bits += [0] * (place + 1 - len(self.bits))
            self.bits[place] = bit
        self.count += size

    def bytes(self):
        bits = self.bits + [0] * ((self.count + 7) // 8 * 8 - len(self.bits))
        return bytes(sum(bit << i for i, bit in enumerate(bits[at : at + 8])) for at in range(0, len(bits), 8))


class Writer:
    """Makes one trace.

    Args:
        seed: of what is random.
        order: ``le`` or ``be``: the whole trace's, as fields that share a byte need.
        least: bytes of a text: babeltrace2 2.0.4 shows the text before in the place of an empty one.

    Attributes:
        text: the description.
        streams: bytes of each file, by name.
        events: of all files: cycles, name, fields.
    """

    def __init__(self, seed, order="le", least=0):
        self.least = least
        self.random, self.big = random.Random(seed), order == "be"
        self.uuid = uuid.UUID(int=self.random.getrandbits(128))
        self.names = 0
        self.frequency = self.random.choice((1_000_000_000, 1_000_000_000, 1_000_000, 125_000_000))
        self.wide = self.random.choice((27, 32, 64))
        kinds = [self.struct(2, is_event=True) for _ in range(self.random.randint(1, 5))]
        self.common = self.struct(1) if self.random.random() < 0.5 else None
        self.own = self.struct(1) if self.random.random() < 0.3 else None
        self.kinds = kinds
        self.text = self.describe(order)
        self.streams, self.events = {}, []
        for number in range(self.random.randint(1, 3)):
            self.streams[f"stream_{number}"] = self.stream(number)

    # --- types: (text, write) ------------------------------------------------------------------------------------

    def name(self):
        self.names += 1
        return f"{self.random.choice(('', '_'))}f{self.names}"

    def integer(self, signed=None, size=None, most=64):
        size = size or self.random.choice((1, 3, 5, 8, 13, 16, 24, 32, 33, 48, 63, 64))
        size = min(size, most)
        signed = self.random.random() < 0.5 if signed is None else signed
        align = self.random.choice((1, 8, 16, 32)) if size % 8 == 0 else self.random.choice((1, 1, 2, 8))
        base = self.random.choice(("dec", "hex", "oct", "bin"))
        base = {"dec": "10", "hex": "hexadecimal", "oct": "o", "bin": "b"}[base]
        text = f"integer {{ size = {size}; align = {align}; signed = {str(signed).lower()}; base = {base}; }}"

        def write(bits, value=None):
            low, high = (-(1 << (size - 1)), (1 << (size - 1)) - 1) if signed else (0, (1 << size) - 1)
            value = self.random.choice((low, high, self.random.randint(low, high))) if value is None else value
            bits.align(align)
            bits.put(value, size, self.big)
            return value

        return text, write, align

    def real(self):
        size, digits = self.random.choice(((32, (8, 24)), (64, (11, 53))))
        text = f"floating_point {{ exp_dig = {digits[0]}; mant_dig = {digits[1]}; align = 8; }}"

        def write(bits):
            value = self.random.choice((0.0, -1.5, 1e10, self.random.uniform(-1e6, 1e6), float("inf")))
            code = "f" if size == 32 else "d"
            raw = struct.pack("<" + code, value)
            bits.align(8)
            bits.put(int.from_bytes(raw, "little"), size, self.big)
            return str(value) if value == float("inf") else struct.unpack("<" + code, raw)[0]

        return text, write, 8

    def string(self):
        def write(bits):
            value = "".join(self.random.choice('ab"\\ {}é\n') for _ in range(self.random.randint(self.least, 6)))
            bits.align(8)
            for byte in value.encode() + b"\0":
                bits.put(byte, 8, self.big)
            return value

        return self.random.choice(("string", "string { encoding = UTF8; }")), write, 8

    def enum(self):
        size = self.random.choice((3, 5, 8, 16))
        base, write, align = self.integer(signed=False, size=size)
        values = sorted(self.random.sample(range((1 << size) - 1), 3))
        labels = f'A = {values[0]}, "B b" = {values[1]} ... {values[1]}, C = {values[2]} ... {(1 << size) - 1}'
        return f"enum : {base} {{ {labels} }}", write, align, values

    def array(self, depth):
        text, write, align = self.kind(depth - 1)
        count = self.random.randint(0, 4)

        def write_all(bits):
            bits.align(align)
            return [write(bits) for _ in range(count)]

        return (text, f"[{count}]"), write_all, align

    def characters(self):
        count = self.random.randint(1, 6)
        text = "integer { size = 8; align = 8; encoding = UTF8; }"

        def write(bits):
            value = "".join(
                self.random.choice("xyz") for _ in range(self.random.randint(min(self.least, count), count))
            )
            bits.align(8)
            for byte in value.encode().ljust(count, b"\0"):
                bits.put(byte, 8, self.big)
            return value

        return (text, f"[{count}]"), write, 8

    def kind(self, depth):
        choice = self.random.random()
        if depth <= 0 or choice < 0.4:
            return self.integer()
        if choice < 0.55:
            return self.real()
        if choice < 0.7:
            return self.string()
        if choice < 0.8:
            return self.enum()[:3]
        return self.struct(depth - 1)

    def struct(self, depth, is_event=False):
        """Make a structure, with sequences and variants whose length and tag are before them."""
        members, parts, aligns = [], [], [1]
        for _ in range(self.random.randint(0 if is_event else 1, 4)):
            choice = self.random.random()
            if choice < 0.15 and depth > 0:
                length_name, name = self.name(), self.name()
                length, write_length, length_align = self.integer(signed=False, size=8)
                text, write, align = self.kind(depth - 1)
                parts.append(f"{length} {length_name}; {text} {name}[{length_name}];")
                members.append(("sequence", length_name, write_length, name, write, align))
                # A sequence is aligned like its elements, also for what is around it.
                aligns += [length_align, align]
            elif choice < 0.3 and depth > 0:
                tag_name, name = self.name(), self.name()
                text, write_tag, tag_align, values = self.enum()
                options = [self.kind(depth - 1) for _ in range(3)]
                inner = " ".join(
                    f"{option[0]} {label};" for option, label in zip(options, ("A", "B_b", "C"), strict=True)
                )
                text = text.replace('"B b"', "B_b")
                parts.append(f"{text} {tag_name}; variant <{tag_name}> {{ {inner} }} {name};")
                members.append(("variant", tag_name, write_tag, name, [option[1] for option in options], values))
                aligns.append(tag_align)
            else:
                made = self.random.random()
                found = (
                    self.array(depth)
                    if made < 0.2 and depth > 0
                    else self.characters()
                    if made < 0.3
                    else self.kind(depth)
                )
                text, write, align = found
                before, behind = text if isinstance(text, tuple) else (text, "")
                name = self.name()
                parts.append(f"{before} {name}{behind};")
                members.append(("field", name, write))
                aligns.append(align)
        least = self.random.choice((1, 1, 8, 32))
        align = max([least, *aligns])

        def write_all(bits):
            bits.align(align)
            values = {}
            for member in members:
                if member[0] == "field":
                    values[member[1].removeprefix("_")] = member[2](bits)
                elif member[0] == "sequence":
                    _, length_name, write_length, name, write, element_align = member
                    count = self.random.randint(0, 5)
                    values[length_name.removeprefix("_")] = write_length(bits, count)
                    bits.align(element_align)
                    values[name.removeprefix("_")] = [write(bits) for _ in range(count)]
                else:
                    _, tag_name, write_tag, name, writers, (a, b, c) = member
                    which = self.random.randrange(3)
                    values[tag_name.removeprefix("_")] = write_tag(bits, (a, b, c)[which])
                    values[name.removeprefix("_")] = {"": writers[which](bits)}
            return values

        suffix = f" align({least})" if least > 1 else ""
        return f"struct {{ {' '.join(parts)} }}{suffix}", write_all, align

    # --- the trace -------------------------------------------------------------------------------------------------

    def describe(self, order):
        contexts = f"event.context := {self.common[0]};" if self.common else ""
        own = f"context := {self.own[0]};" if self.own else ""
        events = "".join(
            f'event {{ id = {number}; name = "kind {number}"; stream_id = 4; \n  {own} fields := {kind[0]}; }};\n'
            for number, kind in enumerate(self.kinds)
        )
        return f"""/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; }} := uint8_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := unsigned int;
typedef integer {{ size = 64; align = 8; }} u64, u64s[2];
struct unused {{ u64 a; u64s b; }} align(16);
trace {{ major = 1; minor = 8; uuid = "{self.uuid}"; byte_order = {order};
  packet.header := struct {{ unsigned int magic; uint8_t uuid[16]; unsigned int stream_id;
    u64 stream_instance_id; }}; }};
env {{ hostname = "h"; text = "with \\"quotes\\" \\x41"; number = -5; }}; // a comment
clock {{ name = "c"; freq = {self.frequency}; offset_s = 1500000000; offset = 77; absolute = true;
  uuid = "{self.uuid}"; description = "a clock"; }};
typealias integer {{ size = {self.wide}; align = 1; map = clock.c.value; }} := short_t;
typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := long_t;
callsite {{ name = "kind 0"; func = "main"; file = "a.c"; line = 3; }};
stream {{ id = 4; {contexts}
  packet.context := struct {{ long_t timestamp_begin; long_t timestamp_end; u64 content_size; u64 packet_size;
    unsigned int events_discarded; u64 packet_seq_num; unsigned int cpu_id; }};
  event.header := struct {{ enum : integer {{ size = 3; align = 1; }} {{ small = 0 ... 6, large = 7 }} id;
    variant <id> {{ struct {{ short_t timestamp; }} small;
      struct {{ unsigned int id; long_t timestamp; }} align(8) large; }} v;
    }} align(8); }};
{events}"""

    def stream(self, number):
        data, time, discarded = b"", self.random.randint(1 << 30, 1 << 40), 0
        for sequence in range(self.random.randint(1, 3)):
            data, time, discarded = self.packet(data, number, sequence, time, discarded)
        return data

    def packet(self, data, number, sequence, time, discarded):
        begin, size = time, 4 + 16 + 4 + 8 + 6 * 8 + 4 + 4 - 8
        bits = Bits()
        bits.put(0, 8 * size, self.big)
        discarded += self.random.choice((0, 0, 3))
        for _ in range(self.random.randint(1, 6)):
            bits.align(8)
            which = self.random.randrange(len(self.kinds))
            is_large = self.random.random() < 0.3
            # Short times may wrap between two events, but not twice.
            step = self.random.choice((0, 5, 1000, (1 << min(self.wide, 40)) - 1))
            time += step
            if is_large:
                bits.put(7, 3, self.big)
                bits.align(8)
                bits.put(which, 32, self.big)
                bits.put(time, 64, self.big)
            else:
                bits.put(which, 3, self.big)
                bits.put(time, self.wide, self.big)
            fields = {
                "common": self.common[1](bits) if self.common else None,
                "own": self.own[1](bits) if self.own else None,
                "fields": self.kinds[which][1](bits),
            }
            self.events.append([time, f"kind {which}", fields])
        content = bits.count
        whole = content + self.random.choice((0, 0, 800))
        whole += -whole % 8
        body = bits.bytes()[size:].ljust(whole // 8 - size, b"\0")
        order = ">" if self.big else "<"
        head = struct.pack(f"{order}I16sIQ", MAGIC, self.uuid.bytes, 4, number)
        head += struct.pack(f"{order}4QIQI", begin, time, content, whole, discarded, sequence, number)
        assert len(head) == size
        return data + head + body, time, discarded

    def save(self, folder):
        """Write the trace into a folder."""
        folder.mkdir(parents=True)
        (folder / "metadata").write_text(self.text)
        for name, data in self.streams.items():
            (folder / name).write_bytes(data)
