// What one thread of a phase does to the store: one operation at a time, made and executed.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"

namespace spillway::load {

// What an operation came to.
struct Outcome {
  bool is_write = false;                 // counted among writes: it puts
  std::optional<std::uint8_t> kind;      // by its workload's own kinds; none: the workload has reads and writes only
  std::uint64_t pairs_read = 0;          // found by a get, or seen by a scan
  bool not_found = false;                // asked for a key that was not there, or a scan that saw none
  std::uint64_t user_bytes_written = 0;  // keys and values
  std::uint64_t user_bytes_read = 0;
};

class Client {
 public:
  virtual ~Client() = default;

  // Executes the next operation. Fails as the store does.
  virtual Result<Outcome> execute() = 0;
};

}  // namespace spillway::load
