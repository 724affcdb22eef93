// The scanner of Level Zero texts.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "bind/arrays.hpp"
#include "bind/ctf_program.hpp"
#include "bind/module.hpp"
#include "core/devices/levelzero/payload_writer.hpp"
#include "core/devices/levelzero/text_scanner.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lanescope::levelzero;
namespace bind = lanescope::bind;
namespace ctf = lanescope::ctf;

namespace {

using CellRow = std::tuple<std::string, std::string, std::string, bool, uint32_t>;
using TargetRow = std::tuple<uint32_t, uint64_t>;

constexpr size_t kCallCells = 2;
constexpr uint64_t kMaxThreads = TextScanner::kMaxThreads;

template <class T, size_t N>
T named(const std::string& name, const char* const (&names)[N]) {
    for (size_t i = 0; i < N; ++i) {
        if (name == names[i]) return static_cast<T>(i);
    }
    throw nb::value_error("no such name");
}

Shape shape_of(const TextScanner& scanner, const std::vector<CellRow>& rows) {
    if (rows.size() > Shape::kMaxCells) throw nb::value_error("too many cells");
    static const char* const kinds[] = {"integer", "small", "flag", "text", "maybe_text", "integers", "refused",
                                        "nanoseconds", "count"};
    std::vector<Cell> cells;
    size_t lists = 0, groups = 0;
    for (const auto& [group, name, kind, is_required, texts] : rows) {
        cells.push_back({group, name, named<CellKind>(kind, kinds), is_required, texts});
        lists += cells.back().kind == CellKind::integers;
        groups += !group.empty();
        if (texts >= scanner.texts()) throw nb::value_error("no such texts");
    }
    if (lists > 1 || groups > Shape::kMaxGroups) throw nb::value_error("too many lists or groups");
    return Shape(std::move(cells));
}

Target target_of(TextScanner& scanner, const TargetRow& row, size_t cells) {
    const auto [sheet, constant] = row;
    if (sheet >= scanner.sheets().size() || scanner.sheets()[sheet].cells.size() != cells) {
        throw nb::value_error("no sheet of this size");
    }
    const bool is_exit = (constant & TextScanner::kExit) != 0;
    if ((constant & ~TextScanner::kExit) > INT32_MAX || (is_exit && cells != kCallCells)) {
        throw nb::value_error("no such constant");
    }
    return {sheet, static_cast<uint32_t>(constant), is_exit};
}

size_t cells_of(Conclusion conclusion) {
    switch (conclusion) {
        case Conclusion::unknown:
        case Conclusion::value:
        case Conclusion::nonzero:
            return 1;
        case Conclusion::allocation:
            return 2;
        case Conclusion::execution:
            return 3;
        case Conclusion::creation:
            break;  // as many as the entry has, and one
    }
    return 0;
}

nb::tuple call_of(const Open& call) {
    return nb::make_tuple(call.function, call.seq, call.ts, call.is_token, call.value, call.list);
}

std::vector<uint64_t> tokens_of(const std::vector<Open>& gone) {
    std::vector<uint64_t> tokens;
    for (const Open& call : gone) {
        if (call.is_token) tokens.push_back(call.value);
    }
    return tokens;
}

using LabelRows = std::vector<std::pair<uint64_t, std::string>>;
using MemberRows = std::vector<std::tuple<std::string, uint64_t, uint64_t>>;
using FieldRow = std::tuple<std::string, std::string, bind::Array<const uint64_t>, bind::Array<const uint64_t>, LabelRows,
                            MemberRows, nb::bytes>;
using LeafRow = std::tuple<std::string, std::string, size_t, LabelRows, MemberRows>;
using ProgramRow = std::tuple<bind::Rows<const int64_t>, bind::Rows<const uint64_t>, size_t, uint64_t, uint64_t, size_t>;

constexpr const char* kBeyond = "a field reaches beyond the data";

Field field_of(const std::string& name, const std::string& form, const LabelRows& labels, const MemberRows& members) {
    static const char* const forms[] = {"number", "signed_number", "text", "words32", "words64", "structure",
                                        "written"};
    Field field{name, named<Form>(form, forms), {}, {}};
    field.labels.insert(labels.begin(), labels.end());
    for (const auto& [member, offset, size] : members) field.members.push_back({member, offset, size});
    return field;
}

Field field_of(const FieldRow& row, size_t count) {
    const auto& [name, form, values, extents, labels, members, written] = row;
    if (values.size() != count || extents.size() != count) throw nb::value_error("columns of different lengths");
    Field field = field_of(name, form, labels, members);
    field.values = bind::span_of(values);
    field.extents = bind::span_of(extents);
    field.written = {written.c_str(), written.size()};
    return field;
}

// Keeps what its fields are views of.
struct Columns {
    Columns(std::vector<FieldRow> given, bind::Array<const uint8_t> bytes, size_t count)
        : rows(std::move(given)), data(std::move(bytes)), fields(made(rows, count), bind::span_of(data), count) {}

