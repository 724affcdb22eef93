// The AIE codecs: numpy arrays in, caller-allocated numpy arrays out.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>

#include "bind/arrays.hpp"
#include "core/devices/aie/records.hpp"
#include "core/devices/aie/hex_text.hpp"
#include "core/devices/aie/run_axis.hpp"
#include "core/devices/aie/timeline.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace aie = lanescope::aie;

using lanescope::bind::Array;
using lanescope::bind::Rows;
using lanescope::bind::span_of;

namespace {

// So many parts of a dump may be decoded side by side.
constexpr size_t kParts = 4;

// Structs of equal integers are handed over as rows of a matrix.
template <class Struct, class T>
std::span<Struct> structs_of(const Rows<T>& rows) {
    static_assert(sizeof(Struct) % sizeof(T) == 0);
    if (rows.shape(1) != sizeof(Struct) / sizeof(T)) throw nb::value_error("matrix with the wrong number of columns");
    return {reinterpret_cast<Struct*>(rows.data()), rows.shape(0)};
}

aie::Offsets offsets_of(int64_t base, const Array<const int64_t>& each, size_t words) {
    if (each.size() != 0 && each.size() != words) throw nb::value_error("offsets and words differ in length");
    return {base, span_of(each)};
}

aie::Slices slices_of(const Array<int64_t>& begin, const Array<int64_t>& duration, const Array<uint32_t>& tag) {
    if (duration.size() != begin.size() || tag.size() != begin.size()) {
        throw nb::value_error("slice outputs of different lengths");
    }
    return {span_of(begin), span_of(duration), span_of(tag)};
}

aie::Points points_of(const Array<int64_t>& tick, const Array<int64_t>& count, const Array<uint32_t>& value,
                      const Array<uint32_t>& tag) {
    if (count.size() != tick.size() || value.size() != tick.size() || tag.size() != tick.size()) {
        throw nb::value_error("point outputs of different lengths");
    }
    return {span_of(tick), span_of(count), span_of(value), span_of(tag)};
}

// Entries come from a Scanner, but nothing stops a caller from handing in others.
void check(std::span<const aie::Entry> entries, size_t words) {
    bool is_wrong = false;  // no branch in the loop: it is seen for every packet
    for (const aie::Entry& entry : entries) {
        const auto end = static_cast<int64_t>(entry.word) + entry.count;
        const bool is_packet = entry.run == static_cast<int32_t>(aie::Run::packet);
        is_wrong |= (entry.word < 0) | (entry.count < (entry.run == static_cast<int32_t>(aie::Run::cut) ? 0 : 1)) | (end > static_cast<int64_t>(words)) |
                    (is_packet & ((entry.count != aie::kPacketWords) | (entry.source < 0))) |
                    (entry.source >= static_cast<int32_t>(aie::Scanner::kMaxAllSources));
    }
    if (is_wrong) throw nb::value_error("an entry lies outside the words");
}

std::vector<std::tuple<int64_t, int64_t>> pairs(std::span<const aie::Tally> tallies) {
    std::vector<std::tuple<int64_t, int64_t>> made;
    for (const aie::Tally& tally : tallies) made.emplace_back(tally.count, tally.first);
    return made;
}

void bind_scanner(nb::module_& m) {
    nb::class_<aie::Scanner>(m, "AieScanner", "Splits words into packets and the rest; keeps its place between calls.")
        .def(nb::init<>())
        .def(
            "__init__",
            [](aie::Scanner* self, Array<const int64_t> cuts) {
                const auto words = span_of(cuts);
                for (size_t i = 0; i < words.size(); ++i) {
                    if (words[i] < (i == 0 ? 1 : words[i - 1] + 1)) throw nb::value_error("cuts do not rise");
                }
                new (self) aie::Scanner(words);
            },
            "cuts"_a.noconvert(), "With the words at which slices of the dump end and begin, int64, rising from 1.")
        .def(
            "scan",
            [](aie::Scanner& self, Array<const uint32_t> words, bool is_last, int64_t base, Array<const int64_t> each,
               Rows<int32_t> entries) {
                const auto offsets = offsets_of(base, each, words.size());
                const auto out = structs_of<aie::Entry>(entries);
                aie::Scanner::Progress done;
                {
                    nb::gil_scoped_release release;
                    done = self.scan(span_of(words), is_last, offsets, out);
                }
                return std::tuple(done.words, done.entries);
            },
            "words"_a.noconvert(), "is_last"_a, "base"_a, "offsets"_a.noconvert(), "entries"_a.noconvert(),
            "Return (words consumed, entries written).")
        .def_prop_ro("headers",
                     [](const aie::Scanner& self) {
                         return std::vector<uint32_t>(self.headers().begin(), self.headers().end());
                     })
        .def_prop_ro("source_count", [](const aie::Scanner& self) { return self.headers().size(); })
        .def("header", [](const aie::Scanner& self, size_t source) {
            if (source >= self.headers().size()) throw nb::index_error("no such source");
            return self.headers()[source];
        }, "source"_a)
        .def("slice_of", &aie::Scanner::slice_of, "source"_a, "Return which slice of the dump a source is in, from 0.")
        .def_prop_ro("tallies", [](const aie::Scanner& self) { return pairs(self.tallies()); })
        .def_prop_ro("words",
                     [](const aie::Scanner& self) { return std::vector<int64_t>(self.words().begin(), self.words().end()); },
                     "Words of each kind of run so far.")
        .def_ro_static("LOOKAHEAD", &aie::Scanner::kLookahead);
}

void bind_deal(nb::module_& m) {
    m.def(
        "aie_deal",
        [](Rows<const int32_t> entries, Rows<int32_t> out) {
            const auto from = structs_of<const aie::Entry>(entries);
            const auto room = structs_of<aie::Entry>(out);
            const size_t each = room.size() / kParts;
            if (each < from.size()) throw nb::value_error("each part needs room for all entries");
            std::array<std::span<aie::Entry>, kParts> parts;
            for (size_t part = 0; part < kParts; ++part) parts[part] = room.subspan(part * each, each);
            nb::gil_scoped_release release;
            return aie::deal(from, parts);
        },
        "entries"_a.noconvert(), "out"_a.noconvert(),
        "Deal entries out by source to AIE_PARTS equal parts of `out`, where the source is the quotient; return how many "
        "each got.");
    m.attr("AIE_PARTS") = kParts;
}

// What a timeline has to do of a block, and what that brought. Threads take turns at it, each for a step.
class Task {
  public:
    Task(aie::Timeline& timeline, Array<const uint32_t> words, Rows<const int32_t> entries, int64_t base,
         Array<const int64_t> each, std::array<Array<int64_t>, 4> numbers, std::array<Array<uint32_t>, 3> bits,
         Rows<int64_t> events)
        : timeline_(timeline), words_(span_of(words)), entries_(structs_of<const aie::Entry>(entries)),
          offsets_(offsets_of(base, each, words.size())), slices_(slices_of(numbers[0], numbers[1], bits[0])),
          points_(points_of(numbers[2], numbers[3], bits[1], bits[2])), room_(structs_of<aie::Event>(events)) {
        check(entries_, words_.size());
    }

