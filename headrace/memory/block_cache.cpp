#include "headrace/memory/block_cache.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include "headrace/memory/size_class.h"

namespace headrace::memory {
namespace {

// A cached block hides a use after free from AddressSanitizer, so under it every block comes from
// the system and goes back there, in the size that was asked for.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

constexpr std::size_t kThreadBlockBytes = 256U << 10U;  // larger blocks skip the threads' lists
constexpr int kThreadClasses = class_of(kThreadBlockBytes) + 1;
constexpr std::int64_t kPoolSlackBytes = 64LL << 20U;

// How many blocks move between a thread and the pool at a time.
constexpr std::size_t batch_of(int size_class) {
  return std::clamp<std::size_t>((32U << 10U) / class_bytes(size_class), 1, 32);
}

std::int64_t system_bytes(int size_class) {
  return static_cast<std::int64_t>(sizeof(Block) + class_bytes(size_class));
}

/// Free blocks of one class, the last one in first out.
class List {
 public:
  void push(Block* block) {
    block->next = head_;
    head_ = block;
    ++size_;
  }
  Block* pop() {
    Block* block = head_;
    if (block != nullptr) {
      head_ = block->next;
      --size_;
    }
    return block;
  }
  /// Moves up to `n` blocks here from another list.
  void take_from(List& other, std::size_t n) {
    for (; n > 0 && other.size_ > 0; --n) {
      push(other.pop());
    }
  }
  std::size_t size() const { return size_; }

 private:
  Block* head_ = nullptr;
  std::size_t size_ = 0;
};

class Pool {
 public:
  /// Lives as long as the process: tensors with static storage are freed after any destructor.
  static Pool& instance() {
    static Pool& pool = *new Pool;
    return pool;
  }

  /// Moves up to `n` free blocks of a class to `into`.
  void fetch(int size_class, std::size_t n, List& into) {
    Shelf& shelf = shelves_[size_class];
    const std::size_t before = into.size();
    {
      const std::lock_guard lock(shelf.mutex);
      into.take_from(shelf.list, n);
    }
    count_cached(size_class, -static_cast<std::int64_t>(into.size() - before));
    note_peak();
  }

  /// Takes up to `n` blocks of a class from `from`, which has them.
  void put(int size_class, std::size_t n, List& from) {
    const std::int64_t bytes = static_cast<std::int64_t>(n) * system_bytes(size_class);
    if (cached_.load(std::memory_order_relaxed) + bytes >
        peak_in_use_.load(std::memory_order_relaxed) + kPoolSlackBytes) {
      // Sizes changed and what lies here is not asked for any more.
      release();
    }
    count_cached(size_class, static_cast<std::int64_t>(n));
    Shelf& shelf = shelves_[size_class];
    const std::lock_guard lock(shelf.mutex);
    shelf.list.take_from(from, n);
  }

  Block* from_system(int size_class, std::size_t bytes) {
    const std::size_t size = kCaching ? class_bytes(size_class) : bytes;
    void* memory = nullptr;
    if (::posix_memalign(&memory, alignof(Block), sizeof(Block) + size) != 0) {
      release();
      if (::posix_memalign(&memory, alignof(Block), sizeof(Block) + size) != 0) {
        return nullptr;
      }
    }
    held_.fetch_add(system_bytes(size_class), std::memory_order_relaxed);
    note_peak();
    Block* block = new (memory) Block;
    block->size_class = size_class;
    return block;
  }

  void to_system(Block* block) {
    held_.fetch_sub(system_bytes(block->size_class), std::memory_order_relaxed);
    block->~Block();
    std::free(block);
  }

  void to_system(List& list) {
    while (Block* block = list.pop()) {
      to_system(block);
    }
  }

  /// Empties every shelf.
  void release() {
    for (int size_class = 0; size_class < kNumClasses; ++size_class) {
      List list;
      {
        const std::lock_guard lock(shelves_[size_class].mutex);
        std::swap(list, shelves_[size_class].list);
      }
      count_cached(size_class, -static_cast<std::int64_t>(list.size()));
      to_system(list);
    }
  }

  void restart_peak() { peak_in_use_.store(in_use(), std::memory_order_relaxed); }
  std::int64_t held() const { return held_.load(std::memory_order_relaxed); }

 private:
  struct alignas(64) Shelf {
    std::mutex mutex;
    List list;
  };

  // Blocks in the threads' lists count as in use: they are few and small.
  std::int64_t in_use() const { return held() - cached_.load(std::memory_order_relaxed); }

  void count_cached(int size_class, std::int64_t blocks) {
    cached_.fetch_add(blocks * system_bytes(size_class), std::memory_order_relaxed);
  }

  void note_peak() {
    const std::int64_t now = in_use();
    std::int64_t peak = peak_in_use_.load(std::memory_order_relaxed);
    while (peak < now &&
           !peak_in_use_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }

  std::array<Shelf, kNumClasses> shelves_;
  std::atomic<std::int64_t> held_{0};
  std::atomic<std::int64_t> cached_{0};  // on the shelves; never less than lies there
  std::atomic<std::int64_t> peak_in_use_{0};
};

/// The free lists of one thread; at its end they go to the pool.
class ThreadCache {
 public:
  /// nullptr once the thread's cache is gone: its last tensors may be freed after that.
  static ThreadCache* current() {
    if (gone_) {
      return nullptr;
    }
    static thread_local ThreadCache cache;
    return &cache;
  }

  ~ThreadCache() {
    gone_ = true;
    for (int size_class = 0; size_class < kThreadClasses; ++size_class) {
      List& list = lists_[size_class];
      Pool::instance().put(size_class, list.size(), list);
    }
  }

  Block* take(int size_class) {
    List& list = lists_[size_class];
    if (list.size() == 0) {
      Pool::instance().fetch(size_class, batch_of(size_class), list);
    }
    return list.pop();
  }

  void give(Block* block) {
    const int size_class = block->size_class;
    List& list = lists_[size_class];
    list.push(block);
    if (list.size() >= 2 * batch_of(size_class)) {
      Pool::instance().put(size_class, batch_of(size_class), list);
    }
  }

  void release() {
    for (List& list : lists_) {
      Pool::instance().to_system(list);
    }
  }

 private:
  static thread_local bool gone_;
  std::array<List, kThreadClasses> lists_;
};

thread_local bool ThreadCache::gone_ = false;

// The thread's lists, if blocks of this class rest there.
ThreadCache* cache_for(int size_class) {
  return size_class < kThreadClasses ? ThreadCache::current() : nullptr;
}

Block* take_cached(int size_class) {
  if (ThreadCache* cache = cache_for(size_class)) {
    return cache->take(size_class);
  }
  List one;
  Pool::instance().fetch(size_class, 1, one);
  return one.pop();
}

}  // namespace

Block* take_block(std::size_t bytes) {
  const int size_class = class_of(bytes);
  Block* block = kCaching ? take_cached(size_class) : nullptr;
  return block != nullptr ? block : Pool::instance().from_system(size_class, bytes);
}

void give_block(Block* block) {
  if (!kCaching) {
    Pool::instance().to_system(block);
  } else if (ThreadCache* cache = cache_for(block->size_class)) {
    cache->give(block);
  } else {
    List one;
    one.push(block);
    Pool::instance().put(block->size_class, 1, one);
  }
}

void release_cached_blocks() {
  if (ThreadCache* cache = ThreadCache::current()) {
    cache->release();
  }
  Pool::instance().release();
  Pool::instance().restart_peak();
}

std::int64_t held_block_bytes() {
  return Pool::instance().held();
}

}  // namespace headrace::memory
