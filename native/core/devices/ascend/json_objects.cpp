// How the scanner reads objects: by the keys of those before them.
#include <algorithm>
#include <bit>

#include "core/devices/ascend/json_scanner.hpp"
#include "core/devices/ascend/json_words.hpp"

namespace lanescope::ascend {

// The key of a field as it was written before, which is tried first, or any other: steps to its value, and gives its
// place among the fields.
bool Scanner::read_key(const Shape& shape, bool is_first, size_t* place) {
    for (size_t i = *place; i < fields_.size(); ++i) {
        const std::string_view lead = fields_[i].lead;
        if (static_cast<size_t>(end_ - at_) > lead.size() && is_same(at_, lead) && (lead[0] == '{') == is_first) {
            at_ += lead.size();
            *place = i;
            return true;
        }
    }
    const char* first = at_;
    if (!is_first) space();
    ++at_;  // the caller has seen the brace or the comma
    space();
    std::string_view key;
    if (!read_text(&key)) return false;
    space();
    if (*at_ != ':') return false;
    ++at_;
    space();
    size_t cell = 0;
    while (cell < shape.cells_.size() && shape.cells_[cell].key != key) ++cell;
    if (fields_.size() == kMostFields) {
        *place = kMostFields - 1;
        Field& last = fields_.back();
        last.stepped_over += stepped_over_ >> *place & 1;
        stepped_over_ &= ~(uint64_t{1} << *place);
        count_others(others_, last);
        fields_.pop_back();
    }
    Field field{{first, static_cast<size_t>(at_ - first)}, {}, 0, cell, {}, 0};
    field.key.begin = static_cast<size_t>(key.data() - begin_);
    field.key.end = field.key.begin + key.size();
    fields_.insert(fields_.begin() + static_cast<ptrdiff_t>(*place), field);
    for (Field& each : fields_) each.rest = {};  // the bits of those behind it have moved
    return true;
}

// Numbers as writers write them: in a list apart from each other by a comma and at most one space. False: `read_cell`
// decides, and the place is where it was.
bool Scanner::read_plain_cell(const Cell& cell, uint64_t* out, size_t stride) {
    const bool is_token = cell.kind == Kind::token;
    if (cell.kind != Kind::number && cell.kind != Kind::integer && !is_token) return false;
    const char* at = at_;
    if (cell.count == 1) {
        const bool is_text = is_token && *at == '"';
        at = plain_number(at + is_text, end_, out);
        if (at == nullptr || (is_text && *at != '"') || (!is_token && *out > cell.limit)) return false;
        at_ = at + is_text;
        return true;
    }
    if (is_token) return false;
    for (uint32_t i = 0; i < cell.count; ++i) {
        if (*at != (i == 0 ? '[' : ',')) return false;
        ++at;
        if (*at == ' ') ++at;
        uint64_t* const value = out + i * stride;
        const bool is_negative = *at == '-' && cell.kind == Kind::integer;
        at = plain_number(at + is_negative, end_, value);
        if (at == nullptr || *value > cell.limit) return false;
        if (is_negative) *value = -*value;
    }
    if (*at != ']') return false;
    at_ = at + 1;
    return true;
}

bool Scanner::read_field(const Shape& shape, size_t place, uint64_t* out, size_t stride, uint32_t* present) {
    Field& field = fields_[place];
    if (field.cell == shape.cells_.size()) {
        stepped_over_ |= uint64_t{1} << place;
        if (is_again(field)) return true;
        const char* first = at_;
        if (!skip_value()) return false;
        if (*first == '"' || *first == '[' || *first == '{') field.before = {first, static_cast<size_t>(at_ - first)};
        return true;
    }
    const uint32_t bit = uint32_t{1} << field.cell;
    if (*at_ == 'n') {
        *present &= ~bit;
        return skip_value();
    }
    *present |= bit;
    const Cell& cell = shape.cells_[field.cell];
    uint64_t* column = out + shape.column_of_[field.cell] * stride;
    if (cell.kind != Kind::text && cell.kind != Kind::words) {
        return read_plain_cell(cell, column, stride) || read_cell(cell, column, stride);
    }
    if (is_again(field)) {
        *column = field.value;
        return true;
    }
    const char* first = at_;
    if (!read_cell(cell, column, stride)) return false;
    if (cell.count == 1) {
        field.before = {first, static_cast<size_t>(at_ - first)};
        field.value = *column;
    }
    return true;
}

// Steps over a value that the one before it repeats.
bool Scanner::is_again(const Field& field) {
    const std::string_view before = field.before;
    if (before.empty() || static_cast<size_t>(end_ - at_) <= before.size() || !is_same(at_, before)) return false;
    at_ += before.size();
    return true;
}

// Steps over the rest of an object that repeats that of one before it, up to its brace.
bool Scanner::step_over_rest(size_t place) {
    if (place >= fields_.size()) return false;
    const std::string_view rest = fields_[place].rest;
    if (rest.empty() || static_cast<size_t>(end_ - at_) <= rest.size() || !is_same(at_, rest)) return false;
    stepped_over_ |= fields_[place].rest_fields;
    at_ += rest.size() - 1;
    return true;
}

// Of an object that was read to its end: what may be repeated as a whole.
void Scanner::keep_rests() {
    if (fields_.size() == kMostFields) return;  // a place is not one field's for good
    uint64_t fields = 0;
    for (size_t i = unused_.size(); i-- > 0;) {
        Field& field = fields_[unused_[i].place];
        fields |= uint64_t{1} << unused_[i].place;
        field.rest = {unused_[i].lead, static_cast<size_t>(at_ - unused_[i].lead)};
        field.rest_fields = fields;
    }
}

void Scanner::count_others(std::vector<OtherKey>& others, const Field& field) const {
    if (field.stepped_over == 0) return;
    const auto text = [this](Span span) { return std::string_view{begin_ + span.begin, span.end - span.begin}; };
    const size_t named = std::min(others.size(), kMaxOthers);
    size_t i = 0;
    while (i < named && text(others[i].name) != text(field.key)) ++i;
    if (i == others.size()) others.push_back({i == kMaxOthers ? Span{field.key.begin, field.key.begin} : field.key, 0});
    others[i].count += field.stepped_over;
}

std::vector<OtherKey> Scanner::others() const {
    std::vector<OtherKey> found = others_;
    for (const Field& field : fields_) count_others(found, field);
    std::sort(found.begin(), found.end(), [](const OtherKey& a, const OtherKey& b) { return a.name.begin < b.name.begin; });
    return found;
}

bool Scanner::read_object(const Shape& shape, uint64_t* out, size_t stride) {
    if (*at_ != '{') return false;
    uint32_t present = 0;
    stepped_over_ = 0;
    const char* const first = at_;
    ++at_;
    space();
    if (*at_ != '}') {
        at_ = first;
        size_t place = 0;
        unused_.clear();
        for (bool is_first = true;; is_first = false) {
            if (step_over_rest(place)) {
                unused_.clear();
                break;
            }
            const char* const lead = at_;
            if (!read_key(shape, is_first, &place)) return false;
            if (!read_field(shape, place, out, stride, &present)) return false;
            if (fields_[place].cell == shape.cells_.size()) unused_.push_back({place, lead});
            else unused_.clear();
            ++place;
            if (*at_ == ',') continue;
            const char* behind = at_;
            space();
            if (*at_ != ',') break;
            at_ = behind;
        }
    }
    out[Shape::kPresent * stride] = present;
    if (*at_++ != '}' || (present & shape.required_) != shape.required_) return false;
    keep_rests();
    for (; stepped_over_ != 0; stepped_over_ &= stepped_over_ - 1) {
        ++fields_[static_cast<size_t>(std::countr_zero(stepped_over_))].stepped_over;
    }
    return true;
}

}  // namespace lanescope::ascend