    bool take() { return !is_taken_.exchange(true, std::memory_order_acquire); }
    void give_back() { is_taken_.store(false, std::memory_order_release); }

    // Only for who has taken it. Events have new room in every step, so what is decoded does not depend on the steps.
    bool has_more() const { return done_ < entries_.size() && !is_full_; }
    void step(size_t most) {
        const size_t count = std::min(most, entries_.size() - done_);
        const aie::Slices slices{slices_.begin.subspan(slice_), slices_.duration.subspan(slice_), slices_.tag.subspan(slice_)};
        const aie::Points points{points_.tick.subspan(point_), points_.count.subspan(point_),
                                 points_.value.subspan(point_), points_.tag.subspan(point_)};
        const auto progress = timeline_.decode(words_, entries_.subspan(done_, count), offsets_, slices, points, room_);
        done_ += progress.entries;
        slice_ += progress.slices;
        point_ += progress.points;
        events_.insert(events_.end(), room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(progress.events));
        is_full_ = slices_.begin.size() - slice_ < aie::Timeline::kSliceRoom ||
                   points_.tick.size() - point_ < aie::Timeline::kPointRoom;
    }

    size_t entries() const { return done_; }
    size_t slices() const { return slice_; }
    size_t points() const { return point_; }
    const std::vector<aie::Event>& events() const { return events_; }

