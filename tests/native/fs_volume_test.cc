#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "fs/volume.h"
#include "fs_fake_device.h"
#include "temporary_directory.h"

namespace spillway::fs {
namespace {

using device::Io;
using device::Opcode;

constexpr std::uint64_t kMiB = 1 << 20;

class VolumeTest : public ::testing::Test {
 protected:
  std::unique_ptr<File> create(const std::string& path, Cause cause = Cause::flush) {
    auto file = volume().create(path, cause);
    EXPECT_TRUE(file.is_ok());
    return std::move(*file);
  }

  Volume& volume() {
    if (!volume_) volume_ = std::make_unique<Volume>(device_, options_);
    return *volume_;
  }

  FakeDevice device_{64 * kMiB};
  VolumeOptions options_;
  std::unique_ptr<Volume> volume_;
};

// --- Write-back

TEST_F(VolumeTest, AppendsGatherUntilAChunkIsFull) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, kMiB - 1, Access::buffered));
  EXPECT_EQ(device_.bytes(Opcode::write), 0U);
  ASSERT_TRUE(file->write(kMiB - 1, 1, Access::buffered));
  EXPECT_EQ(device_.bytes(Opcode::write), kMiB);
}

TEST_F(VolumeTest, EveryWriteStatesItsCompressedShare) {
  options_.compression_ratio = 0.5;
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, kMiB, Access::buffered));
  ASSERT_TRUE(file->write(kMiB, kPageBytes, Access::direct));
  ASSERT_TRUE(file->write(kMiB + kPageBytes, 100, Access::buffered));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(device_.bytes(Opcode::write), kMiB + 2 * kPageBytes);
  for (const Io& io : device_.of(Opcode::write)) EXPECT_EQ(io.compressed_share, 128);
}

TEST_F(VolumeTest, WhatGathersMayBeMoreThanUsuallyIsInFlight) {
  options_.writeback_bytes = 12 * kMiB;
  options_.outstanding_bytes = kMiB;
  auto file = create("/a");
  for (std::uint64_t at = 0; at < 12 * kMiB; at += kMiB) ASSERT_TRUE(file->write(at, kMiB, Access::buffered));
  EXPECT_EQ(device_.bytes(Opcode::write), 12 * kMiB);
}

TEST_F(VolumeTest, SyncPushesOutThePartialPageAndFlushesTheDrive) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 5000, Access::buffered));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(device_.bytes(Opcode::write), 8192U);
  EXPECT_EQ(device_.of(Opcode::flush).size(), 1U);
}

TEST_F(VolumeTest, WritesContinueDuringASync) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 4096, Access::buffered));
  device_.fate = [&](const Io& io) {
    if (io.op == Opcode::flush) {
      EXPECT_TRUE(file->write(4096, 100, Access::buffered));
    }
    return Fault::none;
  };
  ASSERT_TRUE(file->sync());
  device_.fate = [](const Io&) { return Fault::none; };
  EXPECT_EQ(device_.bytes(Opcode::write), 4096U);
  ASSERT_TRUE(file->sync());  // it includes what was written meanwhile
  EXPECT_EQ(device_.bytes(Opcode::write), 8192U);
  EXPECT_EQ(device_.of(Opcode::flush).size(), 2U);
}

TEST_F(VolumeTest, WritesContinueWhilePagesAreWrittenOut) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 4096, Access::buffered));
  device_.fate = [&](const Io&) {
    EXPECT_TRUE(file->write(4096, 100, Access::buffered));
    return Fault::none;
  };
  ASSERT_TRUE(file->write_out());
  device_.fate = [](const Io&) { return Fault::none; };
  EXPECT_EQ(device_.bytes(Opcode::write), 4096U);
  EXPECT_TRUE(device_.of(Opcode::flush).empty());
  ASSERT_TRUE(file->sync());  // of both
  EXPECT_EQ(device_.bytes(Opcode::write), 8192U);
  EXPECT_EQ(device_.of(Opcode::flush).size(), 1U);
}

