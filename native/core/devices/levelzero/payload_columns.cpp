#include "core/devices/levelzero/payload_columns.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

namespace lanescope::levelzero {
namespace {

// As many fields as a reader of texts takes.
constexpr size_t kMostFields = 64;
constexpr std::array<std::string_view, 2> kMarks{"hSignalEvent", "hCommandList"};

void put(Values* values, int cell, uint64_t value) {
    values->cells[static_cast<size_t>(cell)] = value;
    values->present |= uint32_t{1} << cell;
}

bool is_plain(std::span<const uint8_t> bytes) {
    return std::ranges::all_of(bytes, [](uint8_t c) { return c >= 32 && c < 127 && c != '"' && c != '\\'; });
}

// Of a text that is looked at for a name and a colon: what follows a value, a name or a text is never a colon.
bool has_mark(std::string_view text, std::string_view mark) {
    for (size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + 1)) {
        if (text.substr(at + mark.size()).starts_with(": ")) return true;
    }
    return false;
}

// Whether the text of a value may contain a name and a colon.
bool may_contain(const Field& field, std::string_view mark) {
    const bool is_any_text = field.form == Form::text || field.form == Form::written;
    return is_any_text || std::ranges::any_of(field.members, [&](const Member& member) { return member.name.ends_with(mark); }) ||
           std::ranges::any_of(field.labels, [&](const auto& label) { return has_mark(label.second, mark); });
}

// Whether it does.
bool contains(const Field& field, std::span<const uint8_t> data, size_t row, std::string_view mark) {
    const uint64_t value = field.values[row], length = field.extents[row] - 1;
    std::span<const uint8_t> part;
    switch (field.form) {
        case Form::text:
            return within(data, value, length, 1, &part) && has_mark({reinterpret_cast<const char*>(part.data()), part.size()}, mark);
        case Form::written:
            return value <= field.written.size() && length <= field.written.size() - value &&
                   has_mark(field.written.substr(value, length), mark);
        case Form::structure:
            return std::ranges::any_of(field.members, [&](const Member& member) {
                return member.name.ends_with(mark) && member.offset <= length && member.size <= length - member.offset &&
                       member.size <= sizeof(uint64_t);
            });
        default: {
            const auto label = field.labels.find(value);
            return label != field.labels.end() && has_mark(label->second, mark);
        }
    }
}

}  // namespace

bool EventPlaces::read(size_t row) {
    // Events mostly come as they stand.
    const auto is_behind = [&](size_t next) { return next < first_events.size() && first_events[next] <= row; };
    if (packet >= packets.size() || first_events[packet] > row) packet = 0;
    while (is_behind(packet + 1)) ++packet;
    return row < places.size() && packet < packets.size() && leaves.read(places[row], 8 * packets[packet]);
}

PayloadColumns::PayloadColumns(std::vector<Field> fields, std::span<const uint8_t> data, size_t count)
    : fields_(std::move(fields)), data_(data), count_(count) {
    prepare();
}

PayloadColumns::PayloadColumns(std::vector<Field> fields, const std::vector<size_t>& leaves, std::span<const uint8_t> data,
                               EventPlaces events)
    : fields_(std::move(fields)), data_(data), count_(events.places.size()),
      events_(std::make_unique<EventPlaces>(std::move(events))) {
    for (size_t i = 0; i < fields_.size(); ++i) {
        fields_[i].values = events_->leaves.values().subspan(leaves[i], 1);
        fields_[i].extents = events_->leaves.extents().subspan(leaves[i], 1);
    }
    prepare();
}

size_t PayloadColumns::loaded(size_t row) {
    if (!events_) return row;
    if (row != loaded_) events_->read(row);
    loaded_ = row;
    return 0;
}

void PayloadColumns::prepare() {
    has_plain_names_ = fields_.size() <= kMostFields;
    for (const Field& field : fields_) {
        if (field.name.empty()) has_plain_names_ = false;
        for (const Field& other : fields_) {
            if (&field != &other && field.name == other.name) has_plain_names_ = false;
        }
        for (size_t mark = 0; mark < kMarks.size(); ++mark) {
            if (field.name.ends_with(kMarks[mark])) {
                marked_[mark].push_back(&field);
            } else if (may_contain(field, kMarks[mark])) {
                searched_[mark].push_back(&field);
            }
        }
    }
}

void PayloadColumns::forget() {
    for (Plan& plan : plans_) {
        for (Step& step : plan.steps) step.kept = {};
    }
}

bool PayloadColumns::has_fields(size_t row) {
    const size_t at = loaded(row);
    return std::ranges::any_of(fields_, [&](const Field& field) { return field.extents[at] != 0; });
}

