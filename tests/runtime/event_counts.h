// Counts what costs a process time beside its arithmetic: heap allocations, wake-ups, context
// switches. A program that links event_counts.cpp has its operator new and its condition variables'
// notifications counted.
#pragma once

#include <cstdint>

namespace headrace::test {

struct EventCounts {
  std::int64_t heap_allocations = 0;      // calls of operator new, by anyone in the process
  std::int64_t notifications = 0;         // of condition variables: each is at most one wake-up
  std::int64_t voluntary_switches = 0;    // a thread went to sleep
  std::int64_t involuntary_switches = 0;  // a thread lost its core; depends on the machine's load
};

/// False where a sanitizer has taken the place of what is counted: only switches are then told.
bool counts_allocations();

/// Counts from its construction on. One at a time.
class EventCounter {
 public:
  EventCounter();
  ~EventCounter();
  EventCounter(const EventCounter&) = delete;
  EventCounter& operator=(const EventCounter&) = delete;

  EventCounts counts() const;

 private:
  EventCounts before_;
};

}  // namespace headrace::test
