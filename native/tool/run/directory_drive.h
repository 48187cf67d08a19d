// What is known of the drive under a plain directory while a run goes on: what its counters in sysfs say, for which
// causes the engine wrote (fs/write_counts.h), and what a drive model that watches makes of the same writes.
//
// The block layer counts sectors (512 bytes) that a drive has completed, whoever wrote them; beside them stands what
// this process made the kernel write (write_bytes of /proc/self/io), so that a reader sees whose they were.
// What a store has written lies in the page cache until the kernel writes it back, half a minute later. So its files
// are written out where measured phases begin and where they end: each byte then counts in the phase that wrote it, or
// in none if its file was deleted first. That takes time of no measured phase. Source: Linux,
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
    std::vector<std::string> counters;        // a stat file of sysfs for each drive; none: host bytes are not known
    std::span<const load::PhaseSpec> phases;  // of the run, in turn. REQUIRES: they outlive this
  };

  // `writes`: of the engine, as it asked for them. `estimate`: what watches, or null. REQUIRES: they outlive this
  DirectoryDrive(Place place, const fs::WriteCounts& writes, fs::Volume* estimate);

  // To be called for each phase: its threads have ended; and its last sample was taken.
  // REQUIRES: it is one of Place::phases
  void before_last_sample(const load::PhaseSpec& phase);
  void end_phase(const load::PhaseSpec& phase);

  // What was written and read since the last call, as a sample's `drive`; of the drive's own counts only what is known.
  // What falls into a measured phase is added up.
  Json take_interval(bool measured);

  // The same over all measured phases, as fields of the result; and the estimate.
  void put(Json& result) const;

 private:
  std::optional<Traffic> read() const;
  // What the drives did since the last call.
  std::optional<Traffic> grow(bool measured);
  bool is_measured_next(const load::PhaseSpec& phase) const;

  const Place place_;
  const fs::WriteCounts& writes_;
  fs::Volume* const estimate_;
  std::optional<Traffic> last_;
  std::optional<Traffic> measured_;  // none: not known, or no longer
  fs::WriteCounts::Bytes last_writes_;
  fs::WriteCounts::Bytes measured_writes_{};
  ssd::Counters last_model_;
  ssd::Counters measured_model_;
};

}  // namespace spillway::tool
