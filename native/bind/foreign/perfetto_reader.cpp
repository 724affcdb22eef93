// The reader of Perfetto traces of others.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "core/foreign/perfetto/annotations.hpp"
#include "core/foreign/perfetto/reader.hpp"
#include "core/foreign/perfetto/slices.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lanescope::foreign_perfetto;
using lanescope::Growing;
using lanescope::bind::Array;
using lanescope::bind::span_of;
using lanescope::bind::to_numpy;

namespace {

const char* const kFaults[] = {"invalid",  "no_sequence",    "needs_state",  "untyped",        "untimed",
                               "no_value", "stateless_text", "unknown_text", "redefined_text", "compressed",
                               "damaged_text"};
static_assert(std::size(kFaults) == static_cast<size_t>(Fault::count));

// Move columns out: the reader does not need them any more.
template <class T>
auto out(std::vector<T>& values) {
    return to_numpy(std::exchange(values, {}));
}

template <class T>
auto out(Growing<T>& values) {
    return to_numpy(values);
}

// Slices and instants, and what is known of their tracks.
nb::dict rows_of(Pairs& pairs) {
    nb::dict all;
    nb::dict slices, instants, lone, tracks;
    all["slices"] = slices;
    slices["ts"] = out(pairs.slices.ts);
    slices["dur"] = out(pairs.slices.dur);
    slices["track"] = out(pairs.slices.track);
    slices["name"] = out(pairs.slices.name);
    slices["category"] = out(pairs.slices.category);
    all["instants"] = instants;
    instants["ts"] = out(pairs.instants.ts);
    instants["track"] = out(pairs.instants.track);
    instants["name"] = out(pairs.instants.name);
    instants["category"] = out(pairs.instants.category);
    all["lone"] = lone;
    lone["ts"] = out(pairs.lone.ts);
    lone["track"] = out(pairs.lone.track);
    std::vector<int64_t> first, last;
    std::vector<int32_t> clock, name;
    std::vector<uint8_t> has_rows;
    for (const Pairs::Track& track : pairs.tracks) {
        first.push_back(track.first);
        last.push_back(track.last);
        clock.push_back(track.clock);
        name.push_back(track.first_name);
        has_rows.push_back(track.has_rows ? 1 : 0);
    }
    all["tracks"] = tracks;
    tracks["first"] = to_numpy(std::move(first));
    tracks["last"] = to_numpy(std::move(last));
    tracks["clock"] = to_numpy(std::move(clock));
    tracks["first_name"] = to_numpy(std::move(name));
    tracks["has_rows"] = to_numpy(std::move(has_rows));
    all["crossing"] = out(pairs.crossing);
    all["open"] = pairs.open;
    return all;
}

nb::tuple texts_of(const Texts& texts) {
    const auto& bytes = texts.bytes();
    return nb::make_tuple(nb::bytes(bytes.data(), bytes.size()), to_numpy(texts.offsets()));
}

nb::dict columns_of(Reader& reader) {
    nb::dict all;
    const auto table = [&](const char* name) {
        nb::dict columns;
        all[name] = columns;
        return columns;
    };
    nb::dict events = table("events");
    events["ts"] = out(reader.events.ts);
    events["clock"] = out(reader.events.clock);
    events["track"] = out(reader.events.track);
    events["type"] = out(reader.events.type);
    events["name"] = out(reader.events.name);
    events["category"] = out(reader.events.category);
    nb::dict samples = table("samples");
    samples["ts"] = out(reader.samples.ts);
    samples["clock"] = out(reader.samples.clock);
    samples["track"] = out(reader.samples.track);
    samples["bits"] = out(reader.samples.bits);
    samples["is_double"] = out(reader.samples.is_double);
    samples["series"] = out(reader.samples.series);
    nb::dict flows = table("flows");
    flows["event"] = out(reader.flows.event);
    flows["id"] = out(reader.flows.id);
    flows["role"] = out(reader.flows.role);
    nb::dict correlations = table("correlations");
    correlations["event"] = out(reader.correlations.event);
    correlations["number"] = out(reader.correlations.number);
    correlations["text"] = out(reader.correlations.text);
    nb::dict legacy = table("legacy");
    legacy["event"] = out(reader.legacy.event);
    legacy["phase"] = out(reader.legacy.phase);
    legacy["dur"] = out(reader.legacy.dur);
    legacy["id"] = out(reader.legacy.id);
    legacy["id_kind"] = out(reader.legacy.id_kind);
    legacy["scope"] = out(reader.legacy.scope);
    legacy["bind_id"] = out(reader.legacy.bind_id);
    legacy["flow"] = out(reader.legacy.flow);
    legacy["pid"] = out(reader.legacy.pid);
    legacy["tid"] = out(reader.legacy.tid);
    nb::dict tracks = table("tracks");
    tracks["uuid"] = out(reader.tracks.uuid);
    tracks["sequence"] = out(reader.tracks.sequence);
    nb::dict clocks = table("clocks");
    clocks["id"] = out(reader.clocks.id);
    clocks["sequence"] = out(reader.clocks.sequence);
    nb::dict snapshots = table("snapshots");
    snapshots["number"] = out(reader.snapshots.number);
    snapshots["clock"] = out(reader.snapshots.clock);
    snapshots["ts"] = out(reader.snapshots.ts);
    nb::dict messages = table("messages");
    messages["field"] = out(reader.messages.field);
    messages["sequence"] = out(reader.messages.sequence);
    messages["offset"] = out(reader.messages.offset);
    messages["size"] = out(reader.messages.size);
    nb::dict losses = table("losses");
    losses["sequence"] = out(reader.losses.sequence);
    losses["packets"] = out(reader.losses.packets);
    losses["dropped"] = out(reader.losses.dropped);
    losses["offset"] = out(reader.losses.offset);
    losses["before"] = out(reader.losses.before);
    losses["before_clock"] = out(reader.losses.before_clock);
    losses["after"] = out(reader.losses.after);
    losses["after_clock"] = out(reader.losses.after_clock);
    nb::dict bad = table("bad");
    bad["offset"] = out(reader.bad.offset);
    bad["size"] = out(reader.bad.size);
    // Annotations stay with the reader, which renders them on request.
    nb::dict annotated = table("annotated");
    annotated["event"] = out(reader.annotated.event);
    return all;
}

nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

}  // namespace

