#include "api/arguments.hpp"

#include <cstring>
#include <span>

#include "api/program_memory.hpp"

namespace lanescope::levelzero::arguments {

namespace {

enum class Type : u8 { u32_, u64_, text };

struct Member {
    const char* name;
    Type type;
    u8 offset;
};
struct Described {
    Function function;
    const char* parameter;
    u8 size;  // of the structure as far as its members are written
    std::span<const Member> members;
};

// Source of the offsets: ze_api.h of the Level Zero specification 1.17; tests/native/recorder/layouts.cpp compares them.
constexpr Member list[] = {{"ordinal", Type::u32_, 16}, {"flags", Type::u32_, 20}};
constexpr Member queue[] = {{"ordinal", Type::u32_, 16}, {"index", Type::u32_, 20}, {"flags", Type::u32_, 24},
                            {"mode", Type::u32_, 28},    {"priority", Type::u32_, 32}};
constexpr Member pool[] = {{"flags", Type::u32_, 16}, {"count", Type::u32_, 20}};
constexpr Member event[] = {{"index", Type::u32_, 16}, {"signal", Type::u32_, 20}, {"wait", Type::u32_, 24}};
constexpr Member counted_event[] = {{"flags", Type::u32_, 16}, {"signal", Type::u32_, 20}, {"wait", Type::u32_, 24}};
constexpr Member device_memory[] = {{"flags", Type::u32_, 16}, {"ordinal", Type::u32_, 20}};
constexpr Member host_memory[] = {{"flags", Type::u32_, 16}};
constexpr Member module_[] = {{"format", Type::u32_, 16}, {"inputSize", Type::u64_, 24}, {"pBuildFlags", Type::text, 40}};
constexpr Member kernel[] = {{"flags", Type::u32_, 16}};

constexpr Described all[] = {
    {Function::zeCommandListCreate, "desc", 24, list},
    {Function::zeCommandListCreateImmediate, "altdesc", 36, queue},
    {Function::zeCommandQueueCreate, "desc", 36, queue},
    {Function::zeEventPoolCreate, "desc", 24, pool},
    {Function::zeEventCreate, "desc", 28, event},
    {Function::zeEventCounterBasedCreate, "desc", 28, counted_event},
    {Function::zeMemAllocShared, "device_desc", 24, device_memory},
    {Function::zeMemAllocShared, "host_desc", 20, host_memory},
    {Function::zeMemAllocDevice, "device_desc", 24, device_memory},
    {Function::zeMemAllocHost, "host_desc", 20, host_memory},
    {Function::zeModuleCreate, "desc", 48, module_},
    {Function::zeKernelCreate, "desc", 20, kernel},
};

// The place of a parameter among those of its function.
usize place_of(Function function, std::string_view name) {
    static constexpr const char* parameters[] = {
#define CALL(table, name, minor, ...) Signature<Function::name>::parameters,
#include "api/functions.def"
    };
    std::string_view rest = parameters[index(function)];
    for (usize place = 0;; ++place) {
        const usize comma = rest.find(',');
        std::string_view one = rest.substr(0, comma);
        while (one.ends_with(' ')) one.remove_suffix(1);
        one.remove_prefix(one.find_last_of(" *") + 1);
        if (one == name) return place;
        if (comma == std::string_view::npos) return ~usize{0};
        rest.remove_prefix(comma + 1);
    }
}

u8* put_value(u8* at, const void* value, usize size) {
    std::memcpy(at, value, size);
    return at + size;
}

u8* put_chain(u8* at, const void* next) {
    struct Head {
        u32 stype;
        const void* next;
    };
    u32 chain[most_chain + 1];
    u16 count = 0;
    for (; next != nullptr; ) {
        Head head{};
        if (count == most_chain || !copy_of_program(&head, next, sizeof head)) {
            chain[count++] = chain_cut;
            break;
        }
        chain[count++] = head.stype;
        next = head.next;
    }
    at = put_value(at, &count, sizeof count);
    return put_value(at, chain, count * sizeof *chain);
}

u8* put_one(u8* at, const Described& of, const void* given) {
    u8 bytes[64] = {};
    // 0: no structure, 1: read, 2: not readable.
    const u8 state = given == nullptr ? 0 : copy_of_program(bytes, given, of.size) ? 1 : 2;
    at = put_value(at, &state, sizeof state);
    at = put_value(at, bytes, sizeof(u32));
    for (const Member& member : of.members) {
        if (member.type != Type::text) {
            at = put_value(at, bytes + member.offset, member.type == Type::u32_ ? 4 : 8);
        } else {
            const char* text = nullptr;
            std::memcpy(&text, bytes + member.offset, sizeof text);
            at += copy_text_of_program(reinterpret_cast<char*>(at), text, most_text) + 1;
        }
    }
    const void* next = nullptr;
    std::memcpy(&next, bytes + 8, sizeof next);
    return put_chain(at, next);
}

constexpr struct {
    u32 value;
    const char* name;
} stypes[] = {
#define STRUCTURE_TYPE(value, name) {value, #name},
#include "api/structure_types.def"
    {chain_cut, "not read"},
};

}  // namespace

constexpr bool is_known() {
    for (usize i = 0; i < function_count; ++i) {
        bool is_there = false;
        for (const Described& one : all) is_there |= one.function == static_cast<Function>(i);
        if (is_there != has_any(static_cast<Function>(i))) return false;
    }
    return true;
}
static_assert(is_known(), "arguments.hpp names other functions");

usize put(Function function, const void* const* given, u8* at) {
    const u8* begin = at;
    for (const Described& one : all) {
        if (one.function == function) at = put_one(at, one, given[place_of(function, one.parameter)]);
    }
    return static_cast<usize>(at - begin);
}

std::string fields(Function function) {
    std::string made;
    for (const Described& one : all) {
        if (one.function != function) continue;
        const std::string name = one.parameter;
        made += " argument_state_t " + name + "_state; stype_t " + name + "_stype;";
        for (const Member& member : one.members) {
            const char* type = member.type == Type::u32_ ? "uint32_t" : member.type == Type::u64_ ? "uint64_t" : "string";
            made += std::string(" ") + type + " " + name + "_" + member.name + ";";
        }
        made += " uint16_t " + name + "_next_length; stype_t " + name + "_next[" + name + "_next_length];";
    }
    return made;
}

std::string types() {
    std::string made = "typealias enum : integer { size = 8; align = 8; } { \"none\" = 0, \"read\" = 1, \"not readable\" = 2 }"
                       " := argument_state_t;\ntypealias enum : integer { size = 32; align = 8; } {";
    bool is_first = true;
    for (const auto& one : stypes) {
        made += std::string(is_first ? " \"" : ", \"") + one.name + "\" = " + std::to_string(one.value);
        is_first = false;
    }
    return made + " } := stype_t;\n";
}

}  // namespace lanescope::levelzero::arguments
