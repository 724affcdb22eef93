// A scanner of Level Zero texts: lines in, rows of columns out.
//
// It takes the lines whose thread, kind and texts were told to it and whose fields leave no doubt; it stops before any
// other, so that the reference reader judges that line and tells what it learnt from it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/devices/levelzero/payload.hpp"
#include "core/devices/levelzero/payload_columns.hpp"
#include "core/wire/growing.hpp"

namespace lanescope::levelzero {

// Rows of one layout, as columns: position in the stream, time, thread, constant, bits of the cells that are present, and
// the cells, 0 where they are not.
struct Sheet {
    Growing<uint64_t> seq, ts;
    Growing<uint32_t> thread, constant, present;
    std::vector<Growing<uint64_t>> cells;
    Growing<uint64_t> lists;  // of the cells that are lists, row by row

    explicit Sheet(size_t count) : cells(count) {}
    size_t count() const { return seq.size(); }
    void expect(size_t rows) {
        each([&](auto& column) { column.expect(rows); });
    }
    void add(uint64_t at, int64_t when, uint64_t of_thread, uint32_t what, uint32_t there, std::span<const uint64_t> values) {
        if (seq.is_full()) [[unlikely]] {
            seq.grow();
            each([&](auto& column) {
                if (column.room() < seq.room()) column.grow(seq.room());
            });
        }
        seq.push_within(at);
        ts.push_within(static_cast<uint64_t>(when));
        thread.push_within(static_cast<uint32_t>(of_thread));
        constant.push_within(what);
        present.push_within(there);
        for (size_t i = 0; i < values.size(); ++i) {
            if (there >> i & 1) {
                cells[i].push_within(values[i]);
            } else {
                cells[i].push_zero_within();
            }
        }
    }

private:
    template <class F>
    void each(F&& use) {
        use(seq), use(ts), use(thread), use(constant), use(present);
        for (auto& column : cells) use(column);
    }
};

// Where rows go, and what stands in their column `constant`.
struct Target {
    uint32_t sheet;
    uint32_t constant;
    bool is_exit = false;  // of rows of calls
};

enum class Role : uint8_t {
    record,  // a row of its own
    entry,   // a function is called
    exit,    // a function returns
    launch,  // a function of another API is called, and gives an operation to a device
    scope,   // a callback: it enters, leaves, or both
    task,    // something that has a name elsewhere begins or ends on a lane of its own
};

// What a successful return makes of what its function was given.
enum class Conclusion : uint8_t {
    unknown,     // left to the reference
    value,       // a row of it
    nonzero,     // a row of it, unless it is 0
    allocation,  // a row of it and of what the exit says, unless one is 0
    execution,   // at the entry: a row for each element of its list
    creation,    // a row of the handle that the exit returns and of all that the entry was given
};

struct Kind {
    static constexpr int32_t kForgotten = -1;
    static constexpr size_t kShownCell = 2;  // of entries that are remembered: what goes to the row of the call as well

    Role role = Role::record;
    Target target{};
    Shape shape;

    int32_t function = kForgotten;  // number of a function that is remembered until it returns
    bool is_remembered = false;     // entry: its first cell is what is remembered; else entries with fields are left
    bool keeps_all = false;         // entry: all cells are remembered, as a list behind the bits of those that are there

    bool always_appends = false;  // entry: also without a signal; launch: where its row goes is `append` too
    std::optional<Target> append;
    Shape append_shape;

    Conclusion conclusion = Conclusion::unknown;
    Target conclusion_target{};

    std::vector<uint64_t> functions;  // scope: codes of functions by the code of the word, plus 1; 0: not known
    uint32_t lanes = 0;               // task: which kind of lanes
    bool is_end = false;              // task: it ends
    bool is_strict = false;           // task: an end without a begin is left to the reference
};

// A lane beside that of its thread: what is open on it, by codes of functions.
struct Lane {
    uint64_t thread;
    std::vector<uint64_t> open;
};

// A call under way, and what its function was given. The reference keeps what a number cannot say, under a token.
struct Open {
    uint32_t function;
    bool is_token;
    uint64_t seq;
    int64_t ts;
    uint64_t value;
    std::vector<uint64_t> list;
};

// What was noticed: how often, and where first.
struct Note {
    uint64_t count = 0;
    uint64_t offset = 0;

    void add(uint64_t where) {
        if (count++ == 0) offset = where;
    }
};

class TextScanner {
public:
    // Bit of the code of a result: the function succeeded.
    static constexpr uint64_t kSuccess = uint64_t{1} << 32;
    // Constants of calls: the function's code, and this bit for exits.
    static constexpr uint64_t kExit = uint64_t{1} << 32;
    // In rows, it is this one of the bits of the cells: calls have few.
    static constexpr uint32_t kExitRow = uint32_t{1} << 31;
    // Longer lines are left to the reference.
    static constexpr size_t kLongest = size_t{1} << 20;
    static constexpr size_t kDeepest = 256;
    // Threads are numbered in the order of their first records.
    static constexpr uint64_t kMaxThreads = uint64_t{1} << 31;

    // What is known before a line, and of the lines since.
    struct Progress {
        uint64_t seq;
        int64_t last_ts;
        int64_t day_ns;
        std::optional<int64_t> first_ts{};  // of the first line that was taken
        Note backwards{};
    };

    TextScanner(uint64_t shrink, std::vector<size_t> sheets, size_t texts);
    TextScanner(const TextScanner&) = delete;
    TextScanner& operator=(const TextScanner&) = delete;

    void add_context(std::string_view context, uint64_t thread) { contexts_.insert_or_assign(std::string(context), thread); }
    void add_kind(std::string_view name, Kind kind) { kinds_.insert_or_assign(std::string(name), std::move(kind)); }
    void add_text(uint32_t table, std::string_view text, uint64_t code) { texts_[table].add(text, code); }

