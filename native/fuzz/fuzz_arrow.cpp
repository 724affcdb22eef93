// Columns of any kind, released in any order: each batch has its rows, and all memory is freed once.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/trace/arrow/stream.hpp"
#include "require.hpp"

using lanescope::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lanescope::arrow;
    if (size < 6) return 0;
    // Up to three batches: one has 2^18 rows.
    const int64_t rows = data[0] + int64_t{data[1] % 3} * (1 << 18) - (data[2] & 1 ? data[0] : 0);
    const size_t count = 1 + data[3] % 5;
    std::vector<Column> columns;
    std::vector<std::weak_ptr<void>> owners;
    for (size_t i = 0; i < count; ++i) {
        const uint8_t chosen = data[(4 + i) % size];
        auto owner = std::make_shared<std::vector<int64_t>>(2);
        owners.push_back(owner);
        Column column{std::string(chosen % 20, 'n'), chosen & 1 ? "l" : "i", (chosen & 2) != 0, rows, chosen & 2 ? 1 : 0,
                      {nullptr, owner->data()}, nullptr, owner};
        if (chosen & 4) {
            column.dictionary = std::make_shared<Column>(
                Column{"", "u", false, 2, 0, {nullptr, owner->data(), owner->data()}, nullptr, owner});
        }
        columns.push_back(std::move(column));
    }
    ArrowArrayStream stream;
    make_stream(std::move(columns), rows, &stream);
    std::vector<ArrowArray> batches;
    std::vector<ArrowSchema> schemas(1 + data[5] % 2);
    for (ArrowSchema& schema : schemas) {
        require(stream.get_schema(&stream, &schema) == 0 && static_cast<size_t>(schema.n_children) == count);
    }
    int64_t given = 0;
    for (;;) {
        ArrowArray batch;
        require(stream.get_next(&stream, &batch) == 0);
        if (batch.release == nullptr) break;
        require(batch.length > 0 && static_cast<size_t>(batch.n_children) == count);
        for (int64_t i = 0; i < batch.n_children; ++i) {
            require(batch.children[i]->length == batch.length && batch.children[i]->offset == given);
        }
        given += batch.length;
        batches.push_back(batch);
    }
    require(given == rows && stream.get_last_error(&stream) == nullptr);
    // In any order: the stream first or last, and a child taken out of its parent, as the interface allows.
    if (data[2] & 2) stream.release(&stream);
    for (size_t i = 0; i < batches.size(); ++i) {
        ArrowArray& batch = batches[data[2] & 4 ? batches.size() - 1 - i : i];
        if (data[2] & 8) {
            ArrowArray taken = *batch.children[0];
            batch.children[0]->release = nullptr;
            batch.release(&batch);
            require(taken.release != nullptr);
            taken.release(&taken);
        } else {
            batch.release(&batch);
        }
        require(batch.release == nullptr);
    }
    for (ArrowSchema& schema : schemas) schema.release(&schema);
    if (!(data[2] & 2)) stream.release(&stream);
    for (const auto& owner : owners) require(owner.expired());
    return 0;
}
