// What happens around a call: its entry and exit are written, and what the timeline needs besides.
#pragma once

#include "api/arguments.hpp"
#include "api/program_memory.hpp"
#include "intercept/routes.hpp"
#include "stream/events.hpp"

namespace lanescope::levelzero {

// Which of the ways a call came, and so where it goes on.
enum class InterceptPath : u8 { layer, extension };
inline constexpr size_t way_count = 2;

// Where calls go on; null until it is known.
extern std::atomic<void*> targets[way_count][function_count];

template <class T>
struct PointerOf;
template <class... A>
struct PointerOf<Result(A...)> {
    using Type = Result (*)(A...);
};
template <Function F>
using Pointer = typename PointerOf<typename Signature<F>::Type>::Type;

template <Function F>
Pointer<F> target(InterceptPath way) {
    return reinterpret_cast<Pointer<F>>(targets[static_cast<size_t>(way)][index(F)].load(std::memory_order_relaxed));
}

// One call under way.
struct Call {
    InterceptPath way;
    u64 begin = 0;         // time of the call, 0 if it was not requested
    bool is_told = false;  // whether its exit is to be written
    bool is_timed = false; // whether it is stamped
    // Stamps of a timed call: its entry, and around the driver's function.
    u64 entered = 0, left = 0, returned = 0;
    u64 known_now = 0;

    // About the time of the return from the driver.
    u64 now() {
        if (known_now == 0) known_now = returned != 0 ? local.clock.time(returned) : host_ns();
        return known_now;
    }
    void start() {
        if (begin == 0) begin = host_ns();
    }

    struct End {
        u64 ns;
        u32 own_ns;
    };
    // The time now, and how much of it since the entry was the recorder's.
    End finish() {
        const u64 stamp = local.clock.read();
        const u64 all = stamp - entered, drivers = returned - left;
        return {local.clock.time(stamp), static_cast<u32>(std::min<u64>(local.clock.length(all - drivers), ~u32{0}))};
    }

    // A function of the driver, or null where this driver has none.
    template <Function F>
    Pointer<F> driver() const {
        return target<F>(InterceptPath::layer);
    }
};

// Whether a call of the program's was told that a device is lost.
extern std::atomic<bool> is_device_lost;

// The driver's function, for who is called in its place: what passes in it is not the recorder's.
template <Function F>
struct Next {
    Call& call;
    Pointer<F> function;

    template <class... A>
    Result operator()(A... a) const {
        if (!call.is_timed) return seen(function(a...));
        call.left = local.clock.read();
        const Result result = function(a...);
        call.returned = local.clock.read();
        return seen(result);
    }

private:
    static Result seen(Result result) {
        if (result == device_lost) [[unlikely]] is_device_lost.store(true, std::memory_order_relaxed);
        return result;
    }
};

// What a function needs besides its entry and exit, whether those are told or not. A specialisation may have one of
//   static void after(Call&, parameters)              called when the driver has succeeded
//   static Result call(Call&, Next<F>, parameters)    called in its place
template <Function F>
struct Hook {};

// Whether a function only collects results besides: if it is not written, and none are awaited, there is nothing to do.
template <Function F>
inline constexpr bool is_collecting = false;

// Whether what is done besides is for timed operations only: where none are, there is nothing to do.
template <Function F>
inline constexpr bool is_for_timing = false;

// Where each entry goes on: to the driver as long as there is nothing else to do. A call that is not recorded costs one
// jump so.
extern std::atomic<void*> routes[way_count][function_count];

// The long ways through a call: one piece of code for both ways that it can come.
template <Function F, class T = typename Signature<F>::Type>
struct Followed;

template <Function F, class... A>
struct Followed<F, Result(A...)> {
    static constexpr bool is_replaced = requires(Call& call, Next<F> next, A... a) { Hook<F>::call(call, next, a...); };
    static constexpr bool is_observed = requires(Call& call, A... a) { Hook<F>::after(call, a...); };
    static constexpr bool is_followed = is_replaced || is_observed;

    // Without its entry and exit.
    [[gnu::noinline]] static Result pass(A... a, InterceptPath way) {
        Call call{way};
        return follow(call, Next<F>{call, target<F>(way)}, a...);
    }

    // With them.
    [[gnu::noinline]] static Result tell(A... a, InterceptPath way) {
        local.clock.prepare();
        Call call{way};
        call.is_told = call.is_timed = true;
        call.entered = local.clock.read();
        call.begin = local.clock.time(call.entered);
        emit_entry(call.begin, a...);
        const Result result = follow(call, Next<F>{call, target<F>(way)}, a...);
        if (call.is_told) emit_exit(call, result, a...);
        return result;
    }

private:
    static Result follow(Call& call, Next<F> next, A... a) {
        if constexpr (is_replaced) {
            return Hook<F>::call(call, next, a...);
        } else {
            const Result result = next(a...);
            if constexpr (is_observed) {
                if (result == success) Hook<F>::after(call, a...);
            }
            return result;
        }
    }

