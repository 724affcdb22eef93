#include "stream/stream.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "stream/process.hpp"

namespace lanescope::levelzero {

namespace {

constexpr u64 retry_after = 100'000'000;

void add(std::atomic<u64>& counter, u64 count = 1) {
    counter.store(counter.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

// Files are opened by name each time they are needed: a descriptor that stayed open could be closed by the program, and
// come to mean one of its own files.
int open_file(const std::string& path, int flags) {
    return ::open(path.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
}

}  // namespace

bool is_allowed(u64 size) {
    rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur;
}

Stream::Stream(u64 number, std::string path, const u8* uuid)
    : number_(number), path_(std::move(path)), packet_path_(path_ + ".live") {
    std::memcpy(uuid_, uuid, sizeof uuid_);
}

void Stream::open(u32 thread) {
    thread_ = thread;
    retry_ = 0;
    add(threads_);
}

void Stream::close() {
    if (packet_ == nullptr) return;
    // Should this fail, the packet stays where it is, and readers find it there.
    const bool is_moved = append_packet();
    unmap();
    if (is_moved) ::unlink(packet_path_.c_str());
}

void Stream::forget() {
    unmap();
    at_ = nullptr;
}

void Stream::unmap() {
    if (base_ != nullptr) munmap(base_, packet_size);
    base_ = nullptr;
    packet_ = nullptr;
    room_ = 0;
}

u8* Stream::refuse() {
    add(discarded_);
    if (packet_ != nullptr) packet_->discarded = discarded();
    return nullptr;
}

u8* Stream::refuse_and_free() {
    busy_ = false;
    return refuse();
}

bool Stream::make_room(u64& now, usize size) {
    if (packet_ != nullptr && now < last_) {
        // Two readings were taken in the other order.
        now = last_;
        if (size <= room_) return true;
    }
    if (size > packet_size - sizeof(Packet) || now < retry_) return false;
    if (packet_ == nullptr ? !map_packet() : !append_packet()) {
        retry_ = now + retry_after;
        return false;
    }
    begin_packet(now);
    return true;
}

// The blocks are allocated before they are mapped: a full disk is an answer here, and would be a signal later.
bool Stream::map_packet() {
    int error = is_allowed(packet_size) ? 0 : EFBIG;
    const int file = error == 0 ? open_file(packet_path_, O_RDWR | O_TRUNC) : -1;
    void* pages = MAP_FAILED;
    if (error == 0) error = file < 0 ? errno : posix_fallocate(file, 0, packet_size);
    if (error == 0) {
        pages = mmap(nullptr, packet_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (pages == MAP_FAILED) error = errno;
    }
    if (file >= 0) ::close(file);
    if (error != 0) {
        if (file >= 0) ::unlink(packet_path_.c_str());
        output_failed(packet_path_.c_str(), error);
        return false;
    }
    base_ = static_cast<u8*>(pages);
    packet_ = static_cast<Packet*>(pages);
    return true;
}

// Starts to refill the mapped packet. Whatever part of this is in the file at a kill: it has no event of another packet,
// and no new number before all the rest is new. The first time, it only becomes a packet when it is complete.
void Stream::begin_packet(u64 now) {
    // What is stored with release comes after all that was stored before.
    const auto store = [](auto& field, auto value) {
        std::atomic_ref(field).store(static_cast<std::remove_reference_t<decltype(field)>>(value), std::memory_order_release);
    };
    store(packet_->content_bits, 8 * sizeof(Packet));
    store(packet_->begin, now);
    store(packet_->end, now);
    store(packet_->packet_bits, 8 * packet_size);
    store(packet_->discarded, discarded());
    store(packet_->thread, thread_);
    store(packet_->complete, 0);
    std::memcpy(packet_->uuid, uuid_, sizeof uuid_);
    store(packet_->sequence, packets());
    store(packet_->magic, packet_magic);
    at_ = base_ + sizeof(Packet);
    room_ = packet_size - sizeof(Packet);
    last_ = now;
    add(packets_);
}

// Appends the mapped packet to the stream. If not all of it fits, the stream keeps its previous end.
bool Stream::append_packet() {
    const usize used = (static_cast<usize>(at_ - base_) + 7) & ~usize{7};
    std::memset(at_, 0, static_cast<usize>(base_ + used - at_));
    Packet header = *packet_;
    header.packet_bits = 8 * used;
    header.complete = 1;
    const int file = open_file(path_, O_WRONLY | O_APPEND);
    if (file < 0) {
        output_failed(path_.c_str(), errno);
        return false;
    }
    const off_t before = lseek(file, 0, SEEK_END);
    int error = before < 0 ? errno : is_allowed(static_cast<u64>(before) + used) ? 0 : EFBIG;
    const auto write_all = [&](const void* data, usize size) {
        const auto* from = static_cast<const u8*>(data);
        for (usize done = 0; error == 0 && done < size;) {
            const ssize_t count = ::write(file, from + done, size - done);
            if (count >= 0) {
                done += static_cast<usize>(count);
            } else if (errno != EINTR) {
                error = errno;
            }
        }
    };
    write_all(&header, sizeof header);
    write_all(base_ + sizeof header, used - sizeof header);
    if (error == 0) {
        add(bytes_, used);
    } else {
        if (before >= 0) (void)!ftruncate(file, before);
        output_failed(path_.c_str(), error);
    }
    ::close(file);
    return error == 0;
}

}  // namespace lanescope::levelzero
