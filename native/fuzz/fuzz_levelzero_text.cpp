// Any bytes as a text: nothing outside of it is read, lines are taken whole and in order, and rows are whole.
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/devices/levelzero/text_scanner.hpp"

using namespace lanescope::levelzero;

namespace {

// Of each role one kind or more, as short as texts allow, so that inputs meet them.
void tell(TextScanner& scanner) {
    scanner.add_context("h - vpid: 1, vtid: 1", 0);
    scanner.add_context("h - vpid: 1, vtid: 2", 1);
    scanner.add_text(0, "OK", 1 | TextScanner::kSuccess);
    scanner.add_text(0, "NO", 2);
    const Cell result{"", "r", CellKind::maybe_text, false, 0};

    Kind record;
    record.role = Role::record;
    record.target = {1, 0};
    record.shape = Shape({{"", "a", CellKind::integer, true, 0},
                          {"", "w", CellKind::integers, false, 0},
                          {"g", "x", CellKind::small, true, 0},
                          {"", "f", CellKind::flag, false, 0}});
    scanner.add_kind("p:r", record);

    Kind entry;
    entry.role = Role::entry;
    entry.append = Target{2, 5};
    entry.append_shape = Shape({{"", "hCommandList", CellKind::integer, true, 0},
                                {"", "w", CellKind::integers, false, 0},
                                {"", "n", CellKind::refused, false, 0}});
    scanner.add_kind("z:e", entry);
    Kind exit;
    exit.role = Role::exit;
    exit.target = {0, 0, true};
    exit.shape = Shape({result});
    scanner.add_kind("z:x", exit);

    Kind begin;
    begin.role = Role::entry;
    begin.function = 3;
    begin.is_remembered = true;
    begin.shape = Shape({{"", "a", CellKind::integer, true, 0}, {"", "w", CellKind::integers, false, 0}});
    scanner.add_kind("z:b", begin);
    const std::pair<const char*, Conclusion> ends[] = {{"z:l", Conclusion::allocation}, {"z:c", Conclusion::execution}};
    for (const auto& [name, conclusion] : ends) {
        Kind end = exit;
        end.function = 3;
        end.shape = Shape({result, {"", "b", CellKind::integer, false, 0}});
        end.conclusion = conclusion;
        end.conclusion_target = {conclusion == Conclusion::allocation ? 3u : 4u, 0};
        scanner.add_kind(name, end);
    }
}

bool is_line_begin(std::string_view text, size_t place) { return place == 0 || text[place - 1] == '\n'; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // Of its own memory, so that a byte read behind its end is noticed.
    std::vector<char> copy(data, data + size);
    const std::string_view text{copy.data(), size};
    TextScanner scanner(1, {2, 4, 3, 2, 3}, 1);
    tell(scanner);
    TextScanner::Progress progress{0, 0, 0};
    size_t place = 0, lines = 0;
    while (place < size) {
        const size_t next = scanner.scan(text, place, 0, &progress);
        if (next < place || next > size || !is_line_begin(text, next)) std::abort();
        // The reader of the line that is left may know more: calls that the scanner does not.
        if (++lines % 3 == 0) scanner.enter(lines % 2, {3, true, lines, 0, lines, {}});
        if (lines % 5 == 0) scanner.leave(lines % 2, 3);
        const size_t newline = text.find('\n', next);
        if (newline == std::string_view::npos) break;
        place = newline + 1;
    }
    if (progress.seq > size) std::abort();
    for (const Sheet& sheet : scanner.sheets()) {
        for (const auto& cells : sheet.cells) {
            if (cells.size() != sheet.count()) std::abort();
        }
        for (size_t row = 0; row < sheet.count(); ++row) {
            if (sheet.seq[row] == 0 || sheet.seq[row] > progress.seq || sheet.thread[row] > 1) std::abort();
            for (size_t cell = 0; cell < sheet.cells.size(); ++cell) {
                if ((sheet.present[row] >> cell & 1) == 0 && sheet.cells[cell][row] != 0) std::abort();
            }
        }
    }
    return 0;
}
