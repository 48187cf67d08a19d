// The next log's file, made ahead.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <string>
#include <thread>

#include "spill/store/region/log_files.h"
#include "spill/store/region/spare_logs.h"
#include "temporary_directory.h"

namespace spillway::spill {
namespace {

// Making the file of `held` takes until it is let go on.
class HoldingFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit HoldingFileSystem(std::string held) : FileSystemWrapper(FileSystem::Default()), held_(std::move(held)) {}
  const char* Name() const override { return "HoldingFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* dbg) override {
    if (path.ends_with(held_)) {
      began.count_down();
      goes_on.wait();
    }
    return target()->NewWritableFile(path, options, result, dbg);
  }

  std::latch began{1};
  std::latch goes_on{1};

 private:
  const std::string held_;
};

class SpareLogsTest : public ::testing::Test {
 protected:
  SpareLogsTest() {
    const rocksdb::Status status =
        RegionDirectory::open(rocksdb::FileSystem::Default(), temporary_.path("spill"), &directory_);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  std::string path_of(GenerationId generation) const {
    RegionLog log;
    log.base = directory_->log_base(generation);
    return log.path();
  }
  bool is_there(GenerationId generation) const { return std::filesystem::exists(path_of(generation)); }

  const TemporaryDirectory temporary_;
  std::unique_ptr<RegionDirectory> directory_;
};

TEST_F(SpareLogsTest, IsTakenByTheGenerationThatItWasMadeFor) {
  SpareLogs spare(*directory_);
  EXPECT_EQ(spare.take(6), nullptr) << "none was made";
  spare.make(7);
  EXPECT_TRUE(is_there(7));
  EXPECT_EQ(std::filesystem::file_size(path_of(7)), 0U);
  EXPECT_NE(spare.take(7), nullptr);
  EXPECT_TRUE(is_there(7)) << "it is the log now";
  EXPECT_EQ(spare.take(8), nullptr);
}

TEST_F(SpareLogsTest, IsRemovedByAnotherGenerationAndAtTheEnd) {
  {
    SpareLogs spare(*directory_);
    spare.make(7);
    EXPECT_EQ(spare.take(9), nullptr);
    EXPECT_FALSE(is_there(7));
    spare.make(10);
    EXPECT_TRUE(is_there(10));
  }
  EXPECT_FALSE(is_there(10));
}

// The thread that makes it may come late: then the log has records.
TEST_F(SpareLogsTest, IsNotMadeOverALogThatHasBegun) {
  SpareLogs spare(*directory_);
  EXPECT_EQ(spare.take(7), nullptr);
  std::ofstream(path_of(7)) << "records";
  spare.make(7);
  spare.make(6);
  EXPECT_EQ(std::filesystem::file_size(path_of(7)), 7U);
  EXPECT_FALSE(is_there(6));
}

TEST_F(SpareLogsTest, ThoseOfLaterGenerationsStay) {
  SpareLogs spare(*directory_);
  spare.make(7);
  spare.make(8);
  spare.make(9);
  EXPECT_NE(spare.take(7), nullptr);
  EXPECT_NE(spare.take(9), nullptr);
  EXPECT_TRUE(is_there(7)) << "it was taken";
  EXPECT_FALSE(is_there(8)) << "nobody takes it any more";
  EXPECT_TRUE(is_there(9));
}

// While one is made, on a drive that takes its time, others are taken; that one is waited for, and not made twice.
TEST_F(SpareLogsTest, OnlyItsOwnGenerationWaitsForOne) {
  const auto files = std::make_shared<HoldingFileSystem>("000008.spill");
  std::unique_ptr<RegionDirectory> directory;
  ASSERT_TRUE(RegionDirectory::open(files, temporary_.path("held"), &directory).ok());
  SpareLogs spare(*directory);
  spare.make(7);
  std::thread maker([&] { spare.make(8); });
  files->began.wait();
  EXPECT_NE(spare.take(7), nullptr);  // would never return
  std::thread later([&] { files->goes_on.count_down(); });
  EXPECT_NE(spare.take(8), nullptr);
  later.join();
  maker.join();
  EXPECT_EQ(std::filesystem::file_size(temporary_.path("held") + "/000008.spill"), 0U);
}

TEST_F(SpareLogsTest, OneThatComesTooLateIsRemoved) {
  const auto files = std::make_shared<HoldingFileSystem>("000008.spill");
  std::unique_ptr<RegionDirectory> directory;
  ASSERT_TRUE(RegionDirectory::open(files, temporary_.path("held"), &directory).ok());
  SpareLogs spare(*directory);
  std::thread maker([&] { spare.make(8); });
  files->began.wait();
  EXPECT_EQ(spare.take(9), nullptr);
  files->goes_on.count_down();
  maker.join();
  EXPECT_FALSE(std::filesystem::exists(temporary_.path("held") + "/000008.spill"));
}

TEST_F(SpareLogsTest, IsNotThereIfItCannotBeMade) {
  std::filesystem::remove_all(temporary_.path("spill"));
  SpareLogs spare(*directory_);
  spare.make(7);
  EXPECT_EQ(spare.take(7), nullptr);
}

}  // namespace
}  // namespace spillway::spill
