// A drive's state in a file: complete, refused, or absent.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "base/file_bytes.h"
#include "device/emulated/emulated.h"
#include "device_small_drive.h"
#include "temporary_directory.h"

namespace spillway::device {
namespace {

constexpr std::uint64_t kSeed = 7;

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

ssd::Ssd steady_drive() {
  ssd::Ssd ssd(small_drive(), kSeed);
  EXPECT_TRUE(
      prepare(ssd, {.kind = InitialState::Kind::steady, .fill = 0.9, .warmup_capacities = 0.5, .path = ""}, kSeed));
  return ssd;
}

// The effect of a fixed workload on the drive: equal for drives in the same state.
std::string behaviour(ssd::Ssd& ssd) {
  std::vector<ssd::Completion> done;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const ssd::Nanos now = static_cast<ssd::Nanos>(i) * 100'000;
    ssd.advance(now, done);
    ssd.submit(now, {.tag = i,
                     .op = i % 3 == 0 ? ssd::Opcode::read : ssd::Opcode::write,
                     .lba_count = 8,
                     .lba = i * 7919 % 7000 * 8});
  }
  while (const auto next = ssd.next_event()) ssd.advance(*next, done);
  std::ostringstream text;
  for (const auto& one : done) text << one.tag << ' ' << one.completed << '\n';
  text << ssd.counters().nand_bytes_programmed_total() << ' ' << ssd.counters().erases;
  return text.str();
}

TEST(StateFile, ALoadedDriveBehavesLikeTheSavedOne) {
  const TemporaryDirectory directory;
  ssd::Ssd saved = steady_drive();
  ASSERT_TRUE(save_state(saved, directory.path("state")));
  ssd::Ssd loaded(small_drive(), kSeed);
  const Status status = load_state(loaded, directory.path("state"));
  ASSERT_TRUE(status) << status.message();
  EXPECT_EQ(loaded.mapped_units(), saved.mapped_units());
  EXPECT_EQ(loaded.audit(), std::nullopt);
  ssd::Ssd again(small_drive(), kSeed);
  ASSERT_TRUE(load_state(again, directory.path("state")));
  EXPECT_EQ(behaviour(loaded), behaviour(again));
}

TEST(StateFile, SavesADriveThatStillProgramsWhatItsCacheHolds) {
  const TemporaryDirectory directory;
  ssd::Ssd ssd(small_drive(), kSeed);
  std::vector<ssd::Completion> done;
  for (std::uint64_t i = 0; i < 16; ++i)
    ssd.submit(0, {.tag = i, .op = ssd::Opcode::write, .lba_count = 8, .lba = i * 8});
  while (ssd.in_flight() > 0) ssd.advance(*ssd.next_event(), done);
  ASSERT_TRUE(save_state(ssd, directory.path("state")));
  ssd::Ssd loaded(small_drive(), kSeed);
  const Status status = load_state(loaded, directory.path("state"));
  ASSERT_TRUE(status) << status.message();
  EXPECT_EQ(loaded.mapped_units(), 16U);
}

TEST(StateFile, EveryTruncationIsRefused) {
  const TemporaryDirectory directory;
  ssd::Ssd saved = steady_drive();
  const std::string path = directory.path("state");
  ASSERT_TRUE(save_state(saved, path));
  const std::string whole = file_bytes(path);
  ASSERT_GT(whole.size(), 1000U);
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{24}, std::size_t{36}, whole.size() / 2,
                                 whole.size() - 12, whole.size() - 1}) {
    write_file(path, whole.substr(0, size));
    ssd::Ssd loaded(small_drive(), kSeed);
    const Status status = load_state(loaded, path);
    EXPECT_EQ(status.fault(), Fault::bad_input) << size;
    EXPECT_TRUE(status.message().starts_with(path + ": is ")) << status.message();
    EXPECT_EQ(loaded.mapped_units(), 0U) << "nothing of it reached the drive";
  }
  write_file(path, whole + "x");
  ssd::Ssd loaded(small_drive(), kSeed);
  EXPECT_EQ(load_state(loaded, path).fault(), Fault::bad_input);
}