TEST_F(VolumeTest, AFailedWriteIsReportedByTheCallThatWritesItOut) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 4096, Access::buffered));
  device_.fate = [](const Io& io) { return io.op == Opcode::write ? Fault::io_error : Fault::none; };
  EXPECT_FALSE(file->write_out());
  device_.fate = [](const Io&) { return Fault::none; };
}

TEST_F(VolumeTest, SyncOfACleanFileDoesNothing) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 4096, Access::buffered));
  ASSERT_TRUE(file->sync());
  device_.forget();
  ASSERT_TRUE(file->sync());
  EXPECT_TRUE(device_.of(Opcode::write).empty());
  EXPECT_TRUE(device_.of(Opcode::flush).empty());
}

TEST_F(VolumeTest, APartialPageThatGrowsIsWrittenAgain) {
  auto file = create("/a", Cause::wal);
  for (std::uint64_t record = 0; record < 4; ++record) {
    ASSERT_TRUE(file->write(record * 1000, 1000, Access::buffered));
    ASSERT_TRUE(file->sync());
  }
  const auto writes = device_.of(Opcode::write);
  ASSERT_EQ(writes.size(), 4U);
  for (const Io& io : writes) {
    EXPECT_EQ(io.offset_bytes, writes[0].offset_bytes);
    EXPECT_EQ(io.length_bytes, 4096U);
  }
}

TEST_F(VolumeTest, CloseWritesDirtyPagesWithoutAFlush) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 100, Access::buffered));
  ASSERT_TRUE(file->close());
  EXPECT_EQ(device_.bytes(Opcode::write), 4096U);
  EXPECT_TRUE(device_.of(Opcode::flush).empty());
}

TEST_F(VolumeTest, ClosedFilesMayKeepTheirDirtyPagesForAWhile) {
  options_.closed_dirty_bytes = 3 * kMiB / 2;
  for (const char* path : {"/a", "/b", "/c"}) {
    auto file = create(path);
    ASSERT_TRUE(file->write(0, kMiB / 2, Access::buffered));
    ASSERT_TRUE(file->close());
  }
  ASSERT_TRUE(volume().remove("/b"));
  EXPECT_EQ(device_.bytes(Opcode::write), 0U);
  auto last = create("/d");  // 2 MiB were closed since: the oldest is written, and the next one is deleted
  ASSERT_TRUE(last->write(0, kMiB, Access::direct));
  ASSERT_TRUE(last->write(kMiB, kMiB / 2, Access::buffered));
  ASSERT_TRUE(last->close());
  auto other = create("/e");
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(other->write(0, 1, Access::buffered));  // continue the write-back of others
  EXPECT_EQ(device_.bytes(Opcode::write), kMiB + kMiB / 2);
  volume().detach();
  EXPECT_EQ(device_.bytes(Opcode::write), kMiB + 3 * kMiB / 2 + kPageBytes);  // with /c, /d and a page of /e
}

TEST_F(VolumeTest, AClosedFileWithDirtyPagesIsWrittenByASync) {
  options_.closed_dirty_bytes = 64 * kMiB;
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 5000, Access::buffered));
  ASSERT_TRUE(file->close());
  EXPECT_EQ(device_.bytes(Opcode::write), 0U);
  auto again = volume().open("/a", 5000, Cause::wal, true);
  ASSERT_TRUE(again);
  ASSERT_TRUE((*again)->sync());
  EXPECT_EQ(device_.bytes(Opcode::write), 8192U);
}

TEST_F(VolumeTest, ASyncOfTheVolumeWritesTheDirtyPagesOfEveryFile) {
  options_.writeback_bytes = options_.closed_dirty_bytes = 64 * kMiB;
  auto closed = create("/closed");
  ASSERT_TRUE(closed->write(0, 5000, Access::buffered));
  ASSERT_TRUE(closed->close());
  auto open = create("/open");
  ASSERT_TRUE(open->write(0, kMiB, Access::buffered));
  auto deleted = create("/deleted");
  ASSERT_TRUE(deleted->write(0, kMiB, Access::buffered));
  ASSERT_TRUE(deleted->close());
  ASSERT_TRUE(volume().remove("/deleted"));
  deleted.reset();
  EXPECT_EQ(device_.bytes(Opcode::write), 0U);
  ASSERT_TRUE(volume().sync());
  EXPECT_EQ(device_.bytes(Opcode::write), 8192U + kMiB);
  EXPECT_FALSE(device_.of(Opcode::flush).empty());
  const auto flushes = device_.of(Opcode::flush).size();
  ASSERT_TRUE(volume().sync());
  EXPECT_EQ(device_.bytes(Opcode::write), 8192U + kMiB) << "nothing was dirty any more";
  EXPECT_EQ(device_.of(Opcode::flush).size(), flushes);
}

