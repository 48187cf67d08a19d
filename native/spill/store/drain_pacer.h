// A proportional controller for the rate of writes into a store whose space is released in lumps, such as generations.
//
// While much is free the rate is not limited. Below that it is drain * free / target, where the drain is the measured
// rate of release. It settles where writes equal releases, with `target` free; free space then varies by one lump about
// the target, and the rate in proportion. A lump that is overdue lowers the drain, so that free space is not used up
// before the lump is released; but what is free may always be used up in some time. If nothing is released for long,
// pacing cannot help, and it ends.
//
// Several lumps may be released together, as a group: the larger it is, the less it costs to bring back. What has come
// back of a group counts as free but for the last lump, so that the rate does not swing with the size of groups. A
// group of g lumps needs g more lumps that are free when it begins. Therefore the rate stays somewhat below the drain
// until groups are as large as they may be.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace spillway::spill {

// Shares of the store.
struct StoreRoom {
  double free = 1;
  double returning = 0;  // will be released together, and has not yet come back
};

// Not thread-safe. Amounts are shares of the store.
class DrainPacer {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Seconds = std::chrono::duration<double>;

  // Of lumps. Below `kUnpaced` free ones writers are slowed, `kTarget` are free when what comes in equals what leaves.
  // Source: spill_drain_pacer_test.cc; the rate swings by a quarter to each side.
  static constexpr double kUnpaced = 3;
  static constexpr double kTarget = 2;
  static constexpr double kMostUnpaced = 0.4;  // of a store of few lumps
  // The drain is the mean over so many lumps. Source: guess, some seconds of a loaded drive
  static constexpr std::size_t kLumps = 6;
  // Before one has left: the time for what is free when pacing begins, and how much of it is used on that guess, so
  // that a slow drain finds something free. Source: guess, of the order of a rollback; decision 0047, bursts on a base
  // load
  static constexpr Seconds kFirst{4};
  static constexpr double kOnGuess = 2.0 / 3;
  // However long a lump is overdue, what is free may be used up in so long, or in the time in which the group is back
  // if that is longer. After t without a release the rate is then free / kUseUp e^(-t / kUseUp), which is highest where
  // kUseUp is t. Source: decision 0047, gaps of 4 to 10 s
  static constexpr Seconds kUseUp{10};
  // After this long, or four times the mean, without a lump nothing is slowed any more. Source: guess
  static constexpr Seconds kPatience{10};

  // From this free share on a store is as good as empty, and what was before says nothing of what comes. Source: guess
  static constexpr double kEmpty = 0.75;

  // Groups are at most this share of the store. Source: a third of what is not kept free, for a group, its sorted
  // files, and what comes in meanwhile
  static constexpr double kMostGroup = 0.28;

  // `lump`: the most that leaves together, but for groups.
  enum class Groups : bool { none, some };
  explicit DrainPacer(double lump, Groups groups = Groups::none);

  void observe(StoreRoom room, Time now);
  // From this free share on nothing is slowed.
  static double unpaced_above(double lump) { return std::min(kUnpaced * lump, kMostUnpaced); }
  // Whether nothing needs to be slowed: enough is free, if half of what is returning is needed until it has come back.
  static bool is_plenty(StoreRoom room, double lump) { return room.free - room.returning / 2 >= unpaced_above(lump); }
  // How many lumps to bring back together in a burst that goes on: few where hardly anything is free.
  static std::uint64_t next_group(double free, double lump);
  // Whether writers are slowed, or were lately.
  bool is_watching() const { return is_watching_; }
  // How much may come in a second; nothing: as much as will.
  std::optional<double> limit(Time now) const;

 private:
  void begin(Time now, bool was_paced);
  Seconds mean_interval() const;
  double by_guess(Seconds since_begin) const;

  const double lump_;
  const double unpaced_;
  const Groups groups_;
  bool is_pacing_ = false;
  bool is_watching_ = false;
  StoreRoom room_;
  Time ended_{};              // the last pacing
  double free_at_begin_ = 1;  // when nothing was known of the drain
  double returning_ = 0;
  double even_free_ = 1;  // as if lumps of a group were released one by one
  // What has left, with its time; the first only begins the time.
  std::deque<std::pair<Time, double>> left_;
};

}  // namespace spillway::spill
