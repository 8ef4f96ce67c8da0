// Blocks of memory, kept for the next taker when they are free: a list per size class in each
// thread, and a pool that all threads share (after tcmalloc's thread caches and central lists:
// Ghemawat, Menage, "TCMalloc: Thread-Caching Malloc", 2005). In a pipeline one thread allocates
// what another frees: the batches that a full list hands to the pool bring the blocks back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "headrace/memory/allocator.h"

namespace headrace::memory {

/// What stands before the data of each block.
struct alignas(64) Block {
  std::shared_ptr<Account> account;  // who is charged; empty for nobody, and while free
  std::int64_t charged_bytes = 0;
  Block* next = nullptr;  // while it is in a list
  int size_class = 0;

  void* data() { return this + 1; }
  static Block* of(void* data) { return static_cast<Block*>(data) - 1; }
};
static_assert(sizeof(Block) == 64, "the data after a Block keeps its alignment");

/// A block of at least `bytes` (1 to kMostBlockBytes); nullptr if the system has none, also after
/// the cache was given back. Cost: tens of nanoseconds when one is cached.
Block* take_block(std::size_t bytes);

/// Gives back a block that charges nobody. Any thread.
void give_block(Block* block);

/// Returns what the pool and the calling thread keep to the system.
void release_cached_blocks();

/// Bytes had from the system, in use or cached.
std::int64_t held_block_bytes();

}  // namespace headrace::memory
