#include "spill/store/kv/generation_list.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "spill/store/checksum.h"

namespace spillway::spill {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

struct ListHead {
  std::array<char, 8> magic = {'S', 'P', 'I', 'L', 'L', 'K', 'V', 2};
  std::uint32_t checksum = 0;
  std::uint32_t count = 0;
};
static_assert(sizeof(ListHead) == 16);

// Version 1 had numbers and nothing else. They were made of microseconds since 1970, far below what these letters are.
constexpr GenerationId kAboveVersion1 = GenerationId{1} << 52;

Slice slice_of(std::span<const GenerationId> ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size_bytes()};
}

bool is_of_version_1(std::string_view bytes) {
  if (bytes.size() % sizeof(GenerationId) != 0) return false;
  GenerationId first = 0;
  if (!bytes.empty()) std::memcpy(&first, bytes.data(), sizeof first);
  return first < kAboveVersion1;
}

}  // namespace

std::string encode_generations(std::span<const GenerationId> ids) {
  ListHead head;
  head.checksum = crc32c(slice_of(ids));
  head.count = static_cast<std::uint32_t>(ids.size());
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  return bytes.append(slice_of(ids).data(), ids.size_bytes());
}

Status decode_generations(std::string_view bytes, std::vector<GenerationId>* ids) {
  const ListHead wanted;
  ListHead head;
  const Status another = Status::NotSupported(
      "the key-value namespace was written by another version of Spillway (byte 0 of generation 0); open it with that");
  if (is_of_version_1(bytes)) return another;
  const Status damaged = Status::Corruption(
      "the list of generations in the key-value namespace is damaged (from byte 0 of generation 0 on)");
  if (bytes.size() < sizeof head) return damaged;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  if (crc32c(Slice(bytes.data(), bytes.size())) != head.checksum) return damaged;
  if (!std::equal(wanted.magic.begin(), wanted.magic.end() - 1, head.magic.begin())) return damaged;
  if (head.magic != wanted.magic) return another;
  if (bytes.size() != head.count * sizeof(GenerationId)) return damaged;
  ids->resize(head.count);
  if (!ids->empty()) std::memcpy(ids->data(), bytes.data(), bytes.size());
  return {};
}

}  // namespace spillway::spill
