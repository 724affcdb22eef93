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

// Writes one of the recorder's own records, and tells whether there was room; the values are those of its row in
// records.def.
template <Record R, class... T>
bool emit(u64 now, T... values) {
    return Writer<R>::write(now, values...);
}

}  // namespace lanescope::levelzero
