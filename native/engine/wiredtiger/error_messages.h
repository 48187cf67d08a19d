// Keeps WiredTiger's first error message; later ones are consequences of it. Thread-safe.
#pragma once

#include <wiredtiger.h>

#include <mutex>
#include <string>

namespace spillway::engine {

class ErrorMessages {
 public:
  ErrorMessages() {
    handler_.self = this;
    handler_.handle_error = [](WT_EVENT_HANDLER* handler, WT_SESSION*, int, const char* message) {
      ErrorMessages& self = *static_cast<Handler*>(handler)->self;
      const std::lock_guard lock(self.mutex_);
      if (self.first_.empty()) self.first_ = without_origin(message);
      return 0;
    };
    handler_.handle_message = [](WT_EVENT_HANDLER*, WT_SESSION*, const char*) { return 0; };
  }

  // REQUIRES: this outlives the connection that uses it.
  WT_EVENT_HANDLER* handler() { return &handler_; }

  // "" if there is none.
  std::string first() const {
    const std::lock_guard lock(mutex_);
    return first_;
  }

 private:
  struct Handler : WT_EVENT_HANDLER {
    Handler() : WT_EVENT_HANDLER{} {}
    ErrorMessages* self = nullptr;
  };

  // Removes time, process and thread: "[time][process:thread], file:table.wt, WT_CURSOR.insert: message".
  static std::string without_origin(const std::string& message) {
    const auto end = message.find("], ");
    return message.starts_with('[') && end != std::string::npos ? message.substr(end + 3) : message;
  }

  Handler handler_;
  mutable std::mutex mutex_;
  std::string first_;  // guarded by mutex_
};

}  // namespace spillway::engine
