// What the database of a killed child must contain.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "crash_harness.h"
#include "crash_ledger.h"

namespace spillway::crash {

using CrashLedger = Ledger<kThreads>;

std::uint64_t script_seed(const CrashPlan& plan, std::uint64_t round);

// What a store must contain: `base`, and of each thread's operations of a round at least `due` and at most `begun`.
struct Claim {
  const CrashPlan* plan = nullptr;
  std::uint64_t round = 0;  // 0: nothing was written yet
  std::array<Contents, kThreads> base{};
  std::array<std::uint32_t, kThreads> due{};
  std::array<std::uint32_t, kThreads> begun{};
};

// The contents before the last child that wrote, and the number of its round.
struct History {
  const CrashPlan* plan = nullptr;
  std::array<Contents, kThreads> base{};
  std::uint64_t round = 0;  // 0: nothing was written yet
  std::array<std::uint32_t, kThreads> begun{};
  bool power_lost = false;  // since it wrote

  // What was promised when it died.
  Claim claim(const CrashLedger& ledger) const;
  // What the last copy that it made must contain.
  Claim claim_of_copy(const CrashLedger& ledger) const;
  // The next child has judged what that round left, and has written. Returns how many operations of that round are
  // lost.
  std::uint64_t settle(const CrashLedger& ledger);
};

struct Judgement {
  std::string failure;  // empty: everything is as promised
  std::array<std::uint32_t, kThreads> survivors{};
  std::array<Contents, kThreads> contents{};
};

// Checks the store's contents against the claim. The ledger says which operations began after which acknowledgements.
Judgement judge(Opened& store, const Claim& claim, const CrashLedger& ledger);

// Reads a thread's keys one by one, and all in order. Returns where they differ from `expected`.
std::string compare_with_reads(Opened& store, unsigned thread, const Contents& expected);

}  // namespace spillway::crash
