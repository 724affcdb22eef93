// A file as memory, of which nothing is copied.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

namespace lanescope::source {

// What became of a mapped file; it outlives the mapping.
struct FileWatch {
    // A page was read that the file no longer has: zeros were read in its place.
    std::atomic<bool> is_shorter{false};
};

// Pages of the file itself, and one byte 0 behind its content. They are private: what is written to them, and what a
// writer puts behind the content, is seen nowhere else. What a writer changes inside may be seen.
class MappedFile {
public:
    // Null: the system does not map this file, or there are as many mappings as can be watched.
    static std::unique_ptr<MappedFile> map(int descriptor, size_t size);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    // The content and the byte behind it.
    std::span<char> text() const { return {pages_, size_ + 1}; }
    const std::shared_ptr<FileWatch>& watch() const { return watch_; }

    // Give the pages of all mapped files back to the system, which reads them again when they are needed.
    static void forget_pages();

private:
    MappedFile() = default;

    char* pages_ = nullptr;
    size_t size_ = 0, mapped_ = 0;
    size_t place_ = 0;  // among the watched mappings
    std::shared_ptr<FileWatch> watch_;
};

}  // namespace lanescope::source