bool PayloadColumns::mentions(size_t row, Mark mark) {
    const auto number = static_cast<size_t>(mark);
    const size_t at = loaded(row);
    for (const Field* field : marked_[number]) {
        if (field->extents[at] != 0) return true;
    }
    return std::ranges::any_of(searched_[number], [&](const Field* field) {
        return field->extents[at] != 0 && contains(*field, data_, at, kMarks[number]);
    });
}

PayloadColumns::Plan& PayloadColumns::plan_of(const Shape& shape) {
    for (Plan& plan : plans_) {
        if (plan.shape == shape.id()) return plan;
    }
    plans_.push_back(made(shape));
    return plans_.back();
}

PayloadColumns::Plan PayloadColumns::made(const Shape& shape) const {
    Plan plan{shape.id(), has_plain_names_, {}};
    const auto& cells = shape.cells_;
    for (size_t i = 0; i < cells.size(); ++i) {
        // No field is without a name: cells without one are never read.
        if (cells[i].name.empty()) continue;
        for (size_t other = 0; other < i; ++other) {
            if (cells[i].group == cells[other].group && cells[i].name == cells[other].name) plan.is_clear = false;
        }
    }
    for (const Field& field : fields_) {
        Step step{&field, kNone};
        for (size_t i = 0; i < cells.size(); ++i) {
            if (shape.group_of_[i] == 0 && cells[i].name == field.name) step.cell = static_cast<int>(i);
        }
        for (size_t group = 1; group < shape.groups_.size(); ++group) {
            if (shape.groups_[group] == field.name) step.group = static_cast<int>(group);
        }
        if (step.cell == kNone && step.group == kNone) continue;
        if (step.cell != kNone && step.group == kNone) make_direct(step, cells[static_cast<size_t>(step.cell)]);
        for (const Member& member : field.members) {
            for (size_t i = 0; i < cells.size(); ++i) {
                if (shape.group_of_[i] != step.group || cells[i].name != member.name) continue;
                step.parts.push_back({member.offset, member.size, static_cast<int>(i)});
            }
        }
        plan.steps.push_back(std::move(step));
    }
    return plan;
}

// Most fields are numbers that nothing but their range speaks against, as `take_number` has it.
void PayloadColumns::make_direct(Step& step, const Cell& cell) {
    const bool is_signed = step.field->form == Form::signed_number;
    if (!is_signed && step.field->form != Form::number) return;
    step.is_named = cell.kind == CellKind::text || cell.kind == CellKind::maybe_text;
    if (!step.field->labels.empty()) return;
    const uint64_t positive = ~uint64_t{0} >> 1;
    switch (cell.kind) {
        case CellKind::integer: step.most = is_signed ? positive : ~uint64_t{0}; break;
        case CellKind::small: step.most = positive; break;
        case CellKind::count: step.most = ~uint32_t{0}; break;
        case CellKind::flag: step.most = 1; break;
        default: return;
    }
    step.is_direct = true;
}

bool PayloadColumns::read(size_t row, const Shape& shape, const std::vector<TextCodes>& texts, Values* values) {
    Plan& plan = plan_of(shape);
    if (!plan.is_clear) return false;
    const size_t at = loaded(row);
    values->present = 0;
    values->list.clear();
    for (Step& step : plan.steps) {
        if (step.field->extents[at] == 0) continue;
        if (step.is_direct) {
            const uint64_t value = step.field->values[at];
            if (value > step.most) return false;
            put(values, step.cell, value);
            continue;
        }
        if (step.is_named) {
            const uint64_t value = step.field->values[at];
            const Kept& kept = step.kept_of(value);
            if (kept.is_known && kept.value == value) {
                put(values, step.cell, kept.code);
                continue;
            }
        }
        if (!take(step, at, shape, texts, values)) return false;
    }
    return (values->present & shape.required_[0]) == shape.required_[0];
}

