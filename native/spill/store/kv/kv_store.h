// The spill store in a drive's key-value namespace: durable as soon as it is stored, and beside no file system at all.
//
// A generation is a range of pairs (kv_pairs.h). Dropped is what the pair (0, 0) says, begun what (0, 1) lists;
// released, reset.
//
// An append returns when its records are in memory that outlives the process; they go to the drive a pair of several at
// a time, in order, and sync() waits until it has taken them (kv_append_window.h). Until then reads find them in
// memory. A killed process leaves what it handed over with the drive, and the rest in the file beside its contents,
// from where the next one stores it. A loss of power may take any of both: positions follow one another, and recovery
// ends at the first that is not there, so a prefix is left. A pair that the drive does not take fails every later
// append and sync; it and all behind it stay in memory, are read from there, and are stored again, before anything
// newer, when the next generation begins. A drive that is full has not failed: append says NoSpace, what was taken
// stays in staging, is read from there and made durable there by a sync, and goes to the drive when a release has made
// room. Near its capacity an append waits for the drive, so that NoSpace is its own
// answer.
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
  // Of its contents (KvNamespace::open); <path>.staged is what is not there yet. "": they do not outlive the store.
  std::string path;
  device::Device* door = nullptr;  // the drive behind a layer of its caller's; null: the drive
  std::uint32_t staged_pairs = kStagedPairs;
};

// An error that says in one sentence why the namespace cannot be used.
rocksdb::Status open_kv_store(const KvStoreOptions& options, std::unique_ptr<Store>* store);

}  // namespace spillway::spill
