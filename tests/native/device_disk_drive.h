// A disk with round figures, with and without a sorting queue and a write cache, for the tests of disks.
#pragma once

#include <cstdint>
#include <vector>

#include "device/model/drive_model.h"
#include "device/preset/preset.h"
#include "device_closed_loop.h"

namespace spillway::device {

constexpr std::uint64_t kLbasInGiB = (std::uint64_t{1} << 30) / 512;

inline Drive disk_drive() {
  Drive drive;
  drive.config.name = "disk";
  drive.config.capacity.capacity_bytes = std::uint64_t{1} << 40;
  drive.disk.revolution_ns = 8'333'333;
  drive.disk.track_seek_ns = 1'000'000;
  drive.disk.full_seek_ns = 16'000'000;
  drive.disk.write_settle_ns = 400'000;
  drive.disk.command_ns = 100'000;
  drive.disk.outer_mb_s = 200;
  drive.disk.inner_mb_s = 100;
  drive.config.timing.host_link_mb_s = 600;
  drive.config.write_cache = {0, false};
  return drive;
}

inline Drive sorting(std::uint32_t queue_depth) {
  Drive drive = disk_drive();
  drive.disk.queue_depth = queue_depth;
  return drive;
}

inline Drive caching(std::uint32_t queue_depth, std::uint64_t cache_bytes) {
  Drive drive = sorting(queue_depth);
  drive.config.write_cache.bytes = cache_bytes;
  return drive;
}

// The longest access: a full stroke and a full revolution.
inline Nanos longest_service(const Drive& drive, std::uint64_t bytes) {
  const Mechanics& disk = drive.disk;
  return disk.command_ns + disk.full_seek_ns + disk.write_settle_ns + disk.revolution_ns +
         static_cast<Nanos>(static_cast<double>(bytes) * 1000 / disk.inner_mb_s);
}

inline Command read_at(std::uint64_t lba, std::uint32_t lbas = kLbasIn4k, std::uint64_t tag = 0) {
  return {.tag = tag, .op = Opcode::read, .lba_count = lbas, .lba = lba};
}
inline Command write_at(std::uint64_t lba, std::uint32_t lbas = kLbasIn4k, std::uint64_t tag = 0) {
  return {.tag = tag, .op = Opcode::write, .lba_count = lbas, .lba = lba};
}

// Runs the drive until it is idle. Returns that time.
inline Nanos drain(DriveModel& model, std::vector<Completion>& done) {
  Nanos now = 0;
  while (const auto next = model.next_event()) model.advance(now = *next, done);
  return now;
}

inline Measured measure(const Drive& drive, Opcode op, std::uint32_t concurrency, std::uint64_t count = 2000) {
  DriveModel model(drive, 1);
  return closed_loop(model, concurrency, count, random_4k(op, model.capacity_bytes()));
}

}  // namespace spillway::device
