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

// What a store has to hold: after `base`, at least `due` and at most `begun` of each thread's operations of a round.
struct Claim {
  const CrashPlan* plan = nullptr;
  std::uint64_t round = 0;  // 0: nobody has written yet
  std::array<Contents, kThreads> base{};
  std::array<std::uint32_t, kThreads> due{};
  std::array<std::uint32_t, kThreads> begun{};
};

// What was there before the last child that wrote, and which one that was.
struct History {
  const CrashPlan* plan = nullptr;
  std::array<Contents, kThreads> base{};
  std::uint64_t round = 0;  // 0: nobody has written yet
  std::array<std::uint32_t, kThreads> begun{};
  bool power_lost = false;  // since it wrote

  // What was promised when it died.
  Claim claim(const CrashLedger& ledger) const;
  // What a copy has to hold that it took last.
  Claim claim_of_copy(const CrashLedger& ledger) const;
  // The child judged what that round had left, and wrote. Returns how many operations of that round are lost.
  std::uint64_t settle(const CrashLedger& ledger);
};

struct Judgement {
  std::string failure;  // empty: as promised
  std::array<std::uint32_t, kThreads> survivors{};
  std::array<Contents, kThreads> contents{};
};

// Holds what is in the store against the claim; the ledger says what began after what was acknowledged.
Judgement judge(Opened& store, const Claim& claim, const CrashLedger& ledger);

// Reads a thread's keys one by one, and all in order; says where they are not as `expected`.
std::string compare_with_reads(Opened& store, unsigned thread, const Contents& expected);

}  // namespace spillway::crash
