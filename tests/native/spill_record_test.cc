#include <gtest/gtest.h>

#include "spill/store/record.h"

namespace spillway::spill {
namespace {

TEST(Record, HasTheFormatOfItsHeaderFile) {
  const std::string bytes =
      encode({.first_sequence = 0x0102030405060708, .main_sequence = 0xF0, .main_durable = 0xE0, .sync = true});
  const std::string written("\x08\x07\x06\x05\x04\x03\x02\x01\xF0\0\0\0\0\0\0\0\xE0\0\0\0\0\0\0\0\x01",
                            kRecordHeaderBytes);
  EXPECT_EQ(bytes, written);
}

TEST(Record, ComesBackWithItsBatch) {
  for (const bool sync : {false, true}) {
    const std::string record =
        encode(
            {.first_sequence = ~Sequence{0}, .main_sequence = 1ULL << 55, .main_durable = 1ULL << 54, .sync = sync}) +
        "batch";
    const auto header = decode_header(record);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->first_sequence, ~Sequence{0});
    EXPECT_EQ(header->main_sequence, 1ULL << 55);
    EXPECT_EQ(header->main_durable, 1ULL << 54);
    EXPECT_EQ(header->sync, sync);
    EXPECT_EQ(batch_of(record), "batch");
  }
}

TEST(Record, OfAnotherVersionOrTooShortIsNone) {
  std::string record = encode(RecordHeader{});
  EXPECT_TRUE(decode_header(record));
  EXPECT_FALSE(decode_header(rocksdb::Slice(record.data(), record.size() - 1)));
  record.back() = 2;
  EXPECT_FALSE(decode_header(record));
}

}  // namespace
}  // namespace spillway::spill
