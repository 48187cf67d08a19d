// The clock and the sleep of paced emulation: monotonic time, and a word on which one thread waits for another.
#pragma once

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <optional>

namespace spillway::device {

using RealNanos = std::int64_t;  // CLOCK_MONOTONIC

inline RealNanos real_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Sleeps while the word is `expected`, until it is woken or `deadline` has passed. May also return without a reason.
inline void wait_on(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::optional<RealNanos> deadline) {
  timespec until{};
  if (deadline) until = {.tv_sec = *deadline / 1'000'000'000, .tv_nsec = *deadline % 1'000'000'000};
  // FUTEX_WAIT_BITSET takes an absolute deadline, FUTEX_WAIT a relative one.
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, deadline ? &until : nullptr, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

// Wakes the one thread that sleeps on the word. Does not read the address, which may belong to a queue closed
// meanwhile.
inline void wake(const std::atomic<std::uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
}

// Makes the calling thread's timed sleeps end when they are due. The kernel's default is up to 50 us later.
inline void ask_for_punctual_sleeps() {
  static thread_local const bool asked = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL) == 0;
  static_cast<void>(asked);
}

}  // namespace spillway::device
