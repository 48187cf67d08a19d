// The spill store in a drive's key-value namespace: durable as soon as it is stored, and beside no file system at all.
//
// A generation is the range of keys (generation, position), both 8 bytes with the highest first, so that the drive's
// order is the store's. A record lies behind a header of its length in pieces, one pair each, at the positions at which
// they begin; its offset is the position of the first. What is appended together is one batch store, or as many as the
// drive's memtable makes of it. Dropped is what the pair (0, 0) says, begun what (0, 1) lists;
// released, reset.
//
// An append returns when its commands are handed over, in order; sync() waits until the drive has taken them. So many
// bytes are on their way at most (kv_append_window.h); reads find them in memory. A killed process leaves them with the
// drive. A loss of power may take any of them: positions follow one another, and recovery ends at the first that is not
// there, so a prefix is left. One that the drive does not take fails every later append and sync; it and all behind it
// stay in memory, are read from there, and are stored again, before anything newer, when the next generation begins.
// Near its capacity an append waits for the drive, so that NoSpace is its own answer.
#pragma once

#include <rocksdb/status.h>

#include <cstdint>
#include <memory>
#include <string>

#include "device/kv_namespace.h"
#include "spill/store.h"

namespace spillway::spill {

struct KvStoreOptions {
  device::EmulatedDevice* drive = nullptr;  // outlives the store
  std::uint16_t kv_namespace = 0;
  std::string path;                // of its contents (KvNamespace::open); "": they do not outlive the store
  device::Device* door = nullptr;  // the drive behind a layer of its caller's; null: the drive
};

// An error that says in one sentence why the namespace cannot be used.
rocksdb::Status open_kv_store(const KvStoreOptions& options, std::unique_ptr<Store>* store);

}  // namespace spillway::spill