    // Takes whole lines from `place` on; returns the place of the first that it leaves.
    size_t scan(std::string_view data, size_t place, uint64_t offset, Progress* progress);

    // Records whose time and thread are known already, in the order in which they are taken.
    struct Records {
        std::vector<std::string> names;       // of the kinds
        std::vector<PayloadColumns*> fields;  // of the kinds
        std::vector<uint64_t> counts;         // of the kinds: how many records there are of each, at most
        std::span<const int32_t> kinds;       // by record: index into `names`
        std::span<const int64_t> rows;        // by record: its row among the fields of its kind; none: its place
        std::span<const int64_t> seq, ts;
        std::span<const int32_t> threads;
    };
    // Takes records from `place` on; returns the place of the first that it leaves, or nothing where a field
    // of that one reaches beyond the data.
    std::optional<size_t> take_records(const Records& records, size_t place);

    // A row of a call that was read elsewhere.
    void add_call(const Target& target, uint64_t seq, int64_t ts, uint64_t thread, std::optional<uint64_t> result) {
        add(target, {seq, ts, thread}, result ? 1 : 0, std::array<uint64_t, 2>{result.value_or(0), 0});
    }

    std::vector<Sheet>& sheets() { return sheets_; }
    size_t texts() const { return texts_.size(); }

    // Calls under way. What is forgotten is returned, so that the reference can forget it too.
    std::vector<Open> enter(uint64_t thread, Open call);
    const Open* find(uint64_t thread, uint32_t function) const;
    std::vector<Open> leave(uint64_t thread, uint32_t function);
    const std::vector<std::vector<Open>>& open() const { return open_; }

    // Lanes of a thread, by kind and number: made by the reference at the first event, which keeps nothing of its own.
    using LaneKey = std::array<uint64_t, 3>;  // thread, kind, number
    void add_lane(const LaneKey& key, uint64_t lane) { lanes_[key].thread = lane; }
    Lane* lane(const LaneKey& key) {
        const auto found = lanes_.find(key);
        return found == lanes_.end() ? nullptr : &found->second;
    }
    // Names of what begins, as codes of functions, by thread, kind and number.
    void add_name(const LaneKey& key, uint64_t code) { names_.insert_or_assign(key, code); }
    void forget_names(uint64_t kind, uint64_t number) {
        std::erase_if(names_, [&](const auto& item) { return item.first[1] == kind && item.first[2] == number; });
    }

private:
    struct LaneHash {
        size_t operator()(const LaneKey& key) const {
            return key[0] * 0x9E3779B97F4A7C15u ^ key[1] * 0xC2B2AE3D27D4EB4Fu ^ key[2] * 0x165667B19E3779F9u;
        }
    };
    struct Hash {
        using is_transparent = void;
        size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };
    template <class T>
    using Map = std::unordered_map<std::string, T, Hash, std::equal_to<>>;

    struct Stamp {
        uint64_t seq;
        int64_t ts;
        uint64_t thread;
    };

    // The fields of a record: as text, or in a row of columns.
    struct Payload {
        std::string_view text;
        PayloadColumns* columns = nullptr;
        size_t row = 0;

        bool is_empty() const { return columns != nullptr ? !columns->has_fields(row) : text == "{ }" || text == "{  }"; }
        // Whether any field has a value; of text, whether it looks as if.
        bool has_fields() const;
        bool mentions(Mark mark) const;
        bool has_comma() const;
    };

    // Tells the sheets how many rows may come, so that they grow once.
    void expect(const std::vector<const Kind*>& kinds, const std::vector<uint64_t>& counts);
    bool take(std::string_view line, uint64_t offset, Progress* progress);
    bool take(const Kind& kind, const Stamp& stamp, const Payload& payload);
    size_t take_lines(std::string_view data, size_t place, uint64_t offset, Progress* progress);
    bool read_time(std::string_view* line, int64_t day_ns, int64_t* ts);
    bool read_context(std::string_view* line);
    bool take_record(const Kind& kind, const Stamp& stamp, const Payload& payload);
    bool take_entry(const Kind& kind, const Stamp& stamp, const Payload& payload);
    bool take_launch(const Kind& kind, const Stamp& stamp, const Payload& payload);
    bool take_scope(const Kind& kind, const Stamp& stamp, const Payload& payload);
    bool take_task(const Kind& kind, const Stamp& stamp, const Payload& payload);
    bool take_exit(const Kind& kind, const Stamp& stamp, const Payload& payload);
    bool read(const Payload& payload, const Shape& shape) {
        if (payload.columns != nullptr) return payload.columns->read(payload.row, shape, texts_, &values_);
        return read_payload(payload.text, shape, texts_, &values_);
    }
    bool drops_token(uint64_t thread) const;
    // Returns false where the exit is left to the reference.
    bool conclude(const Kind& kind, const Stamp& stamp, const Open& call);
    void add(const Target& target, const Stamp& stamp, uint32_t present, std::span<const uint64_t> cells);

    const uint64_t shrink_;
    std::vector<Sheet> sheets_;
    std::vector<TextCodes> texts_;
    Map<uint64_t> contexts_;
    Map<Kind> kinds_;
    std::vector<std::vector<Open>> open_;
    std::unordered_map<LaneKey, Lane, LaneHash> lanes_;
    std::unordered_map<LaneKey, uint64_t, LaneHash> names_;
    Values values_{};

    // Of the line before: most lines say the same.
    std::string clock_, context_;
    std::string joined_;  // lines of one record
    std::string written_;  // the payload of one record
    int64_t clock_ns_ = 0;
    uint64_t thread_ = 0;
};

}  // namespace lanescope::levelzero
