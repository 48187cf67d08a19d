// What a spill store says about itself in a key-value namespace: generation numbers, in a pair of their own.
//
//   "SPILLKV" | version u8 | CRC-32C u32 of the numbers | how many u32 | generation u64 ...
#pragma once

#include <rocksdb/status.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spill/store/store.h"

namespace spillway::spill {

std::string encode_generations(std::span<const GenerationId> ids);
// NotSupported: another version wrote it. Corruption: it is damaged.
rocksdb::Status decode_generations(std::string_view bytes, std::vector<GenerationId>* ids);

}  // namespace spillway::spill
