#include "tests/runtime/event_counts.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEADRACE_SANITIZED 1
#else
#define HEADRACE_SANITIZED 0
#endif

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> heap_allocations{0};
std::atomic<std::int64_t> notifications{0};

[[maybe_unused]] void count(std::atomic<std::int64_t>& events) {
  if (counting.load(std::memory_order_relaxed)) events.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

#if !HEADRACE_SANITIZED

void* operator new(std::size_t bytes) {
  count(heap_allocations);
  if (void* data = std::malloc(bytes == 0 ? 1 : bytes)) return data;
  throw std::bad_alloc();
}

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  count(heap_allocations);
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* data = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit)) return data;
  throw std::bad_alloc();
}

void operator delete(void* data) noexcept {
  std::free(data);
}
void operator delete(void* data, std::size_t) noexcept {
  std::free(data);
}
void operator delete(void* data, std::align_val_t) noexcept {
  std::free(data);
}
void operator delete(void* data, std::size_t, std::align_val_t) noexcept {
  std::free(data);
}

// The standard library's condition variables call these; the real ones are found behind them.
extern "C" int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  static const auto real =
      reinterpret_cast<int (*)(pthread_cond_t*)>(dlsym(RTLD_NEXT, "pthread_cond_signal"));
  count(notifications);
  return real(condition);
}

extern "C" int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  static const auto real =
      reinterpret_cast<int (*)(pthread_cond_t*)>(dlsym(RTLD_NEXT, "pthread_cond_broadcast"));
  count(notifications);
  return real(condition);
}

#endif

namespace headrace::test {
namespace {

EventCounts now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {heap_allocations.load(), notifications.load(), usage.ru_nvcsw, usage.ru_nivcsw};
}

}  // namespace

bool counts_allocations() {
  return !HEADRACE_SANITIZED;
}

EventCounter::EventCounter() : before_(now()) {
  counting.store(true);
}

EventCounter::~EventCounter() {
  counting.store(false);
}

EventCounts EventCounter::counts() const {
  const EventCounts after = now();
  return {after.heap_allocations - before_.heap_allocations,
          after.notifications - before_.notifications,
          after.voluntary_switches - before_.voluntary_switches,
          after.involuntary_switches - before_.involuntary_switches};
}

}  // namespace headrace::test
