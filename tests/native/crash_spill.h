// spillway::DB for crash tests: small, on both kinds of spill store.
#pragma once

#include <string>

#include "crash_harness.h"
#include "spillway/db.h"

namespace spillway::crash {

// Brings nothing back by itself; has several generations.
SpillOptions small_spill();
// One set of options for each way back.
SpillOptions by_put();
SpillOptions by_ingestion();

Opener open_spillway(const SpillOptions& spill);
// The spill store is a key-value namespace with this share of a small drive; its contents are a file.
inline constexpr double kKvShare = 0.25;
Opener open_on_kv(const SpillOptions& spill, double share = kKvShare);
LosePower lose_commands(double share = kKvShare);

// Turns stalls on and off, and makes the calls that a user may make meanwhile.
std::string stir(Scene& scene);

void expect_kept(const CrashPlan& plan);

}  // namespace spillway::crash
