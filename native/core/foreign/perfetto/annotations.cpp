#include "core/foreign/perfetto/annotations.hpp"

#include <charconv>
#include <cmath>

#include "core/foreign/perfetto/fields.hpp"

namespace lanescope::foreign_perfetto {
namespace {

constexpr char kHex[] = "0123456789abcdef";

void put_text(std::string_view text, std::string& out) {
    out += '"';
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20) {
            out += "\\u00";
            out += kHex[byte >> 4];
            out += kHex[byte & 15];
        } else {
            out += c;
        }
    }
    out += '"';
}

template <class T>
void put_number(T value, std::string& out) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    out.append(text, end);
}

void put_double(uint64_t bits, std::string& out) {
    const auto value = std::bit_cast<double>(bits);
    if (!std::isfinite(value)) {  // JSON has no such numbers
        put_text(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity", out);
        return;
    }
    put_number(value, out);
}

class Renderer {
public:
    Renderer(const Reader& reader, const Generation* generation, std::string& out)
        : reader_(reader), generation_(generation), out_(out) {}

    // `"name":value`; nothing without a value.
    void member(ByteSpan body, int depth, bool& is_first) {
        const size_t mark = out_.size();
        if (!is_first) out_ += ',';
        put_text(name_of(body), out_);
        out_ += ':';
        if (value(body, depth)) {
            is_first = false;
        } else {
            out_.resize(mark);
        }
    }

    std::string_view name_of(ByteSpan body) const {
        Fields fields(body);
        Field field;
        std::string_view found;
        while (fields.next(field)) {
            if (field.number == kValueName && field.is_bytes()) found = text_of(field.bytes);
            if (field.number == kValueNameIid && field.is_varint()) found = known(field.value, true, "");
        }
        return found;
    }

    std::string_view known(uint64_t iid, bool is_name, std::string_view otherwise) const {
        if (generation_ == nullptr) return otherwise;
        const int32_t code = (is_name ? generation_->names : generation_->values).find(iid);
        return code < 0 ? otherwise : reader_.texts[static_cast<size_t>(code)];
    }

private:
    bool value(ByteSpan body, int depth) {
        Fields fields(body);
        Field field;
        bool is_dict = false, is_array = false, is_done = false;
        while (!is_done && fields.next(field)) {
            switch (field.number) {
                case kBool: out_ += field.value != 0 ? "true" : "false"; is_done = true; break;
                case kUnsigned: put_number(field.value, out_); is_done = true; break;
                case kSigned: put_number(static_cast<int64_t>(field.value), out_); is_done = true; break;
                case kDouble: put_double(field.value, out_); is_done = true; break;
                case kString:
                case kLegacyJson: put_text(text_of(field.bytes), out_); is_done = true; break;
                case kStringIid: put_text(known(field.value, false, "(unknown text)"), out_); is_done = true; break;
                case kPointer: {
                    char text[20] = "0x";
                    const auto end = std::to_chars(text + 2, text + sizeof text, field.value, 16).ptr;
                    put_text({text, static_cast<size_t>(end - text)}, out_);
                    is_done = true;
                    break;
                }
                case kNested: is_done = field.is_bytes() && nested(field.bytes, depth + 1); break;
                case kProtoValue:
                    out_ += '"';
                    for (const uint8_t byte : field.bytes) {
                        out_ += kHex[byte >> 4];
                        out_ += kHex[byte & 15];
                    }
                    out_ += '"';
                    is_done = true;
                    break;
                case kDictEntry: is_dict = true; break;
                case kArrayValue: is_array = true; break;
                default: break;
            }
        }
        if (is_done) return true;
        if (!is_dict && !is_array) return false;
        if (depth >= kMostNested) {
            put_text("...", out_);
            return true;
        }
        out_ += is_dict ? '{' : '[';
        Fields again(body);
        bool is_first = true;
        while (again.next(field)) {
            if (is_dict && field.number == kDictEntry && field.is_bytes()) member(field.bytes, depth + 1, is_first);
            if (!is_dict && field.number == kArrayValue && field.is_bytes()) {
                if (!is_first) out_ += ',';
                is_first = false;
                if (!value(field.bytes, depth + 1)) out_ += "null";
            }
        }
        out_ += is_dict ? '}' : ']';
        return true;
    }

    // The older form of values below others.
    bool nested(ByteSpan body, int depth) {
        if (depth >= kMostNested) {
            put_text("...", out_);
            return true;
        }
        Fields fields(body);
        Field field;
        std::vector<ByteSpan> keys, values, elements;
        while (fields.next(field)) {
            switch (field.number) {
                case kNestedKey: keys.push_back(field.bytes); break;
                case kNestedDict: values.push_back(field.bytes); break;
                case kNestedArray: elements.push_back(field.bytes); break;
                case kNestedInt: put_number(static_cast<int64_t>(field.value), out_); return true;
                case kNestedDouble: put_double(field.value, out_); return true;
                case kNestedBool: out_ += field.value != 0 ? "true" : "false"; return true;
                case kNestedString: put_text(text_of(field.bytes), out_); return true;
                default: break;
            }
        }
        const bool is_dict = !keys.empty();
        out_ += is_dict ? '{' : '[';
        const size_t count = is_dict ? std::min(keys.size(), values.size()) : elements.size();
        for (size_t i = 0; i < count; ++i) {
            if (i != 0) out_ += ',';
            if (is_dict) {
                put_text(text_of(keys[i]), out_);
                out_ += ':';
            }
            if (!nested(is_dict ? values[i] : elements[i], depth + 1)) out_ += "null";
        }
        out_ += is_dict ? '}' : ']';
        return true;
    }

    const Reader& reader_;
    const Generation* generation_;
    std::string& out_;
};

const Generation* generation_of(const Reader& reader, size_t row) {
    const int32_t generation = reader.annotated.generation[row];
    return generation < 0 ? nullptr : &reader.generations[static_cast<size_t>(generation)];
}

// Call with each annotation of a row.
template <class Each>
void each_of(const Reader& reader, size_t row, const Each& each) {
    const Annotated& rows = reader.annotated;
    const size_t begin = rows.offset[row];
    const size_t end = row + 1 < rows.offset.size() ? rows.offset[row + 1] : reader.arena.size();
    Fields fields({reader.arena.data() + begin, end - begin});
    Field field;
    while (fields.next(field)) each(field.bytes);
}

}  // namespace

