// Hex text -> words: one word of 8 hex digits a line.
#pragma once
#include "core/devices/aie/frame_format.hpp"

namespace lanescope::aie {

// Lines that are no word are lost; a placeholder stands in for each, so that what follows keeps its place in the packets.
class TextReader {
  public:
    // Needs room for one word in two bytes, and one more. Returns how many words were written.
    size_t read(std::span<const uint8_t> text, std::span<uint32_t> words, std::span<int64_t> offsets);
    size_t finish(std::span<uint32_t> words, std::span<int64_t> offsets);  // the last line may lack its end

    int64_t digits() const { return digits_; }            // bytes that made words
    int64_t blanks() const { return blanks_; }            // line ends and spaces
    int64_t lost() const { return lost_; }                // bytes of bad lines
    const Tally& bad_lines() const { return bad_lines_; }

  private:
    bool end_line(uint32_t& word, int64_t& offset);

    int64_t position_ = 0;
    int64_t line_ = 0;        // where the line's first mark lies
    int64_t marks_ = 0;       // bytes of the line that are neither blank nor line end
    uint32_t value_ = 0;
    bool is_bad_ = false;
    bool is_closed_ = false;  // a blank followed the digits
    int64_t digits_ = 0;
    int64_t blanks_ = 0;
    int64_t lost_ = 0;
    Tally bad_lines_;
};

}  // namespace lanescope::aie
