#include "core/trace/arrow/stream.hpp"

#include <algorithm>
#include <utility>

namespace lanescope::arrow {
namespace {

constexpr int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE

// Readers work on batches side by side: several of them keep all their threads busy. A multiple of 8, so that
// validity bitmaps are cut at whole bytes.
constexpr int64_t kBatchRows = 1 << 18;

// Each exported struct owns its children through this; release() frees them, so a reader may also move a child out
// and release it on its own, as the interface allows.
struct SchemaNode {
    std::string format;
    std::string name;
    std::vector<ArrowSchema> children;
    std::vector<ArrowSchema*> pointers;
    ArrowSchema dictionary{};
};

struct ArrayNode {
    std::vector<const void*> buffers;
    std::vector<ArrowArray> children;
    std::vector<ArrowArray*> pointers;
    ArrowArray dictionary{};
    std::shared_ptr<void> owner;
};

template <class Struct, class Node>
void release(Struct* self) {
    auto* node = static_cast<Node*>(self->private_data);
    for (Struct& child : node->children) {
        if (child.release != nullptr) child.release(&child);
    }
    if (self->dictionary != nullptr && self->dictionary->release != nullptr) {
        self->dictionary->release(self->dictionary);
    }
    delete node;
    self->release = nullptr;
}

SchemaNode* start(ArrowSchema* out, std::string format, std::string name, bool nullable) {
    auto* node = new SchemaNode{std::move(format), std::move(name), {}, {}, {}};
    *out = ArrowSchema{node->format.c_str(), node->name.c_str(), nullptr, nullable ? kNullable : 0, 0, nullptr,
                       nullptr, release<ArrowSchema, SchemaNode>, node};
    return node;
}

void export_schema(const Column& column, ArrowSchema* out) {
    SchemaNode* node = start(out, column.format, column.name, column.nullable);
    if (column.dictionary) {
        export_schema(*column.dictionary, &node->dictionary);
        out->dictionary = &node->dictionary;
    }
}

ArrayNode* start(ArrowArray* out, int64_t offset, int64_t length, int64_t nulls, std::vector<const void*> buffers,
                 std::shared_ptr<void> owner) {
    auto* node = new ArrayNode{std::move(buffers), {}, {}, {}, std::move(owner)};
    *out = ArrowArray{length, nulls, offset, static_cast<int64_t>(node->buffers.size()), 0, node->buffers.data(),
                      nullptr, nullptr, release<ArrowArray, ArrayNode>, node};
    return node;
}

// Rows [offset, offset + length) of a column, over the same buffers.
void export_array(const Column& column, int64_t offset, int64_t length, ArrowArray* out) {
    // Of a part of the rows the number of nulls is not known (-1), unless there are none at all.
    const int64_t nulls = length == column.length || column.null_count == 0 ? column.null_count : -1;
    ArrayNode* node = start(out, offset, length, nulls, column.buffers, column.owner);
    if (column.dictionary) {
        export_array(*column.dictionary, 0, column.dictionary->length, &node->dictionary);
        out->dictionary = &node->dictionary;
    }
}

template <class Struct, class Node>
void adopt_children(Struct* out, Node* node) {
    for (Struct& child : node->children) node->pointers.push_back(&child);
    out->n_children = static_cast<int64_t>(node->children.size());
    out->children = node->pointers.data();
}

struct Stream {
    std::vector<Column> columns;
    int64_t length;
    int64_t given = 0;  // rows handed out so far
};

Stream* self_of(ArrowArrayStream* stream) { return static_cast<Stream*>(stream->private_data); }

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
    const Stream* self = self_of(stream);
    SchemaNode* node = start(out, "+s", "", false);
    node->children.resize(self->columns.size());
    for (size_t i = 0; i < self->columns.size(); ++i) export_schema(self->columns[i], &node->children[i]);
    adopt_children(out, node);
    return 0;
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
    Stream* self = self_of(stream);
    if (self->given == self->length) {
        *out = ArrowArray{};  // a released array is the end of the stream
        return 0;
    }
    const int64_t length = std::min(kBatchRows, self->length - self->given);
    ArrayNode* node = start(out, 0, length, 0, {nullptr}, nullptr);
    node->children.resize(self->columns.size());
    for (size_t i = 0; i < self->columns.size(); ++i) {
        export_array(self->columns[i], self->given, length, &node->children[i]);
    }
    adopt_children(out, node);
    self->given += length;
    return 0;
}

const char* get_last_error(ArrowArrayStream*) { return nullptr; }

void release_stream(ArrowArrayStream* stream) {
    delete self_of(stream);
    stream->release = nullptr;
}

}  // namespace

void make_stream(std::vector<Column> columns, int64_t length, ArrowArrayStream* out) {
    *out = ArrowArrayStream{get_schema, get_next, get_last_error, release_stream,
                            new Stream{std::move(columns), length}};
}

}  // namespace lanescope::arrow
