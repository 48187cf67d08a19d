// The possible contents of a drive after a loss of power.
//
// Fault envelope. Synced data is intact. Of unsynced changes:
//   - of each file, the writes survive up to some byte: none, all, or part. A part ends at a sector's end, or is torn:
//   the
//     unsynced bytes of its last sector are arbitrary from some byte on. Synced bytes never change. A MANIFEST of
//     RocksDB ends at a sector's end: plain RocksDB 7.8.3 cannot open a database whose MANIFEST has a last, unsynced
//     record of full length with wrong content, and NVMe drives write a sector completely or not at all.
//   - of RocksDB's logs in one directory, the later ones keep nothing unsynced if an earlier one has lost anything:
//   plain
//     RocksDB 7.8.3 replays a later log after one that lost its end (docs/decisions/0014), and it has synced the
//     earlier ones with each sync of a later one. With `holes_between_logs` they are treated like other files.
//   - links, unlinks and renames survive up to one of them, as in a file system's journal.
//   - one file may keep all and another nothing, in whatever order they were written, because a page cache writes back
//   in
//     any order. `in_order` instead keeps everything up to one moment, like a drive behind a write-through cache.
// Not modelled: holes within a file's unsynced bytes, sectors that lose synced data, and the creation of directories,
// which is durable at once. A renamed directory's earlier entries also become durable at once.
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

// Creates directory `to`, which must not exist, with possible remains of the files under `root` that a FaultyFileSystem
// wrote. Does not change `root`, so one crash can be evaluated with many seeds. REQUIRES: nothing writes there any
// more.
Status power_loss(const std::string& root, const std::string& to, const PowerLoss& loss);

}  // namespace spillway::faults
