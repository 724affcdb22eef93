// The Arrow C data and C stream interfaces: the structs of that ABI, and a stream over buffers that live elsewhere.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

extern "C" {

struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema** children;
    struct ArrowSchema* dictionary;
    void (*release)(struct ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void** buffers;
    struct ArrowArray** children;
    struct ArrowArray* dictionary;
    void (*release)(struct ArrowArray*);
    void* private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
    int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
    const char* (*get_last_error)(struct ArrowArrayStream*);
    void (*release)(struct ArrowArrayStream*);
    void* private_data;
};

}  // extern "C"

namespace lanescope::arrow {

// One column: where its buffers lie. `owner` keeps them alive for as long as any reader holds the array.
struct Column {
    std::string name;
    std::string format;
    bool nullable = false;
    int64_t length = 0;
    int64_t null_count = 0;
    std::vector<const void*> buffers;  // validity bitmap (may be null), then what the format asks for
    std::shared_ptr<Column> dictionary;
    std::shared_ptr<void> owner;
};

// Fill `out` with a stream of `length` rows in batches. The caller owns `out` and must call its release.
void make_stream(std::vector<Column> columns, int64_t length, ArrowArrayStream* out);

}  // namespace lanescope::arrow
