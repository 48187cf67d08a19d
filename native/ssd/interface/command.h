// What a host says to a drive, and what the drive answers: block commands, opcodes, completions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ssd/interface/config.h"

namespace spillway::ssd {

using Nanos = std::int64_t;  // model time since the drive was powered on

enum class Opcode : std::uint8_t {
  // NVM command set
  read,
  write,
  deallocate,
  flush,
  // Key-value command set
  kv_store,
  kv_retrieve,
  kv_delete,
  kv_exist,
  kv_list,
  // Vendor extension to it (kv_command.h)
  kv_batch_store,
  kv_iterate,
  kv_bulk_scan,
  kv_reset
};
inline bool is_kv(Opcode op) { return op >= Opcode::kv_store; }
// Does the drive's answer carry data (rather than the command)?
inline bool is_kv_read(Opcode op) {
  return op == Opcode::kv_retrieve || op == Opcode::kv_exist || op == Opcode::kv_list || op == Opcode::kv_iterate ||
         op == Opcode::kv_bulk_scan;
}

struct Command {
  std::uint64_t tag = 0;  // returned with the completion; the drive gives it no meaning
  Opcode op = Opcode::read;
  std::uint8_t cause = 0;   // < kHostCauses
  std::uint16_t queue = 0;  // submission queue; queues are served round robin when the controller is the bottleneck
  std::uint32_t lba_count = 1;
  std::uint64_t lba = 0;
  // Of a write: what a compressor leaves of its data, in 1/256, from 1 to kIncompressible. A drive that does not
  // compress takes no notice.
  std::uint16_t compressed_share = kIncompressible;
};

enum class Outcome : std::uint8_t {
  success,
  lba_out_of_range,
  capacity_exceeded,  // block: no clean flash can be made
  kv_capacity_exceeded,
  kv_invalid_value_size,
  kv_invalid_key_size,
  kv_key_does_not_exist,
  kv_key_exists,
  kv_invalid_namespace,
};
// The NVMe status code: of the command set's own type (1) from 0x80 on, else generic. 0x85 is an invalid value size,
// 0x86 an invalid key size. Source: NVMe Key Value Command Set 1.0c
std::uint8_t nvme_status(Outcome outcome);

struct Completion {
  std::uint64_t tag = 0;
  Nanos submitted = 0;
  Nanos completed = 0;
  std::uint16_t queue = 0;
  Outcome outcome = Outcome::success;
  std::uint32_t kv_bytes = 0;  // retrieve: how long the value is; list, iterate, bulk scan: bytes handed over
};

}  // namespace spillway::ssd
