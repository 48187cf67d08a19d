// spillway::DB for crash tests: small, on both kinds of spill store.
#pragma once

#include <functional>
#include <string>

#include "crash_harness.h"
#include "spillway/db.h"

namespace spillway::crash {

// Brings nothing back by itself; has several generations.
SpillOptions small_spill();
// One set of options for each way back.
SpillOptions by_put();
SpillOptions by_ingestion();

// Changes RocksDB's options of the database in `path`, which may not exist yet.
using Tune = std::function<void(const std::string& path, rocksdb::Options& options)>;
Opener open_spillway(const SpillOptions& spill, const Tune& tune = nullptr);
// The spill store is a key-value namespace with this share of a small drive; its contents are a file.
inline constexpr double kKvShare = 0.25;
Opener open_on_kv(const SpillOptions& spill, double share = kKvShare);
LosePower lose_commands(double share = kKvShare);

// Turns stalls on and off, and makes the calls that a user may make meanwhile.
std::string stir(Scene& scene);

void expect_kept(const CrashPlan& plan);

}  // namespace spillway::crash
