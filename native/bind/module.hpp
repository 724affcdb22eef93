#pragma once
#include <nanobind/nanobind.h>

namespace lanescope::bind {
void aie(nanobind::module_& m);
void aie_walk(nanobind::module_& m);
void align(nanobind::module_& m);
void arrow(nanobind::module_& m);
void ascend(nanobind::module_& m);
void check(nanobind::module_& m);
void chrome(nanobind::module_& m);
void critical_path(nanobind::module_& m);
void ctf(nanobind::module_& m);
void ctf_program(nanobind::module_& m);
void cuda(nanobind::module_& m);
void cuda_declared(nanobind::module_& m);
void cuda_layouts(nanobind::module_& m);
void disk_memory(nanobind::module_& m);
void joins(nanobind::module_& m);
void lanes(nanobind::module_& m);
void foreign_event_pairs(nanobind::module_& m);
void foreign_lane_nesting(nanobind::module_& m);
void layout(nanobind::module_& m);
void levelzero(nanobind::module_& m);
void memory_limit(nanobind::module_& m);
void perfetto(nanobind::module_& m);
void perfetto_reader(nanobind::module_& m);
void profile(nanobind::module_& m);
void rows(nanobind::module_& m);
void source(nanobind::module_& m);
void trace_events(nanobind::module_& m);
}  // namespace lanescope::bind
