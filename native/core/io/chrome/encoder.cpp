#include "core/io/chrome/encoder.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lanescope::chrome {
namespace {

using perfetto::FlowEnd;
using perfetto::ValueType;

constexpr int64_t kExactDouble = int64_t{1} << 53;

void append_json(std::string& out, std::span<const uint8_t> utf8) {
    static constexpr char kHex[] = "0123456789abcdef";
    out += '"';
    for (const uint8_t c : utf8) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += static_cast<char>(c);
        } else if (c < 0x20 || c == 0x7F) {
            out += "\\u00";
            out += kHex[c >> 4];
            out += kHex[c & 15];
        } else {
            out += static_cast<char>(c);
        }
    }
    out += '"';
}

std::vector<std::string> as_json(const Texts& texts) {
    std::vector<std::string> out(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) append_json(out[i], texts[i]);
    return out;
}

bool outside(int64_t index, size_t size) { return index < 0 || static_cast<size_t>(index) >= size; }

bool valid_range(int64_t from, int64_t to, size_t size) {
    return from >= 0 && from <= to && static_cast<size_t>(to) <= size;
}

}  // namespace

Encoder::Encoder(Events spans, Events points, Samples samples, const Texts& names, const Texts& categories,
                 const Texts& flow_kinds, std::span<const int32_t> flow_kind, std::vector<Row> rows, int64_t base,
                 uint64_t flow_base)
    : spans_(std::move(spans)),
      points_(std::move(points)),
      samples_(samples),
      names_(as_json(names)),
      categories_(as_json(categories)),
      flow_kinds_(as_json(flow_kinds)),
      flow_kind_(flow_kind),
      rows_(std::move(rows)),
      base_(base),
      flow_base_(flow_base) {
    for (const Row& row : rows_) {
        if (!valid_range(row.spans_from, row.spans_to, spans_.size()) ||
            !valid_range(row.points_from, row.points_to, points_.size()) ||
            !valid_range(row.samples_from, row.samples_to, samples_.order.size())) {
            status_ = Status::bad_index;
        }
    }
}

std::span<const char> Encoder::fill(size_t target) {
    out_.clear();
    while (status_ == Status::ok && row_ < rows_.size() && out_.size() < target) {
        const Row& row = rows_[row_];
        if (!inside_) start_row(row);
        for (; next_span_ < row.spans_to && out_.size() < target && status_ == Status::ok; ++next_span_) {
            span(static_cast<size_t>(next_span_));
        }
        for (; next_point_ < row.points_to && out_.size() < target && status_ == Status::ok; ++next_point_) {
            point(static_cast<size_t>(next_point_));
        }
        for (; next_sample_ < row.samples_to && out_.size() < target && status_ == Status::ok; ++next_sample_) {
            sample(static_cast<size_t>(next_sample_));
        }
        if (next_span_ == row.spans_to && next_point_ == row.points_to && next_sample_ == row.samples_to) {
            inside_ = false;
            ++row_;
        }
    }
    if (status_ != Status::ok) return {};
    return {out_.data(), out_.size()};
}

void Encoder::start_row(const Row& row) {
    inside_ = true;
    next_span_ = row.spans_from;
    next_point_ = row.points_from;
    next_sample_ = row.samples_from;
    place_ = ",\"pid\":" + std::to_string(row.process) + ",\"tid\":" + std::to_string(row.thread) + ",\"ts\":";
    head_complete_ = ",\n{\"ph\":\"X\"" + place_;
    head_begin_ = ",\n{\"ph\":\"B\"" + place_;
    head_instant_ = ",\n{\"ph\":\"i\",\"s\":\"t\"" + place_;
    head_counter_ = ",\n{\"ph\":\"C\",\"name\":";
    append_json(head_counter_, {reinterpret_cast<const uint8_t*>(row.counter.data()), row.counter.size()});
    head_counter_ += place_;
}

