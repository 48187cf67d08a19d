// What a killed child's database has to hold.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "crash_harness.h"
#include "crash_ledger.h"

namespace spillway::crash {

using CrashLedger = Ledger<kThreads>;

std::uint64_t script_seed(const CrashPlan& plan, std::uint64_t round);

// What was there before the last child that wrote, and which one that was.
struct History {
  const CrashPlan* plan = nullptr;
  std::array<Contents, kThreads> base{};
  std::uint64_t round = 0;  // 0: nobody has written yet
  std::array<std::uint32_t, kThreads> begun{};
  bool power_lost = false;  // since it wrote

  // The child judged what that round had left, and wrote. Returns how many operations of that round are lost.
  std::uint64_t settle(const CrashLedger& ledger);
};

struct Judgement {
  std::string failure;  // empty: as promised
  std::array<std::uint32_t, kThreads> survivors{};
  std::array<Contents, kThreads> contents{};
};

// Holds what is in the store against what the ledger says of the last round.
Judgement judge(Opened& store, const History& history, const CrashLedger& ledger);

// Reads a thread's keys one by one, and all in order; says where they are not as `expected`.
std::string compare_with_reads(Opened& store, unsigned thread, const Contents& expected);

}  // namespace spillway::crash