TEST_F(VolumeTest, DirtyPagesOfADeletedFileNeverReachTheDrive) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 100000, Access::buffered));
  ASSERT_TRUE(volume().remove("/a"));
  EXPECT_GT(volume().space().held_bytes, 0U);  // held until it is closed, as in a file system
  file.reset();
  EXPECT_EQ(device_.bytes(Opcode::write), 0U);
  EXPECT_EQ(volume().space().held_bytes, 0U);
}

TEST_F(VolumeTest, WriteBackLagsInMemoryUpToALimit) {
  device_.slow = true;
  options_.outstanding_bytes = 4 * kMiB;
  options_.dirty_bytes = 16 * kMiB;
  auto file = create("/a");
  for (std::uint64_t at = 0; at < 20 * kMiB; at += kMiB) ASSERT_TRUE(file->write(at, kMiB, Access::buffered));
  EXPECT_EQ(device_.bytes(Opcode::write), 4 * kMiB);  // 16 MiB are in memory: the writer has not waited yet
  ASSERT_TRUE(file->write(20 * kMiB, kMiB, Access::buffered));
  EXPECT_EQ(device_.bytes(Opcode::write), 21 * kMiB);  // now it has waited
  EXPECT_EQ(device_.most_in_flight(), 4 * kMiB);
}

TEST_F(VolumeTest, InVirtualTimeTheWriterWaitsAtOnce) {
  FakeDevice device(64 * kMiB, /*virtual_time=*/true);
  device.slow = true;
  options_.outstanding_bytes = 4 * kMiB;
  Volume volume(device, options_);
  auto file = volume.create("/a", Cause::wal);
  for (std::uint64_t at = 0; at < 32 * kMiB; at += kMiB) ASSERT_TRUE((*file)->write(at, kMiB, Access::buffered));
  EXPECT_EQ(device.bytes(Opcode::write), 32 * kMiB);
  EXPECT_EQ(device.most_in_flight(), 4 * kMiB);
}

TEST_F(VolumeTest, EveryWriteContinuesTheWriteBackOfAnotherFile) {
  device_.slow = true;
  auto wal = create("/old.log", Cause::wal);
  ASSERT_TRUE(wal->write(0, 30 * kMiB, Access::buffered));
  EXPECT_EQ(device_.bytes(Opcode::write), 8 * kMiB);
  device_.slow = false;
  auto other = create("/new.log", Cause::wal);
  for (std::uint64_t at = 0; at < 16; ++at) ASSERT_TRUE(other->write(at, 1, Access::buffered));
  EXPECT_EQ(device_.bytes(Opcode::write), 30 * kMiB);
}

TEST_F(VolumeTest, SyncOfAFileThatLagsWritesAllOfIt) {
  device_.slow = true;
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 30 * kMiB + 1, Access::buffered));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(device_.bytes(Opcode::write), 30 * kMiB + 4096);
}

TEST_F(VolumeTest, DetachWritesPendingPages) {
  device_.slow = true;
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 30 * kMiB, Access::buffered));
  ASSERT_TRUE(file->close());
  volume().detach();
  EXPECT_EQ(device_.bytes(Opcode::write), 30 * kMiB);
}

TEST_F(VolumeTest, DirectWritesAreWrittenAtOnce) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 8192, Access::direct));
  ASSERT_TRUE(file->write(4096, 8192, Access::direct));
  const auto writes = device_.of(Opcode::write);
  ASSERT_EQ(writes.size(), 2U);
  EXPECT_EQ(writes[1].offset_bytes, writes[0].offset_bytes + 4096);
}

