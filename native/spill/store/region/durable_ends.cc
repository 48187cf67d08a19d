#include "spill/store/region/durable_ends.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>

#include "spill/store/checksum.h"

namespace spillway::spill {

using rocksdb::IOStatus;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr char kNew[] = ".new";

struct Header {
  std::array<char, 8> magic = {'S', 'P', 'I', 'L', 'L', 'E', 'N', 'D'};
  std::uint32_t version = 1;
  std::uint32_t checksum = 0;
  std::uint64_t salt = 0;
};
static_assert(sizeof(Header) == 24);

constexpr std::uint32_t kEnd = 1;  // kinds of entries
constexpr std::uint32_t kClosed = 2;

struct Entry {
  std::uint32_t checksum = 0;
  std::uint32_t kind = 0;
  std::uint64_t generation = 0;
  std::uint64_t salt = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Entry) == 32);

// After this many added entries the file is rewritten. Source: guess, 128 KiB.
constexpr std::uint64_t kMostAdded = 4096;

// What was appended is the kernel's, not this process's, when Append returns.
rocksdb::FileOptions file_options() {
  rocksdb::FileOptions options;
  options.use_mmap_reads = false;
  options.use_mmap_writes = false;
  return options;
}

template <typename Of>
Slice bytes_of(const Of& one) {
  return {reinterpret_cast<const char*>(&one), sizeof one};
}

std::uint32_t checksum(Header header) {
  header.checksum = 0;
  return crc32c(bytes_of(header));
}

std::uint32_t checksum(Entry entry, std::uint64_t file_salt) {
  entry.checksum = 0;
  return crc32c({bytes_of(file_salt), bytes_of(entry)});
}

std::string encode(std::uint32_t kind, const DurableEnd& end, std::uint64_t file_salt) {
  Entry entry{0, kind, end.generation, end.salt, end.bytes};
  entry.checksum = checksum(entry, file_salt);
  return bytes_of(entry).ToString();
}

}  // namespace

Status read_ends(rocksdb::FileSystem& files, const std::string& path, FoundEnds* found) {
  if (files.FileExists(path, {}, nullptr).IsNotFound()) return {};
  std::string bytes;
  if (IOStatus status = rocksdb::ReadFileToString(&files, path, &bytes); !status.ok()) return status;
  Header header;
  if (bytes.size() < sizeof header) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool is_header = header.magic == Header().magic && header.checksum == checksum(header);
  if (is_header && header.version != Header().version) {
    return Status::NotSupported(path + " was written by another version of Spillway (its byte 8); open it with that");
  }
  if (!is_header) {
    const auto is_zero = [](char byte) { return byte == 0; };
    if (!std::all_of(bytes.begin(), bytes.end(), is_zero)) found->damaged_at = 0;  // else a loss of power left nothing
    return {};
  }
  std::optional<std::uint64_t> unfit;
  std::uint64_t closed_with = ~std::uint64_t{0};
  for (std::size_t at = sizeof header; at + sizeof(Entry) <= bytes.size(); at += sizeof(Entry)) {
    Entry entry;
    std::memcpy(&entry, bytes.data() + at, sizeof entry);
    if (entry.checksum != checksum(entry, header.salt)) {  // torn, or damaged: the other entries are valid
      if (!unfit) unfit = at;
      continue;
    }
    if (unfit && !found->damaged_at) found->damaged_at = unfit;  // what comes after it was not torn
    if (entry.kind == kClosed) closed_with = entry.bytes;
    if (entry.kind != kEnd) continue;
    DurableEnd& end = found->ends[entry.generation];
    if (end.salt == entry.salt && end.bytes > entry.bytes) continue;
    end = {entry.generation, entry.salt, entry.bytes};
  }
  found->was_closed = closed_with == found->ends.size();
  return {};
}

bool was_longer(const FoundEnds& found, GenerationId generation, std::uint64_t salt, std::uint64_t whole_to) {
  const auto end = found.ends.find(generation);
  if (end == found.ends.end() || end->second.bytes <= whole_to) return false;
  return salt == 0 || salt == end->second.salt;  // else of an older log of that number
}

DurableEnds::DurableEnds(rocksdb::FileSystem& files, rocksdb::FSDirectory& directory, std::string path)
    : files_(files), directory_(directory), path_(std::move(path)) {}

Status DurableEnds::read() { return read_ends(files_, path_, &found_); }

Status DurableEnds::replace(const std::vector<DurableEnd>& ends, bool closed, bool durably) {
  const MutexLock lock(mutex_);
  std::random_device random;
  salt_ = std::uint64_t{random()} << 32 | random();
  said_.clear();
  std::string entries;
  for (const DurableEnd& end : ends) {
    said_[end.generation] = end;
    entries += encode(kEnd, end, salt_);
  }
  if (closed) entries += encode(kClosed, {0, 0, ends.size()}, salt_);
  const IOStatus status = write(entries, durably);
  is_begun_ = status.ok();
  return status;
}

void DurableEnds::add(const DurableEnd& end) {
  const MutexLock lock(mutex_);
  if (!is_begun_) return;
  DurableEnd& said = said_[end.generation];
  if (said.salt == end.salt && said.bytes >= end.bytes) return;
  said = end;
  if (++added_ < kMostAdded) {
    if (file_ && !file_->Append(encode(kEnd, end, salt_), {}, nullptr).ok()) file_.reset();
    return;
  }
  std::string entries;
  for (const auto& [generation, one] : said_) entries += encode(kEnd, one, salt_);
  write(entries, /*durably=*/false).PermitUncheckedError();
}

void DurableEnds::remove(GenerationId generation) {
  const MutexLock lock(mutex_);
  said_.erase(generation);
}

// A file that takes the place of what was there. Not durably: a loss of power leaves the one or the other, or less.
IOStatus DurableEnds::write(const std::string& entries, bool durably) {
  Header header;
  header.salt = salt_;
  header.checksum = checksum(header);
  added_ = 0;
  file_.reset();
  const std::string temporary = path_ + kNew;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = files_.NewWritableFile(temporary, file_options(), &file, nullptr);
  if (status.ok()) status = file->Append(bytes_of(header).ToString() + entries, {}, nullptr);
  if (status.ok() && durably) status = file->Sync({}, nullptr);
  if (file) {
    const IOStatus closed = file->Close({}, nullptr);
    if (status.ok()) status = closed;
  }
  if (status.ok()) status = files_.RenameFile(temporary, path_, {}, nullptr);
  if (status.ok() && durably) {
    status = directory_.FsyncWithDirOptions({}, nullptr, rocksdb::DirFsyncOptions(path_));
  }
  if (status.ok()) status = files_.ReopenWritableFile(path_, file_options(), &file_, nullptr);
  if (!status.ok()) file_.reset();
  return status;
}

}  // namespace spillway::spill
