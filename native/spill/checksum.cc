#include "spill/checksum.h"

#include <rocksdb/file_checksum.h>

namespace spillway::spill {

std::string checksum_of(std::initializer_list<rocksdb::Slice> parts) {
  static const auto factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  const auto generator = factory->CreateFileChecksumGenerator({});
  for (const rocksdb::Slice& part : parts) generator->Update(part.data(), part.size());
  generator->Finalize();
  return generator->GetChecksum();
}

}  // namespace spillway::spill
