// What is read of one event.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/foreign/chrome_json.hpp"
#include "core/foreign/decimal_time.hpp"
#include "core/foreign/json_text.hpp"

namespace lanescope::foreign {

EventReader::Result EventReader::read_event() {
    event_ = at_;
    flags_ = 0;
    ts_ = dur_ = 0;
    process_ = thread_ = name_ = category_ = -1;
    args_ = nullptr;
    id_ = bind_id_ = {};
    uint32_t seen = 0;
    ++at_;
    space();
    if (*at_ == '}') {
        ++at_;
        return Result::ok;
    }
    std::string plain;
    while (true) {
        if (*at_ != '"') return failed();
        const char* key = at_ + 1;
        Result result = skip_string();
        if (result != Result::ok) return result;
        std::string_view name(key, static_cast<size_t>(at_ - key) - 1);
        if (name.size() <= 64 && std::memchr(name.data(), '\\', name.size()) != nullptr) {
            plain = unescaped(name);
            name = plain;
        }
        space();
        if (*at_ != ':') return failed();
        ++at_;
        space();
        if (at_end()) return Result::incomplete;
        result = read_member(name, &seen);
        if (result != Result::ok) return result;
        space();
        if (*at_ == ',') {
            ++at_;
            space();
            continue;
        }
        if (*at_ != '}') return failed();
        ++at_;
        return Result::ok;
    }
}

EventReader::Result EventReader::read_member(std::string_view key, uint32_t* seen) {
    enum Key { none, ph, ts, dur, pid, tid, name, cat, args, id, id2, bp, s, bind_id, thread_time, flow_in, flow_out, stack };
    const auto one_of = [&](std::string_view word, Key found) { return key == word ? found : none; };
    Key which = none;
    switch (key.size()) {
        case 1: which = one_of("s", s); break;
        case 2:
            which = key[0] == 'p' ? one_of("ph", ph) : key[0] == 't' ? one_of("ts", ts) : key[0] == 'i' ? one_of("id", id) : one_of("bp", bp);
            if (which == none) which = one_of("sf", stack);
            break;
        case 3:
            which = key[0] == 'd'   ? one_of("dur", dur)
                    : key[0] == 'p' ? one_of("pid", pid)
                    : key[0] == 'c' ? one_of("cat", cat)
                    : key[0] == 'i' ? one_of("id2", id2)
                    : key[0] == 'e' ? one_of("esf", stack)
                    : key[1] == 'i' ? one_of("tid", tid)
                                    : one_of("tts", thread_time);
            break;
        case 4: which = key[0] == 'n' ? one_of("name", name) : key[0] == 'a' ? one_of("args", args) : one_of("tdur", thread_time); break;
        case 5: which = one_of("stack", stack); break;
        case 6: which = one_of("estack", stack); break;
        case 7: which = key[0] == 'b' ? one_of("bind_id", bind_id) : one_of("flow_in", flow_in); break;
        case 8: which = one_of("flow_out", flow_out); break;
        default: break;
    }
    bool is_deep = false;
    if (which == none) return skip_value(&is_deep);
    const uint32_t bit = uint32_t{1} << which;
    if ((*seen & bit) != 0 && which != thread_time && which != stack) flags_ |= kRepeatedKey;  // these are several keys
    *seen |= bit;
    switch (which) {
        case ph: {
            const char* begin = at_;
            flags_ &= ~uint32_t{0xFF};
            const Result result = skip_value(&is_deep);
            if (result == Result::ok && at_ - begin == 3 && *begin == '"') flags_ |= static_cast<uint8_t>(begin[1]);
            return result;
        }
        case ts: return read_time(&ts_, kHasTime, kBadTime);
        case dur: return read_time(&dur_, kHasDuration, kBadDuration);
        case pid: return read_text(&process_, &last_process_);
        case tid: return read_text(&thread_, &last_thread_);
        case name: return read_text(&name_, nullptr);
        case cat: return read_text(&category_, &last_category_);
        case id: return read_id(&id_, 0);
        case id2: return read_scoped_id();
        case bind_id: return read_id(&bind_id_, 0);
        case flow_in: return read_truth(kFlowIn);
        case flow_out: return read_truth(kFlowOut);
        case args: {
            args_ = at_;
            flags_ &= ~(kTooDeep | kHasArguments);
            const Result result = skip_value(&is_deep);
            args_size_ = static_cast<size_t>(at_ - args_);
            if (is_deep) flags_ |= kTooDeep;
            if (*args_ != 'n') flags_ |= kHasArguments;
            return result;
        }
        case thread_time: flags_ |= kHasThreadTime; return skip_value(&is_deep);
        case bp:
        case s: {
            const char* begin = at_;
            const Result result = skip_value(&is_deep);
            const std::string_view value(begin, static_cast<size_t>(at_ - begin));
            if (which == bp) {
                flags_ = value == "\"e\"" ? flags_ | kEnclosing : flags_ & ~kEnclosing;
            } else {
                flags_ &= ~(kProcessScope | kGlobalScope);
                if (value == "\"p\"") flags_ |= kProcessScope;
                if (value == "\"g\"") flags_ |= kGlobalScope;
            }
            return result;
        }
        default: flags_ |= kHasStack; return skip_value(&is_deep);
    }
}

// A text as it stands; other values as their characters, and null as nothing. Often it is the one before once more.
EventReader::Result EventReader::read_text(int32_t* code, Last* last) {
    const char* begin = at_;
    Result result = Result::ok;
    const bool is_text = *at_ == '"';
    bool is_deep = false;
    if (is_text) {
        result = skip_string();
    } else if (is_digit(*at_)) {
        result = skip_number();
    } else {
        result = skip_value(&is_deep);
    }
    if (result != Result::ok) return result;
    const std::string_view text(begin + (is_text ? 1 : 0), static_cast<size_t>(at_ - begin) - (is_text ? 2 : 0));
    if (*begin == 'n') {
        *code = -1;
        return result;
    }
    if (last == nullptr) {
        *code = texts_.code(text);
        return result;
    }
    if (text != last->text) {
        last->text.assign(text);
        last->code = texts_.code(text);
    }
    *code = last->code;
    return result;
}

EventReader::Result EventReader::read_time(int64_t* out, uint32_t has, uint32_t bad) {
    flags_ &= ~(has | bad);
    *out = 0;
    const char* begin = at_;
    // Nearly all: digits, and at most three behind a point.
    const char* at = at_ + (*at_ == '-' ? 1 : 0);
    const char* digits = at;
    uint64_t value = 0;
    while (is_digit(*at)) value = value * 10 + static_cast<uint64_t>(*at++ - '0');
    if (at != digits && at - digits <= 16) {
        int decimals = 0;
        bool is_plain = true;
        if (*at == '.') {
            ++at;
            for (; decimals < 3 && is_digit(*at); ++decimals) value = value * 10 + static_cast<uint64_t>(*at++ - '0');
            is_plain = decimals > 0;
        }
        static constexpr uint64_t kScale[] = {1000, 100, 10, 1};
        value *= kScale[decimals];
        if (is_plain && value <= kMostNanoseconds && !is_digit(*at) && (*at | 0x20) != 'e' && at < end_) {
            *out = *begin == '-' ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
            flags_ |= has;
            at_ = at;
            return Result::ok;
        }
    }
    const bool is_text = *at_ == '"';
    bool is_deep = false, is_rounded = false;
    const Result result = skip_value(&is_deep);
    if (result != Result::ok) return result;
    std::string_view text(begin, static_cast<size_t>(at_ - begin));
    if (text == "null") return result;
    if (is_text) {
        text = text.substr(1, text.size() - 2);
        if (has == kHasTime) flags_ |= kTextTime;
    }
    if (nanoseconds_of(text, out, &is_rounded)) {
        flags_ |= has | (is_rounded ? kRounded : 0u);
    } else {
        flags_ |= bad;
    }
    return result;
}

EventReader::Result EventReader::read_id(Id* out, uint8_t scope) {
    const char* begin = at_;
    bool is_deep = false;
    const Result result = skip_value(&is_deep);
    if (result != Result::ok) return result;
    std::string_view text(begin, static_cast<size_t>(at_ - begin));
    *out = {};
    if (*begin == 'n') return result;
    uint64_t value = 0;
    if (*begin == '"') {
        text = text.substr(1, text.size() - 2);
        if (hexadecimal(text, &value)) {
            *out = {value, static_cast<uint8_t>(kNumberId | scope)};
            return result;
        }
    } else {
        int64_t number = 0;
        const auto end = text.data() + text.size();
        if (const auto read = std::from_chars(text.data(), end, value); read.ec == std::errc() && read.ptr == end) {
            *out = {value, static_cast<uint8_t>(kNumberId | scope)};
            return result;
        }
        if (const auto read = std::from_chars(text.data(), end, number); read.ec == std::errc() && read.ptr == end) {
            *out = {static_cast<uint64_t>(number), static_cast<uint8_t>(kNumberId | scope)};
            return result;
        }
    }
    *out = {static_cast<uint64_t>(texts_.code(text)), static_cast<uint8_t>(kTextId | scope)};
    return result;
}

// {"local": id} or {"global": id}
EventReader::Result EventReader::read_scoped_id() {
    if (*at_ != '{') {
        bool is_deep = false;
        return skip_value(&is_deep);
    }
    ++at_;
    space();
    if (*at_ == '}') {
        ++at_;
        return Result::ok;
    }
    while (true) {
        if (*at_ != '"') return failed();
        const char* key = at_ + 1;
        Result result = skip_string();
        if (result != Result::ok) return result;
        const std::string_view name(key, static_cast<size_t>(at_ - key) - 1);
        space();
        if (*at_ != ':') return failed();
        ++at_;
        space();
        bool is_deep = false;
        if (name == "local" || name == "global") {
            result = read_id(&id_, name == "local" ? kLocalId : kGlobalId);
        } else {
            result = skip_value(&is_deep);
        }
        if (result != Result::ok) return result;
        space();
        if (*at_ == ',') {
            ++at_;
            space();
            continue;
        }
        if (*at_ != '}') return failed();
        ++at_;
        return Result::ok;
    }
}

EventReader::Result EventReader::read_truth(uint32_t bit) {
    const char* begin = at_;
    bool is_deep = false;
    const Result result = skip_value(&is_deep);
    const std::string_view value(begin, static_cast<size_t>(at_ - begin));
    const bool is_true = value == "true" || value == "1" || value == "\"true\"";
    flags_ = is_true ? flags_ | bit : flags_ & ~bit;
    return result;
}

// The values of a counter: members of its arguments that are numbers, or texts of them.
void EventReader::read_series(const char* begin, const char* end) {
    if (*begin != '{') return void(flags_ |= kBadSeries);
    const char* kept = at_;
    at_ = begin + 1;
    space();
    while (at_ < end && *at_ != '}') {
        const char* key = at_ + 1;
        skip_string();
        const std::string_view name(key, static_cast<size_t>(at_ - key) - 1);
        space();
        ++at_;
        space();
        const char* value = at_;
        bool is_deep = false;
        skip_value(&is_deep);
        std::string_view text(value, static_cast<size_t>(at_ - value));
        if (text.size() > 1 && text[0] == '"') text = text.substr(1, text.size() - 2);
        double number = 0;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
        // Neither NaN nor infinities.
        if (read.ec == std::errc() && read.ptr == text.data() + text.size() && number - number == 0) {
            events_.series_row.push_back(rows_);
            events_.series_name.push_back(texts_.code(name));
            events_.series_value.push_back(number);
        } else {
            flags_ |= kBadSeries;
        }
        space();
        if (*at_ == ',') ++at_;
        space();
    }
    at_ = kept;
}

void EventReader::keep() {
    const char* end = at_;
    if ((flags_ & 0xFF) == 'C') {
        if (args_ != nullptr && (flags_ & kTooDeep) == 0) {
            read_series(args_, args_ + args_size_);
        } else {
            flags_ |= kBadSeries;
        }
    }
    const auto add_id = [&](Ids& ids, const Id& id, uint32_t bit) {
        if (id.kind == 0) return;
        flags_ |= bit;
        ids.row.push_back(rows_);
        ids.value.push_back(id.value);
        ids.kind.push_back(id.kind);
    };
    add_id(events_.ids, id_, kHasId);
    add_id(events_.bind_ids, bind_id_, kHasBindId);
    const bool has_args = args_ != nullptr && (flags_ & (kHasArguments | kTooDeep)) == kHasArguments;
    events_.offset.push_back(offset(event_));
    events_.size.push_back(static_cast<uint32_t>(end - event_));
    events_.flags.push_back(flags_);
    events_.ts.push_back(ts_);
    events_.dur.push_back(dur_);
    events_.lane.push_back(lane(process_, thread_));
    events_.name.push_back(name_);
    events_.category.push_back(category_);
    events_.args_begin.push_back(has_args ? static_cast<uint32_t>(args_ - event_) : 0);
    events_.args_size.push_back(has_args ? static_cast<uint32_t>(args_size_) : 0);
    ++rows_;
}

int32_t EventReader::lane(int32_t process, int32_t thread) {
    const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(process)) << 32 | static_cast<uint32_t>(thread);
    if (key == last_lane_ && !lanes_.empty()) return last_lane_code_;
    if (2 * (lanes_.size() + 1) > lane_table_.size()) {
        lane_table_.assign(std::max<size_t>(256, 2 * lane_table_.size()), 0);
        for (size_t i = 0; i < lanes_.size(); ++i) {
            const uint64_t other = static_cast<uint64_t>(static_cast<uint32_t>(lanes_[i].first)) << 32 | static_cast<uint32_t>(lanes_[i].second);
            size_t at = (other * 0x9E3779B97F4A7C15u >> 20) & (lane_table_.size() - 1);
            while (lane_table_[at] != 0) at = (at + 1) & (lane_table_.size() - 1);
            lane_table_[at] = static_cast<uint32_t>(i + 1);
        }
    }
    size_t at = (key * 0x9E3779B97F4A7C15u >> 20) & (lane_table_.size() - 1);
    for (; lane_table_[at] != 0; at = (at + 1) & (lane_table_.size() - 1)) {
        if (lanes_[lane_table_[at] - 1] == std::pair(process, thread)) break;
    }
    if (lane_table_[at] == 0) {
        lanes_.emplace_back(process, thread);
        lane_table_[at] = static_cast<uint32_t>(lanes_.size());
    }
    last_lane_ = key;
    last_lane_code_ = static_cast<int32_t>(lane_table_[at] - 1);
    return last_lane_code_;
}

}  // namespace lanescope::foreign
