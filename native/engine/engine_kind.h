// What an engine is created from, and what each engine provides to the factory.
//
// An EngineKind checks its own options and settings, opens its databases and says which libraries it is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/settings.h"
#include "device/emulated/emulated.h"
#include "engine/engine.h"

namespace spillway::fs {
class Volume;
class WriteCounts;
}  // namespace spillway::fs

namespace spillway::engine {

struct EngineSpec {
  std::string name = "rocksdb";
  std::string directory = {};  // of the database; made when missing
  StringMap options = {};      // by the engine's own names and in its own spelling
  // Settings that Spillway adds to the engine, by the dotted key below `engine.`: "policy", "adoc.interval_ms",
  // "spill.capacity_bytes". Each engine checks its own.
  StringMap settings = {};
  // The drive under the database. Null: the directory as it is, through the engine's own file system.
  // REQUIRES: outlives the engine.
  fs::Volume* volume = nullptr;
  bool host_sync = false;  // with a volume: also sync the host's files, see fs/rocksdb/file_system.h
  // Counts the engine's writes into the host's files by cause; null: not counted. REQUIRES: outlives the engine.
  fs::WriteCounts* writes = nullptr;
  bool has_kv_namespace = false;             // the drive has a key-value namespace
  device::EmulatedDevice* device = nullptr;  // with has_kv_namespace, when it is opened. REQUIRES: as of volume
  // For check(), before there is a volume; 0: not known.
  std::uint64_t capacity_bytes = 0;  // of the emulated drive, or of its partition
  std::uint32_t lba_bytes = 0;       // of the emulated drive
  std::uint64_t value_bytes = 0;     // of the load
};

// REQUIRES: `spec` outlives it
inline Settings settings_of(const EngineSpec& spec) { return {spec.settings, "engine.", "this engine"}; }

// An engine as the factory knows it: plain functions, so that a module that is loaded can bring one.
struct EngineKind {
  const char* name = "";
  // A file in each of its databases that distinguishes them from other engines'.
  const char* database_file = "CURRENT";
  // bad_input: the first problem of options and settings. Opens nothing.
  Status (*check)(const EngineSpec& spec) = nullptr;
  // REQUIRES: check() is ok; the directory exists.
  Result<std::unique_ptr<Engine>> (*open)(const EngineSpec& spec) = nullptr;
  // Of its libraries: {"rocksdb": "7.8.3"}.
  StringMap (*versions)() = nullptr;
  // Whether it compresses values, with these options. REQUIRES: check() is ok.
  bool (*compresses)(const EngineSpec& spec) = nullptr;
  // Whether a closed database may be opened in another directory.
  bool is_movable = true;
  // Whether it has scans, deletes and batches and keeps values; else it has only puts and gets of values of one size.
  bool is_store = true;
  // The compression of the tables with these options, such as "lz4"; its default may depend on version and build. Null:
  // the engine's options say it. REQUIRES: check() is ok.
  std::string (*compression)(const EngineSpec& spec) = nullptr;
};

}  // namespace spillway::engine
