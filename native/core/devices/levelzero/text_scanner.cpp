#include "core/devices/levelzero/text_scanner.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <utility>

namespace lanescope::levelzero {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kHalfDay = 43'200 * kSecond;
constexpr size_t kClock = 8;  // characters of hours, minutes and seconds

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// What the reference strips from the end of a line.
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool skip(std::string_view* text, std::string_view prefix) {
    if (!text->starts_with(prefix)) return false;
    text->remove_prefix(prefix.size());
    return true;
}

bool contains(std::string_view text, std::string_view part) {
    return memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

int64_t two_digits(const char* at) { return (at[0] - '0') * 10 + (at[1] - '0'); }

size_t count_digits(std::string_view text) {
    size_t count = 0;
    while (count < text.size() && is_digit(text[count])) ++count;
    return count;
}

}  // namespace

TextScanner::TextScanner(uint64_t shrink, std::vector<size_t> sheets, size_t texts) : shrink_(shrink), texts_(texts) {
    for (const size_t cells : sheets) sheets_.emplace_back(cells);
}

size_t TextScanner::scan(std::string_view data, size_t place, uint64_t offset, Progress* progress) {
    while (place < data.size()) {
        const char* begin = data.data() + place;
        const auto* newline = static_cast<const char*>(std::memchr(begin, '\n', data.size() - place));
        if (newline == nullptr) break;
        const auto length = static_cast<size_t>(newline - begin);
        if (length > kLongest) break;
        if (take({begin, length}, offset + place, progress)) {
            place += length + 1;
            continue;
        }
        const size_t next = take_lines(data, place, offset, progress);
        if (next == place) break;
        place = next;
    }
    return place;
}

// Takes a record that begins here and ends with a line that is a closing brace; returns where the next line begins, or
// the same place where it is none.
size_t TextScanner::take_lines(std::string_view data, size_t place, uint64_t offset, Progress* progress) {
    joined_.clear();
    for (size_t at = place; at - place <= kLongest;) {
        const size_t newline = data.find('\n', at);
        if (newline == std::string_view::npos || newline - at > kLongest) break;
        std::string_view line = data.substr(at, newline - at);
        while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
        if (joined_.empty()) {
            if (!line.ends_with(": {")) break;
        } else {
            // No field begins with a digit; a record does.
            if (!line.empty() && is_digit(line[0])) break;
            joined_ += ' ';
        }
        at = newline + 1;
        if (line == "}") {
            joined_ += line;
            return take(joined_, offset + place, progress) ? at : place;
        }
        while (!line.empty() && is_space(line[0])) line.remove_prefix(1);
        joined_ += line;
    }
    return place;
}

bool TextScanner::take(std::string_view line, uint64_t offset, Progress* progress) {
    Stamp stamp{progress->seq + 1, 0, 0};
    if (!read_time(&line, progress->day_ns, &stamp.ts) || !read_context(&line)) return false;
    stamp.thread = thread_;
    if (progress->last_ts - stamp.ts > kHalfDay) return false;  // midnight
    const auto* blank = static_cast<const char*>(std::memchr(line.data(), ' ', line.size()));
    if (blank == nullptr || blank == line.data() || blank[-1] != ':') return false;
    const auto found = kinds_.find(line.substr(0, static_cast<size_t>(blank - line.data()) - 1));
    if (found == kinds_.end()) return false;
    line.remove_prefix(static_cast<size_t>(blank - line.data()) + 1);
    while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
    if (line.empty() || line.back() != '}') return false;
    if (!take(found->second, stamp, Payload{line})) return false;
    ++progress->seq;
    if (stamp.ts < progress->last_ts) progress->backwards.add(offset);
    progress->last_ts = stamp.ts;
    if (!progress->first_ts) progress->first_ts = stamp.ts;
    return true;
}

bool TextScanner::take(const Kind& kind, const Stamp& stamp, const Payload& payload) {
    switch (kind.role) {
        case Role::record:
            return take_record(kind, stamp, payload);
        case Role::entry:
            return take_entry(kind, stamp, payload);
        case Role::exit:
            return take_exit(kind, stamp, payload);
        case Role::launch:
            return take_launch(kind, stamp, payload);
        case Role::scope:
            return take_scope(kind, stamp, payload);
        case Role::task:
            return take_task(kind, stamp, payload);
    }
    return false;
}

bool TextScanner::Payload::has_fields() const {
    return columns != nullptr ? columns->has_fields(row) : contains(text, ": ");
}

bool TextScanner::Payload::mentions(Mark mark) const {
    if (columns != nullptr) return columns->mentions(row, mark);
    return contains(text, mark == Mark::signal ? "hSignalEvent: " : "hCommandList: ");
}

bool TextScanner::Payload::has_comma() const {
    if (columns == nullptr) return contains(text, ",");
    std::string written;
    columns->write(row, &written);
    return contains(written, ",");
}

std::optional<size_t> TextScanner::take_records(const Records& records, size_t place) {
    std::vector<const Kind*> kinds;
    for (size_t i = 0; i < records.names.size(); ++i) {
        const auto found = kinds_.find(records.names[i]);
        kinds.push_back(found == kinds_.end() ? nullptr : &found->second);
        records.fields[i]->forget();
    }
    expect(kinds, records.counts);
    for (; place < records.kinds.size(); ++place) {
        const auto number = static_cast<size_t>(records.kinds[place]);
        const size_t row = records.rows.empty() ? place : static_cast<size_t>(records.rows[place]);
        const auto thread = static_cast<uint64_t>(records.threads[place]);
        // One that is nowhere, or of no thread, is left as well.
        if (number >= kinds.size() || kinds[number] == nullptr || thread >= kMaxThreads) break;
        PayloadColumns& fields = *records.fields[number];
        if (row >= fields.size()) break;
        const Stamp stamp{static_cast<uint64_t>(records.seq[place]), records.ts[place], thread};
        if (take(*kinds[number], stamp, Payload{{}, &fields, row})) continue;
        written_.clear();
        if (!fields.write(row, &written_)) return std::nullopt;
        if (written_.size() > kLongest || !take(*kinds[number], stamp, Payload{written_})) break;
    }
    return place;
}

void TextScanner::expect(const std::vector<const Kind*>& kinds, const std::vector<uint64_t>& counts) {
    std::vector<size_t> rows(sheets_.size());
    for (size_t i = 0; i < kinds.size(); ++i) {
        if (kinds[i] == nullptr) continue;
        rows[kinds[i]->target.sheet] += counts[i];
        if (kinds[i]->append) rows[kinds[i]->append->sheet] += counts[i];
        if (kinds[i]->conclusion != Conclusion::unknown) rows[kinds[i]->conclusion_target.sheet] += counts[i];
    }
    for (size_t i = 0; i < rows.size(); ++i) {
        sheets_[i].expect(rows[i]);
    }
}

bool TextScanner::read_time(std::string_view* line, int64_t day_ns, int64_t* ts) {
    if (line->size() <= kClock || (*line)[kClock] != '.') return false;
    if (line->substr(0, kClock) != clock_) {
        const char* at = line->data();
        for (const char* digit : {at, at + 1, at + 3, at + 4, at + 6, at + 7}) {
            if (!is_digit(*digit)) return false;
        }
        const int64_t hour = two_digits(at), minute = two_digits(at + 3), second = two_digits(at + 6);
        if (at[2] != ':' || at[5] != ':' || hour > 23 || minute > 59 || second > 59) return false;
        clock_.assign(at, kClock);
        clock_ns_ = ((hour * 60 + minute) * 60 + second) * kSecond;
    }
    line->remove_prefix(kClock + 1);
    const size_t digits = count_digits(*line);
    if (digits == 0 || digits > 9) return false;
    uint64_t fraction = 0;
    for (size_t i = 0; i < 9; ++i) {
        fraction = fraction * 10 + (i < digits ? static_cast<uint64_t>((*line)[i] - '0') : 0);
    }
    *ts = day_ns + clock_ns_ + static_cast<int64_t>(fraction / shrink_);
    line->remove_prefix(digits);
    return skip(line, " - ");
}

// Reads host, process and thread; finds the thread.
bool TextScanner::read_context(std::string_view* line) {
    if (!context_.empty() && skip(line, context_)) return true;
    std::string_view rest = *line;
    const size_t host = rest.find(' ');
    if (host == std::string_view::npos) return false;
    rest.remove_prefix(host);
    if (!skip(&rest, " - vpid: ")) return false;
    rest.remove_prefix(count_digits(rest));
    if (!skip(&rest, ", vtid: ")) return false;
    rest.remove_prefix(count_digits(rest));
    const std::string_view context = line->substr(0, line->size() - rest.size());
    const auto found = contexts_.find(context);
    if (found == contexts_.end() || !skip(&rest, " - ")) return false;
    context_.assign(context.data(), context.size() + 3);
    thread_ = found->second;
    *line = rest;
    return true;
}

void TextScanner::add(const Target& target, const Stamp& stamp, uint32_t present, std::span<const uint64_t> cells) {
    sheets_[target.sheet].add(stamp.seq, stamp.ts, stamp.thread, target.constant, target.is_exit ? present | kExitRow : present, cells);
}

bool TextScanner::take_record(const Kind& kind, const Stamp& stamp, const Payload& payload) {
    if (!read(payload, kind.shape)) return false;
    add(kind.target, stamp, values_.present, std::span(values_.cells).first(kind.shape.size()));
    sheets_[kind.target.sheet].lists.append(values_.list.data(), values_.list.size());
    return true;
}

// A row of calls has two cells: the code of the result of exits, the size of entries (or another number of theirs).
bool TextScanner::take_entry(const Kind& kind, const Stamp& stamp, const Payload& payload) {
    std::array<uint64_t, 2> cells{};
    uint32_t present = 0;
    if (!payload.is_empty()) {
        // What the reference looks at before it reads any field: the text, wherever it stands.
        const bool appends = (kind.always_appends || payload.mentions(Mark::signal)) && payload.mentions(Mark::list);
        if (appends) {
            if (!kind.append || !read(payload, kind.append_shape)) return false;
            add(*kind.append, stamp, values_.present, std::span(values_.cells).first(kind.append_shape.size()));
            sheets_[kind.append->sheet].lists.append(values_.list.data(), values_.list.size());
        } else {
            const bool is_forgotten = kind.function == Kind::kForgotten;
            if (!is_forgotten && !kind.is_remembered) return false;
            if (!payload.has_fields() || !read(payload, kind.shape)) return false;
            if (!is_forgotten) {
                const auto function = static_cast<uint32_t>(kind.function);
                if (drops_token(stamp.thread)) return false;
                Open call{function, false, stamp.seq, stamp.ts, values_.cells[0], values_.list};
                if (kind.keeps_all) {
                    call.value = 0;
                    call.list = {values_.present};
                    for (size_t i = 0; i < kind.shape.size(); ++i) {
                        call.list.push_back((values_.present >> i & 1) != 0 ? values_.cells[i] : 0);
                    }
                }
                enter(stamp.thread, std::move(call));
            }
            const size_t shown = is_forgotten ? 0 : Kind::kShownCell;
            if (!kind.keeps_all && shown < kind.shape.size() && (values_.present >> shown & 1) != 0) {
                present = 2;
                cells[1] = values_.cells[shown];
            }
        }
    }
    add(kind.target, stamp, present, cells);
    return true;
}

// The cells are those of the launch, and last the size of what is accessed.
bool TextScanner::take_launch(const Kind& kind, const Stamp& stamp, const Payload& payload) {
    if (!read(payload, kind.shape)) return false;
    const size_t count = kind.shape.size() - 1;
    const uint32_t size = values_.present >> count & 1;
    add(*kind.append, stamp, values_.present & ((uint32_t{1} << count) - 1), std::span(values_.cells).first(count));
    const std::array<uint64_t, 2> cells{0, size != 0 ? values_.cells[count] : 0};
    add(kind.target, stamp, size << 1, cells);
    return true;
}

// The cells are the endpoint, whose bits are begin and end; two words, of which the first that is there counts; the size.
bool TextScanner::take_scope(const Kind& kind, const Stamp& stamp, const Payload& payload) {
    if (!read(payload, kind.shape)) return false;
    const auto has = [&](unsigned cell) { return (values_.present >> cell & 1) != 0; };
    const uint64_t word = has(1) ? values_.cells[1] : has(2) ? values_.cells[2] : 0;
    if (word >= kind.functions.size() || kind.functions[word] == 0) return false;
    const uint64_t function = kind.functions[word] - 1;
    const bool is_sized = has(1) && has(3);
    if (values_.cells[0] & 1) {
        add({kind.target.sheet, static_cast<uint32_t>(function)}, stamp, is_sized ? 2 : 0, std::array<uint64_t, 2>{0, is_sized ? values_.cells[3] : 0});
    }
    if (values_.cells[0] & 2) add({kind.target.sheet, static_cast<uint32_t>(function), true}, stamp, 0, std::array<uint64_t, 2>{});
    return true;
}

// The cells are the number of the lane, and what its name has elsewhere; an event has its name by the number of its lane.
bool TextScanner::take_task(const Kind& kind, const Stamp& stamp, const Payload& payload) {
    if (!read(payload, kind.shape)) return false;
    const bool has_name = kind.shape.size() > 1;
    Lane* on = lane({stamp.thread, kind.lanes, values_.cells[0]});
    uint64_t function = 0;
    if (kind.is_end) {
        if (on == nullptr || on->open.empty()) return !kind.is_strict;
        function = on->open.back();
        on->open.pop_back();
    } else {
        const auto name = names_.find({stamp.thread, kind.lanes, values_.cells[has_name ? 1 : 0]});
        if (on == nullptr || name == names_.end()) return false;
        function = name->second;
        on->open.push_back(function);
    }
    add({kind.target.sheet, static_cast<uint32_t>(function), kind.is_end}, {stamp.seq, stamp.ts, on->thread}, 0,
        std::array<uint64_t, 2>{});
    return true;
}

bool TextScanner::take_exit(const Kind& kind, const Stamp& stamp, const Payload& payload) {
    if (!read(payload, kind.shape)) return false;
    const bool has_result = (values_.present & 1) != 0;
    const bool succeeded = !has_result || (values_.cells[0] & kSuccess) != 0;
    if (kind.function != Kind::kForgotten) {
        const auto function = static_cast<uint32_t>(kind.function);
        const Open* call = find(stamp.thread, function);
        if (call != nullptr || payload.has_comma()) {
            if (kind.conclusion == Conclusion::unknown || (call != nullptr && call->is_token)) return false;
            if (call != nullptr) {
                // Calls inside of it that never returned may be the reference's, which has to hear of it.
                const std::vector<Open>& calls = open_[stamp.thread];
                for (size_t i = calls.size(); &calls[i - 1] != call; --i) {
                    if (calls[i - 1].is_token) return false;
                }
                if (succeeded && !conclude(kind, stamp, *call)) return false;
                leave(stamp.thread, function);
            }
        }
    }
    const std::array<uint64_t, 2> cells{has_result ? values_.cells[0] & ~kSuccess : 0, 0};
    add(kind.target, stamp, has_result ? 1 : 0, cells);
    return true;
}

bool TextScanner::conclude(const Kind& kind, const Stamp& stamp, const Open& call) {
    const Target& target = kind.conclusion_target;
    switch (kind.conclusion) {
        case Conclusion::unknown:
            break;
        case Conclusion::nonzero:
            if (call.value == 0) break;
            [[fallthrough]];
        case Conclusion::value:
            add(target, stamp, 1, std::array{call.value});
            break;
        case Conclusion::allocation: {
            const uint64_t base = (values_.present & 2) != 0 ? values_.cells[1] : 0;
            if (call.value != 0 && base != 0) add(target, stamp, 3, std::array{base, call.value});
            break;
        }
        case Conclusion::execution:
            for (const uint64_t list : call.list) {
                add(target, {call.seq, call.ts, stamp.thread}, 7,
                    std::array{list, call.value, static_cast<uint64_t>(stamp.ts)});
            }
            break;
        case Conclusion::creation: {
            const size_t given = sheets_[target.sheet].cells.size() - 1;
            if ((values_.present & 2) == 0 || call.list.size() != given + 1) return false;
            std::array<uint64_t, Shape::kMaxCells> cells{values_.cells[1]};
            std::copy(call.list.begin() + 1, call.list.end(), cells.begin() + 1);
            add(target, stamp, static_cast<uint32_t>(call.list[0] << 1 | 1), std::span(cells).first(given + 1));
            break;
        }
    }
    return true;
}

// --- calls under way -----------------------------------------------------------------------------------------------

std::vector<Open> TextScanner::enter(uint64_t thread, Open call) {
    if (open_.size() <= thread) open_.resize(thread + 1);
    std::vector<Open>& calls = open_[thread];
    calls.push_back(std::move(call));
    std::vector<Open> gone;
    if (calls.size() > kDeepest) {
        gone.push_back(std::move(calls.front()));
        calls.erase(calls.begin());
    }
    return gone;
}

bool TextScanner::drops_token(uint64_t thread) const {
    return open_.size() > thread && open_[thread].size() >= kDeepest && open_[thread].front().is_token;
}

const Open* TextScanner::find(uint64_t thread, uint32_t function) const {
    if (open_.size() <= thread) return nullptr;
    const std::vector<Open>& calls = open_[thread];
    for (size_t i = calls.size(); i > 0; --i) {
        if (calls[i - 1].function == function) return &calls[i - 1];
    }
    return nullptr;
}

std::vector<Open> TextScanner::leave(uint64_t thread, uint32_t function) {
    const Open* call = find(thread, function);
    if (call == nullptr) return {};
    std::vector<Open>& calls = open_[thread];
    const auto first = calls.begin() + (call - calls.data());
    std::vector<Open> gone(std::make_move_iterator(first), std::make_move_iterator(calls.end()));
    calls.erase(first, calls.end());
    return gone;
}

}  // namespace lanescope::levelzero