void Encoder::span(size_t position) {
    const int64_t index = spans_.index(position);
    if (outside(index, spans_.name.size())) return void(status_ = Status::bad_index);
    const int64_t begin = spans_.begin[position];
    const int64_t end = spans_.end_at(position);
    const bool closed = end != layout::kForever;
    literal(closed ? head_complete_ : head_begin_);
    micros(begin);
    if (closed) {
        if (end < begin) return void(status_ = Status::bad_time);
        literal(",\"dur\":");
        micros(end - begin + base_);
    }
    name_and_category(spans_, static_cast<size_t>(index));
    arguments(spans_, index);
    out_ += '}';
    flows(spans_, index, begin, closed ? end : begin);
}

void Encoder::point(size_t position) {
    const int64_t index = points_.index(position);
    if (outside(index, points_.name.size())) return void(status_ = Status::bad_index);
    literal(head_instant_);
    micros(points_.begin[position]);
    name_and_category(points_, static_cast<size_t>(index));
    arguments(points_, index);
    out_ += '}';
    flows(points_, index, points_.begin[position], points_.begin[position]);
}

void Encoder::sample(size_t position) {
    const int64_t index = samples_.order[position];
    if (outside(index, samples_.value.size())) return void(status_ = Status::bad_index);
    literal(head_counter_);
    micros(samples_.ts[position]);
    literal(",\"args\":{\"value\":");
    char digits[32];
    const double sampled = samples_.value[static_cast<size_t>(index)];
    // JSON has no infinities; a counter cannot show them either.
    const auto end = std::isfinite(sampled) ? std::to_chars(digits, digits + sizeof digits, sampled).ptr : digits;
    literal(end == digits ? std::string_view("null") : std::string_view(digits, static_cast<size_t>(end - digits)));
    literal("}}");
}

void Encoder::flows(const Events& events, int64_t index, int64_t begin, int64_t end) {
    if (events.flow_first.empty()) return;
    const auto i = static_cast<size_t>(index);
    const size_t from = events.flow_first[i];
    const size_t to = events.flow_first[i + 1];
    if (from > to || to > events.flow_id.size()) return void(status_ = Status::bad_index);
    for (size_t at = from; at < to; ++at) {
        const uint64_t id = events.flow_id[at];
        if (outside(static_cast<int64_t>(id), flow_kind_.size()) ||
            outside(flow_kind_[static_cast<size_t>(id)], flow_kinds_.size())) {
            return void(status_ = Status::bad_index);
        }
        const auto role = static_cast<FlowEnd>(events.flow_end[at]);
        literal(role == FlowEnd::leaves_begin ? ",\n{\"ph\":\"s\"" : ",\n{\"ph\":\"f\",\"bp\":\"e\"");
        literal(place_);
        // A reader binds to the slice that is open at that time, so the end of a slice is too late.
        micros(role == FlowEnd::enters_end ? std::max(begin, end - 1) : begin);
        literal(",\"id\":");
        literal(std::to_string(id + flow_base_));
        literal(",\"cat\":\"flow\",\"name\":");
        literal(flow_kinds_[static_cast<size_t>(flow_kind_[static_cast<size_t>(id)])]);
        out_ += '}';
    }
}

void Encoder::arguments(const Events& events, int64_t index) {
    bool is_first = true;
    for (const Argument& each : events.arguments) {
        const size_t before = out_.size();
        literal(is_first ? ",\"args\":{" : ",");
        append_json(out_, each.name);
        out_ += ':';
        if (argument(each, index)) {
            is_first = false;
        } else {
            out_.resize(before);
        }
    }
    if (!is_first) out_ += '}';
}

