// An LSM tree under a load, in virtual time, on a model of a drive (M13-M20, M26-M31).
//
//   writer → memtable (and log) → flush → L0 → compactions → deeper levels
//
// The writer is a flow of puts; flushes and compactions are jobs that read, merge and write on the drive model, so that
// time, bandwidth, garbage collection and device write amplification are the drive's. Stalls are RocksDB's.
// Deterministic in the seed. What it ignores: docs/LSM.md.
#pragma once

#include "base/result.h"
#include "device/model/drive_model.h"
#include "lsm/figures.h"
#include "lsm/spec.h"

namespace spillway::lsm {

// drive_full: the tree does not fit the drive. `query_drive`: a drive that queries read anywhere; null: they read the
// tree's files on `drive`. REQUIRES: idle drives whose time is 0; every unit of `query_drive` is written
Result<Figures> simulate(const Spec& spec, device::DriveModel& drive, device::DriveModel* query_drive,
                         const Watch& watch);

// Sizes of an entry: in a memtable, in a sorted file, in a blob file, in the log. Bytes.
struct EntryBytes {
  double memtable = 0;
  double file = 0;
  double blob = 0;  // 0: values lie in the tree
  double log = 0;
};
EntryBytes entry_bytes(const Spec& spec);
// Of a data block in a file's index.
double index_entry_bytes(const Spec& spec);
// Puts that fill a memtable, as its arena's blocks do.
double memtable_puts(const Spec& spec);

}  // namespace spillway::lsm
