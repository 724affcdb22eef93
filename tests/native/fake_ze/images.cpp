// Images: elements of 1, 2, 4 or 8 bytes in host memory, and the commands that copy them.
#include <algorithm>
#include <cstring>

#include "api.hpp"
#include "command_types.hpp"
#include "device_state.hpp"
#include "driver_quirks.hpp"

namespace fake_ze {
namespace {

size_t bytes_of(ze_image_format_layout_t layout) {
    switch (layout) {
        case ZE_IMAGE_FORMAT_LAYOUT_8: return 1;
        case ZE_IMAGE_FORMAT_LAYOUT_16:
        case ZE_IMAGE_FORMAT_LAYOUT_8_8: return 2;
        case ZE_IMAGE_FORMAT_LAYOUT_32:
        case ZE_IMAGE_FORMAT_LAYOUT_16_16:
        case ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8: return 4;
        case ZE_IMAGE_FORMAT_LAYOUT_32_32: return 8;
        default: return 0;
    }
}

// A part of an image, or of memory that holds one: where its first element is, and how far rows and planes are apart.
struct Part {
    char* base;
    size_t row, plane;
};

struct Extent {
    size_t width_bytes, height, depth;
    size_t bytes() const { return width_bytes * height * depth; }
};

// False: the region does not lie in the image. A null region is all of it.
bool part_of(Image& image, const ze_image_region_t* region, Part& part, Extent& extent) {
    const ze_image_region_t all = {0, 0, 0, static_cast<uint32_t>(image.width), static_cast<uint32_t>(image.height),
                                   static_cast<uint32_t>(image.depth)};
    if (region == nullptr) region = &all;
    const size_t height = std::max(region->height, 1u), depth = std::max(region->depth, 1u);
    if (region->originX + region->width > image.width || region->originY + height > image.height ||
        region->originZ + depth > image.depth) {
        return false;
    }
    part.row = image.width * image.element;
    part.plane = part.row * image.height;
    part.base = image.bytes.data() + region->originX * image.element + region->originY * part.row +
                region->originZ * part.plane;
    extent = {region->width * image.element, height, depth};
    return true;
}

Part packed(void* memory, const Extent& extent, size_t row = 0, size_t plane = 0) {
    if (row == 0) row = extent.width_bytes;
    if (plane == 0) plane = row * extent.height;
    return {static_cast<char*>(memory), row, plane};
}

ze_result_t append_copy(const char* api, ze_command_list_handle_t list, const Part& to, const Part& from,
                        const Extent& extent, ze_event_handle_t signal, uint32_t count, ze_event_handle_t* waits) {
    Command command;
    command.api = api;
    command.cost = 5 + extent.bytes() / 4096;
    command.bytes = extent.bytes();
    command.to = to.base;
    command.from = from.base;
    command.effect = [to, from, extent](Device&) {
        for (size_t plane = 0; plane < extent.depth; ++plane) {
            for (size_t row = 0; row < extent.height; ++row) {
                std::memcpy(to.base + plane * to.plane + row * to.row, from.base + plane * from.plane + row * from.row,
                            extent.width_bytes);
            }
        }
    };
    return append(list, std::move(command), signal, count, waits);
}

ze_result_t append_between(const char* api, ze_command_list_handle_t list, ze_image_handle_t to, ze_image_handle_t from,
                           const ze_image_region_t* there, const ze_image_region_t* here, ze_event_handle_t signal,
                           uint32_t count, ze_event_handle_t* waits) {
    auto *target = find<Image>(to), *source = find<Image>(from);
    if (target == nullptr || source == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    Part target_part, source_part;
    Extent target_extent, source_extent;
    if (!part_of(*target, there, target_part, target_extent) || !part_of(*source, here, source_part, source_extent) ||
        target_extent.bytes() != source_extent.bytes()) {
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    return append_copy(api, list, target_part, source_part, target_extent, signal, count, waits);
}

ze_result_t append_with_memory(const char* api, bool to_memory, ze_command_list_handle_t list, ze_image_handle_t handle,
                               const void* memory, const ze_image_region_t* region, size_t row, size_t plane,
                               ze_event_handle_t signal, uint32_t count, ze_event_handle_t* waits) {
    auto* image = find<Image>(handle);
    if (image == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (memory == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    Part part;
    Extent extent;
    if (!part_of(*image, region, part, extent)) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    const Part other = packed(const_cast<void*>(memory), extent, row, plane);
    return append_copy(api, list, to_memory ? other : part, to_memory ? part : other, extent, signal, count, waits);
}

}  // namespace

ze_result_t zeImageGetProperties(ze_device_handle_t, const ze_image_desc_t*, ze_image_properties_t* properties) {
    FAKE_ZE_ENTER(zeImageGetProperties);
    properties->samplerFilterFlags = 0;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeImageCreate(ze_context_handle_t handle, ze_device_handle_t device, const ze_image_desc_t* desc,
                          ze_image_handle_t* out) {
    FAKE_ZE_ENTER(zeImageCreate);
    auto* context = find<Context>(handle);
    if (context == nullptr || find<Device>(device) == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (desc == nullptr || out == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    const size_t element = bytes_of(desc->format.layout);
    if (element == 0) return ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT;
    auto* image = make<Image>();
    image->context = Ref<Context>(context);
    image->width = static_cast<size_t>(desc->width);
    image->height = std::max(desc->height, 1u);
    image->depth = std::max({desc->depth, desc->arraylevels, 1u});
    image->element = element;
    image->bytes.resize(image->width * image->height * image->depth * element);
    *out = to_handle(image);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeImageDestroy(ze_image_handle_t handle) {
    FAKE_ZE_ENTER(zeImageDestroy);
    auto* image = find<Image>(handle);
    if (image == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    destroy(image);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListAppendImageCopy(ze_command_list_handle_t list, ze_image_handle_t to, ze_image_handle_t from,
                                         ze_event_handle_t signal, uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendImageCopy);
    return append_between("zeCommandListAppendImageCopy", list, to, from, nullptr, nullptr, signal, count, waits);
}

ze_result_t zeCommandListAppendImageCopyRegion(ze_command_list_handle_t list, ze_image_handle_t to,
                                               ze_image_handle_t from, const ze_image_region_t* there,
                                               const ze_image_region_t* here, ze_event_handle_t signal, uint32_t count,
                                               ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendImageCopyRegion);
    return append_between("zeCommandListAppendImageCopyRegion", list, to, from, there, here, signal, count, waits);
}

ze_result_t zeCommandListAppendImageCopyToMemory(ze_command_list_handle_t list, void* to, ze_image_handle_t from,
                                                 const ze_image_region_t* here, ze_event_handle_t signal,
                                                 uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendImageCopyToMemory);
    return append_with_memory("zeCommandListAppendImageCopyToMemory", true, list, from, to, here, 0, 0, signal, count,
                              waits);
}

ze_result_t zeCommandListAppendImageCopyFromMemory(ze_command_list_handle_t list, ze_image_handle_t to,
                                                   const void* from, const ze_image_region_t* there,
                                                   ze_event_handle_t signal, uint32_t count, ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendImageCopyFromMemory);
    return append_with_memory("zeCommandListAppendImageCopyFromMemory", false, list, to, from, there, 0, 0, signal, count,
                              waits);
}

ze_result_t zeCommandListAppendImageCopyToMemoryExt(ze_command_list_handle_t list, void* to, ze_image_handle_t from,
                                                    const ze_image_region_t* here, uint32_t row, uint32_t plane,
                                                    ze_event_handle_t signal, uint32_t count,
                                                    ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendImageCopyToMemoryExt);
    return append_with_memory("zeCommandListAppendImageCopyToMemoryExt", true, list, from, to, here, row, plane, signal,
                              count, waits);
}

ze_result_t zeCommandListAppendImageCopyFromMemoryExt(ze_command_list_handle_t list, ze_image_handle_t to,
                                                      const void* from, const ze_image_region_t* there, uint32_t row,
                                                      uint32_t plane, ze_event_handle_t signal, uint32_t count,
                                                      ze_event_handle_t* waits) {
    FAKE_ZE_ENTER(zeCommandListAppendImageCopyFromMemoryExt);
    return append_with_memory("zeCommandListAppendImageCopyFromMemoryExt", false, list, to, from, there, row, plane,
                              signal, count, waits);
}

}  // namespace fake_ze
