// Reads of the spill store in a key-value namespace, on drives with and without the vendor extensions for them: what
// they cost, and that each read has its own answer whatever happens to others.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/file_bytes.h"
#include "flipped_bytes.h"
#include "spill_kv_store.h"
#include "ssd/structures/random.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

constexpr std::size_t kRecords = 60;
constexpr std::size_t kRecordBytes = 4000;

// Whether the drive has a retrieve with an offset, and how many keys it takes in a batch retrieve.
class KvReadsTest : public KvStoreTest, public ::testing::WithParamInterface<std::tuple<bool, std::uint32_t>> {
 protected:
  KvReadsTest() {
    config_.namespaces.retrieve_offset = std::get<0>(GetParam());
    config_.namespaces.batch_retrieve_keys = std::get<1>(GetParam());
  }
  static bool has_offset() { return std::get<0>(GetParam()); }
  static std::uint32_t keys_a_command() { return std::max(1U, std::get<1>(GetParam())); }

  // A store with records that the drive has, four in a pair.
  std::unique_ptr<Store> filled() {
    auto store = open();
    recover(*store);
    EXPECT_TRUE(store->begin(1).ok());
    offsets_.clear();
    for (unsigned i = 0; i < kRecords; ++i) offsets_.push_back(append(*store, record_of(kRecordBytes, i)));
    EXPECT_TRUE(store->sync().ok());
    return store;
  }
  // Parts of records in no order, some of them of one pair.
  std::vector<ReadRequest> requests_for(ssd::Random& random, std::size_t count) {
    std::vector<ReadRequest> requests;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t from = random.below(kRecordBytes);
      records_.push_back(static_cast<unsigned>(random.below(kRecords)));
      requests.push_back({1, offsets_[records_.back()], from, random.below(kRecordBytes - from + 1), {}, {}});
    }
    return requests;
  }
  static void expect_answer(const ReadRequest& request, unsigned record) {
    ASSERT_TRUE(request.status.ok()) << request.status.ToString();
    EXPECT_EQ(request.bytes, record_of(kRecordBytes, record).substr(request.from, request.length));
  }

  std::vector<std::uint64_t> offsets_;  // of the records
  std::vector<unsigned> records_;       // of the requests
};

INSTANTIATE_TEST_SUITE_P(Drives, KvReadsTest, ::testing::Combine(::testing::Bool(), ::testing::Values(0U, 2U, 64U)));

TEST_P(KvReadsTest, ReadsOfManySizesHaveTheirBytes) {
  auto store = filled();
  ssd::Random random(1);
  for (const std::size_t count : {1U, 2U, 3U, 33U, 200U}) {
    records_.clear();
    std::vector<ReadRequest> requests = requests_for(random, count);
    std::vector<ReadRequest> unwanted = requests_for(random, 5);
    store->begin_reads(unwanted);  // abandoned
    const auto in_flight = store->begin_reads(requests);
    in_flight->wait();
    for (std::size_t i = 0; i < count; ++i) expect_answer(requests[i], records_[i]);
  }
  // Beyond the end of a record there is nothing, though another record follows it in the pair.
  std::string bytes;
  EXPECT_TRUE(store->read(1, offsets_[5], kRecordBytes - 1, 2, &bytes).IsCorruption());
  EXPECT_TRUE(store->read(1, offsets_[5], kRecordBytes, 0, &bytes).ok());
  EXPECT_TRUE(store->read(1, offsets_[5], kRecordBytes + 1, 0, &bytes).IsCorruption());
}

// What the drive is asked for: with an offset the record alone, and in batches few commands.
TEST_P(KvReadsTest, AReadCostsWhatTheDriveOffers) {
  auto store = filled();
  std::vector<ReadRequest> requests;
  for (std::size_t i = 3; i < kRecords; i += 4)
    requests.push_back({1, offsets_[i], 30, 3000, {}, {}});  // last in a pair
  const ssd::Counters before = drive_->counters();
  const std::uint64_t retrieved = drive_->kv_counters().retrieves;
  store->read_many(requests);
  const ssd::Counters after = drive_->counters();
  const std::size_t reads = requests.size();
  EXPECT_EQ(drive_->kv_counters().retrieves - retrieved, reads);
  const std::size_t in_a_command = std::min<std::size_t>(keys_a_command(), 16);
  EXPECT_EQ(after.host_reads - before.host_reads, (reads + in_a_command - 1) / in_a_command);
  const std::uint64_t frames = 4 * sizeof(RecordFrame);
  const std::uint64_t whole = (has_offset() ? sizeof(RecordFrame) : 3 * kRecordBytes + frames) + 30 + 3000;
  const std::uint64_t header = keys_a_command() > 1 ? ssd::kPartHeaderBytes : 0;
  EXPECT_EQ(after.host_bytes_read - before.host_bytes_read, reads * (whole + header));
}

