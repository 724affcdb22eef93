// A CUDA driver without a GPU: it takes the calls that benchmarks/gpu/driver.py makes, and runs the kernels on the CPU.
// FAKE_FAULT=output spoils results, =devices finds no GPU, =timer steps the timer by a microsecond.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "fibers.hpp"

#define LANESCOPE_MACHINE "machine.hpp"
#include KERNELS

namespace {

using Call = void (*)(void**);

template <class... Parameters, std::size_t... at>
void call(void (*kernel)(Parameters...), void** arguments, std::index_sequence<at...>) {
    kernel(*static_cast<std::remove_cv_t<Parameters>*>(arguments[at])...);
}

template <auto kernel>
struct Caller;
template <class... Parameters, void (*kernel)(Parameters...)>
struct Caller<kernel> {
    static void run(void** arguments) { call(kernel, arguments, std::index_sequence_for<Parameters...>{}); }
};

}  // namespace

#ifdef PRODUCERS
#include "producers.hpp"
#else
#define MORE_KERNELS
#endif

namespace {

const std::map<std::string, Call> kernels{
#define KERNEL(name) {#name, &Caller<name>::run}
    KERNEL(stages_off), KERNEL(stages_ls2), KERNEL(stages_ls2_no_fence), KERNEL(stages_ls2_payload),
    KERNEL(stages_ls2_clock64), KERNEL(stages_tirx), KERNEL(stages_ls2_no_consume), KERNEL(pipeline_off),
    KERNEL(pipeline_ls2), KERNEL(pipeline_ls2_no_fence), KERNEL(cost_off), KERNEL(cost_ls2),
    KERNEL(cost_ls2_no_fence), KERNEL(cost_ls2_payload), KERNEL(cost_ls2_clock64), KERNEL(cost_tirx),
    KERNEL(known_regions), KERNEL(timer), MORE_KERNELS
};

bool fault(const char* name) {
    const char* given = std::getenv("FAKE_FAULT");
    return given && std::string(given) == name;
}

std::map<char*, std::size_t> memory;
std::string code;

constexpr int invalid = 1, not_found = 500, no_device = 100, launch_failed = 719;

bool is_inside(const void* at, std::size_t size) {
    const auto found = memory.upper_bound(const_cast<char*>(static_cast<const char*>(at)));
    if (found == memory.begin()) return false;
    const auto& [begin, length] = *std::prev(found);
    return static_cast<const char*>(at) + size <= begin + length;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
    on_host::advance_ns = 3;
    on_host::step_ns = fault("timer") ? 1024 : 32;
    on_host::now_ns = 0xFFFFF000;  // so that stamps run through zero
    return 0;
}
int cuDeviceGetCount(int* count) { return *count = fault("devices") ? 0 : 1, 0; }
int cuDeviceGet(int* device, int) { return *device = 0, 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetName(char* name, int size, int) { return std::snprintf(name, size, "none, a simulation"), 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
    const std::map<int, int> known{{16, static_cast<int>(on_host::sms)}, {75, 9}, {76, 0}};
    const auto found = known.find(attribute);
    if (found == known.end()) return invalid;
    *value = found->second;
    return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &memory, 0; }
int cuCtxSetCurrent(void* context) { return context == &memory ? 0 : invalid; }
int cuCtxSynchronize() { return 0; }
// What Proton's library calls to fetch a buffer.
int cuCtxGetCurrent(void** context) { return *context = &memory, 0; }
int cuCtxGetDevice(int* device) { return *device = 0, 0; }
int cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = *greatest = 0, 0; }
int cuStreamCreateWithPriority(void** stream, unsigned, int) { return *stream = &memory, 0; }
int cuStreamSynchronize(void*) { return 0; }
int cuStreamDestroy_v2(void*) { return 0; }
int cuMemAllocHost_v2(void** pointer, std::size_t size) { return *pointer = std::malloc(size), 0; }
int cuMemFreeHost(void* pointer) { return std::free(pointer), 0; }
int cuEventCreate(void** event, unsigned) { return *event = new std::uint64_t, 0; }
int cuEventRecord(void* event, void*) { return *static_cast<std::uint64_t*>(event) = on_host::now_ns, 0; }
int cuEventSynchronize(void*) { return 0; }
int cuEventElapsedTime(float* ms, void* begin, void* end) {
    *ms = static_cast<float>(*static_cast<std::uint64_t*>(end) - *static_cast<std::uint64_t*>(begin)) / 1e6f;
    return 0;
}
int cuGetErrorString(int status, const char** text) {
    *text = status == not_found ? "named symbol not found" : status == no_device ? "no device" : "invalid value";
    return 0;
}
// What is loaded must be machine code in which the names stand that are looked up.
int cuModuleLoadData(void** module, const char* image) {
    if (std::memcmp(image, "\x7f" "ELF", 4) != 0) return invalid;
    std::uint64_t sections;
    std::uint16_t count, size;
    std::memcpy(&sections, image + 40, 8);
    std::memcpy(&size, image + 58, 2);
    std::memcpy(&count, image + 60, 2);
    code.assign(image, std::max<std::size_t>(sections + size * count, 64));
    *module = &code;
    return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
    const auto found = kernels.find(name);
    if (module != &code || found == kernels.end() || code.find(std::string(".text.") + name) == std::string::npos)
        return not_found;
    *function = reinterpret_cast<void*>(found->second);
    return 0;
}
int cuMemAlloc_v2(void** pointer, std::size_t size) {
    char* found = static_cast<char*>(std::malloc(size));
    memory[found] = size;
    *pointer = found;
    return 0;
}
int cuMemFree_v2(void* pointer) {
    if (memory.erase(static_cast<char*>(pointer)) != 1) return invalid;
    std::free(pointer);
    return 0;
}
int cuMemcpyHtoD_v2(void* to, const void* from, std::size_t size) {
    if (!is_inside(to, size)) return invalid;
    std::memcpy(to, from, size);
    return 0;
}
int cuMemcpyDtoH_v2(void* to, const void* from, std::size_t size) {
    if (!is_inside(from, size)) return invalid;
    std::memcpy(to, from, size);
    if (fault("output")) ++static_cast<unsigned char*>(to)[3];
    return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, const void* from, std::size_t size, void*) { return cuMemcpyDtoH_v2(to, from, size); }
int cuLaunchKernel(
    void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned, void*,
    void** arguments, void** extra) {
    if (!function || extra) return invalid;
    gridDim = {gx, gy, gz};
    blockDim = {bx, by, bz};
    for (blockIdx.z = 0; blockIdx.z < gz; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < gy; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < gx; ++blockIdx.x) {
                on_host::Block block(blockDim, [&] { reinterpret_cast<Call>(function)(arguments); });
                if (!block.run()) return launch_failed;
                on_host::pass(500);  // what a block takes besides reading clocks
            }
    return 0;
}
}