  private:
    aie::Timeline& timeline_;
    std::span<const uint32_t> words_;
    std::span<const aie::Entry> entries_;
    aie::Offsets offsets_;
    aie::Slices slices_;
    aie::Points points_;
    std::span<aie::Event> room_;
    std::vector<aie::Event> events_;
    size_t done_ = 0, slice_ = 0, point_ = 0;
    bool is_full_ = false;
    std::atomic<bool> is_taken_ = false;
};

// Work on tasks until none is left that another thread does not work on.
void work_on(std::span<Task* const> tasks, size_t step) {
    constexpr int kLooks = 64;  // a task may be between two threads
    for (int look = 0; look < kLooks; ++look) {
        for (Task* const task : tasks) {
            if (!task->take()) continue;
            if (task->has_more()) {
                task->step(step);
                look = 0;
            }
            task->give_back();
        }
    }
}

void bind_tasks(nb::module_& m) {
    nb::class_<Task>(m, "AieTask", "Work of one timeline on a block of words; it refers to what it is made of.")
        .def(
            "__init__",
            [](Task* self, aie::Timeline& timeline, Array<const uint32_t> words, Rows<const int32_t> entries, int64_t base,
               Array<const int64_t> each, Array<int64_t> begin, Array<int64_t> duration, Array<uint32_t> tag,
               Array<int64_t> tick, Array<int64_t> count, Array<uint32_t> value, Array<uint32_t> point_tag,
               Rows<int64_t> events) {
                new (self) Task(timeline, words, entries, base, each, {begin, duration, tick, count},
                                {tag, value, point_tag}, events);
            },
            "timeline"_a, "words"_a.noconvert(), "entries"_a.noconvert(), "base"_a, "offsets"_a.noconvert(),
            "begin"_a.noconvert(), "duration"_a.noconvert(), "tag"_a.noconvert(), "tick"_a.noconvert(),
            "count"_a.noconvert(), "value"_a.noconvert(), "point_tag"_a.noconvert(), "events"_a.noconvert(),
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 6>(),
            nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>(), nb::keep_alive<1, 9>(), nb::keep_alive<1, 10>(),
            nb::keep_alive<1, 11>(), nb::keep_alive<1, 12>(), nb::keep_alive<1, 13>(), nb::keep_alive<1, 14>())
        .def_prop_ro("entries", &Task::entries, "Entries decoded so far.")
        .def_prop_ro("slices", &Task::slices, "Slices written so far.")
        .def_prop_ro("points", &Task::points, "Points written so far.")
        .def_prop_ro("event_count", [](const Task& self) { return self.events().size(); }, "Events noted so far.")
        .def(
            "events",
            [](const Task& self, Rows<int64_t> out) {
                const auto rows = structs_of<aie::Event>(out);
                if (rows.size() != self.events().size()) throw nb::value_error("one row for each event is needed");
                std::copy(self.events().begin(), self.events().end(), rows.begin());
            },
            "out"_a.noconvert(), "Copy the events out, int64 [count, EVENT_COLUMNS].");
    m.def(
        "aie_work",
        [](const nb::list& given, size_t step) {
            std::vector<Task*> tasks;
            for (nb::handle task : given) tasks.push_back(&nb::cast<Task&>(task));
            if (step == 0) throw nb::value_error("a step has at least one entry");
            nb::gil_scoped_release release;
            work_on(tasks, step);
        },
        "tasks"_a, "step"_a,
        "Decode `step` entries of each task in turn, until none has more that it has room for. Other threads may do the "
        "same: each task is worked on by one at a time.");
}

void bind_timeline(nb::module_& m) {
    nb::class_<aie::Timeline>(m, "AieTimeline", "Packets to slices; keeps the state of all sources between calls.")
        .def(nb::init<int64_t, bool>(), "tick_limit"_a, "is_plain"_a = false,
             "With `is_plain`, decode as every processor can, even where HAS_WIDE_PATH; the same comes out.")
        .def(
            "decode",
            [](aie::Timeline& self, Array<const uint32_t> words, Rows<const int32_t> entries, int64_t base,
               Array<const int64_t> each, Array<int64_t> begin, Array<int64_t> duration, Array<uint32_t> tag,
               Array<int64_t> tick, Array<int64_t> count, Array<uint32_t> value, Array<uint32_t> point_tag,
               Rows<int64_t> events) {
                const auto offsets = offsets_of(base, each, words.size());
                const auto slices = slices_of(begin, duration, tag);
                const auto points = points_of(tick, count, value, point_tag);
                const auto runs = structs_of<const aie::Entry>(entries);
                const auto out = structs_of<aie::Event>(events);
                check(runs, words.size());
                aie::Timeline::Progress done;
                {
                    nb::gil_scoped_release release;
                    done = self.decode(span_of(words), runs, offsets, slices, points, out);
                }
                return std::tuple(done.entries, done.slices, done.points, done.events);
            },
            "words"_a.noconvert(), "entries"_a.noconvert(), "base"_a, "offsets"_a.noconvert(), "begin"_a.noconvert(),
            "duration"_a.noconvert(), "tag"_a.noconvert(), "tick"_a.noconvert(), "count"_a.noconvert(),
            "value"_a.noconvert(), "point_tag"_a.noconvert(), "events"_a.noconvert(),
            "Return (entries consumed, slices written, points written, events written).")
        .def(
            "finish",
            [](aie::Timeline& self, Array<int64_t> begin, Array<int64_t> duration, Array<uint32_t> tag,
               Array<int64_t> tick, Array<int64_t> count, Array<uint32_t> value, Array<uint32_t> point_tag,
               Rows<int64_t> events) {
                const auto points = points_of(tick, count, value, point_tag);
                const auto done = self.finish(slices_of(begin, duration, tag), points, structs_of<aie::Event>(events));
                return std::tuple(done.entries, done.slices, done.points, done.events);
            },
            "begin"_a.noconvert(), "duration"_a.noconvert(), "tag"_a.noconvert(), "tick"_a.noconvert(),
            "count"_a.noconvert(), "value"_a.noconvert(), "point_tag"_a.noconvert(), "events"_a.noconvert(),
            "Return (whether that was all, slices written, points written, events written).")
        .def(
            "segments",
            [](const aie::Timeline& self, Rows<int64_t> out) {
                const auto rows = structs_of<aie::Segment>(out);
                const auto segments = self.segments();
                if (rows.size() != segments.size()) throw nb::value_error("one row for each segment is needed");
                std::copy(segments.begin(), segments.end(), rows.begin());
            },
            "out"_a.noconvert(), "Copy the segments out, int64 [count, SEGMENT_COLUMNS].")
        .def_prop_ro("segment_count", [](const aie::Timeline& self) { return self.segments().size(); })
        .def_prop_ro("words",
                     [](const aie::Timeline& self) { return std::tuple(self.decoded(), self.padding(), self.lost()); },
                     "Words of the packets seen so far: (decoded, padding, lost).")
        .def_prop_ro("over_limit", [](const aie::Timeline& self) { return pairs({&self.over_limit(), 1}).front(); })
        .def_prop_ro("has_flags", &aie::Timeline::has_flags)
        .def_prop_ro_static("HAS_WIDE_PATH", [](nb::handle) { return aie::Timeline::has_wide_path(); })
        .def_ro_static("SLICE_ROOM", &aie::Timeline::kSliceRoom)
        .def_ro_static("POINT_ROOM", &aie::Timeline::kPointRoom)
        .def_ro_static("EVENT_ROOM", &aie::Timeline::kEventRoom);
    m.attr("AIE_SEGMENT_COLUMNS") = sizeof(aie::Segment) / sizeof(int64_t);
    m.attr("AIE_EVENT_COLUMNS") = sizeof(aie::Event) / sizeof(int64_t);
}

void bind_text(nb::module_& m) {
    nb::class_<aie::TextReader>(m, "AieText", "Hex text to words; keeps an unfinished line between calls.")
        .def(nb::init<>())
        .def(
            "read",
            [](aie::TextReader& self, Array<const uint8_t> text, Array<uint32_t> words, Array<int64_t> offsets) {
                if (words.size() < text.size() / 2 + 1 || offsets.size() < words.size()) {
                    throw nb::value_error("outputs too short");
                }
                nb::gil_scoped_release release;
                return self.read(span_of(text), span_of(words), span_of(offsets));
            },
            "text"_a.noconvert(), "words"_a.noconvert(), "offsets"_a.noconvert(), "Return the number of words.")
        .def(
            "finish",
            [](aie::TextReader& self, Array<uint32_t> words, Array<int64_t> offsets) {
                if (words.size() < 1 || offsets.size() < 1) throw nb::value_error("outputs too short");
                return self.finish(span_of(words), span_of(offsets));
            },
            "words"_a.noconvert(), "offsets"_a.noconvert(), "End of the text: the last line may lack its end.")
        .def_prop_ro("bytes",
                     [](const aie::TextReader& self) {
                         return std::tuple(self.digits(), self.blanks(), self.lost());
                     },
                     "Bytes so far: (digits of words, blanks and line ends, bad lines).")
        .def_prop_ro("bad_lines", [](const aie::TextReader& self) { return pairs({&self.bad_lines(), 1}).front(); });
}

void bind_records(nb::module_& m) {
    m.def(
        "aie_read_records",
        [](Array<const uint32_t> words, uint32_t mode, Array<uint32_t> word, Array<uint8_t> bit, Array<uint8_t> bits,
           Array<uint8_t> frame, Array<uint64_t> raw) {
            const size_t room = 8 * words.size();
            if (mode > aie::kReservedMode) throw nb::value_error("there are four modes");
            if (word.size() < room || bit.size() < room || bits.size() < room || frame.size() < room ||
                raw.size() < room) {
                throw nb::value_error("outputs too short");
            }
            nb::gil_scoped_release release;
            return aie::read_records(span_of(words), mode,
                                     {span_of(word), span_of(bit), span_of(bits), span_of(frame), span_of(raw)});
        },
        "words"_a.noconvert(), "mode"_a, "word"_a.noconvert(), "bit"_a.noconvert(), "bits"_a.noconvert(),
        "frame"_a.noconvert(), "raw"_a.noconvert(),
        "Split payload words of one source into frames; `mode` holds before the first Start. Return how many.");
    m.def(
        "aie_pack_records",
        [](Array<const uint64_t> raw, Array<const uint8_t> bits, uint32_t mode, bool aligned, Array<uint32_t> words) {
            const auto sizes = span_of(bits);
            if (sizes.size() != raw.size()) throw nb::value_error("raw and bits differ in length");
            if (mode > aie::kReservedMode) throw nb::value_error("there are four modes");
            size_t room = raw.size() + 9;
            for (size_t i = 0; i < sizes.size(); ++i) {
                const uint8_t size = sizes[i];
                if (size == 0 || (size > 32 && size != 64)) throw nb::value_error("a frame has 1 to 32 or 64 bits");
                const auto first = static_cast<uint32_t>(size == 64 ? raw.data()[i] >> 32 : raw.data()[i]);
                if (size == 64 && !aie::is_start(first)) throw nb::value_error("only a Start has 64 bits");
                if (size < 32 && raw.data()[i] >> size != 0) throw nb::value_error("a frame has more bits than its size");
                room += size >= 32 && aie::is_start(first) ? 9 : 0;
            }
            if (words.size() < room) throw nb::value_error("output too short");
            nb::gil_scoped_release release;
            return aie::pack_records(span_of(raw), sizes, mode, aligned, span_of(words));
        },
        "raw"_a.noconvert(), "bits"_a.noconvert(), "mode"_a, "aligned"_a, "words"_a.noconvert(),
        "Lay frames into payload words; return how many words.");
    m.def(
        "aie_encode_runs",
        [](Array<const uint8_t> mask, Array<const int64_t> length, bool stop, int64_t idle, Array<uint64_t> raw,
           Array<uint8_t> bits) {
            if (length.size() != mask.size() || bits.size() != raw.size()) {
                throw nb::value_error("arrays of different lengths");
            }
            for (const int64_t cycles : span_of(length)) {
                if (cycles < 0) throw nb::value_error("a run has a negative length");
            }
            if (idle < 0) throw nb::value_error("negative idle cycles");
            if (raw.size() < aie::encode_runs_bound(span_of(mask), span_of(length), idle)) {
                throw nb::value_error("outputs too short");
            }
            nb::gil_scoped_release release;
            return aie::encode_runs(span_of(mask), span_of(length), stop, idle, span_of(raw), span_of(bits));
        },
        "mask"_a.noconvert(), "length"_a.noconvert(), "stop"_a, "idle"_a, "raw"_a.noconvert(), "bits"_a.noconvert(),
        "Encode run-length event state as mode-0 frames; return how many.");
    m.def(
        "aie_encode_runs_bound",
        [](Array<const uint8_t> mask, Array<const int64_t> length, int64_t idle) {
            if (length.size() != mask.size()) throw nb::value_error("arrays of different lengths");
            return aie::encode_runs_bound(span_of(mask), span_of(length), idle);
        },
        "mask"_a.noconvert(), "length"_a.noconvert(), "idle"_a, "The most frames that aie_encode_runs can write.");
}

// Numbers come from a Timeline and a Scanner, but nothing stops a caller from handing in others.
void check(std::span<const aie::BegunRecording> begun, std::span<const aie::EndedRecording> ended) {
    constexpr int64_t most = int64_t{1} << 61;
    const auto is_unit = [](int64_t unit) { return unit >= 0 && unit < static_cast<int64_t>(aie::Scanner::kMaxAllSources); };
    for (const aie::BegunRecording& each : begun) {
        if (!is_unit(each.unit) || each.run.ordinal < 0 || each.timer > most) throw nb::value_error("not a recording that begins");
    }
    for (const aie::EndedRecording& each : ended) {
        if (!is_unit(each.unit) || each.before < 0 || each.ticks < 0 || each.ticks > most) {
            throw nb::value_error("not a recording that ends");
        }
    }
}

void bind_run_axis(nb::module_& m) {
    nb::class_<aie::RunAxis>(m, "AieRunAxis", "Places the recordings of a dump on one axis; keeps its place between calls.")
        .def(nb::init<int64_t>(), "limit"_a, "No recording begins later than this tick, 2^60 or less.")
        .def(
            "follow",
            [](aie::RunAxis& self, Rows<const int64_t> begun, Rows<const int64_t> ended, Rows<int64_t> places) {
                const auto beginning = structs_of<const aie::BegunRecording>(begun);
                const auto ending = structs_of<const aie::EndedRecording>(ended);
                const auto out = structs_of<aie::RunPlace>(places);
                if (out.size() != beginning.size()) throw nb::value_error("arrays of different lengths");
                check(beginning, ending);
                self.follow(beginning, ending, out);
            },
            "begun"_a.noconvert(), "ended"_a.noconvert(), "places"_a.noconvert(),
            "Place recordings in the order of the dump: begun int64 [n, 7] (unit, slice of the dump, which Start of its\n"
            "unit there, mode, timer or -1, whether its timer counts from its Start, slice that its own follows or -1);\n"
            "ended int64 [m, 5] (how many begin before, unit, slice, which Start, ticks); places int64 [n, 2] is filled\n"
            "with begin and distance.")
        .def_ro("unknown", &aie::RunAxis::unknown, "Runs whose distance from the one before is not recorded.")
        .def_ro("contradictory", &aie::RunAxis::contradictory, "Runs whose Start timer contradicts the run before.")
        .def_ro("disagreeing", &aie::RunAxis::disagreeing,
                "Recordings whose Start timer differs from that of other units of their run.");
}

}  // namespace

void lanescope::bind::aie(nb::module_& m) {
    bind_scanner(m);
    bind_deal(m);
    bind_timeline(m);
    bind_tasks(m);
    bind_text(m);
    bind_records(m);
    bind_run_axis(m);
}
