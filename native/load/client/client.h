// The client side of one thread: generates operations and executes them on the engine, one at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"

namespace spillway::load {

// The result of one operation.
struct Outcome {
  bool is_write = false;                 // counted as a write
  std::optional<std::uint8_t> kind;      // YCSB's kind; none: the workload has only reads and writes
  std::uint64_t pairs_read = 0;          // found by a get, or seen by a scan
  bool not_found = false;                // a get of an absent key, or a scan that saw no pair
  std::uint64_t user_bytes_written = 0;  // keys and values
  std::uint64_t user_bytes_read = 0;
};

class Client {
 public:
  virtual ~Client() = default;

  // Executes the next operation. Returns the engine's failure.
  virtual Result<Outcome> execute() = 0;
};

}  // namespace spillway::load
