// The drive without an engine: each value is written at its key's place, directly and by itself.
//
// The drive (or the partition) is an array of slots, a value each. A key's number, which its first eight bytes say
// (load/pairs.h), chooses the slot, so that keys in order are a sequential write and random keys a random one of blocks
// of a value's size. A call waits for its own command: as many are in flight as there are threads. No contents are
// kept. What it leaves out: file system, page cache, logs, and everything that makes a store.
#include "engine/raw/engine.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "fs/drive_ios.h"
#include "fs/volume.h"

namespace spillway::engine {
namespace {

constexpr const char* kNoCauses[] = {"none"};
constexpr std::uint64_t kMostBlock = std::uint64_t{1} << 30;  // of one command: device::Io::length_bytes

// REQUIRES: keys as load/pairs.h makes them
std::uint64_t number_of(std::string_view key) {
  std::uint64_t number = 0;
  for (const char letter : key.substr(0, 8)) number = number << 8 | static_cast<unsigned char>(letter);
  return number;
}

Status check_block(std::uint64_t bytes, std::uint32_t lba_bytes, std::uint64_t capacity_bytes) {
  if (bytes != 0 && bytes % lba_bytes == 0 && bytes <= capacity_bytes && bytes <= kMostBlock) return Status::ok();
  return Status::bad_input("load.value_bytes is " + std::to_string(bytes) +
                           "; the engine raw writes blocks of it, so it takes a multiple of " +
                           std::to_string(lba_bytes) + " up to " +
                           std::to_string(std::min(capacity_bytes, kMostBlock)) + ", which the drive can do");
}

class RawDrive final : public Engine {
 public:
  explicit RawDrive(fs::Volume& volume)
      : queues_(volume.device()),
        bytes_(volume.space().capacity_bytes),
        lba_bytes_(volume.device().info().lba_bytes),
        compressed_share_(device::share_of(volume.options().compression_ratio)) {}

  Status put(std::string_view key, std::string_view value) override {
    value_bytes_.store(value.size(), std::memory_order_relaxed);
    return command(device::Opcode::write, key, value.size());
  }

  // Reads as much as the last value that was put had.
  Result<bool> get(std::string_view key, std::string* value) override {
    const std::uint64_t bytes = value_bytes_.load(std::memory_order_relaxed);
    if (bytes == 0) return false;
    if (Status status = command(device::Opcode::read, key, bytes); !status) return status;
    if (value != nullptr) value->assign(bytes, '\0');
    return true;
  }

  Status remove(std::string_view) override { return not_there("deletes"); }
  Status write(std::span<const Write>) override { return not_there("batches"); }
  Result<std::uint64_t> scan(std::string_view, std::uint64_t, Direction, Pairs*) override { return not_there("scans"); }

  std::span<const char* const> stall_causes() const override { return kNoCauses; }
  Observation observe() override { return {}; }
  std::vector<Stall> stalls() override { return {}; }
  std::map<std::string, std::uint64_t> statistics() override { return {}; }
  Status flush() override { return fs::run(queues_, {device::Io{.op = device::Opcode::flush}}, "a flush"); }
  Status wait_for_compaction(const std::atomic<bool>&) override { return {}; }
  Status close() override { return {}; }

 private:
  static Status not_there(const std::string& what) {
    return Status::error(Fault::not_supported, "engine raw has no " + what + ": it writes and reads blocks of a drive");
  }

  Status command(device::Opcode op, std::string_view key, std::uint64_t bytes) {
    if (Status status = check_block(bytes, lba_bytes_, bytes_); !status) return status;
    device::Io io;
    io.tag = bytes;
    io.op = op;
    io.cause = device::Cause::user;
    io.offset_bytes = number_of(key) % (bytes_ / bytes) * bytes;
    io.length_bytes = bytes;
    io.compressed_share = compressed_share_;
    return fs::run(queues_, {io}, op == device::Opcode::write ? "a write" : "a read");
  }

  fs::QueuePool queues_;
  const std::uint64_t bytes_;  // of the partition
  const std::uint32_t lba_bytes_;
  const std::uint16_t compressed_share_;
  std::atomic<std::uint64_t> value_bytes_ = 0;
};

Status check_raw(const EngineSpec& spec) {
  Settings settings = settings_of(spec);  // it has none
  if (Status status = settings.finish(); !status) return status;
  if (!spec.options.empty()) {
    return Status::bad_input("engine.options: " + spec.options.begin()->first +
                             " is no option of the engine raw, which has none; remove it");
  }
  const bool drive_is_known = spec.lba_bytes != 0 && spec.capacity_bytes != 0;
  return drive_is_known ? check_block(spec.value_bytes, spec.lba_bytes, spec.capacity_bytes) : Status::ok();
}

Result<std::unique_ptr<Engine>> open_raw(const EngineSpec& spec) {
  if (spec.volume == nullptr || spec.host_sync) {
    return Status::bad_input(
        "engine.name: raw writes to an emulated drive; set drive.kind to emulated, or measure a real drive with "
        "`spillway profile`");
  }
  return std::unique_ptr<Engine>(std::make_unique<RawDrive>(*spec.volume));
}

}  // namespace

EngineKind raw_engine() {
  return {.name = "raw",
          .check = check_raw,
          .open = open_raw,
          .versions = [] { return StringMap(); },
          .compresses = [](const EngineSpec&) { return false; },
          .is_movable = false,
          .is_store = false};
}

}  // namespace spillway::engine
