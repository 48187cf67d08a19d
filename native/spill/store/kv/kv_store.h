// The spill store in a drive's key-value namespace, without a file system: a pair is durable when the drive has stored
// it.
//
// A generation is a range of pairs (kv_pairs.h). The pair (0, 0) says which generation was dropped last, the pair (0,
// 1) lists those that were begun. Releasing a generation resets its range.
//
// - An append returns when its records are in staging, memory that outlives the process (kv_staging.h). They go to the
//   drive in order, several in a pair (kv_append_window.h); until then reads find them in staging. sync() waits until
//   the drive has stored them.
// - A killed process leaves records on the drive and in staging; the next process stores those of staging. A loss of
//   power may take some of either. Positions are consecutive and recovery ends at the first gap, so a prefix is left.
// - If the drive fails to store a pair, every later append and sync fails. That pair and all behind it stay in staging
//   and readable, and are stored again, before anything newer, when the next generation begins.
// - A full drive is not a failure: append returns NoSpace. What was appended stays in staging, is readable and made
//   durable there by a sync, and goes to the drive after a release has freed bytes. Near the capacity each append waits
//   for the drive, so that NoSpace is returned by the append that did not fit.
#pragma once

#include <rocksdb/status.h>

#include <cstdint>
#include <memory>
#include <string>

#include "device/kv/kv_namespace.h"
#include "spill/store/kv/kv_append_window.h"
#include "spill/store/store.h"

namespace spillway::spill {

struct KvStoreOptions {
  device::EmulatedDevice* drive = nullptr;  // outlives the store
  std::uint16_t kv_namespace = 0;
  // Where the namespace's contents are kept (KvNamespace::open); <path>.staged holds pairs that are not there yet.
  // "": they do not outlive the store.
  std::string path;
  device::Device* front = nullptr;  // a device in front of `drive`, as a test's that fails; null: `drive` itself
  // Of a store that is made: one that is there keeps what it was made with, as <path>.staged says.
  std::uint32_t staged_pairs = kStagedPairs;
  std::uint32_t pair_bytes = kPairBytes;
};

// An error that says in one sentence why the namespace cannot be used.
rocksdb::Status open_kv_store(const KvStoreOptions& options, std::unique_ptr<Store>* store);

}  // namespace spillway::spill