bool Encoder::argument(const Argument& argument, int64_t index) {
    const int64_t k = index - argument.base;
    if (k < 0 || k >= argument.count) return false;
    if (argument.first.empty()) return value(argument, k);
    const int64_t from = argument.first[static_cast<size_t>(k)];
    const int64_t to = argument.first[static_cast<size_t>(k) + 1];
    if (!valid_range(from, to, argument.row.empty() ? argument.rows : argument.row.size())) {
        status_ = Status::bad_index;
        return false;
    }
    if (to - from == 1) return value(argument, from);
    const size_t before = out_.size();  // several rows of a table become an array
    for (int64_t position = from; position < to; ++position) {
        const size_t mark = out_.size();
        out_ += mark == before ? '[' : ',';
        if (!value(argument, position)) out_.resize(mark);
    }
    if (out_.size() == before) return false;
    out_ += ']';
    return true;
}

bool Encoder::value(const Argument& argument, int64_t position) {
    const int64_t row = argument.row.empty() ? position : argument.row[static_cast<size_t>(position)];
    if (outside(row, argument.rows)) {
        status_ = Status::bad_index;
        return false;
    }
    const auto i = static_cast<size_t>(row);
    if (!argument.known.empty() && argument.known[i] == 0) return false;
    const auto read = [&]<class T>(T) { return static_cast<const T*>(argument.values)[i]; };
    const auto number = [&](auto x, bool quoted) {
        char digits[32];
        const auto end = std::to_chars(digits, digits + sizeof digits, x).ptr;
        if (quoted) out_ += '"';
        out_.append(digits, static_cast<size_t>(end - digits));
        if (quoted) out_ += '"';
    };
    switch (argument.type) {
        case ValueType::i64: {
            const auto x = read(int64_t{});
            number(x, x > kExactDouble || x < -kExactDouble);
            break;
        }
        case ValueType::i32: number(read(int32_t{}), false); break;
        case ValueType::u64: number(read(uint64_t{}), true); break;  // ids: readers hold numbers as doubles
        case ValueType::u32: number(read(uint32_t{}), false); break;
        case ValueType::u16: number(static_cast<uint32_t>(read(uint16_t{})), false); break;
        case ValueType::u8: number(static_cast<uint32_t>(read(uint8_t{})), false); break;
        case ValueType::f64: {
            const auto x = read(double{});
            number(x, !std::isfinite(x));
            break;
        }
        case ValueType::boolean: literal(read(uint8_t{}) != 0 ? "true" : "false"); break;
        case ValueType::text: {
            const auto code = read(int32_t{});
            if (outside(code, argument.texts.size())) {
                status_ = Status::bad_index;
                return false;
            }
            append_json(out_, argument.texts[static_cast<size_t>(code)]);
            break;
        }
        case ValueType::utf8: append_json(out_, argument.texts[i]); break;
    }
    return true;
}

void Encoder::literal(std::string_view text) { out_.append(text); }

void Encoder::micros(int64_t nanos) {
    nanos -= base_;
    if (nanos < 0) return void(status_ = Status::bad_time);
    char digits[32];
    const auto whole = static_cast<uint64_t>(nanos) / 1000;
    const auto rest = static_cast<uint32_t>(static_cast<uint64_t>(nanos) % 1000);
    char* end = std::to_chars(digits, digits + sizeof digits - 4, whole).ptr;
    if (rest != 0) {
        *end++ = '.';
        *end++ = static_cast<char>('0' + rest / 100);
        *end++ = static_cast<char>('0' + rest / 10 % 10);
        *end++ = static_cast<char>('0' + rest % 10);
    }
    out_.append(digits, static_cast<size_t>(end - digits));
}

void Encoder::name_and_category(const Events& events, size_t i) {
    const int32_t name = events.name[i];
    if (outside(name, names_.size())) return void(status_ = Status::bad_index);
    literal(",\"name\":");
    literal(names_[static_cast<size_t>(name)]);
    if (events.category.empty()) return;
    const int32_t category = events.category_at(i);
    if (outside(category, categories_.size())) return void(status_ = Status::bad_index);
    if (categories_[static_cast<size_t>(category)].size() == 2) return;  // only its quotes
    literal(",\"cat\":");
    literal(categories_[static_cast<size_t>(category)]);
}

}  // namespace lanescope::chrome
