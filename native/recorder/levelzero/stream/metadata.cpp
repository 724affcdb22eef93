#include "stream/metadata.hpp"

#include <bit>
#include <string_view>
#include <vector>

#include "stream/fields.hpp"

namespace lanescope::levelzero {

namespace {

using std::string;
using std::string_view;

string number(u64 value) { return std::to_string(value); }

string quoted(string_view text) {
    string made = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') made += '\\';
        made += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
    return made + '"';
}

string uuid_text(const u8* uuid) {
    string made;
    for (int i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) made += '-';
        made += "0123456789abcdef"[uuid[i] >> 4];
        made += "0123456789abcdef"[uuid[i] & 15];
    }
    return made;
}

// The last words of parameters: "Handle hQueue, u32 count" -> hQueue, count.
std::vector<string> names_of(string_view parameters) {
    std::vector<string> found;
    while (!parameters.empty()) {
        const size_t comma = parameters.find(',');
        string_view one = parameters.substr(0, comma);
        while (one.ends_with(' ')) one.remove_suffix(1);
        one.remove_prefix(one.find_last_of(" *") + 1);
        found.emplace_back(one);
        parameters.remove_prefix(comma == string_view::npos ? parameters.size() : comma + 1);
    }
    return found;
}

string field(const char* type, const string& name) {
    if (string_view(type) == "handles") return " uint16_t " + name + "_length; address_t " + name + "[" + name + "_length];";
    return string(" ") + type + " " + name + ";";
}

// The types of parameters, null for those that are not written.
template <class T>
struct Types;
template <class R, class... T>
struct Types<R(T...)> {
    static constexpr const char* told[] = {(is_told<T> ? type_name<T>() : nullptr)...};
    static constexpr const char* created[] = {(std::is_same_v<T, Created*> ? "address_t" : nullptr)...};
    static constexpr const char* all[] = {type_name<T>()...};
    static constexpr size_t count = sizeof...(T);
};

struct EventClass {
    const char *name, *parameters;
    const char* const* types;         // of an entry or record
    const char* const* exit_types;    // of an exit; null for records
    size_t count;
};

constexpr EventClass functions[] = {
#define CALL(table, function, minor, ...)                                                    \
    {#function, Signature<Function::function>::parameters,                                   \
     is_append(Function::function) ? nullptr : Types<Signature<Function::function>::Type>::told, \
     Types<Signature<Function::function>::Type>::created, Types<Signature<Function::function>::Type>::count},
#include "api/functions.def"
};

constexpr EventClass records[] = {
#define RECORD(name, ...)                                                                                        \
    {"lanescope_ze:" #name, Fields<Record::name>::names, Types<Fields<Record::name>::Type>::all, nullptr, \
     Types<Fields<Record::name>::Type>::count},
#include "api/records.def"
};

string fields(const EventClass& of, const char* const* types) {
    string made;
    if (types == nullptr) return made;
    const auto names = names_of(of.parameters);
    for (size_t i = 0; i < of.count; ++i) {
        if (types[i] != nullptr) made += field(types[i], names[i]);
    }
    return made;
}

string event(u16 id, const string& name, const string& fields) {
    return "event { id = " + number(id) + "; name = " + quoted(name) + "; stream_id = 0; fields := struct {" + fields +
           " }; };\n";
}

template <size_t N>
string enumeration(const char* name, int bits, const char* const (&names)[N]) {
    string made = "typealias enum : integer { size = " + number(bits) + "; align = 8; } {";
    for (size_t i = 0; i < N; ++i) made += (i == 0 ? " " : ", ") + quoted(names[i]) + " = " + number(i);
    return made + " } := " + name + ";\n";
}

string integer(int bits, const char* name, const char* more = "") {
    return "typealias integer { size = " + number(bits) + "; align = 8; signed = false;" + more + " } := " + name + ";\n";
}

}  // namespace

string metadata(const TraceEnv& facts) {
    const u64 second = 1'000'000'000;
    string made = "/* CTF 1.8 */\n";
    made += "/* lanescope_ze: calls of Level Zero and the recorder's own records */\n";
    made += integer(8, "uint8_t") + integer(16, "uint16_t") + integer(32, "uint32_t") + integer(64, "uint64_t");
    made += integer(64, "address_t", " base = hexadecimal;");
    made += "trace { major = 1; minor = 8; uuid = \"" + uuid_text(facts.uuid) + "\"; byte_order = ";
    made += std::endian::native == std::endian::little ? "le" : "be";
    made += "; packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; }; };\n";
    made += "env { domain = \"lanescope_ze\"; version = 1; hostname = " + quoted(facts.host) +
            "; pid = " + number(facts.pid) + "; program = " + quoted(facts.program) + "; boot = " + quoted(facts.boot) +
            "; };\n";
    made += "clock { name = monotonic; description = \"CLOCK_MONOTONIC\"; freq = 1000000000; offset_s = " +
            number(facts.epoch / second) + "; offset = " + number(facts.epoch % second) + "; absolute = true; };\n";
    made += integer(64, "time_t", " map = clock.monotonic.value;");
    made += integer(32, "short_time_t", " map = clock.monotonic.value;");
    made += "stream { id = 0;"
            " packet.context := struct { time_t timestamp_begin; time_t timestamp_end; uint64_t content_size;"
            " uint64_t packet_size; uint64_t events_discarded; uint64_t packet_seq_num; uint32_t thread;"
            " uint32_t complete; };"
            " event.header := struct { uint16_t id; short_time_t timestamp; }; };\n";
    made += "typealias enum : integer { size = 32; align = 8; } {";
    for (const auto& [value, name] : result_names) made += (value == 0 ? " " : ", ") + quoted(name) + " = " + number(value);
    made += " } := result_t;\n";
    made += enumeration("api_t", 8 * sizeof(Api), function_names) + enumeration("how_t", 8, how_names);
    made += enumeration("reason_t", 8, reason_names) + enumeration("scope_t", 8, scope_names);
    made += enumeration("memory_t", 8, memory_names);
    for (size_t i = 0; i < function_count; ++i) {
        const auto function = static_cast<Function>(i);
        const EventClass& of = functions[i];
        made += event(entry_id(function), of.name + string("_entry"), fields(of, of.types));
        made += event(exit_id(function), of.name + string("_exit"), " uint32_t recorder_ns; result_t zeResult;" + fields(of, of.exit_types));
    }
    for (size_t i = 0; i < record_count; ++i) {
        made += event(record_id(static_cast<Record>(i)), records[i].name, fields(records[i], records[i].types));
    }
    return made;
}

}  // namespace lanescope::levelzero
