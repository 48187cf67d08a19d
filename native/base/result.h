// Outcomes of operations that can fail, as values.
//
// A function at a seam returns Status (or Result<T>), and no exception crosses a seam. A bug asserts. A failed
// operation says what happened, to what, and how to fix it, in one sentence a user can act on.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace spillway {

// The cause of a failure. Drives, files, engines and the error events of the contract all use these.
enum class Fault {
  none,
  bad_input,      // the caller's document, flag or file is wrong: exit code 2
  io_error,       // the host's file system or a real drive failed
  drive_full,     // no clean erase block can be freed any more
  not_supported,  // the message names it
  stopped,        // the operation was stopped early
};

// By Fault. The contract's schema and the Python package are tested against this table.
inline constexpr std::array<const char*, 6> kFaultNames = {"none",       "bad_input",     "io_error",
                                                           "drive_full", "not_supported", "stopped"};
inline const char* name_of(Fault fault) { return kFaultNames[static_cast<std::size_t>(fault)]; }

class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status ok() { return {}; }
  static Status error(Fault fault, std::string message) { return Status(fault, std::move(message)); }
  static Status bad_input(std::string message) { return Status(Fault::bad_input, std::move(message)); }
  static Status io_error(std::string message) { return Status(Fault::io_error, std::move(message)); }

  bool is_ok() const { return fault_ == Fault::none; }
  explicit operator bool() const { return is_ok(); }
  Fault fault() const { return fault_; }
  const std::string& message() const { return message_; }

 private:
  Status(Fault fault, std::string message) : fault_(fault), message_(std::move(message)) {}

  Fault fault_ = Fault::none;
  std::string message_;
};

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {
    assert(!status_.is_ok());
  }  // NOLINT(google-explicit-constructor)

  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }

  // REQUIRES: is_ok()
  T& value() {
    assert(value_);
    return *value_;
  }
  const T& value() const {
    assert(value_);
    return *value_;
  }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace spillway
