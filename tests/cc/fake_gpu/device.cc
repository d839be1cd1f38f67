// A device that TensorFlow takes for a GPU: a plugin by its StreamExecutor C API, as a vendor would write it. It has
// memory that the host can't touch (memory.h), the few kernels in kernels.cc, and computes on the calling thread.
// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tests/cc/fake_gpu/memory.h"

// What the API leaves to the plugin. Nothing is ever under way, so streams and events have no state.
struct SP_Stream_st {};
struct SP_Event_st {};
struct SP_Timer_st {};

namespace fake_gpu {

Memory& Memory::Get() {
  static Memory* const memory = new Memory;
  return *memory;
}

Memory::Memory() {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  addresses_ = static_cast<char*>(mmap(nullptr, kBytes, PROT_NONE, flags, -1, 0));
  content_ = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, flags, -1, 0));
  if (addresses_ == MAP_FAILED || content_ == MAP_FAILED) std::abort();
}

void* Memory::Allocate(uint64_t bytes) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  const uint64_t rounded = (bytes + 255) / 256 * 256;
  if (rounded > kBytes - used_) return nullptr;
  char* const result = addresses_ + used_;
  used_ += rounded;
  return result;
}

bool Memory::Holds(const void* device) const { return device >= addresses_ && device < addresses_ + kBytes; }

char* Memory::Content(const void* device) const {
  if (Holds(device)) return content_ + (static_cast<const char*>(device) - addresses_);
  std::fprintf(stderr, "fake GPU: %p is no address of the device\n", device);
  std::abort();
}