TEST_F(VolumeTest, IdleFilesHoldNoQueue) {
  for (int i = 0; i < 50; ++i) {
    auto file = create("/" + std::to_string(i));
    ASSERT_TRUE(file->write(0, 4 * kMiB, Access::buffered));
    ASSERT_TRUE(file->sync());
    file.reset();
    ASSERT_TRUE(volume().remove("/" + std::to_string(i)));
  }
  EXPECT_LE(device_.queues_opened, 2);
}

TEST_F(VolumeTest, AFileClosedWithWritesInFlightIsCompleted) {
  device_.slow = true;
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 4 * kMiB, Access::buffered));
  file.reset();
  device_.slow = false;
  create("/b");
  ASSERT_TRUE(volume().remove("/a"));
  volume_.reset();  // every queue was returned with nothing pending, or the fake reports it
}

// --- Causes

TEST_F(VolumeTest, EveryWriteCarriesTheCauseOfItsFile) {
  for (const Cause cause : {Cause::wal, Cause::flush, Cause::compaction, Cause::blob, Cause::manifest, Cause::other}) {
    auto file = create("/f", cause);
    ASSERT_TRUE(file->write(0, 3 * kMiB, Access::buffered));
    ASSERT_TRUE(file->sync());
    for (const Io& io : device_.of(Opcode::write)) EXPECT_EQ(io.cause, cause);
    device_.forget();
  }
}

TEST_F(VolumeTest, AWriterLearnsItsCauseAfterTheFileWasMade) {
  auto file = create("/f", Cause::other);
  file->set_cause(Cause::compaction);
  ASSERT_TRUE(file->write(0, 4096, Access::direct));
  EXPECT_EQ(device_.of(Opcode::write).at(0).cause, Cause::compaction);
}

// A file that is written for several causes in turn: dirty pages go to the drive under the cause for which they were
// written.
TEST_F(VolumeTest, AChangeOfCauseWritesDirtyPagesFirst) {
  auto file = create("/f", Cause::flush);
  ASSERT_TRUE(file->write(0, 8192, Access::buffered));
  file->set_cause(Cause::flush);  // no change
  EXPECT_TRUE(device_.of(Opcode::write).empty());
  file->set_cause(Cause::checkpoint);
  ASSERT_TRUE(file->write(8192, 4096, Access::buffered));
  ASSERT_TRUE(file->sync());
  const auto writes = device_.of(Opcode::write);
  ASSERT_EQ(writes.size(), 2U);
  EXPECT_EQ(writes[0].cause, Cause::flush);
  EXPECT_EQ(writes[0].length_bytes, 8192U);
  EXPECT_EQ(writes[1].cause, Cause::checkpoint);
  EXPECT_EQ(writes[1].length_bytes, 4096U);
}

// --- Space

TEST_F(VolumeTest, GrowingChunksAreCutToTheFileWhenItCloses) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 3 * kMiB, Access::buffered));
  ASSERT_TRUE(file->write(3 * kMiB, 1, Access::buffered));
  EXPECT_GT(volume().space().held_bytes, 3 * kMiB + 4096);
  file.reset();
  EXPECT_EQ(volume().space().held_bytes, 3 * kMiB + 4096);
  EXPECT_TRUE(device_.of(Opcode::deallocate).empty());  // unwritten pages need not be deallocated
}

TEST_F(VolumeTest, DeletedFilesAreDeallocatedPageByPage) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 5 * kMiB, Access::buffered));
  file.reset();
  ASSERT_TRUE(volume().remove("/a"));
  EXPECT_EQ(device_.bytes(Opcode::deallocate), 5 * kMiB);
  EXPECT_EQ(volume().space().held_bytes, 0U);
}

TEST_F(VolumeTest, WithoutDiscardNothingIsDeallocated) {
  options_.discard = false;
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 5 * kMiB, Access::buffered));
  file.reset();
  ASSERT_TRUE(volume().remove("/a"));
  EXPECT_TRUE(device_.of(Opcode::deallocate).empty());
  EXPECT_EQ(volume().space().held_bytes, 0U);
}

