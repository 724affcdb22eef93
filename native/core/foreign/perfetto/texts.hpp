// Texts by code, in order of first sight; and the ids by which one sequence of packets calls them.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lanescope::foreign_perfetto {

class Texts {
public:
    // Return the code of a text, the same for equal bytes.
    int32_t code(std::string_view text);

    size_t size() const { return offsets_.size() - 1; }
    std::string_view operator[](size_t code) const {
        return {bytes_.data() + offsets_[code], static_cast<size_t>(offsets_[code + 1] - offsets_[code])};
    }
    // UTF-8 as found, end to end, and where each text begins: [size() + 1].
    const std::vector<char>& bytes() const { return bytes_; }
    const std::vector<int64_t>& offsets() const { return offsets_; }

private:
    void grow();

    std::vector<char> bytes_;
    std::vector<int64_t> offsets_ = {0};
    std::vector<uint64_t> hashes_;
    std::vector<int32_t> slots_;  // codes + 1, open addressing; 0: free
};

// Codes by id. Ids count up from 1 in practice; others go to a map, so that one large id costs no memory.
class Ids {
public:
    static constexpr int32_t kNone = -1;

    [[gnu::always_inline]] int32_t find(uint64_t id) const {
        if (id < dense_.size() && dense_[static_cast<size_t>(id)] != kNone) [[likely]] return dense_[static_cast<size_t>(id)];
        return find_sparse(id);
    }
    // Keep the first code of an id; false where it has another one.
    bool add(uint64_t id, int32_t code) {
        if (const int32_t known = find(id); known != kNone) return known == code;
        if (id <= dense_.size() + kSlack) {
            if (id >= dense_.size()) dense_.resize(static_cast<size_t>(id) + 1, kNone);
            dense_[static_cast<size_t>(id)] = code;
        } else {
            if (sparse_ == nullptr) sparse_ = std::make_unique<std::unordered_map<uint64_t, int32_t>>();
            sparse_->emplace(id, code);
        }
        return true;
    }
    void clear() {
        dense_.clear();
        sparse_.reset();
    }

private:
    int32_t find_sparse(uint64_t id) const;

    static constexpr uint64_t kSlack = 16;
    std::vector<int32_t> dense_;
    std::unique_ptr<std::unordered_map<uint64_t, int32_t>> sparse_;  // hardly any sequence has it
};

}  // namespace lanescope::foreign_perfetto
