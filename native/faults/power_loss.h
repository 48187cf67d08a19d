// What a drive can hold after its power has gone.
//
// Fault envelope. What was synced is there as it was. Of what was not:
//   - of each file, the writes survive up to some byte: none, all, or part. A part ends at a sector's end, or is torn:
//     the unsynced bytes of its last sector, from some byte on, are anything. Bytes that were synced never change.
//     A MANIFEST of RocksDB's ends at a sector's end: RocksDB 7.8.3 by itself opens no database whose last unsynced
//     record of it is whole in length and wrong in content, and NVMe drives write a sector whole or not at all.
//   - of RocksDB's logs in one directory, the later ones keep nothing unsynced where an earlier one has lost anything:
//     RocksDB 7.8.3 by itself replays a later log after one that lost its end (docs/decisions/0014), and it has synced
//     the earlier ones with each sync of a later one. With `holes_between_logs` they are files like any other.
//   - links, unlinks and renames survive up to one of them, as in a file system's journal.
//   - one file may have kept all and another nothing, whichever was written first, as a page cache writes back at its
//     own will; `in_order` keeps everything up to one moment instead, like a drive behind a write-through cache.
// Not modelled: holes within a file's unsynced bytes, sectors that lose what was synced, and directories, which are
// durable at once. When a directory is renamed, the entries that it had before are durable at once as well.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace spillway::faults {

inline constexpr std::uint64_t kSectorBytes = 512;

struct PowerLoss {
  std::uint64_t seed = 0;
  bool in_order = false;
  bool holes_between_logs = false;
};

// Makes in directory `to`, which must not exist, what could be left of the files under `root` that a FaultyFileSystem
// wrote. `root` stays as it is, so that one death can be looked at with many seeds. REQUIRES: nobody writes there any
// more.
Status power_loss(const std::string& root, const std::string& to, const PowerLoss& loss);

}  // namespace spillway::faults
