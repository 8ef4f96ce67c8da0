// A caching, counting CPU allocator for LibTorch. Bytes are charged to the account of the thread
// that allocates, and given back to that same account whoever frees them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace headrace::memory {

/// Live and peak bytes of one stage (or of one measurement). Counts what tensors asked for, rounded
/// up to 64 bytes; neither the rounding to a size class nor cached blocks that nobody uses.
/// Thread rule: any thread, at any time; the peak is exact also when several threads allocate.
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
  void raise_peak(std::int64_t live);

  std::atomic<std::int64_t> live_{0};
  std::atomic<std::int64_t> peak_{0};
  std::atomic<std::int64_t> allocations_{0};
};

/// Makes this allocator LibTorch's CPU allocator; later calls do nothing. Memory that was allocated
/// before is freed as it was allocated. All tensor storage made afterwards comes from it; scratch
/// memory inside kernels (BLAS, oneDNN) does not.
///
/// A freed block is kept for its size class (four to a power of two): a step then takes the memory
/// of the step before and the kernel is not asked. Blocks up to 256 KiB rest in the thread that
/// freed them, at most 4 MiB a thread, and go in batches to a pool that all threads share;
/// larger ones go there at once. When the pool would hold more than the most bytes that were ever
/// in use at a time, plus 64 MiB, it is emptied. Under AddressSanitizer nothing is kept.
///
/// An allocation that cannot be had throws c10::OutOfMemoryError, as LibTorch's callers expect.
void install_allocator();

/// True once install_allocator() was called.
bool allocator_installed();

/// Gives cached blocks that nobody uses back to the system: those of the pool and of this thread.
void release_cached();

/// Bytes that the allocator has from the system: in use, or cached.
std::int64_t held_bytes();

/// RAII: what this thread allocates is charged to `account` (nullptr: to nobody). Nests; guards of
/// one thread end in the reverse order of their starts.
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
