// Real targets: they bypass the page cache, leave nothing behind, and are refused if unsafe.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/file_bytes.h"
#include "device/direct/device_use.h"
#include "device/direct/direct_device.h"
#include "needs.h"
#include "probe/measure.h"
#include "probe/target.h"
#include "temporary_directory.h"

namespace spillway::probe {
namespace {

using device::DirectFile;
using device::DirectFileSpec;
using Kind = DirectFileSpec::Kind;

constexpr std::uint64_t kBytes = 4 << 20;
const WriteWatch kGoOnWriting = [](std::uint64_t, std::uint64_t) { return true; };
const Watch kGoOn = [](std::uint64_t) { return true; };

// Bytes that this process caused to be read from and written to the storage layer. Source: proc(5), io.
struct StorageBytes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};
std::optional<StorageBytes> storage_bytes() {
  std::ifstream file("/proc/self/io");
  StorageBytes bytes;
  bool found = false;
  for (std::string key; file >> key;) {
    std::uint64_t value = 0;
    file >> value;
    if (key == "read_bytes:") bytes.read = value, found = true;
    if (key == "write_bytes:") bytes.written = value;
  }
  return found ? std::optional(bytes) : std::nullopt;
}

// A directory on a drive with direct I/O.
class Direct : public testing::Test {
 protected:
  void SetUp() override {
    const auto file = DirectFile::open({Kind::directory, directory_.root().string(), kBytes, false});
    SPILLWAY_NEEDS(file, "direct I/O where temporary files are: " + file.status().message());
    SPILLWAY_NEEDS(device::io_uring_is_there(), "io_uring");
  }

  std::string make_file(const std::string& name, std::size_t bytes = kBytes) const {
    const std::string path = directory_.path(name);
    std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    fsync(fd);  // what is not allocated yet looks like a hole
    close(fd);
    return path;
  }

  static std::unique_ptr<Target> made(const DirectFileSpec& spec) {
    auto target = make_direct(spec, 1, kGoOnWriting);
    EXPECT_TRUE(target) << target.status().message();
    return target ? std::move(target->target) : nullptr;
  }

  static Status refusal(const DirectFileSpec& spec) { return make_direct(spec, 1, kGoOnWriting).status(); }

  static Measurement measured(Target& target, const Point& point) {
    EXPECT_TRUE(check(point, target.info().extent())) << check(point, target.info().extent()).message();
    EXPECT_TRUE(target.admits(point)) << target.admits(point).message();
    const auto result = measure(target.device_for(point), point, target.info().extent(), 1, kGoOn);
    EXPECT_TRUE(result) << result.status().message();
    return result.value();
  }

  static Point point_of(double read_share, Engine engine = Engine::io_uring) {
    Point point;
    point.id = 1;
    point.read_share = read_share;
    point.engine = engine;
    point.numjobs = 2;
    point.iodepth = engine == Engine::sync ? 1 : 4;
    point.ios = 200;
    return point;
  }

