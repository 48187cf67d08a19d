#include "spill/store/kv/kv_staging.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/steps.h"
#include "base/store_last.h"
#include "spill/store/checksum.h"

namespace spillway::spill {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr std::array<char, 16> kMagic = {'S', 'P', 'I', 'L', 'L', 'W', 'A', 'Y', '-', 'S', 'T', 'A', 'G', 'E', 0, 5};
constexpr std::uint64_t kHeadBytes = 4096;
constexpr std::uint64_t kDurableAt = kHeadBytes - KvDurable::kBytes;
constexpr std::uint64_t kLine = 64;  // of a cache: what a slot begins with, and a multiple of which it is

std::uint64_t slot_size(std::uint64_t pair_bytes) { return kLine + (pair_bytes + kLine - 1) / kLine * kLine; }

std::uint64_t size_of(std::uint64_t pair_bytes, std::uint64_t slots) {
  return kHeadBytes + slots * slot_size(pair_bytes);
}

bool is_of_another_version(const std::array<char, 16>& magic) {
  return std::equal(kMagic.begin(), kMagic.end() - 1, magic.begin()) && magic.back() != kMagic.back();
}

Status another_version(const std::string& name) {
  return Status::NotSupported(name + " was written by another version of Spillway (its byte 15); open it with that");
}

Status host_error(const std::string& path, const char* what) {
  return Status::IOError(path + ": " + what, std::strerror(errno));
}

}  // namespace

struct KvStaging::Head {
  std::array<char, 16> magic;
  std::uint32_t pair_bytes;
  std::uint32_t slots;
};

struct KvStaging::Slot {
  std::uint64_t state;  // bytes << 32 | checksum; 0: nothing is here
  std::uint64_t generation;
  std::uint64_t offset;
  std::uint64_t follows_generation;
  std::uint64_t follows_offset;
  std::uint64_t of_one_record;
  std::uint32_t bytes() const { return static_cast<std::uint32_t>(state >> 32); }
  std::uint32_t checksum() const { return static_cast<std::uint32_t>(state); }
  Position position() const { return {generation, offset}; }
  Position follows() const { return {follows_generation, follows_offset}; }
};

KvStaging::KvStaging(std::uint32_t pair_bytes, std::uint32_t slots)
    : pair_bytes_(pair_bytes), slots_(slots), slot_bytes_(slot_size(pair_bytes)), size_(size_of(pair_bytes, slots)) {
  static_assert(sizeof(Slot) <= kLine && sizeof(Head) <= kDurableAt);
}

KvStaging::~KvStaging() {
  if (base_ != nullptr) munmap(base_, size_);
  if (descriptor_ >= 0) close(descriptor_);
}

std::optional<KvStaging::Sizes> KvStaging::find(const std::string& path) {
  const int file = path.empty() ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  Head head{};
  struct stat found {};
  const bool is_read = fstat(file, &found) == 0 && pread(file, &head, sizeof head, 0) == ssize_t{sizeof head};
  ::close(file);
  if (!is_read || head.magic != kMagic || head.pair_bytes == 0 || head.slots == 0) return std::nullopt;
  const bool is_whole = static_cast<std::uint64_t>(found.st_size) == size_of(head.pair_bytes, head.slots);
  return is_whole ? std::optional(Sizes{head.pair_bytes, head.slots}) : std::nullopt;
}

Status KvStaging::open(const std::string& path, std::uint32_t pair_bytes, std::uint32_t slots,
                       std::unique_ptr<KvStaging>* staging) {
  std::unique_ptr<KvStaging> made(new KvStaging(pair_bytes, slots));
  if (Status status = made->map_file(path); !status.ok()) return status;
  *staging = std::move(made);
  return {};
}

Status KvStaging::map_file(const std::string& path) {
  const std::string name = path.empty() ? "staging in memory" : path;
  descriptor_ = path.empty() ? memfd_create("spillway-staging", MFD_CLOEXEC)
                             : ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) return host_error(name, "cannot be opened");
  struct stat found {};
  if (fstat(descriptor_, &found) != 0) return host_error(name, "cannot be looked at");
  const auto bytes = static_cast<std::uint64_t>(found.st_size);
  const Status another =
      Status::InvalidArgument(name + " is not the staging of this key-value namespace (from byte 0 on)");
  if (bytes != size_) {
    // Shorter is one that was being made when its process was killed.
    Head found_head{};
    const ssize_t got = pread(descriptor_, &found_head, sizeof found_head, 0);
    if (got < 0) return host_error(name, "cannot be read");
    if (is_of_another_version(found_head.magic)) return another_version(name);
    if (bytes > size_ || found_head.magic.front() != 0) return another;
    // Space is allocated now. A write to a page of the mapping without space could not report an error.
    if (const int error = posix_fallocate(descriptor_, 0, static_cast<off_t>(size_)); error != 0) {
      errno = error;
      return host_error(name, "cannot be made large");
    }
  }
  void* const mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) return host_error(name, "cannot be mapped");
  base_ = static_cast<char*>(mapped);
  durable_.emplace(base_ + kDurableAt);
  Head& there = head();
  // One that was being made when its process was killed, or the power failed, says nothing or less than all.
  if (there.magic.back() == 0) return {};
  if (is_of_another_version(there.magic)) return another_version(name);
  if (there.magic != kMagic || there.pair_bytes != pair_bytes_ || there.slots != slots_) return another;
  return {};
}

