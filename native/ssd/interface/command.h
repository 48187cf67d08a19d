// Block commands to a drive, their opcodes, and completions.
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
  // Vendor extension (kv_command.h)
  kv_batch_store,
  kv_iterate,
  kv_bulk_scan,
  kv_reset,
  kv_batch_retrieve
};
inline bool is_kv(Opcode op) { return op >= Opcode::kv_store; }
// Whether data crosses the link with the answer, not with the command.
inline bool is_kv_read(Opcode op) {
  return op == Opcode::kv_retrieve || op == Opcode::kv_exist || op == Opcode::kv_list || op == Opcode::kv_iterate ||
         op == Opcode::kv_bulk_scan || op == Opcode::kv_batch_retrieve;
}

struct Command {
  std::uint64_t tag = 0;  // returned with the completion; not interpreted
  Opcode op = Opcode::read;
  std::uint8_t cause = 0;   // < kHostCauses
  std::uint16_t queue = 0;  // submission queue; queues are served round robin when the controller is the bottleneck
  std::uint32_t lba_count = 1;
  std::uint64_t lba = 0;
  // Of a write: what a compressor leaves of its data, in 1/256, from 1 to kIncompressible. Ignored by a drive that does
  // not compress.
  std::uint16_t compressed_share = kIncompressible;
};

enum class Outcome : std::uint8_t {
  success,
  lba_out_of_range,
  capacity_exceeded,  // block: no clean flash can be freed
  kv_capacity_exceeded,
  kv_invalid_value_size,
  kv_invalid_key_size,
  kv_key_does_not_exist,
  kv_key_exists,
  kv_invalid_namespace,
  kv_invalid_opcode,  // of a vendor extension that the drive does not have
  kv_invalid_field,
};
// The NVMe status code: from 0x80 on specific to the command set (type 1), else generic. 0x85: invalid value size.
// 0x86: invalid key size. Source: NVMe Key Value Command Set 1.0c
std::uint8_t nvme_status(Outcome outcome);

struct Completion {
  std::uint64_t tag = 0;
  Nanos submitted = 0;
  Nanos completed = 0;
  std::uint16_t queue = 0;
  Outcome outcome = Outcome::success;
  // retrieve: length of the value; batch retrieve, list, iterate, bulk scan: bytes transferred
  std::uint32_t kv_bytes = 0;
};

}  // namespace spillway::ssd
