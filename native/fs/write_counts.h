// Bytes that an engine asked the host's file system to write, by cause. Used on a plain directory, where no volume
// counts commands to a drive by cause.
//
// Counts the bytes passed to each successful call, as the engine sees its files, not as blocks reach a drive. A page
// that is written twice counts twice, even if the page cache writes it once. Part of a page counts as that part. Bytes
// that are truncated or deleted before their write-back count, too. Preallocated space does not count, nor does file
// systems' metadata.
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "device/device.h"

namespace spillway::fs {

class WriteCounts {
 public:
  using Bytes = std::array<std::uint64_t, ssd::kHostCauses>;  // by device::Cause

  void add(device::Cause cause, std::uint64_t bytes) {
    bytes_[static_cast<std::size_t>(cause)].fetch_add(bytes, std::memory_order_relaxed);
  }

  Bytes bytes() const {
    Bytes now{};
    for (std::size_t cause = 0; cause < now.size(); ++cause) now[cause] = bytes_[cause].load(std::memory_order_relaxed);
    return now;
  }

 private:
  std::array<std::atomic<std::uint64_t>, ssd::kHostCauses> bytes_{};
};

}  // namespace spillway::fs
