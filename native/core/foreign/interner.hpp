// Texts by code.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::foreign {

// Texts by code, in order of first sight.
class Interner {
public:
    Interner();
    int32_t code(std::string_view text);
    size_t size() const { return entries_.size(); }
    std::string_view text(size_t code) const;

private:
    struct Entry {
        uint64_t hash;
        size_t begin;
        size_t size;
    };
    void grow();

    std::string arena_;
    std::vector<Entry> entries_;
    std::vector<uint32_t> table_;  // code + 1; 0: free
};

}  // namespace lanescope::foreign
