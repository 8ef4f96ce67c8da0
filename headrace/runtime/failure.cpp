#include "headrace/runtime/failure.h"

#include <utility>

#include <c10/util/Exception.h>

#include "headrace/base/error.h"

namespace headrace::runtime {
namespace {

[[noreturn]] void rethrow_at(const std::exception_ptr& exception, const std::string& place) {
  const std::string at = place + ": ";
  try {
    std::rethrow_exception(exception);
  } catch (const base::ConfigError& e) {
    throw base::ConfigError(at + e.what());
  } catch (const base::ScheduleError& e) {
    throw base::ScheduleError(at + e.what());
  } catch (const base::CommError& e) {
    throw base::CommError(at + e.what());
  } catch (const base::IoError& e) {
    throw base::IoError(at + e.what());
  } catch (const c10::Error& e) {
    std::throw_with_nested(base::Error(at + e.what_without_backtrace()));
  } catch (const std::exception& e) {
    std::throw_with_nested(base::Error(at + e.what()));
  } catch (...) {
    std::throw_with_nested(base::Error(at + "an exception that is not a std::exception"));
  }
}

}  // namespace

std::string to_text(const FailurePlace& place) {
  std::string text = "worker " + std::to_string(place.worker) + ", stage " +
                     std::to_string(place.stage) + ", action " + place.action;
  if (place.microbatch >= 0) text += " (microbatch " + std::to_string(place.microbatch) + ")";
  if (!place.layer.empty()) text += ", layer '" + place.layer + "'";
  return text;
}

bool FirstFailure::report(std::exception_ptr exception, const FailurePlace& place) {
  const std::lock_guard lock(mutex_);
  if (exception_) return false;
  exception_ = std::move(exception);
  place_ = place;
  return true;
}

bool FirstFailure::happened() const {
  const std::lock_guard lock(mutex_);
  return exception_ != nullptr;
}

void FirstFailure::rethrow() const {
  std::exception_ptr exception;
  std::string place;
  {
    const std::lock_guard lock(mutex_);
    if (!exception_) return;
    exception = exception_;
    place = to_text(place_);
  }
  rethrow_at(exception, place);
}

void FirstFailure::clear() {
  const std::lock_guard lock(mutex_);
  exception_ = nullptr;
}

}  // namespace headrace::runtime