namespace {

// Whether a text has NUL, or bytes that are not UTF-8. Source: RFC 3629, section 4.
bool is_damaged(ByteSpan text) {
    for (size_t i = 0; i < text.size();) {
        const uint8_t first = text[i];
        if (first == 0) return true;
        const size_t behind = first < 0x80 ? 0 : first < 0xC2 ? 4 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : first < 0xF5 ? 3 : 4;
        if (behind == 4 || i + behind >= text.size()) return true;
        uint32_t code = behind == 0 ? first : first & (0x3Fu >> behind);
        for (size_t k = 1; k <= behind; ++k) {
            if ((text[i + k] & 0xC0) != 0x80) return true;
            code = code << 6 | (text[i + k] & 0x3F);
        }
        constexpr uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        if (code < least[behind] || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return true;
        i += behind + 1;
    }
    return false;
}

// Whether an annotation is what most are: a name by an id below 128, and an integer or a truth value.
bool is_number(ByteSpan body, uint64_t& name) {
    constexpr uint8_t kName = kValueNameIid << 3, kLeast = kBool << 3, kMost = kSigned << 3;
    if (body.size() < 4 || body.size() > 12 || body[0] != kName || body[1] >= 0x80) return false;
    if ((body[2] & 7) != kVarint || body[2] < kLeast || body[2] > kMost || body.back() >= 0x80) return false;
    for (const uint8_t byte : body.subspan(3, body.size() - 4)) {
        if (byte < 0x80) return false;
    }
    name = body[1];
    return true;
}

}  // namespace

// Count the names and texts of annotations that their sequence does not have, or that are damaged; those inside of values
// aside.
void Reader::look_at(const Sequence& sequence, ByteSpan notes) {
    const Generation* const known =
        sequence.generation < 0 ? nullptr : &generations[static_cast<size_t>(sequence.generation)];
    int64_t unknown = 0, damaged = 0;
    Fields fields(notes);
    Field annotation;
    while (fields.next(annotation)) {
        if (uint64_t name = 0; is_number(annotation.bytes, name)) [[likely]] {
            unknown += name != 0 && (known == nullptr || known->names.find(name) < 0);
            continue;
        }
        Fields parts(annotation.bytes);
        Field part;
        while (parts.next(part)) {
            if (part.is_bytes()) {
                damaged += (part.number == kValueName || part.number == kString) && is_damaged(part.bytes);
            } else if (part.is_varint() && part.value != 0) {
                if (part.number == kValueNameIid) unknown += known == nullptr || known->names.find(part.value) < 0;
                if (part.number == kStringIid) unknown += known == nullptr || known->values.find(part.value) < 0;
            }
        }
    }
    if (unknown != 0) [[unlikely]] note(Fault::unknown_text, unknown);
    if (damaged != 0) [[unlikely]] note(Fault::damaged_text, damaged);
}

bool render(const Reader& reader, std::span<const int64_t> rows, std::string& out) {
    out += '{';
    bool is_first = true;
    for (const int64_t row : rows) {
        if (row < 0) continue;
        const auto i = static_cast<size_t>(row);
        if (i >= reader.annotated.offset.size()) return false;
        Renderer renderer(reader, generation_of(reader, i), out);
        each_of(reader, i, [&](ByteSpan body) { renderer.member(body, 0, is_first); });
    }
    out += '}';
    return true;
}

void pick(const Reader& reader, std::string_view name, Picked& found) {
    std::string unused;
    for (size_t row = 0; row < reader.annotated.offset.size(); ++row) {
        const Renderer renderer(reader, generation_of(reader, row), unused);
        each_of(reader, row, [&](ByteSpan body) {
            if (renderer.name_of(body) != name) return;
            Fields fields(body);
            Field field;
            while (fields.next(field)) {
                ValueKind kind = ValueKind::integer;
                uint64_t bits = field.value;
                switch (field.number) {
                    case kBool: kind = ValueKind::boolean; break;
                    case kUnsigned: kind = ValueKind::natural; break;
                    case kSigned: break;
                    case kDouble: kind = ValueKind::number; break;
                    case kString:
                    case kStringIid:
                        kind = ValueKind::text;
                        bits = found.texts.size();
                        found.texts.emplace_back(field.number == kString ? text_of(field.bytes)
                                                                         : renderer.known(field.value, false, ""));
                        break;
                    default: continue;
                }
                found.row.push_back(static_cast<int64_t>(row));
                found.kind.push_back(static_cast<uint8_t>(kind));
                found.bits.push_back(bits);
                return;
            }
        });
    }
}

}  // namespace lanescope::foreign_perfetto