    // Texts may lead nowhere as long as the driver has not looked at them.
    static constexpr bool has_texts = (std::is_same_v<A, Text> || ...);
    struct CopiedText {
        char text[longest_text + 1];
    };
    static auto copied(CopiedText& to, const auto& value) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, Text>) {
            copy_text_of_program(to.text, value, longest_text);
            return static_cast<Text>(to.text);
        } else {
            return value;
        }
    }

    static usize size_in_entry(const auto& value) {
        if constexpr (is_told<std::remove_cvref_t<decltype(value)>>) return size_of(value);
        return 0;
    }

    static u8* put_in_entry(u8* at, const auto& value) {
        if constexpr (is_told<std::remove_cvref_t<decltype(value)>>) return put(at, value);
        return at;
    }

    static u8* put_in_exit(u8* at, Result result, const auto& value) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, Created*>) {
            return put(at, result == success && value != nullptr ? static_cast<Address>(value->value) : nullptr);
        }
        return at;
    }

    // Structures behind pointers, where the function has any that are written.
    static usize put_arguments(u8* at, A... a) {
        if constexpr (arguments::has_any(F)) {
            const void* given[] = {pointer_of(a)...};
            return arguments::put(F, given, at);
        }
        return 0;
    }
    static const void* pointer_of(const auto& value) {
        if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(value)>>) {
            return reinterpret_cast<const void*>(value);
        } else {
            return nullptr;
        }
    }

    static void emit_entry(u64 now, A... a) {
        Stream* stream = this_stream();
        if (stream == nullptr) return;
        if constexpr (is_append(F)) {
            write(*stream, entry_id(F), now);
        } else {
            u8 described[arguments::most_bytes];
            const usize more = put_arguments(described, a...);
            if constexpr (has_texts) {
                static_assert(((std::is_same_v<A, Text> ? 1 : 0) + ...) == 1, "a text more needs room of its own");
                CopiedText text;
                put_entry(*stream, now, described, more, copied(text, a)...);
            } else {
                put_entry(*stream, now, described, more, a...);
            }
        }
    }
    static void put_entry(Stream& stream, u64 now, const u8* described, usize more, A... a) {
        const usize size = ((event_header + more) + ... + size_in_entry(a));
        if (u8* at = stream.reserve(entry_id(F), now, size)) {
            ((at = put_in_entry(at, a)), ...);
            std::memcpy(at, described, more);
            stream.commit(now, size);
        }
    }

    static void emit_exit(Call& call, Result result, A... a) {
        constexpr usize size =
            ((event_header + sizeof(u32) + sizeof result) + ... + (std::is_same_v<A, Created*> ? sizeof(Address) : 0));
        Stream* stream = this_stream();
        if (stream == nullptr) return;
        u64 now = call.now();
        if (u8* const own = stream->reserve(exit_id(F), now, size)) {
            u8* at = put(own + sizeof(u32), result);
            ((at = put_in_exit(at, result, a)), ...);
            const Call::End end = call.finish();
            put(own, end.own_ns);
            stream->commit(stream->restamp(now, end.ns), size);
        }
    }
};

template <Function F, InterceptPath W, class T = typename Signature<F>::Type>
struct Entry;

// What a program calls.
template <Function F, InterceptPath W, class... A>
struct Entry<F, W, Result(A...)> : Followed<F> {
    static Result call(A... a) {
        const auto route = routes[static_cast<size_t>(W)][index(F)].load(std::memory_order_relaxed);
        return reinterpret_cast<Pointer<F>>(route)(a...);
    }
    // Where routes lead.
    static Result tell(A... a) { return Followed<F>::tell(a..., W); }
    static Result pass(A... a) { return Followed<F>::pass(a..., W); }
};

// AFTER(function, parameters) { ... }: what is done once the driver has succeeded.
#define AFTER(F, ...)                               \
    template <>                                     \
    struct Hook<Function::F> {                      \
        static void after(Call& call, __VA_ARGS__); \
    };                                              \
    inline void Hook<Function::F>::after([[maybe_unused]] Call& call, __VA_ARGS__)
// INSTEAD(function, parameters) { ... }: what is done in place of the driver's function, which is `next`.
#define INSTEAD(F, ...)                                                         \
    template <>                                                                 \
    struct Hook<Function::F> {                                                  \
        static Result call(Call& call, Next<Function::F> next, __VA_ARGS__);    \
    };                                                                          \
    inline Result Hook<Function::F>::call([[maybe_unused]] Call& call, Next<Function::F> next, __VA_ARGS__)

}  // namespace lanescope::levelzero