// A value in the middle of a record of several pairs is read from where it begins.
TEST_P(KvReadsTest, LongRecordsAreReadInParts) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  const std::string record = record_of(200'000, 7);
  const std::uint64_t offset = append(*store, record);
  ASSERT_TRUE(store->sync().ok());
  ssd::Random random(2);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t from = random.below(record.size());
    const std::uint64_t length = random.below(record.size() - from + 1);
    EXPECT_EQ(read(*store, 1, offset, from, length), record.substr(from, length)) << from << " " << length;
  }
  const std::uint64_t before = drive_->counters().host_bytes_read;
  read(*store, 1, offset, 17 * 1024 * 3 + 10'000, 100);
  EXPECT_EQ(drive_->counters().host_bytes_read - before, has_offset() ? 100U : 10'000U + 100 + sizeof(RecordFrame));
}

TEST_P(KvReadsTest, APairThatIsMissingOrDamagedFailsItsReadsAlone) {
  auto store = filled();
  const std::string file = directory_.path("kv");
  const std::size_t at = file_bytes(file).find(record_of(kRecordBytes, 9).substr(0, 1000));
  ASSERT_NE(at, std::string::npos);
  flip(file, at - sizeof(RecordFrame) + 1, 0x0f);  // its length is another, and shorter
  ssd::Random random(3);
  std::vector<ReadRequest> requests = requests_for(random, 30);
  requests.push_back({1, offsets_[9], kRecordBytes - 10, 10, {}, {}});
  requests.push_back({1, offsets_.back() + 17 * 1024 * 8, 0, 1, {}, {}});  // no pair is there
  requests.push_back({7, 0, 0, 1, {}, {}});
  store->read_many(requests);
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (records_[i] != 9) expect_answer(requests[i], records_[i]);
  }
  for (std::size_t i = records_.size(); i < requests.size(); ++i) {
    EXPECT_TRUE(requests[i].status.IsCorruption()) << i << " " << requests[i].status.ToString();
  }
  const std::string place = "is damaged at byte " + std::to_string(offsets_[9]) + " of generation 1";
  EXPECT_NE(requests[30].status.ToString().find(place), std::string::npos) << requests[30].status.ToString();
}

TEST_P(KvReadsTest, ACommandThatFailsFailsItsReadsAloneAndIsNotTheNext) {
  auto store = filled();
  fails_ = keys_a_command() > 1 ? device::Opcode::kv_batch_retrieve : device::Opcode::kv_retrieve;
  most_failures_ = 1;
  ssd::Random random(4);
  std::vector<ReadRequest> requests = requests_for(random, 40);
  store->read_many(requests);
  std::size_t failed = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].status.ok()) {
      expect_answer(requests[i], records_[i]);
    } else {
      EXPECT_TRUE(requests[i].status.IsIOError()) << requests[i].status.ToString();
      ++failed;
    }
  }
  EXPECT_EQ(failed, std::min(keys_a_command(), 16U));
  store->read_many(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) expect_answer(requests[i], records_[i]);
}

// A drive that has an extension and loses it, or gets it, finds what the other has stored.
TEST_P(KvReadsTest, WhatIsLeftByALossOfPowerIsReadByADriveOfEitherKind) {
  auto store = filled();
  append(*store, "staged, and lost with the power");
  for (const bool has_extensions : {false, true, false}) {
    store.reset();
    lose_staging();
    config_.namespaces.retrieve_offset = has_extensions;
    config_.namespaces.batch_retrieve_keys = has_extensions ? 8 : 0;
    store = open();
    EXPECT_EQ(recover(*store).size(), kRecords);
    ssd::Random random(5);
    records_.clear();
    std::vector<ReadRequest> requests = requests_for(random, 40);
    store->read_many(requests);
    for (std::size_t i = 0; i < requests.size(); ++i) expect_answer(requests[i], records_[i]);
  }
}

// Staged records, records that the drive has, and both in one read.
TEST_P(KvReadsTest, ReadsFromMemoryAndFromTheDriveMix) {
  auto store = filled();
  holds_ = true;
  for (unsigned i = kRecords; i < 2 * kRecords; ++i) offsets_.push_back(append(*store, record_of(kRecordBytes, i)));
  std::vector<ReadRequest> requests;
  for (unsigned i = 0; i < 2 * kRecords; ++i) {
    const unsigned record = i % 2 == 0 ? i / 2 : 2 * kRecords - 1 - i / 2;
    records_.push_back(record);
    requests.push_back({1, offsets_[record], 100, 2000, {}, {}});
  }
  store->read_many(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) expect_answer(requests[i], records_[i]);
  holds_ = false;
  EXPECT_TRUE(store->sync().ok());
}

}  // namespace
}  // namespace spillway::spill
