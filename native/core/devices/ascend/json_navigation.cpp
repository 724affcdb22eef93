// Steps of the scanner into objects and lists, key by key and item by item; what it reads in bulk is in
// json_scanner.cpp.
#include <utility>

#include "core/devices/ascend/json_scanner.hpp"

namespace lanescope::ascend {

bool Scanner::open() {
    space();
    if (fault_ != ParseError::none) return false;
    if (*at_ != '{') return unexpected();
    ++at_;
    ++open_;
    is_fresh_ = true;
    return true;
}

bool Scanner::open_list() {
    if (fault_ != ParseError::none) return false;
    space();
    if (*at_ != '[') return unexpected();
    ++at_;
    ++open_;
    is_fresh_ = true;
    return true;
}

bool Scanner::item() {
    if (fault_ != ParseError::none) return false;
    if (open_ == 0) return unexpected();
    space();
    if (*at_ == ']') {
        ++at_;
        --open_;
        is_fresh_ = false;
        return false;
    }
    if (!std::exchange(is_fresh_, false)) {
        if (*at_ != ',') return unexpected();
        ++at_;
        space();
    }
    return true;
}

bool Scanner::key(Span* out) {
    if (fault_ != ParseError::none) return false;
    if (open_ == 0) return unexpected();
    space();
    if (*at_ == '}') {
        ++at_;
        is_fresh_ = false;
        if (--open_ != 0) return false;
        space();
        return at_ == end_ ? false : fail(ParseError::syntax);
    }
    if (!std::exchange(is_fresh_, false)) {
        if (*at_ != ',') return unexpected();
        ++at_;
        space();
    }
    out->begin = offset() + 1;
    if (!skip_string()) return false;
    out->end = offset() - 1;
    space();
    if (*at_ != ':') return unexpected();
    ++at_;
    return true;
}

char Scanner::peek() {
    space();
    return *at_;
}

bool Scanner::skip(Span* out) {
    if (fault_ != ParseError::none) return false;
    space();
    out->begin = offset();
    if (!skip_value()) return false;
    out->end = offset();
    return true;
}

}  // namespace lanescope::ascend
