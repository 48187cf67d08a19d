// A flash drive as a pure function of commands and their times.
//
// It never reads a clock, starts a thread, opens a file or draws ambient randomness: its caller owns time. A simulator
// jumps to next_event(); an emulator sleeps until it. The same commands at the same times give the same completions in
// both.
//
//   ssd.submit(now, command);                       // any number, at non-decreasing times
//   while (auto t = ssd.next_event()) ssd.advance(*t, done);
//
// Sources: M32, M8, C15, P28, K14-K17. What it ignores is listed in docs/METHODOLOGY.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssd/interface/command.h"
#include "ssd/interface/config.h"
#include "ssd/interface/counters.h"
#include "ssd/interface/kv_command.h"

namespace spillway::ssd {

// The destination and the source of saved state. A sink returns false if it cannot take the bytes, a source if it does
// not have them. `size` is not 0.
using StateSink = std::function<bool(const void* bytes, std::size_t size)>;
using StateSource = std::function<bool(void* bytes, std::size_t size)>;

class Ssd {
 public:
  // REQUIRES: !problem(config)
  Ssd(const SsdConfig& config, std::uint64_t seed);
  ~Ssd();
  Ssd(Ssd&&) noexcept;
  Ssd& operator=(Ssd&&) noexcept;

  const SsdConfig& config() const;
  const Layout& layout() const;

  // Submits a command that arrives at `now`. A command that cannot be served completes with the reason.
  // REQUIRES: now >= the time of every earlier submit and advance.
  void submit(Nanos now, const Command& command);

  // Submits a command to a key-value namespace. REQUIRES: as above, and config().namespaces.kv_share > 0
  void submit_kv(Nanos now, KvCommand command);

  // Hints that this command follows: prefetch_entry() some eight commands ahead, prefetch_place() some four. They
  // prefetch the map entry, and what it points to, into the processor's cache and change nothing else.
  void prefetch_entry(const Command& command) const;
  void prefetch_place(const Command& command) const;

  // The time of the next event, or nothing if the drive is idle. With commands in flight there always is one.
  std::optional<Nanos> next_event() const;

  // Advances the drive to `now` and appends completions in their order.
  // REQUIRES: now >= the time of every earlier submit and advance.
  void advance(Nanos now, std::vector<Completion>& done);
  // Advances the drive to `until`, but no further than to the first time at which commands are complete; appends these.
  // The same as advance() at each next_event() up to there. REQUIRES: as above
  void advance_to_completion(Nanos until, std::vector<Completion>& done);

  std::size_t in_flight() const;  // commands submitted and not completed
  const Counters& counters() const;
  KvCounters kv_counters() const;  // zeros if there is no key-value namespace
  // P/E cycles: mean over erase blocks, and the largest.
  double mean_pe_cycles() const;
  std::uint32_t max_pe_cycles() const;
  std::uint64_t mapped_units() const;  // logical units that hold data

  // --- Preconditioning: changes the drive's state without time. REQUIRES: in_flight() == 0 and an idle drive

  // The written data compresses to `compressed_share`, as that of a Command.

  // Writes units [first, first + count) in order. REQUIRES: below the disaggregation point, here and in the next two
  void write_sequentially(std::uint64_t first, std::uint64_t count, std::uint16_t compressed_share = kIncompressible);
  // Brings the drive to the state after long uniform random single-unit overwrites of units [0, count): valid data is
  // spread over erase blocks at random, with the policy's steady distribution. REQUIRES: an empty drive
  void assume_steady(std::uint64_t count, std::uint16_t compressed_share = kIncompressible);
  // Overwrites one unit, with the garbage collection that it needs: for a warm-up at memory speed.
  void overwrite(std::uint64_t unit, std::uint16_t compressed_share = kIncompressible);
  // Deallocates units [first, first + count).
  void discard(std::uint64_t first, std::uint64_t count);
  // Puts pairs into an empty key-value namespace, as one sorted run. False if they do not fit. REQUIRES: keys in order,
  // each once, within the limits
  bool bulk_load_kv(std::uint16_t kv_namespace, const std::vector<KvPair>& pairs);
  // Sets the counters to zero; P/E cycles stay.
  void reset_counters();

  // --- State. REQUIRES: in_flight() == 0 and an idle drive. save() first programs dirty cached data.
  bool save(const StateSink& sink);
  // Nothing, or one sentence that says why the state cannot be loaded: other geometry, another version, truncated.
  std::optional<std::string> load(const StateSource& source);

  // The pairs of a key-value namespace in order of their keys (slow). REQUIRES: it exists
  std::vector<KvPair> kv_pairs(std::uint16_t kv_namespace) const;

  // Checks every invariant of the translation layer and of the key-value namespaces (slow). Nothing, or the first
  // violated one.
  std::optional<std::string> audit() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::ssd