TEST(StateFile, EveryFlippedBitIsRefused) {
  const TemporaryDirectory directory;
  ssd::Ssd saved = steady_drive();
  const std::string path = directory.path("state");
  ASSERT_TRUE(save_state(saved, path));
  const std::string whole = file_bytes(path);
  for (std::size_t at = 0; at < whole.size(); at += whole.size() / 50 + 1) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_file(path, damaged);
    ssd::Ssd loaded(small_drive(), kSeed);
    EXPECT_EQ(load_state(loaded, path).fault(), Fault::bad_input) << at;
  }
}

TEST(StateFile, AStateOfAnotherVersionIsRefusedByName) {
  constexpr std::size_t kVersionAt = 16;
  const TemporaryDirectory directory;
  ssd::Ssd saved = steady_drive();
  const std::string path = directory.path("state");
  ASSERT_TRUE(save_state(saved, path));
  std::string other = file_bytes(path);
  ASSERT_EQ(other.substr(0, kVersionAt + 4), std::string("SPILLWAY-DRIVE\0\0\1\0\0\0", kVersionAt + 4));
  other[kVersionAt] = 2;
  write_file(path, other);
  ssd::Ssd loaded(small_drive(), kSeed);
  const Status status = load_state(loaded, path);
  EXPECT_EQ(status.fault(), Fault::bad_input);
  EXPECT_NE(status.message().find("is a state of version 2, not 1"), std::string::npos) << status.message();
}

TEST(StateFile, AnotherDrivesStateIsRefused) {
  const TemporaryDirectory directory;
  ssd::Ssd saved = steady_drive();
  const std::string path = directory.path("state");
  ASSERT_TRUE(save_state(saved, path));
  ssd::SsdConfig other = small_drive();
  other.capacity.capacity_bytes *= 2;
  ssd::Ssd loaded(other, kSeed);
  const Status status = load_state(loaded, path);
  EXPECT_EQ(status.fault(), Fault::bad_input);
  EXPECT_TRUE(status.message().starts_with(path + ": ")) << status.message();
  EXPECT_TRUE(status.message().ends_with("; make it again with `spillway ssd precondition`")) << status.message();
}

TEST(StateFile, MissingFilesAndDirectoriesAreRefused) {
  const TemporaryDirectory directory;
  ssd::Ssd ssd(small_drive(), kSeed);
  EXPECT_EQ(load_state(ssd, directory.path("none")).message(),
            directory.path("none") +
                ": the drive's state cannot be read (No such file or directory); make it again with "
                "`spillway ssd precondition`");
  EXPECT_EQ(load_state(ssd, directory.path("")).fault(), Fault::bad_input);
  EXPECT_EQ(save_state(ssd, directory.path("none/state")).message(),
            directory.path("none/state") +
                ": the drive's state cannot be written (No such file or directory); name a file in a "
                "directory with room and permission to write");
  EXPECT_EQ(save_state(ssd, directory.path("")).fault(), Fault::bad_input);
  EXPECT_EQ(directory.entries(), 0);
}

// A full disk, simulated by a process limit: no file may grow beyond 4 KiB.
TEST(StateFile, AFullDiskLeavesWhatWasThere) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("state");
  write_file(path, "what was there");
  ssd::Ssd ssd = steady_drive();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tight{4096, before.rlim_max};
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const Status status = save_state(ssd, path);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.fault(), Fault::io_error);
  EXPECT_TRUE(status.message().starts_with(path + ": the drive's state cannot be written (File too large)"))
      << status.message();
  EXPECT_EQ(file_bytes(path), "what was there");
  EXPECT_EQ(directory.entries(), 1) << "nothing half-written is left beside it";
}

}  // namespace
}  // namespace spillway::device