    // Of events of a stream; `packets` are the first byte and the first event of each packet.
    Columns(const std::vector<LeafRow>& given, bind::Array<const uint8_t> bytes, const ProgramRow& program,
            std::array<bind::Array<const uint64_t>, 3> where)
        : data(std::move(bytes)), places(std::move(where)),
          fields(made(given), leaves_of(given, std::get<5>(program)), bind::span_of(data), events(program)) {}

    static std::vector<Field> made(const std::vector<FieldRow>& rows, size_t count) {
        std::vector<Field> fields;
        for (const FieldRow& row : rows) fields.push_back(field_of(row, count));
        return fields;
    }
    static std::vector<Field> made(const std::vector<LeafRow>& rows) {
        std::vector<Field> fields;
        for (const auto& [name, form, leaf, labels, members] : rows) fields.push_back(field_of(name, form, labels, members));
        return fields;
    }
    static std::vector<size_t> leaves_of(const std::vector<LeafRow>& rows, size_t count) {
        std::vector<size_t> leaves;
        for (const LeafRow& row : rows) {
            if (std::get<2>(row) >= count) throw nb::value_error("no such leaf");
            leaves.push_back(std::get<2>(row));
        }
        return leaves;
    }
    EventPlaces events(const ProgramRow& program) const {
        const auto& [steps, choices, slots, packet, event, leaves] = program;
        const auto& [of_events, packets, first_events] = places;
        if (packets.size() != first_events.size()) throw nb::value_error("columns of different lengths");
        return {ctf::LeafReader(bind::span_of(data), bind::extraction_of(steps, choices, slots, packet, event), leaves),
                bind::span_of(of_events), bind::span_of(packets), bind::span_of(first_events)};
    }

    std::vector<FieldRow> rows;
    bind::Array<const uint8_t> data;
    std::array<bind::Array<const uint64_t>, 3> places;
    PayloadColumns fields;
};

}  // namespace

