// Which operation on a file fails or is delayed, and some common rules. The thread that does an operation calls the
// rule before it. A rule must be thread-safe.
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

struct FileOperation {
  Action action = Action::read;
  std::string name{};             // of the file, relative to the file system's root
  std::uint64_t bytes = 0;        // read or written
  std::uint64_t bytes_after = 0;  // on the drive, in all files, if it succeeds
};

struct FileFault {
  rocksdb::IOStatus status{};         // what the operation returns; not OK: it is not done
  std::uint64_t written_first = 0;    // bytes of a failed write that reach the file nevertheless
  std::chrono::nanoseconds delay{0};  // before the operation or its error
};

using FileFaultRule = std::function<FileFault(const FileOperation&)>;

// The n-th operation (from 1) for which `chosen` is true fails, and every later one if `permanently`.
inline FileFaultRule fail_nth(std::function<bool(const FileOperation&)> chosen, std::uint64_t n,
                              rocksdb::IOStatus status, bool permanently = false) {
  auto count = std::make_shared<std::atomic<std::uint64_t>>(0);
  return [chosen = std::move(chosen), n, status = std::move(status), permanently, count](const FileOperation& one) {
    if (!chosen(one)) return FileFault();
    const std::uint64_t now = ++*count;
    return now == n || (permanently && now > n) ? FileFault{.status = status} : FileFault();
  };
}

// That share of the operations for which `chosen` is true fails. Which ones depends on the seed and on their order.
inline FileFaultRule fail_share(std::function<bool(const FileOperation&)> chosen, double share, std::uint64_t seed,
                                rocksdb::IOStatus status) {
  auto count = std::make_shared<std::atomic<std::uint64_t>>(seed);
  return [chosen = std::move(chosen), share, status = std::move(status), count](const FileOperation& one) {
    if (!chosen(one)) return FileFault();
    std::uint64_t mixed = (*count += 0x9e3779b97f4a7c15ULL);  // splitmix64
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    mixed ^= mixed >> 31;
    return static_cast<double>(mixed >> 11) * 0x1p-53 < share ? FileFault{.status = status} : FileFault();
  };
}

// The drive is full when it holds this many bytes.
inline FileFaultRule full_beyond(std::uint64_t bytes) {
  return [bytes](const FileOperation& one) {
    if (one.action != Action::write || one.bytes_after <= bytes) return FileFault();
    return FileFault{.status = rocksdb::IOStatus::NoSpace("the drive is full (injected)")};
  };
}

}  // namespace spillway::faults
