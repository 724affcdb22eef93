#include "core/analysis/align/lines.hpp"

#include <algorithm>
#include <compare>

namespace lanescope::align {

namespace {

// Differences of moments and limits are below 2^62 in size, so their products are below 2^124.
__extension__ typedef __int128 Wide;

struct Point {
    int64_t at;
    int64_t value;

    Point turned() const { return {at, -value}; }
};

struct Slope {
    int64_t rise;
    int64_t run;  // above 0
};

Slope between(Point first, Point second) { return {second.value - first.value, second.at - first.at}; }

std::strong_ordering operator<=>(Slope one, Slope other) { return Wide{one.rise} * other.run <=> Wide{other.rise} * one.run; }

// Points without those that a lower hull has no corner at, from ``first`` on.
void add_to_hull(std::vector<Point>& hull, size_t first, Point point) {
    while (hull.size() >= first + 2 && between(hull[hull.size() - 2], hull.back()) >= between(hull.back(), point)) hull.pop_back();
    hull.push_back(point);
}

// The lines that satisfy the limits so far, seen from above: which of them is the highest from the last moment on. It is
// the one that rises most. A limit from above touches it last; a limit from below does before that, unless the bound of
// the slope decides.
//
// After O'Rourke, An On-Line Algorithm for Fitting Straight Lines Between Data Ranges, 1981: a limit from above that the
// line misses turns it down around a corner of the hull of the limits from below, and that corner only moves forward.
class Highest {
public:
    explicit Highest(Slope bound) : bound_(bound), slope_(bound) {}

    void clear() {
        has_limit_ = false;
        first_ = 0;
        hull_.clear();
    }

    // Whether the line is at or above a point that is not earlier than all limits.
    bool reaches(Point point) const { return !has_limit_ || offset(point) <= 0; }

    // Limit the lines from above.
    void limit(Point upper) {
        if (has_limit_ && offset(upper) >= 0) return;
        has_limit_ = true;
        touched_ = upper;
        slope_ = bound_;
        const Point point = upper.turned();
        // A corner of the same moment limits no slope.
        const size_t count = hull_.size() - (!hull_.empty() && hull_.back().at == point.at);
        if (!count) return;
        while (first_ + 1 < count && between(hull_[first_], point) <= between(hull_[first_ + 1], point)) ++first_;
        const Slope steepest = between(hull_[first_], point);
        slope_ = std::min(slope_, Slope{-steepest.rise, steepest.run}, [](Slope a, Slope b) { return (a <=> b) < 0; });
    }

    // Limit the lines from below.
    void support(Point lower) { add_to_hull(hull_, first_, lower.turned()); }

private:
    // How far a point is above the line, as a sign.
    std::strong_ordering offset(Point point) const {
        return Wide{point.value - touched_.value} * slope_.run <=> Wide{slope_.rise} * (point.at - touched_.at);
    }

    Slope bound_;
    Slope slope_;
    bool has_limit_ = false;
    Point touched_{};
    std::vector<Point> hull_;  // lower hull of the limits from below, turned
    size_t first_ = 0;         // corners before this one touch no line any more
};

}  // namespace

std::vector<int64_t> lower_hull(const Limits& limits) {
    std::vector<int64_t> corners;
    const auto point = [&](int64_t place) {
        const auto i = static_cast<size_t>(place);
        return Point{limits.at[i], limits.most[i]};
    };
    for (int64_t place = 0; place < static_cast<int64_t>(limits.size()); ++place) {
        while (corners.size() >= 2) {
            const Point before = point(corners[corners.size() - 2]), last = point(corners.back());
            if (between(before, last) < between(last, point(place))) break;
            corners.pop_back();
        }
        corners.push_back(place);
    }
    return corners;
}

Segments straight_segments(const Limits& above, const Limits& below, Rate rate) {
    Segments found;
    // Lines seen from above, and turned around seen from below.
    Highest most({rate.numerator, rate.denominator}), least({rate.numerator, rate.denominator});
    bool has_upper = false, has_lower = false, is_empty = true;
    int64_t begin = 0, end = 0;
    const auto restart = [&] {
        if (has_upper && has_lower) {
            found.begin.push_back(begin);
            found.end.push_back(end);
        }
        most.clear();
        least.clear();
        has_upper = has_lower = false;
        is_empty = true;
    };
    // Add the limits of a moment; false: no line satisfies them.
    const auto add = [&](int64_t moment, const int64_t* upper, const int64_t* lower) {
        if (upper) {
            const Point point{moment, *upper};
            if (!least.reaches(point.turned())) return false;
            most.limit(point);
            least.support(point.turned());
        }
        if (lower) {
            const Point turned{moment, *lower};
            if (!most.reaches(turned.turned())) return false;
            least.limit(turned);
            most.support(turned.turned());
        }
        has_upper |= upper != nullptr;
        has_lower |= lower != nullptr;
        begin = is_empty ? moment : begin;
        end = moment;
        is_empty = false;
        return true;
    };
    size_t i = 0, j = 0;
    while (i < above.size() || j < below.size()) {
        const bool is_upper = i < above.size() && (j == below.size() || above.at[i] <= below.at[j]);
        const int64_t moment = is_upper ? above.at[i] : below.at[j];
        const int64_t* upper = is_upper ? &above.most[i++] : nullptr;
        const int64_t* lower = j < below.size() && below.at[j] == moment ? &below.most[j++] : nullptr;
        if (add(moment, upper, lower)) continue;
        restart();
        if (!add(moment, upper, lower)) restart();
    }
    restart();
    return found;
}

}  // namespace lanescope::align
