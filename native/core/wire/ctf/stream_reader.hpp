// Streams of CTF 1.8 whose fields are whole bytes, little-endian: packets are found, their events walked, and fields
// taken out into columns. What the bytes mean comes from the trace's own description.
//
// Any bytes are accounted for: they belong to a packet's header, to an event, to padding, or they are lost. A packet
// whose header is damaged is lost up to the next one; one whose size is too large ends where the next one begins.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace lanescope::ctf {

enum class Kind : uint8_t {
    integer,   // `size` bytes
    text,      // bytes up to a zero
    sequence,  // elements of `size` bytes, as many as field `length` said
    nothing,   // no event has this number
};

struct Field {
    Kind kind;
    uint8_t size;
    uint16_t length;
};

inline constexpr uint16_t absent = 0xffff;
inline constexpr size_t most_fields = 64;

// Where the parts of a packet's header and context and of an event's header begin, counted from their begin.
struct Layout {
    uint16_t packet_header;  // bytes of header and context
    uint16_t magic, uuid;    // 4 and 16 bytes
    uint16_t begin, end, content, size, discarded, sequence;  // 8 bytes
    uint16_t thread, complete;                                // 4 bytes
    uint16_t event_header;
    uint16_t id, id_size;
    uint16_t time, time_size;
};
inline constexpr uint32_t magic = 0xC1FC1FC1;

// The fields of the events: those of class c are fields[first[c] .. first[c + 1]].
struct Classes {
    std::span<const Field> fields;
    std::span<const uint32_t> first;
    size_t count() const { return first.empty() ? 0 : first.size() - 1; }
};

struct Packet {
    uint64_t offset, size, content;  // bytes; content: from the packet's begin, as far as it is there
    uint64_t begin, end;             // ns on the trace's clock
    uint64_t discarded, sequence, thread, complete;
    uint64_t first_event, events;
    uint64_t lost;                   // bytes at the end of its content that are no event
    uint64_t cut;                    // whether the file ends, or another packet begins, before its end
};

struct DiscardedRange {
    uint64_t offset, size;
};

struct Counts {
    uint64_t packets = 0, events = 0, losses = 0;
    uint64_t decoded = 0, padding = 0, lost = 0;  // bytes; they add up to the file
};

// Where results go; empty spans count only.
struct Output {
    std::span<Packet> packets;
    std::span<DiscardedRange> losses;          // bytes between packets
    std::span<uint16_t> classes;     // of each event
    std::span<uint64_t> times;       // ns on the trace's clock
    std::span<uint64_t> payloads;    // offset of its fields
};

Counts scan(std::span<const uint8_t> data, const Layout& layout, std::span<const uint8_t, 16> uuid,
            const Classes& classes, const Output& output);

// Takes the fields of events of one class out: two columns a field, `columns[(2 * f) * n + i]` and the one behind.
// Integers stand in the first, zero-extended; texts and sequences as offset and length (bytes, elements).
// Returns whether all of them lie within the data; what does not is left 0.
bool columns(std::span<const uint8_t> data, std::span<const Field> fields, std::span<const uint64_t> payloads,
             std::span<uint64_t> columns);

}  // namespace lanescope::ctf
