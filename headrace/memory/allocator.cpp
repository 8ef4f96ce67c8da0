#include "headrace/memory/allocator.h"

#include <cstddef>
#include <limits>
#include <mutex>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include "headrace/memory/block_cache.h"
#include "headrace/memory/size_class.h"

namespace headrace::memory {
namespace {

thread_local std::shared_ptr<Account>* current_account = nullptr;
std::atomic<bool> installed{false};

void free_data(void* data) {
  if (data == nullptr) {
    return;
  }
  Block* block = Block::of(data);
  if (block->account) {
    block->account->release(block->charged_bytes);
    block->account.reset();
  }
  give_block(block);
}

[[noreturn]] void out_of_memory(std::size_t bytes) {
  C10_THROW_ERROR(
      OutOfMemoryError,
      c10::str("cannot allocate ", bytes, " bytes on the CPU; headrace holds ", held_bytes(),
               ". Use smaller microbatches, more stages or rematerialisation, or look "
               "for a wrong size"));
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = bytes == 0 ? nullptr : allocate_data(bytes);
    return {data, data, &free_data, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_data; }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void* allocate_data(std::size_t bytes) {
    Block* block = bytes <= kMostBlockBytes ? take_block(bytes) : nullptr;
    if (block == nullptr) {
      out_of_memory(bytes);
    }
    if (current_account != nullptr) {
      block->account = *current_account;
      block->charged_bytes =
          static_cast<std::int64_t>((bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes);
      block->account->charge(block->charged_bytes);
    }
    return block->data();
  }
};

}  // namespace

void Account::raise_peak(std::int64_t live) {
  std::int64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < live && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

void Account::charge(std::int64_t bytes) {
  allocations_.fetch_add(1, std::memory_order_relaxed);
  raise_peak(live_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
}

void Account::release(std::int64_t bytes) {
  live_.fetch_sub(bytes, std::memory_order_relaxed);
}

void Account::reset_peak() {
  peak_.store(live_bytes(), std::memory_order_relaxed);
  raise_peak(live_bytes());  // of an allocation between the two lines
}

void install_allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    // LibTorch keeps the pointer for good. The highest priority, so that no later library
    // replaces it silently.
    c10::SetCPUAllocator(new CountingAllocator, std::numeric_limits<std::uint8_t>::max());
    installed.store(true, std::memory_order_release);
  });
}

bool allocator_installed() {
  return installed.load(std::memory_order_acquire);
}

void release_cached() {
  release_cached_blocks();
}

std::int64_t held_bytes() {
  return held_block_bytes();
}

AccountGuard::AccountGuard(std::shared_ptr<Account> account)
    : account_(std::move(account)), previous_(current_account) {
  current_account = account_ ? &account_ : nullptr;
}

AccountGuard::~AccountGuard() {
  current_account = previous_;
}

}  // namespace headrace::memory
