#include "stream.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "process.hpp"

namespace lanescope::levelzero {

namespace {

constexpr u64 retry_after = 100'000'000;

void add(std::atomic<u64>& counter, u64 count = 1) {
    counter.store(counter.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

}  // namespace

Stream::Stream(u64 number, std::string path, const u8* uuid) : number_(number), path_(std::move(path)) {
    std::memcpy(uuid_, uuid, sizeof uuid_);
}

void Stream::open(u32 thread) {
    thread_ = thread;
    next_size_ = first_packet;
    retry_ = 0;
    add(threads_);
}

void Stream::close() {
    if (packet_ == nullptr) return;
    const usize used = (static_cast<usize>(at_ - base_) + 7) & ~usize{7};
    const u64 before = file_size_ - packet_->packet_bits / 8;
    packet_->packet_bits = 8 * used;
    packet_->complete = 1;
    unmap();
    add(bytes_, before + used - file_size_);
    file_size_ = before + used;
    // Should this fail, readers see zeros after the last packet.
    (void)!::truncate(path_.c_str(), static_cast<off_t>(file_size_));
}

void Stream::forget() {
    unmap();
    at_ = nullptr;
}

void Stream::unmap() {
    if (mapped_ != nullptr) munmap(mapped_, mapped_size_);
    mapped_ = base_ = nullptr;
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
    if (size > first_packet - sizeof(Packet) || now < retry_) return false;
    if (next_packet(now, size)) return true;
    retry_ = now + retry_after;
    return false;
}

// The file is opened by name each time: a descriptor that stayed open could be closed by the program, and come to
// mean one of its own files. The blocks are allocated before they are mapped: a full disk is an answer here, and
// would be a signal later.
bool Stream::next_packet(u64 now, usize size) {
    if (packet_ != nullptr && room_ > largest_packet / 4) {
        // A long pause: the rest of the packet is given back.
        close();
    } else if (packet_ != nullptr) {
        packet_->complete = 1;
    }
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0) {
        output_failed(path_.c_str(), errno);
        return false;
    }
    const usize wanted = std::max(next_size_, size + sizeof(Packet));
    const u64 page = static_cast<u64>(sysconf(_SC_PAGESIZE));
    const u64 floor = file_size_ / page * page;
    const usize skipped = static_cast<usize>(file_size_ - floor);
    void* pages = MAP_FAILED;
    int error = posix_fallocate(file, static_cast<off_t>(file_size_), static_cast<off_t>(wanted));
    if (error == 0) {
        pages = mmap(nullptr, skipped + wanted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file,
                     static_cast<off_t>(floor));
        if (pages == MAP_FAILED) error = errno;
    }
    if (error != 0) {
        // What was allocated in vain goes, so that the file ends with a packet.
        (void)!ftruncate(file, static_cast<off_t>(file_size_));
        ::close(file);
        output_failed(path_.c_str(), error);
        return false;
    }
    ::close(file);
    unmap();
    mapped_ = static_cast<u8*>(pages);
    mapped_size_ = skipped + wanted;
    base_ = mapped_ + skipped;
    packet_ = reinterpret_cast<Packet*>(base_);
    Packet header{};
    std::memcpy(header.uuid, uuid_, sizeof uuid_);
    header.magic = packet_magic;
    header.begin = header.end = now;
    header.content_bits = 8 * sizeof(Packet);
    header.packet_bits = 8 * static_cast<u64>(wanted);
    header.discarded = discarded();
    header.sequence = packets();
    header.thread = thread_;
    *packet_ = header;
    file_size_ += wanted;
    at_ = base_ + sizeof(Packet);
    room_ = wanted - sizeof(Packet);
    last_ = now;
    next_size_ = std::min(2 * next_size_, largest_packet);
    add(packets_);
    add(bytes_, wanted);
    return true;
}

}  // namespace lanescope::levelzero