TEST_F(VolumeTest, TruncationDeallocatesTheRest) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 2 * kMiB, Access::direct));
  ASSERT_TRUE(file->truncate(kMiB + 10));
  EXPECT_EQ(device_.bytes(Opcode::deallocate), kMiB - 4096);
  EXPECT_EQ(file->size(), kMiB + 10);
}

TEST_F(VolumeTest, RenameReplacesAndDeallocatesTheOldFile) {
  create("/CURRENT")->write(0, 4096, Access::direct).is_ok();
  create("/new")->write(0, 4096, Access::direct).is_ok();
  ASSERT_TRUE(volume().rename("/new", "/CURRENT"));
  EXPECT_EQ(device_.bytes(Opcode::deallocate), 4096U);
  EXPECT_TRUE(volume().knows("/CURRENT"));
  EXPECT_FALSE(volume().knows("/new"));
  EXPECT_EQ(volume().space().held_bytes, 4096U);
}

TEST_F(VolumeTest, RenamingADirectoryMovesItsFiles) {
  create("/d/a");
  create("/d/b");
  create("/dd");
  ASSERT_TRUE(volume().rename("/d", "/e"));
  EXPECT_TRUE(volume().knows("/e/a"));
  EXPECT_TRUE(volume().knows("/e/b"));
  EXPECT_TRUE(volume().knows("/dd"));
  EXPECT_FALSE(volume().knows("/d/a"));
}

TEST_F(VolumeTest, LinkedFilesHoldTheirSpaceOnceUntilTheLastNameIsRemoved) {
  create("/a")->write(0, kMiB, Access::direct).is_ok();
  ASSERT_TRUE(volume().link("/a", "/checkpoint/a"));
  ASSERT_TRUE(volume().remove("/a"));
  EXPECT_EQ(volume().space().held_bytes, kMiB);
  ASSERT_TRUE(volume().remove("/checkpoint/a"));
  EXPECT_EQ(volume().space().held_bytes, 0U);
}

TEST_F(VolumeTest, AFullDriveIsReportedAndNothingIsCharged) {
  auto file = create("/a");
  const Status status = file->write(0, 65 * kMiB, Access::direct);
  EXPECT_EQ(status.fault(), Fault::drive_full);
  EXPECT_NE(status.message().find("no space on the drive"), std::string::npos);
  EXPECT_EQ(device_.bytes(Opcode::write), 0U);
  EXPECT_TRUE(file->write(0, 64 * kMiB, Access::direct));
  EXPECT_EQ(volume().space().free_bytes, 0U);
}

TEST_F(VolumeTest, AdoptedFilesHoldSpaceAndCostNoWrite) {
  auto file = volume().open("/old.sst", 3 * kMiB, Cause::other, /*writer=*/false);
  ASSERT_TRUE(file.is_ok());
  EXPECT_EQ(volume().space().held_bytes, 3 * kMiB);
  EXPECT_EQ(volume().space().adopted_bytes, 3 * kMiB);
  EXPECT_EQ(device_.bytes(Opcode::write), 0U);
  ASSERT_TRUE((*file)->read({{0, 8192}}, Access::direct, Cause::user));
  EXPECT_EQ(device_.bytes(Opcode::read), 8192U);
  file->reset();
  ASSERT_TRUE(volume().remove("/old.sst"));
  EXPECT_EQ(volume().space().adopted_bytes, 0U);
}

TEST_F(VolumeTest, NextFitUsesTheWholeDriveAndFirstFitTheBeginning) {
  for (const Placement placement : {Placement::next_fit, Placement::first_fit}) {
    FakeDevice device(64 * kMiB);
    Volume volume(device, {.placement = placement});
    for (int i = 0; i < 20; ++i) {
      auto file = volume.create("/a", Cause::flush);
      ASSERT_TRUE((*file)->write(0, 2 * kMiB, Access::direct));
      file->reset();
      ASSERT_TRUE(volume.remove("/a"));
    }
    std::uint64_t end = 0;
    for (const Io& io : device.of(Opcode::write)) end = std::max(end, io.offset_bytes + io.length_bytes);
    if (placement == Placement::first_fit) {
      EXPECT_EQ(end, 2 * kMiB);
    } else {
      EXPECT_GT(end, 32 * kMiB);
    }
  }
}

