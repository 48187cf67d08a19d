#include <gtest/gtest.h>
#include <rocksdb/file_checksum.h>

#include <random>
#include <string>

#include "spill/store/checksum.h"

namespace spillway::spill {
namespace {

std::string of_rocksdb(const std::string& bytes) {
  const auto generator = rocksdb::GetFileChecksumGenCrc32cFactory()->CreateFileChecksumGenerator({});
  generator->Update(bytes.data(), bytes.size());
  generator->Finalize();
  return generator->GetChecksum();
}

TEST(Checksum, IsRocksdbsWhateverTheLengthAndThePlace) {
  std::mt19937_64 random(1);
  std::string bytes(10000, '\0');
  for (char& one : bytes) one = static_cast<char>(random());
  for (std::size_t length = 0; length < 3000; length += length < 300 ? 1 : 37) {
    for (const std::size_t from : {0, 1, 7}) {
      SCOPED_TRACE(length);
      const std::string part = bytes.substr(from, length);
      ASSERT_EQ(checksum_of({part}), of_rocksdb(part));
      ASSERT_EQ(crc32c({rocksdb::Slice(bytes.data() + from, length)}), crc32c_by_table(part));
      const std::size_t middle = length / 3;
      ASSERT_EQ(checksum_of({part.substr(0, middle), part.substr(middle)}), of_rocksdb(part));
      ASSERT_EQ(crc32c({part.substr(middle)}, crc32c(part.substr(0, middle))), crc32c(part));
      ASSERT_EQ(crc32c_by_table(part.substr(middle), crc32c_by_table(part.substr(0, middle))), crc32c(part));
    }
  }
  EXPECT_EQ(checksum_of({bytes}), of_rocksdb(bytes));
}

// Source: RFC 3720, B.4
TEST(Checksum, IsThatOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

}  // namespace
}  // namespace spillway::spill
