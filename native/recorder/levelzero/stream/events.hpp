// Writing events.
#pragma once

#include "stream/fields.hpp"
#include "stream/process.hpp"

namespace lanescope::levelzero {

template <class... T>
bool write(Stream& stream, u16 id, u64 now, const T&... values) {
    const usize size = (event_header + ... + size_of(values));
    u8* at = stream.reserve(id, now, size);
    if (at == nullptr) return false;
    ((at = put(at, values)), ...);
    stream.commit(now, size);
    return true;
}

template <Record R, class T = typename Fields<R>::Type>
struct Writer;
template <Record R, class... T>
struct Writer<R, void(T...)> {
    static bool write(u64 now, T... values) {
        Stream* stream = this_stream();
        return stream != nullptr && levelzero::write(*stream, record_id(R), now, values...);
    }
};

// Writes an event that ends a call: its first field is the time that the call took without the driver's function, ns, and
// its time is taken when all else is written. `finish` tells both, time first, as late as can be.
template <class Finish, class... T>
bool write_last(Stream& stream, u16 id, u64 now, Finish finish, const T&... values) {
    const usize size = ((event_header + sizeof(u32)) + ... + size_of(values));
    u8* const own = stream.reserve(id, now, size);
    if (own == nullptr) return false;
    u8* at = own + sizeof(u32);
    ((at = put(at, values)), ...);
    const auto [end, own_ns] = finish();
    put(own, u32{own_ns});
    stream.commit(stream.restamp(now, end), size);
    return true;
}

// Writes one of the recorder's own records, and tells whether there was room; the values are those of its row in
// records.def.
template <Record R, class... T>
bool emit(u64 now, T... values) {
    return Writer<R>::write(now, values...);
}

}  // namespace lanescope::levelzero