// No two files share an LBA, and a file's bytes stay where they were written: each page belongs to the last file that
// wrote it, during random operations of several threads on many files.
TEST_F(VolumeTest, ExtentsNeverOverlap) {
  options_.page_cache_bytes = kMiB;
  Volume& shared = volume();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&shared, t] {
      std::mt19937_64 random(static_cast<unsigned>(t));
      for (int step = 0; step < 300; ++step) {
        const std::string path = "/" + std::to_string(t) + "/" + std::to_string(random() % 5);
        auto file = shared.create(path, Cause::flush);
        ASSERT_TRUE(file.is_ok());
        std::uint64_t at = 0;
        for (std::uint64_t n = random() % 20; n > 0; --n) {
          const std::uint64_t length = 1 + random() % 100000;
          ASSERT_TRUE((*file)->write(at, length, Access::buffered));
          at += length;
        }
        if (random() % 2 == 0) {
          ASSERT_TRUE((*file)->sync());
        }
        ASSERT_TRUE((*file)->read({{0, at}}, Access::buffered, Cause::user));
        file->reset();
        if (random() % 3 == 0) {
          ASSERT_TRUE(shared.remove(path));
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  // load() refuses a table in which two files share a page, or a page is beyond the end.
  const TemporaryDirectory directory;
  const std::string table = directory.path("overlap.volume");
  ASSERT_TRUE(shared.save(table));
  Volume again(device_, options_);
  const Status loaded = again.load(table, [](const std::string&) { return true; });
  EXPECT_TRUE(loaded) << loaded.message();
  EXPECT_EQ(again.space().held_bytes, shared.space().held_bytes);
}

// --- Reads and the page cache

TEST_F(VolumeTest, WithoutAPageCacheEveryReadIsCharged) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, kMiB, Access::direct));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(file->read({{5000, 100}}, Access::buffered, Cause::user));
  EXPECT_EQ(device_.of(Opcode::read).size(), 3U);
  EXPECT_EQ(device_.bytes(Opcode::read), 3 * 4096U);
}

TEST_F(VolumeTest, CachedPagesAreFreeAndDirectReadsNever) {
  options_.page_cache_bytes = kMiB;
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, kMiB, Access::direct));
  ASSERT_TRUE(file->read({{500000, 100}}, Access::buffered, Cause::user));
  ASSERT_TRUE(file->read({{500000, 100}}, Access::buffered, Cause::user));
  EXPECT_EQ(device_.of(Opcode::read).size(), 1U);
  ASSERT_TRUE(file->read({{500000, 100}}, Access::direct, Cause::user));
  EXPECT_EQ(device_.of(Opcode::read).size(), 2U);
}

TEST_F(VolumeTest, PagesJustWrittenAreCached) {
  options_.page_cache_bytes = 4 * kMiB;
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, kMiB, Access::buffered));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->read({{0, kMiB}}, Access::buffered, Cause::user));
  EXPECT_TRUE(device_.of(Opcode::read).empty());
}

TEST_F(VolumeTest, TheCacheHoldsNoMoreThanItsSize) {
  options_.page_cache_bytes = 64 * 4096;
  options_.readahead_bytes = 4096;
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 4 * kMiB, Access::direct));
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t page = 0; page < 1024; page += 7) {
      ASSERT_TRUE(file->read({{page * 4096, 1}}, Access::buffered, Cause::user));
    }
  }
  // 147 pages through a cache of 64: none is cached the second time.
  EXPECT_EQ(device_.of(Opcode::read).size(), 2 * 147U);
}

TEST_F(VolumeTest, DirtyPagesAreReadFromMemory) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 10000, Access::buffered));
  ASSERT_TRUE(file->read({{0, 10000}}, Access::buffered, Cause::user));
  EXPECT_TRUE(device_.of(Opcode::read).empty());
}

