// Path reconstruction of the AIE family: the table of transitions and its inner loop.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include "bind/arrays.hpp"
#include "core/devices/aie/path_walk.hpp"
#include "bind/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;
namespace aie = lanescope::aie;

using lanescope::bind::Array;
using lanescope::bind::span_of;

void lanescope::bind::aie_walk(nb::module_& m) {
    nb::class_<aie::Transitions>(m, "AieTransitions", "Transitions by state and symbol, filled in while they are followed.")
        .def(nb::init<int64_t>(), "wrap"_a = aie::kIsWrapped)
        .def("clear", &aie::Transitions::clear, "Forget all.")
        .def(
            "add",
            [](aie::Transitions& self, int32_t state, int32_t symbol, int32_t entry, int32_t next, int64_t shift,
               int64_t least) { self.add(state, symbol, {entry, next, shift, least}); },
            "state"_a, "symbol"_a, "entry"_a, "next"_a, "shift"_a = 0, "least"_a = 0,
            "Add one: its number, the state after it (negative: none), what it adds to the register of loop counts, and "
            "the least register that it holds for.")
        .def(
            "follow",
            [](const aie::Transitions& self, int32_t state, Array<const int32_t> symbols, Array<int32_t> entries) {
                if (entries.size() < symbols.size()) throw nb::value_error("output too short");
                nb::gil_scoped_release release;
                const size_t done = self.follow(state, span_of(symbols), span_of(entries));
                return std::make_tuple(done, state);
            },
            "state"_a, "symbols"_a.noconvert(), "entries"_a.noconvert(),
            "Follow symbols as far as there are transitions; return how many, and the state.")
        .def(
            "walk",
            [](const aie::Transitions& self, Array<const uint8_t> kind, Array<const int64_t> value,
               Array<const int64_t> count, int64_t row, int64_t taken, int32_t state, int64_t reg,
               Array<int32_t> entries, Array<int64_t> registers, size_t steps) {
                if (value.size() != kind.size() || count.size() != kind.size() || registers.size() != entries.size()) {
                    throw nb::value_error("arrays of different lengths");
                }
                if (row < 0 || static_cast<size_t>(row) > kind.size() || taken < 0 || steps > entries.size()) {
                    throw nb::value_error("no such position");
                }
                nb::gil_scoped_release release;
                aie::Position at{row, taken, state, reg};
                const aie::StopReason why = self.walk(at, span_of(kind), span_of(value), span_of(count), span_of(entries),
                                                span_of(registers), steps);
                return std::make_tuple(static_cast<int32_t>(why), at.row, at.taken, at.state, at.reg, steps);
            },
            "kind"_a.noconvert(), "value"_a.noconvert(), "count"_a.noconvert(), "row"_a, "taken"_a, "state"_a, "reg"_a,
            "entries"_a.noconvert(), "registers"_a.noconvert(), "steps"_a,
            "Follow rows of execution mode from a position. Return why it halts (done, full, missing, dead, small, odd), "
            "the row, how often that was taken, the state, the register, and the steps that are written.");
}
