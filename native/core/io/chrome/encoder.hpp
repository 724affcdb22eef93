// Chrome trace events (JSON) from placed slices, instants and counter samples.
//
// One JSON object a line. Times are microseconds with three decimals, so nanoseconds come through exactly.
// Source: google/perfetto, docs/getting-started/other-formats.md; the traps of its importer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/io/perfetto/encoder.hpp"

namespace lanescope::chrome {

using perfetto::Argument;
using perfetto::Events;
using perfetto::Samples;
using perfetto::Status;
using perfetto::Texts;

// One row of the drawing: a thread of a process, and the ranges of the three orders that lie on it.
struct Row {
    uint32_t process = 0;
    uint32_t thread = 0;
    std::string counter;  // name of its samples
    int64_t spans_from = 0, spans_to = 0;
    int64_t points_from = 0, points_to = 0;
    int64_t samples_from = 0, samples_to = 0;
};

class Encoder {
public:
    // `base` is taken off every time: doubles hold microseconds to the nanosecond only up to 2^53 ns. Encoders that write
    // one file between them have flows of their own: `flow_base` is added to the ids.
    Encoder(Events spans, Events points, Samples samples, const Texts& names, const Texts& categories,
            const Texts& flow_kinds, std::span<const int32_t> flow_kind, std::vector<Row> rows, int64_t base,
            uint64_t flow_base = 0);

    // Encode whole events, each as `,\n{...}`, until about `target` bytes are ready; nothing at the end, or when
    // status() is not ok. The bytes stay valid until the next call.
    std::span<const char> fill(size_t target);

    Status status() const { return status_; }

private:
    void start_row(const Row& row);
    void span(size_t position);
    void point(size_t position);
    void sample(size_t position);
    void flows(const Events& events, int64_t index, int64_t begin, int64_t end);
    void arguments(const Events& events, int64_t index);
    bool argument(const Argument& argument, int64_t index);
    bool value(const Argument& argument, int64_t position);

    void literal(std::string_view text);
    void micros(int64_t nanos);
    void text(std::span<const uint8_t> utf8);
    void name_and_category(const Events& events, size_t i);

    Events spans_;
    Events points_;
    Samples samples_;
    std::vector<std::string> names_;  // as JSON, quotes included
    std::vector<std::string> categories_;
    std::vector<std::string> flow_kinds_;
    std::span<const int32_t> flow_kind_;  // by flow id
    std::vector<Row> rows_;
    int64_t base_;
    uint64_t flow_base_;
    Status status_ = Status::ok;

    size_t row_ = 0;
    int64_t next_span_ = 0, next_point_ = 0, next_sample_ = 0;
    bool inside_ = false;
    std::string head_complete_, head_begin_, head_instant_, head_counter_, place_;
    std::string out_;
};

}  // namespace lanescope::chrome