  TemporaryDirectory directory_;
};

TEST_F(Direct, ATestFileHasNoNameAndIsCompletelyWritten) {
  const auto target = made({Kind::directory, directory_.root().string(), kBytes, false});
  EXPECT_EQ(directory_.entries(), 0);
  const TargetInfo info = target->info();
  EXPECT_EQ(info.kind, "directory");
  EXPECT_EQ(info.size_bytes, kBytes);
  EXPECT_TRUE(info.direct);
  EXPECT_TRUE(info.writable) << "it is ours";
  EXPECT_TRUE(target->admits(point_of(1))) << "no part of it was left unwritten";
}

TEST_F(Direct, EveryByteGoesToTheDriveAndNoneToThePageCache) {
  const auto target = made({Kind::directory, directory_.root().string(), kBytes, false});
  for (const Engine engine : {Engine::io_uring, Engine::sync}) {
    const auto before = storage_bytes();
    SPILLWAY_NEEDS(before, "a kernel that counts a process's bytes in /proc/self/io");
    // The same 4 KiB repeatedly: with a page cache they would be read once.
    Point reads = point_of(1, engine);
    reads.range = 8192.0 / kBytes;
    EXPECT_EQ(measured(*target, reads).ios(), 200U);
    const auto between = storage_bytes();
    EXPECT_GE(between->read - before->read, 200 * 4096U);
    Point writes = point_of(0, engine);
    writes.range = reads.range;
    EXPECT_EQ(measured(*target, writes).ios(), 200U);
    EXPECT_GE(storage_bytes()->written - between->written, 200 * 4096U);
  }
}

TEST_F(Direct, CountsWhatItHandedOver) {
  const auto target = made({Kind::directory, directory_.root().string(), kBytes, false});
  const Point point = point_of(0.5);
  device::Device& device = target->device_for(point);
  const auto result = measure(device, point, target->info().extent(), 1, kGoOn);
  ASSERT_TRUE(result) << result.status().message();
  const ssd::Counters counters = device.counters();
  EXPECT_GE(counters.host_reads + counters.host_writes, 200U);
  EXPECT_LE(counters.host_reads + counters.host_writes, 200U + 2 * 4) << "what was in flight at the end, and no more";
  EXPECT_EQ(counters.host_bytes_read, counters.host_reads * 4096);
  EXPECT_EQ(counters.host_bytes_written, counters.host_writes * 4096);
}

TEST_F(Direct, StaggeredJobsMoveTheirSharesAndNoMore) {
  const auto target = made({Kind::directory, directory_.root().string(), kBytes, false});
  Point point = point_of(1, Engine::sync);
  point.pattern = Pattern::staggered;
  point.numjobs = 3;
  device::Device& device = target->device_for(point);
  const auto result = measure(device, point, target->info().extent(), 1, kGoOn);
  ASSERT_TRUE(result) << result.status().message();
  EXPECT_EQ(result.value().ios(), 200U);
  EXPECT_EQ(device.counters().host_reads, 200U);
}

TEST_F(Direct, AFileIsNotWrittenWithoutDestroyData) {
  const std::string path = make_file("theirs");
  const std::string before = file_bytes(path);
  const auto target = made({Kind::file, path, std::nullopt, false});
  EXPECT_FALSE(target->info().writable);
  EXPECT_EQ(measured(*target, point_of(1)).ios(), 200U);
  EXPECT_TRUE(check(point_of(0), target->info().extent()).message().starts_with("point 1: read_share is below 1"));
  const auto prepared = target->prepare({Preparation::Kind::sequential, 1, std::nullopt}, 1, kGoOnWriting);
  EXPECT_EQ(prepared.status().fault(), Fault::bad_input);
  EXPECT_NE(prepared.status().message().find("target.destroy_data"), std::string::npos);
  EXPECT_EQ(file_bytes(path), before);
}

TEST_F(Direct, WithDestroyDataItIsWrittenWithinItsBounds) {
  const std::string path = make_file("mine");
  const auto target = made({Kind::file, path, kBytes / 2, true});
  EXPECT_EQ(target->info().size_bytes, kBytes / 2);
  const auto prepared = target->prepare({Preparation::Kind::sequential, 1, std::nullopt}, 1, kGoOnWriting);
  ASSERT_TRUE(prepared) << prepared.status().message();
  EXPECT_EQ(prepared.value().bytes, kBytes / 2);
  EXPECT_TRUE(prepared.value().complete);
  measured(*target, point_of(0));
  const std::string after = file_bytes(path);
  ASSERT_EQ(after.size(), kBytes);
  EXPECT_EQ(after.substr(kBytes / 2), std::string(kBytes / 2, 'x')) << "beyond size_bytes nothing is touched";
  for (std::size_t at = 0; at < kBytes / 2; at += 4096) {
    ASSERT_NE(after.compare(at, 4096, std::string(4096, 'x')), 0) << at;
  }
}

TEST_F(Direct, WrittenDataIsNotRepeated) {
  const std::string path = make_file("mine", 1 << 20);
  const auto target = made({Kind::file, path, std::nullopt, true});
  ASSERT_TRUE(target->prepare({Preparation::Kind::sequential, 1, std::nullopt}, 1, kGoOnWriting));
  const std::string after = file_bytes(path);
  std::vector<std::string> blocks;
  for (std::size_t at = 0; at < after.size(); at += 4096) blocks.push_back(after.substr(at, 4096));
  std::sort(blocks.begin(), blocks.end());
  EXPECT_EQ(std::adjacent_find(blocks.begin(), blocks.end()), blocks.end());
}

TEST_F(Direct, AStoppedPreparationReportsItsProgress) {
  const auto target = made({Kind::file, make_file("mine"), std::nullopt, true});
  const auto written = target->prepare({Preparation::Kind::random, 1000, std::nullopt}, 1,
                                       [](std::uint64_t done, std::uint64_t) { return done < 100'000; });
  ASSERT_TRUE(written) << written.status().message();
  EXPECT_FALSE(written.value().complete);
  EXPECT_GE(written.value().bytes, 100'000U);
  EXPECT_LT(written.value().bytes, 1'000'000U);
}

TEST_F(Direct, AStoppedTestFileIsNoTarget) {
  const auto target = make_direct({Kind::directory, directory_.root().string(), 16 * kBytes, false}, 1,
                                  [](std::uint64_t, std::uint64_t) { return false; });
  EXPECT_EQ(target.status().fault(), Fault::stopped);
  EXPECT_EQ(directory_.entries(), 0);
}

TEST_F(Direct, PartsThatWereNeverWrittenAreNotRead) {
  const std::string path = directory_.path("sparse");
  std::ofstream(path).close();
  std::filesystem::resize_file(path, kBytes);
  const auto target = made({Kind::file, path, std::nullopt, true});
  EXPECT_NE(target->admits(point_of(1)).message().find("has parts that were never written"), std::string::npos);
  EXPECT_TRUE(target->admits(point_of(0)));
  ASSERT_TRUE(target->prepare({Preparation::Kind::sequential, 1, std::nullopt}, 1, kGoOnWriting));
  EXPECT_TRUE(target->admits(point_of(1))) << target->admits(point_of(1)).message();
}

// No file descriptor is left for a ring, which looks like a missing io_uring.
TEST_F(Direct, WithoutIoUringThereIsStillSync) {
  const auto target = made({Kind::file, make_file("theirs"), std::nullopt, false});
  EXPECT_TRUE(target->info().has_io_uring);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const int next = dup(0);
  close(next);
  const rlimit none_left = {.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none_left);
  const Status refused = target->admits(point_of(1));
  const bool has_io_uring = target->info().has_io_uring;
  const std::uint64_t ios = measured(*target, point_of(1, Engine::sync)).ios();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(has_io_uring);
  EXPECT_EQ(refused.message(), "point 1: engine is io_uring, which this system does not let us have; take sync");
  EXPECT_EQ(ios, 200U);
}

TEST_F(Direct, BuffersAreBounded) {
  const auto target = made({Kind::directory, directory_.root().string(), kBytes, false});
  Point point = point_of(1);
  point.bs_bytes = 1 << 20;
  point.iodepth = 1024;
  EXPECT_TRUE(target->admits(point).message().starts_with("point 1: numjobs x iodepth x bs_bytes comes to more than"));
}

TEST_F(Direct, OnlyEmulatedDrivesAreFilled) {
  const auto target = made({Kind::directory, directory_.root().string(), kBytes, false});
  EXPECT_EQ(target->reset_to_steady(0.5, kGoOnWriting).status().fault(), Fault::bad_input);
}

TEST_F(Direct, RefusesWhatIsTooSmallOrOfAnotherKind) {
  const std::string path = make_file("file");
  const std::string directory = directory_.root().string();
  struct {
    DirectFileSpec spec;
    const char* says;
  } const refusals[] = {
      {{Kind::file, directory_.path("none"), std::nullopt, false}, "give an existing file, or kind directory"},
      {{Kind::file, directory, std::nullopt, false}, "not a regular file; target.kind is directory for a directory"},
      {{Kind::directory, path, std::nullopt, false}, "not a directory"},
      {{Kind::device, path, std::nullopt, false}, "not a block device; target.kind is file for a file"},
      {{Kind::file, path, kBytes + 1, false}, "too small: it has 4194304 bytes and target.size_bytes is 4194305"},
      {{Kind::file, make_file("tiny", 100), std::nullopt, false}, "too small: it has 100 bytes, less than one logical"},
      {{Kind::directory, directory, 100, false}, "target.size_bytes is less than one logical block"},
      {{Kind::directory, directory, std::uint64_t{1} << 60, false}, "too small: it has "},
  };
  const std::ptrdiff_t entries = directory_.entries();
  for (const auto& [spec, says] : refusals) {
    const Status status = refusal(spec);
    EXPECT_EQ(status.fault(), Fault::bad_input) << says;
    EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
  }
  EXPECT_EQ(directory_.entries(), entries) << "nothing is left behind";
}

// Without a superuser's permissions for files, with which a test could write everything.
class AsNobody {
 public:
  AsNobody() : before_(setfsuid(65534)) {}
  ~AsNobody() { setfsuid(static_cast<uid_t>(before_)); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  int before_;
};

TEST_F(Direct, RefusesToWriteWhatIsReadOnly) {
  const std::string path = make_file("kept");
  chmod(path.c_str(), S_IRUSR | S_IRGRP | S_IROTH);
  chmod(directory_.root().c_str(), S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH);
  const AsNobody nobody;
  EXPECT_TRUE(refusal({Kind::file, path, std::nullopt, false})) << "it may be read";
  const Status status = refusal({Kind::file, path, std::nullopt, true});
  EXPECT_EQ(status.fault(), Fault::bad_input);
  EXPECT_NE(status.message().find("cannot be written"), std::string::npos) << status.message();
  const Status no_room = refusal({Kind::directory, directory_.root().string(), kBytes, false});
  if (geteuid() != 0) return;  // the owner of the directory may write to it
  EXPECT_EQ(no_room.fault(), Fault::bad_input);
  EXPECT_NE(no_room.message().find("no test file can be made in it"), std::string::npos) << no_room.message();
}

// A block device made of a file. Needs a superuser, and a kernel with loop devices.
class LoopDevice {
 public:
  explicit LoopDevice(const std::string& file) {
    const int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    const int backing = open(file.c_str(), O_RDWR | O_CLOEXEC);
    // The kernel names a free device without keeping it: another process may take it first.
    constexpr int kTries = 1000;
    for (int i = 0; i < kTries && control >= 0 && backing >= 0 && !is_there_; ++i) {
      if (!attach(ioctl(control, LOOP_CTL_GET_FREE), backing)) break;
    }
    if (backing >= 0) close(backing);
    if (control >= 0) close(control);
  }
  ~LoopDevice() {
    if (is_there_) ioctl(fd_, LOOP_CLR_FD);
    if (fd_ >= 0) close(fd_);
  }
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  bool is_there() const { return is_there_; }
  const std::string& path() const { return path_; }
  bool set_read_only(bool read_only) const {
    const int value = read_only ? 1 : 0;
    return ioctl(fd_, BLKROSET, &value) == 0;
  }

 private:
  // Returns whether another number is worth a try, if this one was not attached.
  bool attach(int number, int backing) {
    if (number < 0) return false;
    path_ = "/dev/loop" + std::to_string(number);
    fd_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (fd_ < 0) return false;
    is_there_ = ioctl(fd_, LOOP_SET_FD, backing) == 0;
    if (is_there_) return true;
    const bool was_taken = errno == EBUSY;
    close(fd_);
    fd_ = -1;
    return was_taken;
  }

  std::string path_;
  int fd_ = -1;
  bool is_there_ = false;
};

TEST_F(Direct, ABlockDeviceIsReadAndWithDestroyDataWritten) {
  const std::string backing = make_file("backing");
  const LoopDevice loop(backing);
  SPILLWAY_NEEDS(loop.is_there(), "a loop device: a superuser and a kernel that has them");
  const auto target = made({Kind::device, loop.path(), std::nullopt, false});
  EXPECT_EQ(target->info().size_bytes, kBytes);
  EXPECT_EQ(measured(*target, point_of(1)).ios(), 200U);
  EXPECT_EQ(file_bytes(backing), std::string(kBytes, 'x'));
  // It is opened exclusively, so the kernel refuses a second one, as it refuses a mount.
  const Status second = refusal({Kind::device, loop.path(), std::nullopt, true});
  EXPECT_EQ(second.fault(), Fault::bad_input);
  EXPECT_NE(second.message().find("in use by the system"), std::string::npos) << second.message();
}

TEST_F(Direct, ABlockDeviceThatIsReadOnlyIsNotWritten) {
  const std::string backing = make_file("backing");
  const LoopDevice loop(backing);
  SPILLWAY_NEEDS(loop.is_there(), "a loop device: a superuser and a kernel that has them");
  ASSERT_TRUE(loop.set_read_only(true));
  const Status status = refusal({Kind::device, loop.path(), std::nullopt, true});
  EXPECT_NE(status.message().find("cannot be written"), std::string::npos) << status.message();
  EXPECT_TRUE(refusal({Kind::device, loop.path(), std::nullopt, false}));
  ASSERT_TRUE(loop.set_read_only(false));
  const auto target = made({Kind::device, loop.path(), std::nullopt, true});
  ASSERT_TRUE(target->prepare({Preparation::Kind::sequential, 1, std::nullopt}, 1, kGoOnWriting));
  EXPECT_EQ(file_bytes(backing).find(std::string(4096, 'x')), std::string::npos) << "all of it was written";
}

TEST(DirectFile, RefusesMemory) {
  struct statfs shm {};
  constexpr long kTmpfs = 0x01021994;
  SPILLWAY_NEEDS(statfs("/dev/shm", &shm) == 0 && shm.f_type == kTmpfs, "a file system in memory at /dev/shm");
  const auto file = DirectFile::open({Kind::directory, "/dev/shm", kBytes, false});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.status().fault(), Fault::bad_input);
  EXPECT_NE(file.status().message().find("has no direct I/O"), std::string::npos) << file.status().message();
}

// Files of the test that replace the kernel's lists of devices in use.
class DeviceUse : public testing::Test {
 protected:
  DeviceUse() {
    files_ = {directory_.path("mountinfo"), directory_.path("swaps"), directory_.path("dev")};
    write("swaps", "Filename\tType\tSize\tUsed\tPriority\n");
    write("mountinfo", "22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw\n");
    for (const char* device : {"8:0", "8:0/sda1", "8:0/sda2", "8:0/holders", "8:1", "8:2", "8:16", "8:16/holders"}) {
      std::filesystem::create_directories(directory_.path("dev") + "/" + device);
    }
    write("dev/8:0/sda1/partition", "1\n");
    write("dev/8:0/sda1/dev", "8:1\n");
    write("dev/8:0/sda2/partition", "2\n");
    write("dev/8:0/sda2/dev", "8:2\n");
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(directory_.path(name)) << text; }
  std::string use(unsigned minor) const { return device::use_of_device(8, minor, files_).value_or("is free"); }

  TemporaryDirectory directory_;
  device::SystemFiles files_;
};

TEST_F(DeviceUse, FindsMounts) {
  EXPECT_EQ(use(2), "is mounted at /");
  EXPECT_EQ(use(0), "has a partition, sda2, that is mounted at /");
  EXPECT_EQ(use(1), "is free") << "the other partition is nobody's";
  EXPECT_EQ(use(16), "is free");
}

TEST_F(DeviceUse, FindsHolders) {
  std::filesystem::create_directories(directory_.path("dev") + "/8:16/holders/dm-3");
  EXPECT_EQ(use(16), "is part of dm-3");
  write("mountinfo", "");
  std::filesystem::create_directories(directory_.path("dev") + "/8:1/holders/md0");
  EXPECT_EQ(use(0), "has a partition, sda1, that is part of md0");
}

TEST_F(DeviceUse, FindsSwapAndMountsByTheirSource) {
  // The node of a block device of this machine replaces the one used for swap.
  std::string node;
  struct stat status {};
  for (const char* candidate : {"/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0"}) {
    if (stat(candidate, &status) == 0 && S_ISBLK(status.st_mode)) node = candidate;
  }
  SPILLWAY_NEEDS(!node.empty(), "a node in /dev of any block device");
  const auto use = [&] {
    return device::use_of_device(major(status.st_rdev), minor(status.st_rdev), files_).value_or("is free");
  };
  stat(node.c_str(), &status);
  EXPECT_EQ(use(), "is free");
  write("swaps", "Filename\tType\tSize\tUsed\tPriority\n" + node + " partition 1000 0 -2\n");
  EXPECT_EQ(use(), "is swapped to");
  write("mountinfo", "30 1 0:44 / /data rw - btrfs " + node + " rw\n");
  EXPECT_EQ(use(), "is mounted at /data");
}

// The drive from which this machine runs is never opened, not even for reading.
TEST(DirectFile, RefusesTheDriveThisRunsFrom) {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line.substr(line.find(" - ") + 3));
    std::string type;
    std::string source;
    fields >> type >> source;
    struct stat status {};
    if (stat(source.c_str(), &status) != 0 || !S_ISBLK(status.st_mode)) continue;
    const auto file = DirectFile::open({Kind::device, source, std::nullopt, false});
    ASSERT_FALSE(file);
    EXPECT_NE(file.status().message().find(source + " is mounted at "), std::string::npos) << file.status().message();
    return;
  }
  SPILLWAY_NEEDS(false, "a file system that is mounted from a block device");
}

}  // namespace
}  // namespace spillway::probe
