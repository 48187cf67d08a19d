#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "spill/commit/key_versions.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

rocksdb::WriteBatch put(const std::string& key) {
  rocksdb::WriteBatch batch;
  EXPECT_TRUE(batch.Put(key, "v").ok());
  return batch;
}

Status nothing(KeyVersions::Holding&) { return {}; }

TEST(SpillKeyVersions, AWriteIsNewerThanWhateverWasSeenBefore) {
  KeyVersions versions;
  const std::uint32_t a = KeyVersions::stripe_of(0, "a");
  const std::uint32_t b = KeyVersions::stripe_of(0, "b");
  const KeyVersions::Stamp before = versions.now();
  EXPECT_FALSE(versions.is_written_since(a, before));
  ASSERT_TRUE(versions.write(put("a"), {}, nothing).ok());
  EXPECT_TRUE(versions.is_written_since(a, before));
  EXPECT_FALSE(versions.is_written_since(b, before));
  EXPECT_FALSE(versions.is_written_since(a, versions.now()));
  EXPECT_NE(KeyVersions::stripe_of(0, "a"), KeyVersions::stripe_of(1, "a"));
}

// A failed write may be there in part.
TEST(SpillKeyVersions, AFailedWriteCounts) {
  KeyVersions versions;
  const KeyVersions::Stamp before = versions.now();
  EXPECT_TRUE(versions.write(put("a"), {}, [](auto&) { return Status::IOError(); }).IsIOError());
  EXPECT_TRUE(versions.is_written_since(KeyVersions::stripe_of(0, "a"), before));
}

TEST(SpillKeyVersions, AChangedKeyIsNotOverwritten) {
  KeyVersions versions;
  const KeyVersions::Seen a{KeyVersions::stripe_of(0, "a"), versions.now()};
  ASSERT_TRUE(versions.write(put("a"), {}, nothing).ok());
  bool is_written = false;
  const auto write = [&](KeyVersions::Holding&) {
    is_written = true;
    return Status();
  };
  EXPECT_TRUE(versions.write(put("b"), {a}, write).IsBusy());
  EXPECT_FALSE(is_written);
  EXPECT_TRUE(versions.write(put("b"), {{a.stripe, versions.now()}}, write).ok());
  EXPECT_TRUE(is_written);
}

TEST(SpillKeyVersions, ARangeDeletionAndAWriteOfAnythingAreWritesOfEveryKey) {
  KeyVersions versions;
  const std::uint32_t a = KeyVersions::stripe_of(0, "a");
  KeyVersions::Stamp before = versions.now();
  rocksdb::WriteBatch range;
  ASSERT_TRUE(range.DeleteRange("x", "y").ok());
  ASSERT_TRUE(versions.write(range, {}, nothing).ok());
  EXPECT_TRUE(versions.is_written_since(a, before));
  before = versions.now();
  KeyVersions::AnyKey(versions).is_written();
  EXPECT_TRUE(versions.is_written_since(a, before));
}

TEST(SpillKeyVersions, AWriteThatWaitsLetsOthersPassAndIsCheckedAgain) {
  KeyVersions versions;
  const KeyVersions::Seen a{KeyVersions::stripe_of(0, "a"), versions.now()};
  const auto wait_while = [&](const std::function<void()>& others) {
    return versions.write(put("b"), {a}, [&](KeyVersions::Holding& held) {
      held.release();
      others();
      return held.take();
    });
  };
  rocksdb::WriteBatch range;
  ASSERT_TRUE(range.DeleteRange("x", "y").ok());
  EXPECT_TRUE(wait_while([&] { EXPECT_TRUE(versions.write(put("b"), {}, nothing).ok()); }).ok());
  EXPECT_TRUE(wait_while([&] { EXPECT_TRUE(versions.write(put("a"), {}, nothing).ok()); }).IsBusy());
  const Status waited = versions.write(range, {}, [&](KeyVersions::Holding& held) {
    held.release();
    EXPECT_TRUE(versions.write(range, {}, nothing).ok());
    return held.take();
  });
  EXPECT_TRUE(waited.ok());
}

TEST(SpillKeyVersions, AWriteOfAKeyWaitsForTheOneThatIsUnderWay) {
  KeyVersions versions;
  std::atomic<bool> is_under_way{true};
  std::atomic<bool> met_it{false};
  std::thread other;
  const Status status = versions.write(put("k"), {}, [&](auto&) {
    other = std::thread([&] {
      EXPECT_TRUE(versions
                      .write(put("k"), {},
                             [&](auto&) {
                               met_it = is_under_way.load();
                               return Status();
                             })
                      .ok());
    });
    for (int i = 0; i < 100 && !met_it; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    is_under_way = false;
    return Status();
  });
  EXPECT_TRUE(status.ok());
  other.join();
  EXPECT_FALSE(met_it);
}

// Counters that are not atomic: increments would be lost if the check did not hold until the write is done.
TEST(SpillKeyVersions, NothingComesBetweenTheCheckAndTheWrite) {
  KeyVersions versions;
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  std::atomic<int> value{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int done = 0; done < kEach;) {
        const KeyVersions::Seen seen{KeyVersions::stripe_of(0, "k"), versions.now()};
        const int before = value;
        const Status status = versions.write(put("k"), {seen}, [&](auto&) {
          value = before + 1;
          return Status();
        });
        done += status.ok() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(value, kThreads * kEach);
}

}  // namespace
}  // namespace spillway::spill
