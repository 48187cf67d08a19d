// What a child reports, in memory that outlives it.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

namespace spillway::crash {

inline constexpr std::uint32_t kMostOperations = 4000;  // of one thread of one child

enum class Phase : int { opening, writing, failed };

struct ThreadLedger {
  std::atomic<std::uint32_t> begun{0};
  std::atomic<std::uint32_t> acknowledged{0};
  // Times, from a clock shared by all threads: when each operation began, and when it was acknowledged.
  std::array<std::uint64_t, kMostOperations> begun_at{};
  std::array<std::uint64_t, kMostOperations> acknowledged_at{};
};

template <unsigned Threads>
struct Ledger {
  std::atomic<Phase> phase{Phase::opening};
  std::atomic<bool> step_reached{false};
  std::atomic<std::uint64_t> time{0};
  std::array<ThreadLedger, Threads> threads{};
  std::atomic<std::uint64_t> copy{0};              // the name of a copy that this child has made; 0: none
  std::array<std::uint32_t, Threads> copy_due{};   // operations that were acknowledged before the copy began
  std::atomic<std::uint64_t> copies{0};            // judged copies, of all children
  std::atomic<std::uint64_t> refused{0};           // writes to files that a full drive refused, of all children
  std::array<std::uint32_t, Threads> survivors{};  // as judged: surviving operations of the child before
  std::array<char, 4096> failure{};
  std::array<std::array<char, 64>, 64> steps{};  // names, up to the first empty one

  static Ledger* map() {
    void* memory = mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) Ledger();
  }

  void begin_writing() {
    time = 0;
    copy = 0;
    for (ThreadLedger& thread : threads) {
      thread.begun = 0;
      thread.acknowledged = 0;
    }
    phase = Phase::writing;
  }

  void fail(const std::string& message) {
    std::memcpy(failure.data(), message.data(), std::min(message.size(), failure.size() - 1));
    phase = Phase::failed;
  }

  // REQUIRES: called by one thread at a time.
  void note_step(std::string_view name) {
    for (auto& known : steps) {
      if (known[0] == 0) name.copy(known.data(), known.size() - 1);
      if (std::string_view(known.data()) == name) return;
    }
  }
};

}  // namespace spillway::crash
