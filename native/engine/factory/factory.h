// Engines by name: the one place that knows which engines this build has.
//
// RocksDB and LevelDB are linked into the program. WiredTiger, for its licence, is a module (engine/modules.h) that is
// loaded from beside the program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/engine_kind.h"

namespace spillway::engine {

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
StringMap engine_versions(const std::string& name);

// The compression that the engine uses, such as "lz4"; empty where only its options say it. REQUIRES: as of
// compresses()
std::string engine_compression(const EngineSpec& spec);

}  // namespace spillway::engine