namespace {

char* At(const SP_DeviceMemoryBase* memory) { return Memory::Get().Content(memory->opaque); }

void* OfHost(const void* memory) {
  if (!Memory::Get().Holds(memory)) return const_cast<void*>(memory);
  std::fprintf(stderr, "fake GPU: %p is no address of the host\n", memory);
  std::abort();
}

void Ok(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

void FillMemory(SP_StreamExecutor* e) {
  e->allocate = [](const SP_Device*, uint64_t size, int64_t, SP_DeviceMemoryBase* memory) {
    memory->opaque = Memory::Get().Allocate(size);
    memory->size = memory->opaque == nullptr ? 0 : size;
  };
  e->deallocate = [](const SP_Device*, SP_DeviceMemoryBase* memory) { memory->opaque = nullptr; };
  e->host_memory_allocate = [](const SP_Device*, uint64_t size) {
    return std::aligned_alloc(64, (size + 63) / 64 * 64);
  };
  e->host_memory_deallocate = [](const SP_Device*, void* memory) { std::free(memory); };
  e->get_allocator_stats = [](const SP_Device*, SP_AllocatorStats*) -> TF_Bool { return false; };
  e->device_memory_usage = [](const SP_Device*, int64_t* free, int64_t* total) -> TF_Bool {
    *free = *total = static_cast<int64_t>(Memory::kBytes / 4);
    return true;
  };
}

// What is launched has run when the call returns, so streams and events have nothing to wait for.
void FillStreams(SP_StreamExecutor* e) {
  e->create_stream = [](const SP_Device*, SP_Stream* stream, TF_Status* status) {
    *stream = new SP_Stream_st;
    Ok(status);
  };
  e->destroy_stream = [](const SP_Device*, SP_Stream stream) { delete stream; };
  e->create_stream_dependency = [](const SP_Device*, SP_Stream, SP_Stream, TF_Status* status) { Ok(status); };
  e->get_stream_status = [](const SP_Device*, SP_Stream, TF_Status* status) { Ok(status); };
  e->create_event = [](const SP_Device*, SP_Event* event, TF_Status* status) {
    *event = new SP_Event_st;
    Ok(status);
  };
  e->destroy_event = [](const SP_Device*, SP_Event event) { delete event; };
  e->get_event_status = [](const SP_Device*, SP_Event) { return SE_EVENT_COMPLETE; };
  e->record_event = [](const SP_Device*, SP_Stream, SP_Event, TF_Status* status) { Ok(status); };
  e->wait_for_event = [](const SP_Device* const, SP_Stream, SP_Event, TF_Status* const status) { Ok(status); };
  e->block_host_for_event = [](const SP_Device*, SP_Event, TF_Status* status) { Ok(status); };
  e->block_host_until_done = [](const SP_Device*, SP_Stream, TF_Status* status) { Ok(status); };
  e->synchronize_all_activity = [](const SP_Device*, TF_Status* status) { Ok(status); };
  e->host_callback = [](const SP_Device*, SP_Stream, SE_StatusCallbackFn callback, void* argument) -> TF_Bool {
    TF_Status* const status = TF_NewStatus();
    callback(argument, status);
    TF_DeleteStatus(status);
    return true;
  };
}

void FillTimers(SP_StreamExecutor* e) {
  e->create_timer = [](const SP_Device*, SP_Timer* timer, TF_Status* status) {
    *timer = new SP_Timer_st;
    Ok(status);
  };
  e->destroy_timer = [](const SP_Device*, SP_Timer timer) { delete timer; };
  e->start_timer = [](const SP_Device*, SP_Stream, SP_Timer, TF_Status* status) { Ok(status); };
  e->stop_timer = [](const SP_Device*, SP_Stream, SP_Timer, TF_Status* status) { Ok(status); };
}

void FillCopies(SP_StreamExecutor* e) {
  e->memcpy_dtoh = [](const SP_Device*, SP_Stream, void* to, const SP_DeviceMemoryBase* from, uint64_t size,
                      TF_Status* status) {
    std::memcpy(OfHost(to), At(from), size);
    Ok(status);
  };
  e->memcpy_htod = [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* to, const void* from, uint64_t size,
                      TF_Status* status) {
    std::memcpy(At(to), OfHost(from), size);
    Ok(status);
  };
  e->memcpy_dtod = [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* to, const SP_DeviceMemoryBase* from,
                      uint64_t size, TF_Status* status) {
    std::memmove(At(to), At(from), size);
    Ok(status);
  };
  e->sync_memcpy_dtoh = [](const SP_Device*, void* to, const SP_DeviceMemoryBase* from, uint64_t size,
                           TF_Status* status) {
    std::memcpy(OfHost(to), At(from), size);
    Ok(status);
  };
  e->sync_memcpy_htod = [](const SP_Device*, SP_DeviceMemoryBase* to, const void* from, uint64_t size,
                           TF_Status* status) {
    std::memcpy(At(to), OfHost(from), size);
    Ok(status);
  };
  e->sync_memcpy_dtod = [](const SP_Device*, SP_DeviceMemoryBase* to, const SP_DeviceMemoryBase* from, uint64_t size,
                           TF_Status* status) {
    std::memmove(At(to), At(from), size);
    Ok(status);
  };
}

void FillSets(SP_StreamExecutor* e) {
  e->mem_zero = [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* to, uint64_t size, TF_Status* status) {
    std::memset(At(to), 0, size);
    Ok(status);
  };
  e->memset = [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* to, uint8_t pattern, uint64_t size,
                 TF_Status* status) {
    std::memset(At(to), pattern, size);
    Ok(status);
  };
  e->memset32 = [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* to, uint32_t pattern, uint64_t size,
                   TF_Status* status) {
    for (uint64_t i = 0; i + sizeof(pattern) <= size; i += sizeof(pattern)) {
      std::memcpy(At(to) + i, &pattern, sizeof(pattern));
    }
    Ok(status);
  };
}

void FillStreamExecutor(SP_StreamExecutor* e) {
  FillMemory(e);
  FillStreams(e);
  FillTimers(e);
  FillCopies(e);
  FillSets(e);
}

void FillPlatform(SP_PlatformFns* p) {
  p->get_device_count = [](const SP_Platform*, int* count, TF_Status* status) {
    *count = 1;
    Ok(status);
  };
  p->create_device = [](const SP_Platform*, SE_CreateDeviceParams* params, TF_Status* status) {
    params->device->ordinal = params->ordinal;
    params->device->hardware_name = "memory apart";
    params->device->device_vendor = "tests of tensorflow_recursion";
    params->device->pci_bus_id = "0000:00:00.0";
    Ok(status);
  };
  p->destroy_device = [](const SP_Platform*, SP_Device*) {};
  p->create_device_fns = [](const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status* status) {
    params->device_fns->get_numa_node = [](const SP_Device*) { return int32_t{0}; };
    params->device_fns->get_memory_bandwidth = [](const SP_Device*) { return int64_t{-1}; };
    params->device_fns->get_gflops = [](const SP_Device*) { return -1.0; };
    Ok(status);
  };
  p->destroy_device_fns = [](const SP_Platform*, SP_DeviceFns*) {};
  p->create_stream_executor = [](const SP_Platform*, SE_CreateStreamExecutorParams* params, TF_Status* status) {
    FillStreamExecutor(params->stream_executor);
    Ok(status);
  };
  p->destroy_stream_executor = [](const SP_Platform*, SP_StreamExecutor*) {};
  p->create_timer_fns = [](const SP_Platform*, SP_TimerFns* timer, TF_Status* status) {
    timer->nanoseconds = [](SP_Timer) { return uint64_t{0}; };
    Ok(status);
  };
  p->destroy_timer_fns = [](const SP_Platform*, SP_TimerFns*) {};
}

}  // namespace
}  // namespace fake_gpu

extern "C" {

// What TensorFlow looks for in a plugin.
void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  params->major_version = SE_MAJOR;
  params->minor_version = SE_MINOR;
  params->patch_version = SE_PATCH;
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = "FAKE";
  params->platform->type = "GPU";
  params->platform->use_bfc_allocator = true;
  params->platform->force_memory_growth = true;
  params->platform_fns->struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  fake_gpu::FillPlatform(params->platform_fns);
  params->destroy_platform = [](SP_Platform*) {};
  params->destroy_platform_fns = [](SP_PlatformFns*) {};
  fake_gpu::Ok(status);
}

// The kernels register themselves.
void TF_InitKernel() {}

}  // extern "C"
