// A caching, counting CPU allocator for LibTorch. Bytes are charged to the account of the thread
// that allocates, and given back to that same account whoever frees them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace headrace::memory {

/// Live and peak bytes of one stage (or of one measurement). Counts what tensors asked for, rounded
/// up to the allocator's size class; cached blocks that nobody uses are not live.
class Account {
 public:
  std::int64_t live_bytes() const { return live_.load(std::memory_order_relaxed); }
  std::int64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }
  std::int64_t allocations() const { return allocations_.load(std::memory_order_relaxed); }
  /// Starts a new peak at the bytes live now.
  void reset_peak();

  void charge(std::int64_t bytes);   // called by the allocator
  void release(std::int64_t bytes);  // called by the allocator

 private:
  std::atomic<std::int64_t> live_{0};
  std::atomic<std::int64_t> peak_{0};
  std::atomic<std::int64_t> allocations_{0};
};

/// Makes this allocator LibTorch's CPU allocator; later calls do nothing. Memory that was allocated
/// before is freed as it was allocated.
void install_allocator();

/// True once install_allocator() was called.
bool allocator_installed();

/// Gives cached blocks that nobody uses back to the system.
void release_cached();

/// RAII: what this thread allocates is charged to `account` (nullptr: to nobody). Nests.
/// The account is kept alive by the blocks charged to it.
class AccountGuard {
 public:
  explicit AccountGuard(std::shared_ptr<Account> account);
  ~AccountGuard();
  AccountGuard(const AccountGuard&) = delete;
  AccountGuard& operator=(const AccountGuard&) = delete;

 private:
  std::shared_ptr<Account> account_;
  std::shared_ptr<Account>* previous_;
};

}  // namespace headrace::memory