KvStaging::Head& KvStaging::head() const { return *reinterpret_cast<Head*>(base_); }

KvStaging::Slot& KvStaging::slot(std::uint32_t index) const {
  return *reinterpret_cast<Slot*>(base_ + kHeadBytes + index * slot_bytes_);
}

char* KvStaging::bytes(std::uint32_t index) const { return base_ + kHeadBytes + index * slot_bytes_ + kLine; }

std::uint32_t KvStaging::checksum(const Slot& of, std::uint32_t before, std::string_view bytes) const {
  const std::array<std::uint64_t, 6> where = {of.generation,     of.offset,        of.follows_generation,
                                              of.follows_offset, of.of_one_record, before};
  return crc32c({{reinterpret_cast<const char*>(where.data()), sizeof where}, {bytes.data(), bytes.size()}});
}

void KvStaging::begin(std::uint32_t index, Position position, Position follows, bool of_one_record) {
  Slot& one = slot(index);
  store_last<std::uint64_t>(&one.state, 0);
  one.generation = position.generation;
  one.offset = position.offset;
  one.follows_generation = follows.generation;
  one.follows_offset = follows.offset;
  one.of_one_record = of_one_record ? 1 : 0;
}

void KvStaging::grow(std::uint32_t index, std::uint32_t bytes) {
  Slot& one = slot(index);
  const std::uint32_t had = one.bytes();
  const std::string_view more(this->bytes(index) + had, bytes - had);
  store_last(&one.state, std::uint64_t{bytes} << 32 | checksum(one, had > 0 ? one.checksum() : 0, more));
  steps::reached("spill.kv.staging.grown");
}

// As it grew: the checksum of each record is over that of the one before it.
bool KvStaging::is_whole(std::uint32_t index) const {
  const Slot& one = slot(index);
  if (one.bytes() == 0 || one.bytes() > pair_bytes_) return false;
  const std::string_view all(bytes(index), one.bytes());
  if (one.of_one_record != 0) return checksum(one, 0, all) == one.checksum();
  std::uint32_t sum = 0;
  for (std::size_t at = 0; at < all.size();) {
    const std::string_view rest = all.substr(at);
    RecordFrame frame;
    if (rest.size() < sizeof frame) return false;
    std::memcpy(&frame, rest.data(), sizeof frame);
    if (frame.length > rest.size() - sizeof frame) return false;
    sum = checksum(one, sum, rest.substr(0, framed_bytes(frame.length)));
    at += framed_bytes(frame.length);
  }
  return sum == one.checksum();
}

std::vector<KvStaging::Left> KvStaging::left() const {
  std::vector<Left> all;
  if (head().magic != kMagic) return all;
  for (std::uint32_t i = 0; i < slots_; ++i) {
    if (is_whole(i)) all.push_back({slot(i).position(), slot(i).follows(), {bytes(i), slot(i).bytes()}});
  }
  std::sort(all.begin(), all.end(), [](const Left& a, const Left& b) { return a.position < b.position; });
  return all;
}

Status KvStaging::clear() {
  for (std::uint32_t i = 0; i < slots_; ++i) store_last<std::uint64_t>(&slot(i).state, 0);
  Head& there = head();
  there.pair_bytes = pair_bytes_;
  there.slots = slots_;
  std::copy(kMagic.begin(), kMagic.end() - 1, there.magic.begin());
  store_last(&there.magic.back(), kMagic.back());
  if (msync(base_, size_, MS_SYNC) != 0) return host_error("staging", "cannot be made durable");
  return {};
}

Status KvStaging::sync_head() {
  return msync(base_, kHeadBytes, MS_SYNC) == 0 ? Status() : host_error("staging", "cannot be made durable");
}

Status KvStaging::sync() {
  return msync(base_, size_, MS_SYNC) == 0 ? Status() : host_error("staging", "cannot be made durable");
}

}  // namespace spillway::spill