void lanescope::bind::perfetto_reader(nb::module_& m) {
    nb::class_<Reader>(m, "PerfettoReader", "Reads the packets of a Perfetto trace; any bytes, cut anywhere.")
        .def(nb::init<bool>(), "keeps_events"_a = false)
        .def("expect", &Reader::expect, "bytes"_a, "So many bytes will come: make place for what they may hold.")
        .def_prop_ro("needs_events", &Reader::needs_events,
                     "Whether slices cannot be found on the way: then a reader that keeps all events has to read the file.")
        .def(
            "scan",
            [](Reader& self, const Array<const uint8_t>& data, size_t at, uint64_t offset, bool is_last) {
                if (at > data.size()) throw nb::value_error("outside of the data");
                nb::gil_scoped_release release;
                return self.scan(span_of(data), at, offset, is_last);
            },
            "data"_a.noconvert(), "at"_a, "offset"_a, "is_last"_a,
            "Read packets from `at` on, of bytes that begin at `offset` of the file. Return where the first one that is "
            "not complete begins; or, where `packed` is not None, what follows a packet of packets.")
        .def_prop_ro(
            "packed",
            [](const Reader& self) -> nb::object {
                if (self.packed().data() == nullptr) return nb::none();
                return nb::bytes(reinterpret_cast<const char*>(self.packed().data()), self.packed().size());
            },
            "Content of a packet of packets, to be unpacked; None without one.")
        .def_prop_ro("is_zstd", &Reader::is_zstd)
        .def(
            "unpacked",
            [](Reader& self, const Array<const uint8_t>& content) {
                nb::gil_scoped_release release;
                self.unpacked(span_of(content));
            },
            "content"_a.noconvert(), "Read the packets of a packet.")
        .def("not_unpacked", &Reader::not_unpacked, "is_counted_elsewhere"_a = false,
             "Count the bytes of a packet of packets as lost, and the packet, unless the caller does.")
        .def("take", &columns_of, "Take all columns out, by table and name.")
        .def(
            "take_rows",
            [](Reader& self) {
                self.pairs.finish();
                return rows_of(self.pairs);
            },
            "Take slices, instants, ends without a start and facts of tracks out, where events are not kept.")
        .def_prop_ro("names", [](const Reader& self) { return texts_of(self.names); },
                     "UTF-8 of all names of events as found, end to end, and where each begins, int64 [texts + 1].")
        .def_prop_ro("categories", [](const Reader& self) { return texts_of(self.categories); },
                     "Categories of events, as `names`.")
        .def_prop_ro("texts", [](const Reader& self) { return texts_of(self.texts); }, "Other texts, as `names`.")
        .def(
            "message_bytes",
            [](const Reader& self) {
                return nb::bytes(reinterpret_cast<const char*>(self.message_bytes.data()), self.message_bytes.size());
            })
        .def_prop_ro("faults",
                     [](const Reader& self) {
                         nb::dict found;
                         for (size_t i = 0; i < std::size(kFaults); ++i) {
                             if (self.faults[i].count != 0) {
                                 found[kFaults[i]] = nb::make_tuple(self.faults[i].count, self.faults[i].offset);
                             }
                         }
                         return found;
                     })
        .def_prop_ro("other",
                     [](const Reader& self) {
                         nb::dict found;
                         for (const auto& [field, count] : self.other) {
                             found[nb::int_(field)] = nb::make_tuple(count.first, count.second);
                         }
                         return found;
                     })
        .def_prop_ro("unread",
                     [](const Reader& self) {
                         nb::dict found;
                         for (const auto& [field, count] : self.unread) found[nb::int_(field)] = count;
                         return found;
                     })
        .def_prop_ro("used_clocks", [](const Reader& self) { return self.used_clocks; })
        .def_prop_ro("primary_clock", [](const Reader& self) { return self.primary_clock; })
        .def_prop_ro("truncated_at", [](const Reader& self) { return self.truncated_at; })
        .def_prop_ro("packets", [](const Reader& self) { return self.packets; })
        .def_prop_ro(
            "bytes", [](const Reader& self) { return nb::make_tuple(self.decoded, self.padding, self.lost); },
            "Bytes of the file that were read, that are of other data sources, and that are lost.")
        .def(
            "arguments",
            [](const Reader& self, const Array<const int64_t>& first, const Array<const int64_t>& second) {
                if (first.size() != second.size()) throw nb::value_error("one length for both");
                nb::list found;
                std::string text;
                for (size_t i = 0; i < first.size(); ++i) {
                    const int64_t rows[] = {first.data()[i], second.data()[i]};
                    text.clear();
                    if (!render(self, rows, text)) throw nb::index_error("no such row");
                    PyObject* const made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
                    if (made == nullptr) throw nb::python_error();
                    found.append(nb::steal(made));
                }
                return found;
            },
            "first"_a.noconvert(), "second"_a.noconvert(),
            "Return annotations as JSON, for each two rows of the annotated events together; -1: none.")
        .def(
            "pick",
            [](const Reader& self, const std::string& name) {
                Picked found;
                {
                    nb::gil_scoped_release release;
                    pick(self, name, found);
                }
                nb::list texts;
                for (const std::string& text : found.texts) texts.append(bytes_of(text));
                return nb::make_tuple(to_numpy(std::move(found.row)), to_numpy(std::move(found.kind)),
                                      to_numpy(std::move(found.bits)), texts);
            },
            "name"_a, "Return the plain values of an annotation: row, kind, bits, and texts as UTF-8.");

    m.def(
        "perfetto_pair_slices",
        [](const Array<const int64_t>& ts, const Array<const int32_t>& track, const Array<const uint8_t>& type,
           const Array<const int32_t>& name, const Array<const int32_t>& category, int64_t tracks) {
            Pairs found;
            std::vector<int64_t> places;
            bool is_good = false;
            {
                nb::gil_scoped_release release;
                is_good = pair_slices({span_of(ts), span_of(track), span_of(type), span_of(name), span_of(category), tracks},
                                      found, places);
                found.finish();
            }
            if (!is_good) throw nb::value_error("arrays of one length, and tracks below their number");
            return nb::make_tuple(rows_of(found), to_numpy(std::move(places)));
        },
        "ts"_a.noconvert(), "track"_a.noconvert(), "type"_a.noconvert(), "name"_a.noconvert(), "category"_a.noconvert(),
        "tracks"_a,
        "Return rows as `PerfettoReader.take_rows` does, by track and time, and the place of each event.");
}