bool PayloadColumns::take(Step& step, size_t row, const Shape& shape, const std::vector<TextCodes>& texts,
                          Values* values) const {
    const Field& field = *step.field;
    if ((step.group != kNone) != (field.form == Form::structure) || (step.cell == kNone) != (field.form == Form::structure)) {
        return false;
    }
    if (field.form == Form::structure) return take_structure(step, row, shape, values);
    const Cell& cell = shape.cells_[static_cast<size_t>(step.cell)];
    const uint64_t value = field.values[row];
    std::span<const uint8_t> part;
    switch (field.form) {
        case Form::signed_number:
            if (value >> 63 != 0) return false;
            [[fallthrough]];
        case Form::number:
            return take_number(step, value, cell, texts, values);
        case Form::text:
            if (!within(data_, value, field.extents[row] - 1, 1, &part) || !is_plain(part)) return false;
            return take_text(step, {reinterpret_cast<const char*>(part.data()), part.size()}, cell, texts, values);
        case Form::words32:
            return take_words<uint32_t>(step, row, cell, values);
        case Form::words64:
            return take_words<uint64_t>(step, row, cell, values);
        case Form::written: {
            uint64_t number = 0;
            if (cell.kind != CellKind::nanoseconds || value > field.written.size()) return false;
            if (!read_nanoseconds(field.written.substr(value, field.extents[row] - 1), &number)) return false;
            put(values, step.cell, number);
            return true;
        }
        case Form::structure:
            return false;
    }
    return false;
}

bool PayloadColumns::take_number(Step& step, uint64_t value, const Cell& cell, const std::vector<TextCodes>& texts,
                                 Values* values) const {
    const auto& labels = step.field->labels;
    if (cell.kind == CellKind::text || cell.kind == CellKind::maybe_text) {
        Kept& kept = step.kept_of(value);
        if (!kept.is_known || kept.value != value) {
            std::array<char, 24> digits;
            std::string_view text;
            if (const auto label = labels.find(value); label != labels.end()) {
                text = label->second;
            } else {
                text = {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
            }
            const uint64_t* code = text.empty() ? nullptr : texts[cell.texts].find(text);
            if (code == nullptr) return false;
            kept = {value, *code, true};
        }
        put(values, step.cell, kept.code);
        return true;
    }
    if (!labels.empty() && labels.contains(value)) return false;
    switch (cell.kind) {
        case CellKind::integer:
            break;
        case CellKind::small:
            if (value >> 63 != 0) return false;
            break;
        case CellKind::count:
            if (value >> 32 != 0) return false;
            break;
        case CellKind::flag:
            if (value > 1) return false;
            break;
        case CellKind::integers:
            values->list.push_back(value);
            value = 1;
            break;
        default:
            return false;
    }
    put(values, step.cell, value);
    return true;
}

bool PayloadColumns::take_text(const Step& step, std::string_view text, const Cell& cell, const std::vector<TextCodes>& texts,
                               Values* values) const {
    if (cell.kind != CellKind::text && cell.kind != CellKind::maybe_text) return false;
    if (text.empty()) return cell.kind == CellKind::maybe_text;
    const uint64_t* code = texts[cell.texts].find(text);
    if (code == nullptr) return false;
    put(values, step.cell, *code);
    return true;
}

template <class T>
bool PayloadColumns::take_words(const Step& step, size_t row, const Cell& cell, Values* values) const {
    const Field& field = *step.field;
    const uint64_t bit = field.values[row];
    std::span<const uint8_t> part;
    if (cell.kind != CellKind::integers || bit % 8 != 0) return false;
    if (!within(data_, bit / 8, field.extents[row] - 1, sizeof(T), &part)) return false;
    for (size_t at = 0; at < part.size(); at += sizeof(T)) {
        T value;
        std::memcpy(&value, part.data() + at, sizeof value);
        values->list.push_back(value);
    }
    put(values, step.cell, values->list.size());
    return true;
}

bool PayloadColumns::take_structure(const Step& step, size_t row, const Shape& shape, Values* values) const {
    const Field& field = *step.field;
    const uint64_t bit = field.values[row], size = field.extents[row] - 1;
    std::span<const uint8_t> part;
    if (bit % 8 != 0 || !within(data_, bit / 8, size, 1, &part)) return false;
    // One without any member is as good as none.
    bool is_empty = true;
    const auto lies_within = [&](const auto& member) {
        return member.offset <= size && member.size <= size - member.offset && member.size <= sizeof(uint64_t);
    };
    for (const Member& member : field.members) is_empty = is_empty && !lies_within(member);
    if (is_empty) return true;
    for (const Part& each : step.parts) {
        if (!lies_within(each)) continue;
        const Cell& cell = shape.cells_[static_cast<size_t>(each.cell)];
        uint64_t value = 0;
        std::memcpy(&value, part.data() + each.offset, each.size);
        const unsigned most = cell.kind == CellKind::small ? 63 : cell.kind == CellKind::count ? 32 : 0;
        if (cell.kind != CellKind::integer && (most == 0 || value >> most != 0)) return false;
        put(values, each.cell, value);
    }
    const uint32_t required = shape.required_[static_cast<size_t>(step.group)];
    return (values->present & required) == required;
}

}  // namespace lanescope::levelzero
