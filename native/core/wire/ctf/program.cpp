#include "core/wire/ctf/program.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <unordered_map>
#include <utility>

#include "core/wire/ctf/machine.hpp"

namespace lanescope::ctf {

namespace {

constexpr size_t dense_ids = 1 << 16;

constexpr auto no_leaves = [](int32_t, uint64_t, uint64_t) {};

// Rows of events by their numbers.
struct Lookup {
    std::vector<uint32_t> dense;
    std::vector<std::pair<uint64_t, uint32_t>> sparse;

    Lookup(const Trace& trace, const StreamEntry& stream) {
        for (uint64_t i = 0; i < stream.events; ++i) {
            const auto row = static_cast<uint32_t>(stream.first_event + i);
            const uint64_t id = trace.events[row].id;
            if (id >= dense_ids) {
                sparse.emplace_back(id, row);
                continue;
            }
            if (dense.size() <= id) dense.resize(id + 1, UINT32_MAX);
            dense[id] = row;
        }
        std::sort(sparse.begin(), sparse.end());
    }

    uint32_t row(uint64_t id) const {
        if (id < dense.size()) return dense[id];
        const auto found = std::lower_bound(sparse.begin(), sparse.end(), std::pair{id, uint32_t{0}});
        return found != sparse.end() && found->first == id ? found->second : UINT32_MAX;
    }
};

struct Walker {
    std::span<const uint8_t> data;
    const Trace& trace;
    Machine machine;
    std::vector<Lookup> lookups;
    std::vector<uint64_t> carried;
    std::unordered_multimap<uint64_t, uint32_t> rows;  // of `Walked::carried`, by a hash of the values
    std::array<uint32_t, 256> lately;                  // of them by the last bits of the hash, the one that came last
    Walked out;

    Walker(std::span<const uint8_t> bytes, const Trace& of) : data(bytes), trace(of), machine(bytes, of.program) {
        for (const StreamEntry& stream : trace.streams) lookups.emplace_back(trace, stream);
        carried.assign(trace.carried, absent_value);
        lately.fill(UINT32_MAX);
    }

    void keep(int32_t leaf, uint64_t value) {
        if (static_cast<size_t>(leaf) < carried.size()) carried[static_cast<size_t>(leaf)] = value;
    }

    // The row of what the next event carries: there are few, and mostly it is one that came lately.
    uint32_t context() {
        const size_t count = carried.size();
        const auto is_row = [&](uint32_t row) {
            const uint64_t* values = out.carried.data() + count * row;
            for (size_t i = 0; i < count; ++i) {
                if (values[i] != carried[i]) return false;
            }
            return true;
        };
        if (!out.contexts.empty() && is_row(out.contexts.back())) return out.contexts.back();
        uint64_t hash = 0;
        for (const uint64_t value : carried) hash = (hash ^ value) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
        uint32_t& last = lately[hash % lately.size()];
        if (last != UINT32_MAX && is_row(last)) return last;
        auto [found, end] = rows.equal_range(hash);
        while (found != end && !is_row(found->second)) ++found;
        if (found != end) return last = found->second;
        const auto row = static_cast<uint32_t>(out.carried.size() / count);
        rows.emplace(hash, row);
        out.carried.insert(out.carried.end(), carried.begin(), carried.end());
        return last = row;
    }

    // All columns of events have the room of the first.
    void grow() {
        out.kinds.grow();
        out.times.grow(out.kinds.room());
        out.places.grow(out.kinds.room());
        if (!carried.empty()) out.contexts.grow(out.kinds.room());
    }

    // Returns where the next packet may begin; the end if nothing says so.
    size_t next_packet(size_t from) const {
        if (trace.magic.empty()) return data.size();
        const auto found = std::search(data.begin() + static_cast<std::ptrdiff_t>(std::min(from, data.size())), data.end(),
                                       std::boyer_moore_horspool_searcher(trace.magic.begin(), trace.magic.end()));
        return static_cast<size_t>(found - data.begin());
    }

    void leave(size_t begin, size_t end) {
        if (begin == end) return;
        const auto bytes = data.subspan(begin, end - begin);
        if (std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; })) {
            out.padding += bytes.size();
        } else {
            out.lost += bytes.size();
            out.losses.push_back({begin, bytes.size()});
        }
    }

    uint64_t magic_value() const {
        uint64_t little = 0, big = 0;
        for (size_t i = 0; i < 4; ++i) {
            little |= uint64_t{trace.magic[i]} << (8 * i);
            big = big << 8 | trace.magic[i];
        }
        return little == 0xC1FC1FC1 ? little : big;
    }

