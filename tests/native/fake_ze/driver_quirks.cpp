#include "driver_quirks.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace fake_ze {
namespace {

[[noreturn]] void refuse(const char* name, const char* value) {
    std::fprintf(stderr, "fake_ze: %s=%s makes no sense\n", name, value);
    std::abort();
}

void read_number(const char* name, auto& into) {
    const char* text = std::getenv(name);
    if (text == nullptr) return;
    char* end = nullptr;
    const long long value = std::strtoll(text, &end, 0);
    if (end == text || *end != '\0') refuse(name, text);
    into = static_cast<std::remove_reference_t<decltype(into)>>(value);
}

// Set `into` to the place of the variable's value among `words`.
void read_word(const char* name, std::initializer_list<std::string_view> words, auto& into) {
    const char* text = std::getenv(name);
    if (text == nullptr) return;
    int place = 0;
    for (const std::string_view word : words) {
        if (word == text) {
            into = static_cast<std::remove_reference_t<decltype(into)>>(place);
            return;
        }
        ++place;
    }
    refuse(name, text);
}

std::string read_path(const char* name) {
    const char* text = std::getenv(name);
    std::string path = text == nullptr ? "" : text;
    if (const size_t at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(getpid()));
    return path;
}

std::vector<Failure> read_failures(const char* name) {
    std::vector<Failure> failures;
    const char* text = std::getenv(name);
    std::string_view rest = text == nullptr ? "" : text;
    while (!rest.empty()) {
        const std::string item(rest.substr(0, rest.find(',')));
        rest.remove_prefix(item.size() == rest.size() ? rest.size() : item.size() + 1);
        const size_t colon = item.find(':');
        if (colon == std::string::npos) refuse(name, text);
        Failure failure{item.substr(0, colon), 0, 0, ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY};
        char* end = nullptr;
        failure.first = failure.last = std::strtoull(item.c_str() + colon + 1, &end, 10);
        if (failure.first == 0) refuse(name, text);
        if (*end == '-') {
            const char* last = end + 1;
            failure.last = std::strtoull(last, &end, 10);
            if (end == last) failure.last = UINT64_MAX;
        }
        if (*end == '=') failure.code = static_cast<ze_result_t>(std::strtoul(end + 1, &end, 16));
        if (*end != '\0') refuse(name, text);
        failures.push_back(failure);
    }
    return failures;
}

Quirks read() {
    Quirks h;
    h.truth = read_path("FAKE_ZE_TRUTH");
    h.stats = read_path("FAKE_ZE_STATS");
    read_word("FAKE_ZE_QUERY_ON_COPY", {"reject", "abort", "allow"}, h.query_on_copy);
    read_word("FAKE_ZE_HOST_RESET", {"works", "sticky", "view"}, h.host_reset);
    read_number("FAKE_ZE_QUERY_BYTES", h.query_bytes);
    read_number("FAKE_ZE_QUERY_LIMIT", h.query_limit);
    read_word("FAKE_ZE_RECYCLE", {"0", "1"}, h.recycle);
    read_word("FAKE_ZE_RESET_CLEARS", {"0", "1"}, h.reset_clears);
    read_number("FAKE_ZE_LATE", h.late_us);
    read_number("FAKE_ZE_TORN", h.torn_us);
    read_number("FAKE_ZE_STATUS_NS", h.status_ns);
    read_word("FAKE_ZE_UNSIGNALLED", {"poison", "not_ready"}, h.unsignalled_not_ready);
    read_word("FAKE_ZE_ORDER", {"free", "list", "engine"}, h.order);
    read_number("FAKE_ZE_SEED", h.seed);
    read_number("FAKE_ZE_LOST", h.lost_after);
    h.failures = read_failures("FAKE_ZE_FAIL");
    read_word("FAKE_ZE_MISTAKES", {"report", "abort"}, h.abort_on_mistake);
    read_word("FAKE_ZE_API",
              {"1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "1.10", "1.11", "1.12", "1.13",
               "1.14", "1.15", "1.16", "1.17"},
              h.api_minor);
    read_number("FAKE_ZE_DEVICES", h.devices);
    read_number("FAKE_ZE_SUBDEVICES", h.subdevices);
    read_word("FAKE_ZE_EXECUTE", {"threads", "inline"}, h.inline_execution);
    read_number("FAKE_ZE_WORKERS", h.workers);
    read_word("FAKE_ZE_CLOCK", {"real", "virtual"}, h.virtual_clock);
    read_number("FAKE_ZE_FREQUENCY", h.frequency);
    read_number("FAKE_ZE_PPM", h.ppm);
    read_number("FAKE_ZE_BITS", h.bits);
    read_number("FAKE_ZE_GLOBAL_BITS", h.global_bits);
    if (h.bits == 0 || h.bits > 64 || h.global_bits == 0 || h.global_bits > 64) refuse("FAKE_ZE_BITS", "");
    if (h.frequency == 0 || h.workers == 0 || h.devices == 0) refuse("FAKE_ZE_FREQUENCY, _WORKERS, _DEVICES", "0");
    read_number("FAKE_ZE_START", h.start);
    if (static_cast<int64_t>(h.start) < 0 && h.bits < 64) h.start += uint64_t{1} << h.bits;
    read_number("FAKE_ZE_SKEW", h.skew);
    return h;
}

}  // namespace

const Quirks& quirks() {
    static const Quirks& once = *new Quirks(read());
    return once;
}

}  // namespace fake_ze
