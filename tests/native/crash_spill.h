// spillway::DB for crash tests: small, on both kinds of spill store.
#pragma once

#include <string>

#include "crash_harness.h"
#include "spillway/db.h"

namespace spillway::crash {

// Brings nothing back by itself; several generations.
SpillOptions small_spill();
// One for each way back.
SpillOptions by_put();
SpillOptions by_ingestion();

Opener open_spillway(const SpillOptions& spill);
// The spill store is a key-value namespace that has this share of a small drive, with its contents in a file.
inline constexpr double kKvShare = 0.25;
Opener open_on_kv(const SpillOptions& spill, double share = kKvShare);
LosePower lose_commands(double share = kKvShare);

// Stalls that come and go, and what a user may ask for meanwhile.
std::string stir(Scene& scene);

void expect_kept(const CrashPlan& plan);

}  // namespace spillway::crash