TEST_F(VolumeTest, SequentialReadersReadAhead) {
  options_.page_cache_bytes = 16 * kMiB;
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 4 * kMiB, Access::direct));
  for (std::uint64_t at = 0; at < 4 * kMiB; at += 4096) {
    ASSERT_TRUE(file->read({{at, 4096}}, Access::buffered, Cause::user));
  }
  EXPECT_LT(device_.of(Opcode::read).size(), 64U);                   // much less than 1024
  EXPECT_EQ(device_.bytes(Opcode::read), 4 * kMiB);                  // nothing is read twice
  EXPECT_LE(device_.of(Opcode::read)[10].length_bytes, 132U << 10);  // read-ahead window and the requested page
}

TEST_F(VolumeTest, SeveralRangesAreInFlightTogether) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, kMiB, Access::direct));
  device_.slow = true;
  ASSERT_TRUE(file->read({{0, 4096}, {100000, 4096}, {500000, 4096}}, Access::direct, Cause::user));
  EXPECT_EQ(device_.bytes(Opcode::read), 5 * 4096U);  // two ranges straddle a page border
}

TEST_F(VolumeTest, ReadsBeyondTheEndAreNotCharged) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 4096, Access::direct));
  ASSERT_TRUE(file->read({{4096, 4096}, {0, 100000}}, Access::direct, Cause::user));
  EXPECT_EQ(device_.bytes(Opcode::read), 4096U);
}

// --- Faults

TEST_F(VolumeTest, AFailedDirectWriteReturnsItsError) {
  device_.fate = [](const Io& io) { return io.op == Opcode::write ? Fault::io_error : Fault::none; };
  auto file = create("/a");
  EXPECT_EQ(file->write(0, 4096, Access::direct).fault(), Fault::io_error);
}

TEST_F(VolumeTest, AFullDriveUnderABufferedWriteIsReportedByTheNextSync) {
  device_.fate = [](const Io& io) { return io.op == Opcode::write ? Fault::drive_full : Fault::none; };
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 2 * kMiB, Access::buffered));
  EXPECT_EQ(file->sync().fault(), Fault::drive_full);
}

TEST_F(VolumeTest, AFailedReadReturnsItsError) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 4096, Access::direct));
  device_.fate = [](const Io& io) { return io.op == Opcode::read ? Fault::io_error : Fault::none; };
  EXPECT_EQ(file->read({{0, 4096}}, Access::direct, Cause::user).fault(), Fault::io_error);
}

TEST_F(VolumeTest, NothingIsChargedAfterDetach) {
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, 4096, Access::direct));
  volume().detach();
  device_.forget();
  ASSERT_TRUE(file->write(4096, 4 * kMiB, Access::buffered));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->read({{0, 4096}}, Access::direct, Cause::user));
  EXPECT_EQ(device_.bytes(Opcode::write) + device_.bytes(Opcode::read), 0U);
}

// --- The table

class VolumeTableTest : public VolumeTest {
 protected:
  const TemporaryDirectory directory_;
  const std::string table_ = directory_.path("table.volume");
  static bool all_there(const std::string& /*path*/) { return true; }
};

TEST_F(VolumeTableTest, RoundTrip) {
  create("/a", Cause::wal)->write(0, 3 * kMiB, Access::direct).is_ok();
  create("/b")->write(0, 5000, Access::direct).is_ok();
  ASSERT_TRUE(volume().link("/a", "/c"));
  ASSERT_TRUE(volume().save(table_));
  device_.forget();

  Volume again(device_, options_);
  ASSERT_TRUE(again.load(table_, all_there));
  EXPECT_EQ(again.space().held_bytes, volume().space().held_bytes);
  auto before = volume().open("/a", 3 * kMiB, Cause::wal, false);
  auto after = again.open("/c", 3 * kMiB, Cause::wal, false);
  ASSERT_TRUE((*before)->read({{0, 3 * kMiB}}, Access::direct, Cause::user));
  const auto expected = device_.of(Opcode::read);
  device_.forget();
  ASSERT_TRUE((*after)->read({{0, 3 * kMiB}}, Access::direct, Cause::user));
  const auto found = device_.of(Opcode::read);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].offset_bytes, expected[i].offset_bytes);
}

