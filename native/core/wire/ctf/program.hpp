// Streams of any CTF 1.8 trace. What their bits mean is a program: steps that the trace's description was compiled to.
// Programs begin at a step and go on to `end`; those of headers, contexts and events are parts of one list of steps.
//
// Any bytes are accounted for: they belong to a packet's content, to padding, or they are lost. An event that cannot be
// read costs the rest of its packet, whose size leads to the next one; a damaged header costs all up to the next magic
// number, or the rest where packets have none.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/wire/growing.hpp"

namespace lanescope::ctf {

enum class Op : uint8_t {
    end,
    align,    // to `arg` bits from the packet's begin
    integer,  // `size` bits; kept in `slot`, as `meaning`, in column `leaf`
    text,     // bytes up to a zero
    array,    // elements of `size` bits, `arg` of them or as many as `slot` holds
    loop,     // the steps up to `again`, `arg` times or as often as `slot` holds; `target` is behind it
    again,    // the loop's first step is `arg`
    choice,   // the first of `size` choices from `arg` on that holds the value of `slot`
    jump,     // to `arg`, which is further on
    skip,     // `arg` bits
};

inline constexpr uint8_t flag_big = 1, flag_signed = 2, flag_clock = 4, flag_counted = 8;
inline constexpr size_t deepest_loop = 16;

struct Step {
    Op op;
    uint8_t flags;
    int8_t meaning;  // which of `Meaning`, -1: none
    uint8_t size;
    int32_t slot, leaf;  // -1: none
    uint32_t target;
    uint64_t arg;
    uint32_t choices;
};

struct Choice {
    uint64_t first, last;
    uint64_t target;
};

enum class Meaning : uint8_t { magic, stream, instance, end, content, size, discarded, sequence, id, uuid, count };

struct Program {
    std::vector<Step> steps;
    std::vector<Choice> choices;
    size_t slots;

    // Whether all steps, slots and choices that are named exist, and nothing leads back but the end of a loop.
    bool is_sound() const;
};

struct EventEntry {
    uint64_t id, step;
};

struct StreamEntry {
    uint64_t id, context, header;  // of context and header the first step
    uint64_t first_event, events;  // rows of the table of events
};

struct Trace {
    Program program;
    uint64_t header;  // first step of a packet
    std::vector<StreamEntry> streams;
    std::vector<EventEntry> events;
    std::vector<uint8_t> uuid;   // 16 bytes, or none
    std::vector<uint8_t> magic;  // the 4 bytes by which packets begin, or none
    size_t carried = 0;          // columns that are filled on the way: the leaves of steps

    bool is_sound() const;
};

struct TracePacket {
    uint64_t offset;               // its first byte
    uint64_t size, content;        // bits; content as far as it is there
    uint64_t context;              // bit at which its context begins
    uint64_t begin, end;           // values of its clock behind its context, and at its end
    uint64_t discarded, sequence, instance;
    uint64_t known;                // which of `Meaning` it has, one bit each
    uint64_t stream;               // row of the table of streams
    uint64_t first_event, events;
    uint64_t lost;                 // bits at the end of its content that are no event
    uint64_t unknown;              // whether they begin with an event of an unknown kind
    uint64_t cut;                  // whether the file ends, or another packet begins, before its end
};

struct LostRange {
    uint64_t offset, size;
};

inline constexpr uint64_t absent_value = uint64_t{1} << 63;

struct Walked {
    std::vector<TracePacket> packets;
    std::vector<LostRange> losses;  // bytes between packets
    Growing<uint32_t> kinds;   // of each event: row of the table of events
    Growing<uint64_t> times;   // values of its stream's clock
    Growing<uint64_t> places;  // bit at which its header begins
    Growing<uint32_t> contexts;  // row of `carried`; of no event if nothing is carried
    // Integers of packets and contexts, or `absent_value`: `Trace::carried` of them for each combination, in the order in
    // which they come.
    std::vector<uint64_t> carried;
    uint64_t decoded = 0, padding = 0, lost = 0;  // bytes; they add up to the file
};

// Where reading goes on: the clock of the file before, and how many events are wanted at most.
struct Window {
    uint64_t begin = 0;       // byte of the first packet
    uint64_t clock = 0;       // value of the clock there
    uint64_t most = UINT64_MAX;  // events; reading ends behind the packet that has reached them
};

// Reads packets; `window.begin` and `window.clock` are where to go on afterwards.
Walked walk_trace(std::span<const uint8_t> data, const Trace& trace, Window& window);

// What takes fields out: programs of packets (header and context) and of events of one kind (from their header on).
struct Extraction {
    Program program;
    uint64_t packet, event;  // first steps
};

// Takes the leaves of one event after another out.
class LeafReader {
public:
    LeafReader(std::span<const uint8_t> data, Extraction wanted, size_t leaves);
    LeafReader(LeafReader&&) noexcept;
    ~LeafReader();

    // Reads the event at bit `place`, whose packet begins at bit `begin`. Returns false where that cannot be done; leaves
    // that were not reached are missing then.
    bool read(uint64_t place, uint64_t begin);

    // By leaf: the value of an integer, the first byte of a text or the first bit of an array, anything where the event has
    // no such field; and 0 there, else 1, the bytes of a text plus 1 or the elements of an array plus 1.
    std::span<const uint64_t> values() const;
    std::span<const uint64_t> extents() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

// Takes the leaves of many events out: `columns[(2 * leaf) * n + i]` is the value, and the one behind the extent.
// `begins` are the first bits of the packets. Returns whether all could be read.
bool leaf_columns(std::span<const uint8_t> data, const Extraction& wanted, std::span<const uint64_t> places,
                  std::span<const uint64_t> begins, size_t leaves, std::span<uint64_t> columns);

}  // namespace lanescope::ctf
