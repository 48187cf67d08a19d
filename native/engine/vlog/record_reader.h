// Reads the records of a segment one after the other, for recovery and for garbage collection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/vlog/record.h"
#include "engine/vlog/segment.h"

namespace spillway::engine::vlog {

// A record and its place. It points into its reader, and is valid until the next call of next().
struct LocatedRecord {
  Record record;
  Address address;
};

class RecordReader {
 public:
  RecordReader(std::shared_ptr<Segment> segment, std::uint64_t begin, std::uint64_t end, fs::Cause cause)
      : segment_(std::move(segment)), at_(begin), end_(end), cause_(cause) {}

  // None at the end, or if there is no record at at().
  Result<std::optional<LocatedRecord>> next();
  // The end of the last record that was returned.
  std::uint64_t at() const { return at_; }

 private:
  // Reads `bytes` at at_ into the buffer, or as many as there are. Returns how many.
  Result<std::uint64_t> load_buffer(std::uint64_t bytes);

  const std::shared_ptr<Segment> segment_;
  std::uint64_t at_;
  const std::uint64_t end_;
  const fs::Cause cause_;
  std::string buffer_;  // of the file from buffer_at_ on
  std::uint64_t buffer_at_ = 0;
};

}  // namespace spillway::engine::vlog
