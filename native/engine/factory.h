// Stores by name: the one place that knows which engines this build has.
//
// An engine is an EngineKind: it checks its own options and settings, opens itself and says what it is made of. RocksDB
// and LevelDB are linked into the program; WiredTiger, for its licence, is a module that is loaded from beside it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/emulated.h"
#include "engine/engine.h"

namespace spillway::fs {
class Volume;
class WriteCounts;
}  // namespace spillway::fs

namespace spillway::engine {

using Texts = std::map<std::string, std::string>;

struct EngineSpec {
  std::string name = "rocksdb";
  std::string directory = {};  // of the database; made when missing
  Texts options = {};          // by the engine's own names and in its own spelling
  // What Spillway adds to the engine, by the dotted key below `engine.`, values as texts: "policy", "adoc.interval_ms",
  // "spill.capacity_bytes". Each engine says which it has.
  Texts settings = {};
  // The drive under the database. Null: the directory as it is, through the engine's own file system.
  // REQUIRES: outlives the engine.
  fs::Volume* volume = nullptr;
  bool host_sync = false;  // with a volume: also sync the host's files, see fs/rocksdb/file_system.h
  // Counts what the engine writes into the host's files, by cause. Null: nobody asks. REQUIRES: outlives the engine.
  fs::WriteCounts* writes = nullptr;
  bool has_kv_namespace = false;             // the drive has a key-value namespace
  device::EmulatedDevice* device = nullptr;  // with has_kv_namespace, when it is opened. REQUIRES: as of volume
  // What a check may go by before there is a volume; 0: not known.
  std::uint64_t capacity_bytes = 0;  // of the emulated drive, or of its partition
  std::uint32_t lba_bytes = 0;       // of the emulated drive
  std::uint64_t value_bytes = 0;     // of the load
};

// One engine as the factory knows it. Plain functions, so that a module can hand one out.
struct EngineKind {
  const char* name = "";
  // Says what is wrong with options and settings, without opening anything.
  Status (*check)(const EngineSpec& spec) = nullptr;
  // REQUIRES: check() found nothing; the directory is there.
  Result<std::unique_ptr<Engine>> (*open)(const EngineSpec& spec) = nullptr;
  // Of the libraries that it is made of: {"rocksdb": "7.8.3"}.
  Texts (*versions)() = nullptr;
  // Whether values take less on the drive than the user gave, with these options. REQUIRES: check() found nothing.
  bool (*compresses)(const EngineSpec& spec) = nullptr;
  // Whether a database that was closed may be opened in another directory.
  bool is_movable = true;
  // Whether it has scans, deletes and batches, and keeps what it is given; without them, only puts and gets of values
  // of one size.
  bool is_store = true;
};

// An open engine, or one sentence: an unknown engine or option with the nearest name, a value it does not take, a
// directory that cannot be used, the package that brings an engine which is not there.
Result<std::unique_ptr<Engine>> open_engine(const EngineSpec& spec);

// Says what is wrong with `spec` without opening anything.
Status check_engine(const EngineSpec& spec);

// Whether the engine's values may take less on the drive than the user gave. REQUIRES: check_engine() found nothing.
bool compresses(const EngineSpec& spec);

// Whether the engine's databases, once closed, may be opened in another directory. REQUIRES: as of compresses()
bool is_movable(const EngineSpec& spec);

// Whether the engine is a store, or only puts and gets values of one size. REQUIRES: as of compresses()
bool is_store(const EngineSpec& spec);

// All that this program knows of, built in or not.
std::vector<std::string> engine_names();

// Of the libraries in this process that engine `name` is made of: {"rocksdb": "7.8.3"}. Empty for one that is not
// there.
Texts engine_versions(const std::string& name);

}  // namespace spillway::engine