    // Reads header and context of the packet at byte `at`; false if it is none.
    bool begin(size_t at, TracePacket& packet, uint64_t& place) {
        const uint64_t all = 8 * uint64_t{data.size()}, first = 8 * uint64_t{at};
        machine.known = 0;
        // A tag or length that the packet itself never wrote is 0, wherever reading began.
        std::fill(machine.slots.begin(), machine.slots.end(), 0);
        machine.meanings = {};
        place = first;
        carried.assign(trace.carried, absent_value);
        const auto carry = [&](int32_t leaf, uint64_t value, uint64_t) { keep(leaf, value); };
        if (!machine.run(trace.header, place, all, first, carry)) return false;
        if (machine.has(Meaning::magic) && machine[Meaning::magic] != 0xC1FC1FC1) return false;
        if (machine.has(Meaning::uuid) && trace.uuid.size() == 16 &&
            std::memcmp(data.data() + machine[Meaning::uuid], trace.uuid.data(), 16) != 0) {
            return false;
        }
        size_t row = 0;
        if (machine.has(Meaning::stream)) {
            while (row < trace.streams.size() && trace.streams[row].id != machine[Meaning::stream]) ++row;
        }
        if (row >= trace.streams.size()) return false;
        packet = {};
        packet.context = place;
        if (!machine.run(trace.streams[row].context, place, all, first, carry)) return false;
        const uint64_t rest = all - first;
        const bool has_size = machine.has(Meaning::size), has_content = machine.has(Meaning::content);
        packet.offset = at;
        packet.size = has_size ? machine[Meaning::size] : has_content ? machine[Meaning::content] : rest;
        packet.content = has_content ? machine[Meaning::content] : packet.size;
        // A size of 0 is that of a packet whose writer died before it closed it.
        if (packet.size == 0 && has_size) packet.size = packet.content = rest, packet.cut = 1;
        if (packet.content > packet.size || packet.content < place - first || packet.size % 8 != 0 || packet.size == 0) return false;
        packet.begin = machine.clock;
        packet.end = machine.has(Meaning::end) ? machine[Meaning::end] : machine.clock;
        packet.discarded = machine[Meaning::discarded];
        packet.sequence = machine[Meaning::sequence];
        packet.instance = machine[Meaning::instance];
        packet.known = machine.known;
        packet.stream = row;
        return true;
    }

    // Reads one packet; returns the byte behind it, 0 if there is none.
    size_t packet(size_t at) {
        TracePacket packet{};
        uint64_t place = 0;
        const uint64_t clock = machine.clock;
        if (!begin(at, packet, place)) {
            machine.clock = clock;
            return 0;
        }
        const uint64_t first = 8 * uint64_t{at}, rest = 8 * uint64_t{data.size()} - first;
        size_t end = at + packet.size / 8;
        if (packet.size > rest) {
            // Either the file is cut, or the size is wrong and another packet stands behind.
            packet.cut = 1;
            end = next_packet((place + 7) / 8);
            packet.content = std::min(packet.content, 8 * uint64_t{end - at});
        }
        packet.first_event = out.kinds.size();
        const StreamEntry& stream = trace.streams[packet.stream];
        const Lookup& lookup = lookups[packet.stream];
        const uint64_t limit = first + packet.content;
        const uint64_t only = stream.events > 0 ? trace.events[stream.first_event].id : UINT64_MAX;
        const auto carry = [&](int32_t leaf, uint64_t value, uint64_t) { keep(leaf, value); };
        while (place < limit) {
            const uint64_t start = place;
            machine.known &= ~(1u << static_cast<unsigned>(Meaning::id));
            bool is_read = machine.run(stream.header, place, limit, first, no_leaves);
            if (is_read) {
                const uint32_t row = lookup.row(machine.has(Meaning::id) ? machine[Meaning::id] : only);
                const uint64_t time = machine.clock;
                packet.unknown = row == UINT32_MAX;
                is_read = row != UINT32_MAX && machine.run(trace.events[row].step, place, limit, first, carry) && place > start;
                if (is_read) {
                    if (out.kinds.is_full()) [[unlikely]] grow();
                    if (!carried.empty()) out.contexts.push_within(context());
                    out.kinds.push_within(row);
                    out.times.push_within(time);
                    out.places.push_within(start);
                }
            }
            if (!is_read) {
                // A packet that was never closed ends in zeros.
                packet.lost = limit - start;
                place = start;
                break;
            }
        }
        packet.events = out.kinds.size() - packet.first_event;
        const size_t content = at + (packet.content + 7) / 8, read = at + static_cast<size_t>((place - first + 7) / 8);
        if (packet.lost != 0 && packet.cut != 0) {
            const bool is_filler = std::all_of(data.begin() + static_cast<std::ptrdiff_t>(read),
                                               data.begin() + static_cast<std::ptrdiff_t>(content), [](uint8_t byte) { return byte == 0; });
            if (is_filler) packet.lost = packet.unknown = 0, packet.content = place - first;
        }
        const size_t used = packet.lost != 0 ? content : at + (packet.content + 7) / 8;
        out.decoded += read - at;
        out.lost += packet.lost != 0 ? content - read : 0;
        out.padding += end - std::max(used, read);
        out.packets.push_back(packet);
        return end;
    }

