// One stream of events of one thread at a time: a file of packets, and beside it a small file that is mapped into memory
// and holds the packet that is being filled.
//
// Nothing is buffered elsewhere: an event is in that file once it is committed, for the kernel keeps the pages of a
// program that is killed. The packet says after each event how far it is filled, so that at most the event under way is
// lost. A full packet is appended to the stream; a kill in between leaves it in both files, with one number.
#pragma once

#include <atomic>
#include <cstring>
#include <string>

#include "stream/clock.hpp"

namespace lanescope::levelzero {

// Whether a file may become so long; writing beyond would be a signal to the program.
bool is_allowed(u64 size);

// How a packet begins: header and context of CTF 1.8 as metadata.cpp describes them.
struct Packet {
    u32 magic;
    u8 uuid[16];
    u32 stream;
    u64 begin, end;                  // time of its first and last event, ns
    u64 content_bits, packet_bits;   // from its begin
    u64 discarded;                   // events of the stream that could not be kept, so far
    u64 sequence;                    // number of the packet in its stream
    u32 thread;
    u32 complete;                    // whether nothing more will come in this packet
};
static_assert(sizeof(Packet) == 80);
inline constexpr u32 packet_magic = 0xC1FC1FC1;

// Size of a packet: it should stay in a processor's second cache.
inline constexpr usize packet_size = 128 << 10;
// Size of an event's header: its number, and the low half of its time.
inline constexpr usize event_header = 6;

// Called by the thread that owns it; counters may be read by others.
class Stream {
public:
    Stream(u64 number, std::string path, const u8* uuid);
    Stream(const Stream&) = delete;

    // Returns where to write the fields of an event of `size` bytes with its header; null if the stream is full or the
    // event interrupts another one of the thread (a signal). Raises `now` if needed, so that times increase.
    u8* reserve(u16 id, u64& now, usize size) {
        if (busy_) [[unlikely]] return refuse();
        busy_ = true;
        // Times have 32 bits in an event: what comes later than that begins a packet.
        if (size > room_ || now - last_ >= u64{1} << 32) [[unlikely]] {
            if (!make_room(now, size)) return refuse_and_free();
        }
        const u32 low = static_cast<u32>(now);
        std::memcpy(at_, &id, sizeof id);
        std::memcpy(at_ + sizeof id, &low, sizeof low);
        return at_ + event_header;
    }

    // Gives the event under way a later time than it was reserved with, if its low half tells it.
    u64 restamp(u64 reserved, u64 now) {
        if (now < reserved || now - last_ >= u64{1} << 32) [[unlikely]] return reserved;
        const u32 low = static_cast<u32>(now);
        std::memcpy(at_ + sizeof(u16), &low, sizeof low);
        return now;
    }

    // Writes events of one kind and size at one time, `put(where, i)` the fields of each; returns how many had room. Each is
    // part of the trace as soon as it is written, as if it came alone.
    template <class Put>
    usize write_block(u16 id, u64 now, usize size, usize count, Put put) {
        if (busy_ || room_ < size || now - last_ >= u64{1} << 32) return 0;
        busy_ = true;
        if (count > room_ / size) count = room_ / size;
        const u32 low = static_cast<u32>(now);
        packet_->end = last_ = now;
        u64 bits = 8 * static_cast<u64>(at_ - base_);
        for (usize i = 0; i < count; ++i) {
            std::memcpy(at_, &id, sizeof id);
            std::memcpy(at_ + sizeof id, &low, sizeof low);
            put(at_ + event_header, i);
            at_ += size;
            bits += 8 * size;
            std::atomic_ref(packet_->content_bits).store(bits, std::memory_order_release);
        }
        room_ -= count * size;
        events_.store(events_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
        busy_ = false;
        return count;
    }

    // Makes the event part of the trace.
    void commit(u64 now, usize size) {
        at_ += size;
        room_ -= size;
        last_ = now;
        packet_->end = now;
        std::atomic_ref(packet_->content_bits).store(8 * static_cast<u64>(at_ - base_), std::memory_order_release);
        events_.store(events_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        busy_ = false;
    }

    void open(u32 thread);   // a thread begins to use it
    void close();            // it has ended
    void forget();           // in a child process: the file belongs to the parent

    u64 number() const { return number_; }
    u64 next_operation() { return number_ << 40 | ++operations_; }
    u64 events() const { return events_.load(std::memory_order_relaxed); }
    u64 discarded() const { return discarded_.load(std::memory_order_relaxed); }
    u64 bytes() const { return bytes_.load(std::memory_order_relaxed); }
    u64 packets() const { return packets_.load(std::memory_order_relaxed); }
    u64 threads() const { return threads_.load(std::memory_order_relaxed); }

private:
    bool make_room(u64& now, usize size);
    bool map_packet();
    void begin_packet(u64 now);
    bool append_packet();
    void unmap();
    u8* refuse();
    u8* refuse_and_free();

    u8* at_ = nullptr;
    usize room_ = 0;
    u64 last_ = 0;
    Packet* packet_ = nullptr;   // == base_
    u8* base_ = nullptr;
    bool busy_ = false;
    std::atomic<u64> events_ = 0;

    u64 number_, operations_ = 0;
    std::string path_, packet_path_;
    u8 uuid_[16];
    u64 retry_ = 0;              // nothing is tried again before this time
    u32 thread_ = 0;
    std::atomic<u64> discarded_ = 0, bytes_ = 0, packets_ = 0, threads_ = 0;
};

}  // namespace lanescope::levelzero
