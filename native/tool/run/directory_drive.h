// Figures of the drive under a plain directory during a run: its counters in sysfs, the engine's writes by cause
// (fs/write_counts.h), and the estimate of a drive model that observes the same writes.
//
// The block layer counts sectors (512 bytes) that a drive has completed, from all processes. The bytes that this
// process made the kernel write (write_bytes of /proc/self/io) are reported next to them, so that a reader sees its
// share. A store's writes stay in the page cache until the kernel writes them back, half a minute later. So its files
// are written back when measured phases begin and when they end. Each byte then counts in the phase that wrote it, or
// in none if its file was deleted first. The time for this belongs to no measured phase. Source: Linux,
// Documentation/block/stat.rst and Documentation/filesystems/proc.rst.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "fs/volume.h"
#include "fs/write_counts.h"
#include "load/drive_interval.h"
#include "load/run_spec.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

class DirectoryDrive {
 public:
  struct Traffic {
    std::uint64_t host_bytes_written = 0;
    std::uint64_t host_bytes_read = 0;
    std::uint64_t process_bytes_written = 0;
  };

  struct Place {
    std::string directory;                    // of the store
    std::vector<std::string> counters;        // a stat file of sysfs for each drive; none: host bytes are unknown
    std::span<const load::PhaseSpec> phases;  // of the run, in order. REQUIRES: they outlive this
  };

  // `writes`: what the engine has written. `estimate`: a volume that observes, or null. REQUIRES: they outlive this
  DirectoryDrive(Place place, const fs::WriteCounts& writes, fs::Volume* estimate);

  // Called for each phase: after its threads have ended, and after its last sample.
  // REQUIRES: it is one of Place::phases
  void before_last_sample(const load::PhaseSpec& phase);
  void end_phase(const load::PhaseSpec& phase);

  // Bytes written and read since the last call, as the `drive` of a sample. Of the drive's counts, only known ones.
  // Intervals of measured phases are added up.
  Json take_interval(bool measured);

  // Adds the totals over all measured phases to the result, and the estimate.
  void put(Json& result) const;

 private:
  std::optional<Traffic> read() const;
  // The drives' traffic since the last call.
  std::optional<Traffic> grow(bool measured);
  bool is_measured_next(const load::PhaseSpec& phase) const;

  const Place place_;
  const fs::WriteCounts& writes_;
  fs::Volume* const estimate_;
  std::optional<Traffic> last_;
  std::optional<Traffic> measured_;  // none: unknown
  fs::WriteCounts::Bytes last_writes_;
  fs::WriteCounts::Bytes measured_writes_{};
  ssd::Counters last_model_;
  ssd::Counters measured_model_;
};

}  // namespace spillway::tool