    void run(Window& window) {
        // As many as there are where events are small; memory that is not filled costs none.
        const size_t rest = data.size() - std::min<size_t>(window.begin, data.size());
        out.kinds.expect(static_cast<size_t>(std::min<uint64_t>({rest / 24, uint64_t{1} << 24, window.most})));
        size_t at = window.begin;
        machine.clock = window.clock;
        while (at < data.size() && out.kinds.size() < window.most) {
            const size_t end = packet(at);
            if (end == 0) {
                const size_t next = next_packet(at + 1);
                leave(at, next);
                at = next;
            } else {
                at = end;
            }
        }
        window.begin = at;
        window.clock = machine.clock;
    }
};

}  // namespace

Walked walk_trace(std::span<const uint8_t> data, const Trace& trace, Window& window) {
    Walker walker(data, trace);
    walker.run(window);
    return std::move(walker.out);
}

struct LeafReader::State {
    struct Kept {
        size_t leaf;
        uint64_t value, extent;
    };

    State(std::span<const uint8_t> data, Extraction of, size_t leaves)
        : wanted(std::move(of)), machine(data, wanted.program), values(leaves), extents(leaves), limit(8 * uint64_t{data.size()}) {
        const Block* made = machine.block(wanted.event);
        if (made == nullptr || wanted.program.steps[made->next].op != Op::end) return;
        const auto is_there = [&](const Block::Field& field) { return field.leaf < static_cast<int64_t>(leaves); };
        if (std::all_of(made->fields.begin(), made->fields.end(), is_there)) whole = made;
    }

    // Whether the event at bit `place` was read as the one block that it is: such events all have the same leaves.
    bool read_whole(uint64_t place) {
        if (whole == nullptr || !of_packet.empty() || ((place | packet) & 7) != 0 || limit - place < whole->size) return false;
        if (!has_whole_extents) {
            std::fill(extents.begin(), extents.end(), 0);
            for (const Block::Field& field : whole->fields) {
                if (field.leaf >= 0) extents[static_cast<size_t>(field.leaf)] = 1;
            }
            has_whole_extents = true;
        }
        machine.run_block(*whole, place, [&](int32_t leaf, uint64_t value, uint64_t) { values[static_cast<size_t>(leaf)] = value; });
        return true;
    }

    void begin_packet(uint64_t begin) {
        packet = begin;
        of_packet.clear();
        std::fill(machine.slots.begin(), machine.slots.end(), 0);
        uint64_t at = begin;
        is_packet_read = at <= limit && machine.run(wanted.packet, at, limit, begin, [&](int32_t leaf, uint64_t value, uint64_t extent) {
            if (static_cast<size_t>(leaf) < values.size()) of_packet.push_back({static_cast<size_t>(leaf), value, extent});
        });
    }

    Extraction wanted;
    Machine machine;
    std::vector<uint64_t> values, extents;
    std::vector<Kept> of_packet;
    uint64_t limit;
    uint64_t packet = UINT64_MAX;
    bool is_packet_read = false;
    const Block* whole = nullptr;    // all of an event
    bool has_whole_extents = false;  // whether the extents are those of such an event
};

LeafReader::LeafReader(std::span<const uint8_t> data, Extraction wanted, size_t leaves)
    : state_(std::make_unique<State>(data, std::move(wanted), leaves)) {}
LeafReader::LeafReader(LeafReader&&) noexcept = default;
LeafReader::~LeafReader() = default;

bool LeafReader::read(uint64_t place, uint64_t begin) {
    State& state = *state_;
    if (begin != state.packet) state.begin_packet(begin);
    const bool is_there = state.is_packet_read && place <= state.limit && begin <= place;
    if (is_there && state.read_whole(place)) return true;
    std::fill(state.extents.begin(), state.extents.end(), 0);
    state.has_whole_extents = false;
    if (!is_there) return false;
    for (const State::Kept& kept : state.of_packet) {
        state.values[kept.leaf] = kept.value;
        state.extents[kept.leaf] = kept.extent;
    }
    return state.machine.run(state.wanted.event, place, state.limit, begin, [&](int32_t leaf, uint64_t value, uint64_t extent) {
        if (static_cast<size_t>(leaf) >= state.values.size()) return;
        state.values[static_cast<size_t>(leaf)] = value;
        state.extents[static_cast<size_t>(leaf)] = extent;
    });
}

std::span<const uint64_t> LeafReader::values() const { return state_->values; }
std::span<const uint64_t> LeafReader::extents() const { return state_->extents; }

bool leaf_columns(std::span<const uint8_t> data, const Extraction& wanted, std::span<const uint64_t> places,
                  std::span<const uint64_t> begins, size_t leaves, std::span<uint64_t> columns) {
    LeafReader reader(data, wanted, leaves);
    const size_t count = places.size();
    bool all = true;
    for (size_t i = 0; i < count; ++i) {
        all = reader.read(places[i], begins[i]) && all;
        for (size_t leaf = 0; leaf < leaves; ++leaf) {
            const uint64_t extent = reader.extents()[leaf];
            columns[2 * leaf * count + i] = extent != 0 ? reader.values()[leaf] : 0;
            columns[(2 * leaf + 1) * count + i] = extent;
        }
    }
    return all;
}

}  // namespace lanescope::ctf
