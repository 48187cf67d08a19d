// The next log's file, made ahead.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "spill/store/region/log_files.h"
#include "spill/store/region/spare_log.h"
#include "temporary_directory.h"

namespace spillway::spill {
namespace {

class SpareLogTest : public ::testing::Test {
 protected:
  SpareLogTest() {
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

TEST_F(SpareLogTest, IsTakenByTheGenerationThatItWasMadeFor) {
  SpareLog spare(*directory_);
  EXPECT_EQ(spare.take(6), nullptr) << "none was made";
  spare.make(7);
  EXPECT_TRUE(is_there(7));
  EXPECT_EQ(std::filesystem::file_size(path_of(7)), 0U);
  EXPECT_NE(spare.take(7), nullptr);
  EXPECT_TRUE(is_there(7)) << "it is the log now";
  EXPECT_EQ(spare.take(8), nullptr);
}

TEST_F(SpareLogTest, IsRemovedByAnotherGenerationAndAtTheEnd) {
  {
    SpareLog spare(*directory_);
    spare.make(7);
    EXPECT_EQ(spare.take(9), nullptr);
    EXPECT_FALSE(is_there(7));
    spare.make(10);
    EXPECT_TRUE(is_there(10));
  }
  EXPECT_FALSE(is_there(10));
}

// The thread that makes it may come late: then the log has records.
TEST_F(SpareLogTest, IsNotMadeOverALogThatHasBegun) {
  SpareLog spare(*directory_);
  EXPECT_EQ(spare.take(7), nullptr);
  std::ofstream(path_of(7)) << "records";
  spare.make(7);
  spare.make(6);
  EXPECT_EQ(std::filesystem::file_size(path_of(7)), 7U);
  EXPECT_FALSE(is_there(6));
}

TEST_F(SpareLogTest, IsNotThereIfItCannotBeMade) {
  std::filesystem::remove_all(temporary_.path("spill"));
  SpareLog spare(*directory_);
  spare.make(7);
  EXPECT_EQ(spare.take(7), nullptr);
}

}  // namespace
}  // namespace spillway::spill
