// The bytes of every format that a spill store has on a drive, as this version and those before it in
// docs/COMPATIBILITY.md write and read them. A change of these bytes is another version of the format: give it another
// number, and say on that page what becomes of the old one.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "spill/main_db/main_order.h"
#include "spill/store/binding_record.h"
#include "spill/store/kv/generation_list.h"
#include "spill/store/record.h"
#include "spill/store/region/log_frame.h"

namespace spillway::spill {
namespace {

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char one : bytes) {
    const auto byte = static_cast<unsigned char>(one);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string bytes_of_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

TEST(SpillFormats, HeaderOfARecord) {
  constexpr std::string_view kBytes = "0700000000000000e803000000000000840300000000000001";
  EXPECT_EQ(hex(encode(RecordHeader{.first_sequence = 7, .main_sequence = 1000, .main_durable = 900, .sync = true})),
            kBytes);
  const auto read = decode_header(bytes_of_hex(kBytes));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->first_sequence, 7U);
  EXPECT_EQ(read->main_sequence, 1000U);
  EXPECT_EQ(read->main_durable, 900U);
  EXPECT_TRUE(read->sync);
  EXPECT_FALSE(decode_header(bytes_of_hex("0700000000000000e803000000000000840300000000000002"))) << "an unknown flag";
}

TEST(SpillFormats, MarkInRocksdbsLog) {
  constexpr std::string_view kBytes = "7370696c6c7761792e6d61726b2e3105000000000000000700000000000000";
  EXPECT_EQ(hex(encode(Mark{.generation = 5, .sequence = 7})), kBytes);
  const auto read = decode_mark(bytes_of_hex(kBytes));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->generation, 5U);
  EXPECT_EQ(read->sequence, 7U);
}

TEST(SpillFormats, HeaderAndFrameOfALogOfVersion3) {
  constexpr std::string_view kHeader =
      "5350494c4c4f47030500000000000000887766554433221104000000000000000010000000000000"
      "0300000000000000a13d15e3";
  constexpr std::string_view kFrame = "9105fe3708000000340000000000000061207265636f7264";
  const LogName name{.generation = 5, .salt = 0x1122334455667788, .after = 4, .after_bytes = 4096, .durable_before = 3};
  EXPECT_EQ(hex(encode_log_header(name)), kHeader);
  LogName read;
  ASSERT_EQ(decode_log_header(bytes_of_hex(kHeader), &read), HeaderFault::none);
  EXPECT_EQ(read.generation, name.generation);
  EXPECT_EQ(read.salt, name.salt);
  EXPECT_EQ(read.after, name.after);
  EXPECT_EQ(read.after_bytes, name.after_bytes);
  EXPECT_EQ(read.durable_before, name.durable_before);
  std::string log;
  append_frame(name, "a record", kLogHeaderBytes, &log);
  EXPECT_EQ(hex(log), kFrame);
  EXPECT_TRUE(frame_is_whole(name, bytes_of_hex(kFrame)));
}

TEST(SpillFormats, GenerationListOfAKeyValueNamespaceOfVersion2) {
  constexpr std::string_view kBytes = "5350494c4c4b5602747895700200000003000000000000000400000000000000";
  const std::vector<GenerationId> ids{3, 4};
  EXPECT_EQ(hex(encode_generations(ids)), kBytes);
  std::vector<GenerationId> read;
  ASSERT_TRUE(decode_generations(bytes_of_hex(kBytes), &read).ok());
  EXPECT_EQ(read, ids);
}

TEST(SpillFormats, BindingRecordOfVersion1) {
  const std::string text =
      "spillway binding 1\nid 0123456789abcdef0123456789abcdef\nconfirmed 11 ffffffffffffffff\n"
      "pending 12 0000000000000001\nreleased 1\nidentity an identity\ndatabase /data/a b\ncrc32c e830f638\n";
  const auto read = decode_binding(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->pending, (Opening{12, 1}));
  EXPECT_EQ(encode(*read), text);
}

TEST(SpillFormats, NameOfAGuard) {
  const std::string name =
      "spillway guard 0123456789abcdef0123456789abcdef 12 0000000000000001: writes may lie in the spill store "
      "/data/a/spill; open with spillway::DB or run 'spillway spill drain'";
  const auto read = parse_guard(name);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->opening, (Opening{12, 1}));
  EXPECT_EQ(name_of(*read), name);
}

}  // namespace
}  // namespace spillway::spill