void lanescope::bind::levelzero(nb::module_& m) {
    nb::class_<Columns>(m, "LevelZeroColumns", "Fields of events of one kind.")
        .def(
            "__init__",
            [](Columns* self, std::vector<FieldRow> rows, bind::Array<const uint8_t> data, size_t count) {
                new (self) Columns(std::move(rows), std::move(data), count);
            },
            "fields"_a, "data"_a.noconvert(), "count"_a,
            "Fields are (name, form, values, extents, labels, members, written).")
        .def(
            "__init__",
            [](Columns* self, const std::vector<LeafRow>& rows, bind::Array<const uint8_t> data, const ProgramRow& program,
               bind::Array<const uint64_t> places, bind::Array<const uint64_t> packets,
               bind::Array<const uint64_t> first_events) {
                new (self) Columns(rows, std::move(data), program,
                                   {std::move(places), std::move(packets), std::move(first_events)});
            },
            "leaves"_a, "data"_a.noconvert(), "program"_a, "places"_a.noconvert(), "packets"_a.noconvert(),
            "first_events"_a.noconvert(),
            "Leaves are (name, form, number, labels, members), the program is (steps, choices, slots, packet, event, leaves); "
            "places are the first bits of events, packets the first bytes of packets.")
        .def("__len__", [](const Columns& self) { return self.fields.size(); })
        .def(
            "payload",
            [](Columns& self, size_t row) {
                std::string text;
                if (row >= self.fields.size()) throw nb::index_error("no such event");
                if (!self.fields.write(row, &text)) throw nb::value_error(kBeyond);
                return nb::bytes(text.data(), text.size());
            },
            "row"_a, "Write the fields of an event as a text has them.");
    nb::class_<TextScanner>(m, "LevelZeroScanner", "Takes the lines of a text that leave no doubt; stops before others.")
        .def(
            "__init__",
            [](TextScanner* self, uint64_t shrink, const std::vector<size_t>& sheets, size_t texts) {
                if (shrink == 0) throw nb::value_error("nothing is divided by 0");
                for (const size_t cells : sheets) {
                    if (cells > Shape::kMaxCells) throw nb::value_error("too many cells");
                }
                new (self) TextScanner(shrink, sheets, texts);
            },
            "shrink"_a, "sheets"_a, "texts"_a, "Cells of each sheet, and how many tables of texts there are.")
        .def(
            "add_context",
            [](TextScanner& self, nb::bytes context, uint64_t thread) {
                if (thread >= kMaxThreads) throw nb::value_error("no such thread");
                self.add_context({context.c_str(), context.size()}, thread);
            },
            "context"_a, "thread"_a)
        .def(
            "add_text",
            [](TextScanner& self, uint32_t table, const std::string& text, uint64_t code, bool is_success) {
                if (table >= self.texts() || code >= TextScanner::kSuccess) throw nb::value_error("no such text");
                self.add_text(table, text, code | (is_success ? TextScanner::kSuccess : 0));
            },
            "table"_a, "text"_a, "code"_a, "is_success"_a = false)
        .def(
            "add_record",
            [](TextScanner& self, nb::bytes name, const TargetRow& target, const std::vector<CellRow>& cells) {
                Kind kind;
                kind.role = Role::record;
                kind.shape = shape_of(self, cells);
                kind.target = target_of(self, target, cells.size());
                self.add_kind({name.c_str(), name.size()}, std::move(kind));
            },
            "name"_a, "target"_a, "cells"_a, "Cells are (group, name, kind, is_required, texts).")
        .def(
            "add_entry",
            [](TextScanner& self, nb::bytes name, const TargetRow& target, const std::vector<CellRow>& cells,
               int32_t function, bool always_appends, const std::optional<TargetRow>& append,
               const std::vector<CellRow>& append_cells, bool keeps_all) {
                Kind kind;
                kind.role = Role::entry;
                kind.target = target_of(self, target, kCallCells);
                kind.shape = shape_of(self, cells);
                kind.function = function;
                kind.is_remembered = !cells.empty();
                kind.keeps_all = keeps_all;
                if (kind.is_remembered && !keeps_all && function != Kind::kForgotten && !std::get<3>(cells[0])) {
                    throw nb::value_error("what is remembered has to be there");
                }
                kind.always_appends = always_appends;
                if (append && function == Kind::kForgotten) kind.append = target_of(self, *append, append_cells.size());
                kind.append_shape = shape_of(self, append_cells);
                self.add_kind({name.c_str(), name.size()}, std::move(kind));
            },
            "name"_a, "target"_a, "cells"_a, "function"_a, "always_appends"_a, "append"_a.none(), "append_cells"_a,
            "keeps_all"_a = false)
        .def(
            "add_launch",
            [](TextScanner& self, nb::bytes name, const TargetRow& target, const std::vector<CellRow>& cells,
               const TargetRow& launch) {
                Kind kind;
                kind.role = Role::launch;
                kind.target = target_of(self, target, kCallCells);
                kind.shape = shape_of(self, cells);
                if (cells.empty()) throw nb::value_error("a launch has a size");
                kind.append = target_of(self, launch, cells.size() - 1);
                self.add_kind({name.c_str(), name.size()}, std::move(kind));
            },
            "name"_a, "target"_a, "cells"_a, "launch"_a, "Cells are those of the launch, and last the size.")
        .def(
            "add_scope",
            [](TextScanner& self, nb::bytes name, uint32_t sheet, const std::vector<CellRow>& cells,
               const std::vector<uint64_t>& functions) {
                Kind kind;
                kind.role = Role::scope;
                kind.target = target_of(self, {sheet, 0}, kCallCells);
                kind.shape = shape_of(self, cells);
                if (cells.size() != 4 || !std::get<3>(cells[0])) throw nb::value_error("a scope has four cells");
                kind.functions = functions;
                self.add_kind({name.c_str(), name.size()}, std::move(kind));
            },
            "name"_a, "sheet"_a, "cells"_a, "functions"_a,
            "Cells are endpoint, two words, size; functions are by the code of the word, plus 1.")
        .def(
            "add_task",
            [](TextScanner& self, nb::bytes name, uint32_t sheet, const std::vector<CellRow>& cells, uint32_t lanes,
               bool is_end, bool is_strict) {
                Kind kind;
                kind.role = Role::task;
                kind.target = target_of(self, {sheet, 0}, kCallCells);
                kind.shape = shape_of(self, cells);
                if (cells.empty() || cells.size() > 2) throw nb::value_error("a task has a lane, and may have a name");
                for (const CellRow& cell : cells) {
                    if (!std::get<3>(cell)) throw nb::value_error("what a task has has to be there");
                }
                kind.lanes = lanes;
                kind.is_end = is_end;
                kind.is_strict = is_strict;
                self.add_kind({name.c_str(), name.size()}, std::move(kind));
            },
            "name"_a, "sheet"_a, "cells"_a, "lanes"_a, "is_end"_a, "is_strict"_a)
        .def(
            "add_lane",
            [](TextScanner& self, uint64_t thread, uint32_t kind, uint64_t number, uint64_t lane) {
                if (thread >= kMaxThreads || lane >= kMaxThreads) throw nb::value_error("no such thread");
                self.add_lane({thread, kind, number}, lane);
            },
            "thread"_a, "kind"_a, "number"_a, "lane"_a)
        .def(
            "add_name",
            [](TextScanner& self, uint64_t thread, uint32_t kind, uint64_t number, uint64_t code) {
                if (code >= TextScanner::kExit) throw nb::value_error("no such function");
                self.add_name({thread, kind, number}, code);
            },
            "thread"_a, "kind"_a, "number"_a, "code"_a)
        .def(
            "forget_names",
            [](TextScanner& self, uint32_t kind, uint64_t number) { self.forget_names(kind, number); }, "kind"_a,
            "number"_a)
        .def(
            "push",
            [](TextScanner& self, uint64_t thread, uint32_t kind, uint64_t number, uint64_t code) {
                Lane* lane = self.lane({thread, kind, number});
                if (lane == nullptr || code >= TextScanner::kExit) throw nb::value_error("no such lane or function");
                lane->open.push_back(code);
            },
            "thread"_a, "kind"_a, "number"_a, "code"_a, "Begin something on a lane.")
        .def(
            "pop",
            [](TextScanner& self, uint64_t thread, uint32_t kind, uint64_t number) -> std::optional<uint64_t> {
                Lane* lane = self.lane({thread, kind, number});
                if (lane == nullptr || lane->open.empty()) return std::nullopt;
                const uint64_t code = lane->open.back();
                lane->open.pop_back();
                return code;
            },
            "thread"_a, "kind"_a, "number"_a, "End what began last on a lane; return its function, if there is one.")
        .def(
            "add_exit",
            [](TextScanner& self, nb::bytes name, const TargetRow& target, const std::vector<CellRow>& cells,
               int32_t function, const std::string& conclusion, const std::optional<TargetRow>& made) {
                static const char* const names[] = {"unknown", "value", "nonzero", "allocation", "execution",
                                                    "creation"};
                Kind kind;
                kind.role = Role::exit;
                kind.target = target_of(self, target, kCallCells);
                kind.shape = shape_of(self, cells);
                kind.function = function;
                kind.conclusion = made ? named<Conclusion>(conclusion, names) : Conclusion::unknown;
                if (made && kind.conclusion == Conclusion::creation) {
                    const auto [sheet, constant] = *made;
                    if (constant > INT32_MAX) throw nb::value_error("no such constant");
                    if (sheet >= self.sheets().size() || self.sheets()[sheet].cells.size() == 0 ||
                        cells.size() < 2) {
                        throw nb::value_error("no sheet or handle of what is created");
                    }
                    kind.conclusion_target = {sheet, static_cast<uint32_t>(constant)};
                } else if (made) {
                    kind.conclusion_target = target_of(self, *made, cells_of(kind.conclusion));
                }
                self.add_kind({name.c_str(), name.size()}, std::move(kind));
            },
            "name"_a, "target"_a, "cells"_a, "function"_a, "conclusion"_a, "made"_a.none())
        .def(
            "scan",
            [](TextScanner& self, nb::bytes data, size_t place, uint64_t offset, uint64_t seq, int64_t last_ts,
               int64_t day_ns) {
                const std::string_view text{data.c_str(), data.size()};
                TextScanner::Progress progress{seq, last_ts, day_ns};
                {
                    nb::gil_scoped_release release;
                    place = self.scan(text, place, offset, &progress);
                }
                return nb::make_tuple(place, progress.seq, progress.last_ts, progress.first_ts,
                                      nb::make_tuple(progress.backwards.count, progress.backwards.offset));
            },
            "data"_a, "place"_a, "offset"_a, "seq"_a, "last_ts"_a, "day_ns"_a,
            "Take lines from a place on; return the place of the first that is left, and what became of those before.")
        .def(
            "take_records",
            [](TextScanner& self, std::vector<std::string> names, const bind::Array<const int32_t>& kinds,
               const std::optional<bind::Array<const int64_t>>& rows, const bind::Array<const int64_t>& seq,
               const bind::Array<const int64_t>& ts, const bind::Array<const int32_t>& threads,
               const std::vector<Columns*>& fields, std::vector<uint64_t> counts, size_t place) {
                TextScanner::Records records{std::move(names),     {},
                                             std::move(counts),    bind::span_of(kinds),
                                             {},                   bind::span_of(seq),
                                             bind::span_of(ts),    bind::span_of(threads)};
                for (Columns* each : fields) records.fields.push_back(&each->fields);
                if (records.fields.size() != records.names.size() || records.counts.size() != records.names.size()) {
                    throw nb::value_error("as many kinds as names");
                }
                if (rows) records.rows = bind::span_of(*rows);
                for (const size_t size : {rows ? rows->size() : seq.size(), seq.size(), ts.size(), threads.size()}) {
                    if (size != kinds.size()) throw nb::value_error("columns of different lengths");
                }
                std::optional<size_t> found;
                {
                    nb::gil_scoped_release release;
                    found = self.take_records(records, place);
                }
                if (!found) throw nb::value_error(kBeyond);
                return *found;
            },
            "names"_a, "kinds"_a.noconvert(), "rows"_a.noconvert().none(), "seq"_a.noconvert(), "ts"_a.noconvert(),
            "threads"_a.noconvert(), "fields"_a, "counts"_a, "place"_a,
            "Take records from a place on: of each its kind, its row among the fields of the kind (none: its place), position, "
            "time and thread; "
            "counts are of records by kind. Return the place of the first that is left.")
        .def(
            "add_call",
            [](TextScanner& self, uint32_t sheet, uint64_t seq, int64_t ts, uint64_t thread, uint32_t function,
               bool is_exit, std::optional<uint64_t> result) {
                if (thread >= kMaxThreads || function > INT32_MAX) throw nb::value_error("no such thread or function");
                const Target target = target_of(self, {sheet, function | (is_exit ? TextScanner::kExit : 0)}, kCallCells);
                self.add_call(target, seq, ts, thread, result);
            },
            "sheet"_a, "seq"_a, "ts"_a, "thread"_a, "function"_a, "is_exit"_a, "result"_a.none(),
            "Add a row of a call that was read elsewhere.")
        .def(
            "count", [](TextScanner& self, size_t sheet) { return self.sheets().at(sheet).count(); }, "sheet"_a)
        .def(
            "take",
            [](TextScanner& self, size_t sheet) {
                Sheet& from = self.sheets().at(sheet);
                nb::list columns;
                for (Growing<uint64_t>* column : {&from.seq, &from.ts}) columns.append(bind::to_numpy(*column));
                for (Growing<uint32_t>* column : {&from.thread, &from.constant, &from.present}) {
                    columns.append(bind::to_numpy(*column));
                }
                for (auto& column : from.cells) columns.append(bind::to_numpy(column));
                return nb::make_tuple(columns, bind::to_numpy(from.lists));
            },
            "sheet"_a, "Take the columns of a sheet out, [rows] each: uint64 position and time, uint32 thread, constant and bits of the "
            "cells that are there, uint64 cells; and its lists, uint64 [n].")
        .def(
            "enter",
            [](TextScanner& self, uint64_t thread, uint32_t function, uint64_t seq, int64_t ts, uint64_t token) {
                if (thread >= kMaxThreads) throw nb::value_error("no such thread");
                return tokens_of(self.enter(thread, {function, true, seq, ts, token, {}}));
            },
            "thread"_a, "function"_a, "seq"_a, "ts"_a, "token"_a, "Remember a call; return the tokens to forget.")
        .def(
            "find",
            [](const TextScanner& self, uint64_t thread, uint32_t function) -> nb::object {
                const Open* call = self.find(thread, function);
                return call == nullptr ? nb::object(nb::none()) : nb::object(call_of(*call));
            },
            "thread"_a, "function"_a)
        .def(
            "leave",
            [](TextScanner& self, uint64_t thread, uint32_t function) { return tokens_of(self.leave(thread, function)); },
            "thread"_a, "function"_a, "Forget a call and those inside of it; return the tokens to forget.")
        .def_prop_ro("open", [](const TextScanner& self) {
            nb::list found;
            for (size_t thread = 0; thread < self.open().size(); ++thread) {
                for (const Open& call : self.open()[thread]) found.append(nb::make_tuple(thread, call_of(call)));
            }
            return found;
        });
}
