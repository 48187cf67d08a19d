// What may befall an action on a file, and some common choices. A fate is asked before the action, by the thread that
// does it; it must be thread-safe.
#pragma once

#include <rocksdb/io_status.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace spillway::faults {

enum class Action : std::uint8_t { create, read, write, sync, rename, remove, sync_directory };

struct Deed {
  Action action = Action::read;
  std::string name{};             // of the file, relative to the file system's root
  std::uint64_t bytes = 0;        // read or written
  std::uint64_t bytes_after = 0;  // on the drive, in all files, if it succeeds
};

struct Misfortune {
  rocksdb::IOStatus status{};         // what the action returns; not OK: it is not done
  std::uint64_t written_first = 0;    // bytes of a failed write that reach the file all the same
  std::chrono::nanoseconds delay{0};  // before anything else
};

using Fate = std::function<Misfortune(const Deed&)>;

// The n-th deed (from 1) for which `chosen` holds fails, and every later one if `for_good`.
inline Fate fail_nth(std::function<bool(const Deed&)> chosen, std::uint64_t n, rocksdb::IOStatus status,
                     bool for_good = false) {
  auto count = std::make_shared<std::atomic<std::uint64_t>>(0);
  return [chosen = std::move(chosen), n, status = std::move(status), for_good, count](const Deed& deed) {
    if (!chosen(deed)) return Misfortune();
    const std::uint64_t now = ++*count;
    return now == n || (for_good && now > n) ? Misfortune{.status = status} : Misfortune();
  };
}

// That share of the deeds for which `chosen` holds fails; which ones depends on the seed and on their order.
inline Fate fail_share(std::function<bool(const Deed&)> chosen, double share, std::uint64_t seed,
                       rocksdb::IOStatus status) {
  auto count = std::make_shared<std::atomic<std::uint64_t>>(seed);
  return [chosen = std::move(chosen), share, status = std::move(status), count](const Deed& deed) {
    if (!chosen(deed)) return Misfortune();
    std::uint64_t mixed = (*count += 0x9e3779b97f4a7c15ULL);  // splitmix64
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    mixed ^= mixed >> 31;
    return static_cast<double>(mixed >> 11) * 0x1p-53 < share ? Misfortune{.status = status} : Misfortune();
  };
}

// The drive holds so many bytes.
inline Fate room_for(std::uint64_t bytes) {
  return [bytes](const Deed& deed) {
    if (deed.action != Action::write || deed.bytes_after <= bytes) return Misfortune();
    return Misfortune{.status = rocksdb::IOStatus::NoSpace("the drive is full (injected)")};
  };
}

}  // namespace spillway::faults