TEST_F(VolumeTableTest, FilesThatAreGoneAreDeallocated) {
  create("/a")->write(0, kMiB, Access::direct).is_ok();
  create("/b")->write(0, kMiB, Access::direct).is_ok();
  ASSERT_TRUE(volume().save(table_));
  Volume again(device_, options_);
  ASSERT_TRUE(again.load(table_, [](const std::string& path) { return path != "/a"; }));
  EXPECT_EQ(again.space().held_bytes, kMiB);
  EXPECT_EQ(device_.bytes(Opcode::deallocate), kMiB);
}

TEST_F(VolumeTableTest, ATruncatedTableIsRefused) {
  create("/a");
  ASSERT_TRUE(volume().save(table_));
  std::filesystem::resize_file(table_, std::filesystem::file_size(table_) / 2);
  Volume again(device_, options_);
  const Status status = again.load(table_, all_there);
  EXPECT_EQ(status.fault(), Fault::bad_input);
  EXPECT_NE(status.message().find(table_), std::string::npos);
}

TEST_F(VolumeTableTest, ATableOfAnotherDriveIsRefused) {
  ASSERT_TRUE(volume().save(table_));
  FakeDevice larger(128 * kMiB);
  Volume again(larger, options_);
  EXPECT_EQ(again.load(table_, all_there).fault(), Fault::bad_input);
}

TEST_F(VolumeTableTest, OverlappingExtentsAreRefused) {
  create("/a")->write(0, kMiB, Access::direct).is_ok();
  ASSERT_TRUE(volume().save(table_));
  std::string text;
  {
    std::ifstream in(table_);
    std::getline(in, text);
  }
  const auto at = text.find("[[0,256]]");
  ASSERT_NE(at, std::string::npos) << text;
  std::ofstream(table_) << text.replace(at, 9, "[[0,256],[100,1]]");
  Volume again(device_, options_);
  EXPECT_EQ(again.load(table_, all_there).fault(), Fault::bad_input);
}

// --- A passive volume: a drive model that observes

TEST_F(VolumeTest, APassiveVolumeOutlivesAFullDrive) {
  options_.passive = true;
  auto file = create("/a");
  ASSERT_TRUE(file->write(0, kMiB, Access::direct));
  EXPECT_TRUE(volume().failure());
  ASSERT_TRUE(file->write(kMiB, 100 * kMiB, Access::direct)) << "the real drive has room for it";
  EXPECT_EQ(volume().failure().fault(), Fault::drive_full);
  device_.forget();
  ASSERT_TRUE(file->write(101 * kMiB, kMiB, Access::buffered));
  ASSERT_TRUE(file->read({{0, kMiB}}, Access::direct, Cause::user));
  auto flight = file->begin_read({{0, kMiB}}, Access::direct, Cause::user);
  ASSERT_TRUE(flight.is_ok());
  EXPECT_TRUE((*flight)->wait());
  ASSERT_TRUE(file->push_out());
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->truncate(200 * kMiB));
  EXPECT_TRUE(volume().open("/adopted", 300 * kMiB, Cause::other, /*writer=*/false).is_ok());
  ASSERT_TRUE(file->close());
  ASSERT_TRUE(volume().remove("/a"));
  EXPECT_EQ(device_.bytes(Opcode::write) + device_.bytes(Opcode::read), 0U) << "nothing is charged any more";
}

TEST_F(VolumeTest, APassiveVolumeKeepsItsFirstFailure) {
  options_.passive = true;
  auto file = create("/a");
  device_.fate = [](const Io&) { return Fault::io_error; };
  ASSERT_TRUE(file->write(0, kMiB, Access::direct));
  EXPECT_EQ(volume().failure().fault(), Fault::io_error);
  ASSERT_TRUE(file->write(0, 100 * kMiB, Access::direct));
  EXPECT_EQ(volume().failure().fault(), Fault::io_error);
}

TEST_F(VolumeTest, AVolumeThatIsNotPassiveHasNoFailureOfItsOwn) {
  auto file = create("/a");
  EXPECT_EQ(file->write(0, 100 * kMiB, Access::direct).fault(), Fault::drive_full);
  EXPECT_TRUE(volume().failure());
}

}  // namespace
}  // namespace spillway::fs
