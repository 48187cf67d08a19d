// The process that is killed: opens the database, judges what the last child left, and writes until it dies.
#pragma once

#include <cstdint>
#include <string>

#include "crash_harness.h"
#include "crash_judge.h"

namespace spillway::crash {

// REQUIRES: this process has one thread and was forked for this call.
[[noreturn]] void live(const CrashPlan& plan, CrashLedger& ledger, std::uint64_t round, const std::string& root,
                       const History& history);

}  // namespace spillway::crash
