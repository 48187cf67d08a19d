#include "spillway/c.h"

#include <rocksdb/convenience.h>
#include <rocksdb/write_batch.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "spill/settings/spill_settings.h"
#include "spillway/db.h"

struct spillway_t {
  std::unique_ptr<spillway::DB> db;
};

namespace spillway::spill {
namespace {

using rocksdb::Status;

char* copy_of(const std::string& text) {
  char* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

// Whether it succeeded.
bool check(const Status& status, char** errptr) {
  if (status.ok()) return true;
  std::free(*errptr);
  *errptr = copy_of(status.ToString());
  return false;
}

rocksdb::WriteOptions write_options(unsigned flags) {
  rocksdb::WriteOptions options;
  options.sync = (flags & SPILLWAY_WRITE_SYNC) != 0;
  options.no_slowdown = (flags & SPILLWAY_WRITE_NO_SLOWDOWN) != 0;
  options.disableWAL = (flags & SPILLWAY_WRITE_NO_LOG) != 0;
  return options;
}

Status open_database(const std::string& path, const std::string& rocksdb_options, const std::string& spillway_options,
                     DB** db) {
  rocksdb::ConfigOptions strict;
  strict.ignore_unknown_options = false;
  rocksdb::Options options;
  Status status = rocksdb::GetOptionsFromString(strict, rocksdb::Options(), rocksdb_options, &options);
  if (!status.ok()) return status;
  const auto spill = parse_spill_options(spillway_options, "", PathKey::taken);
  if (!spill) return Status::InvalidArgument(spill.status().message());
  return DB::Open(options, spill.value(), path, db);
}

std::string text_of(const char* text) { return text == nullptr ? std::string() : std::string(text); }

}  // namespace
}  // namespace spillway::spill

using spillway::spill::check;

spillway_t* spillway_open(const char* path, const char* rocksdb_options, const char* spillway_options, char** errptr) {
  using spillway::spill::text_of;
  spillway::DB* db = nullptr;
  const auto status = spillway::spill::open_database(path, text_of(rocksdb_options), text_of(spillway_options), &db);
  if (!check(status, errptr)) return nullptr;
  auto handle = std::make_unique<spillway_t>();
  handle->db.reset(db);
  return handle.release();
}

void spillway_close(spillway_t* db, char** errptr) {
  const std::unique_ptr<spillway_t> owned(db);
  check(db->db->Close(), errptr);
}

void spillway_put(spillway_t* db, unsigned flags, const char* key, size_t keylen, const char* val, size_t vallen,
                  char** errptr) {
  const auto options = spillway::spill::write_options(flags);
  check(db->db->Put(options, rocksdb::Slice(key, keylen), rocksdb::Slice(val, vallen)), errptr);
}

void spillway_delete(spillway_t* db, unsigned flags, const char* key, size_t keylen, char** errptr) {
  check(db->db->Delete(spillway::spill::write_options(flags), rocksdb::Slice(key, keylen)), errptr);
}

void spillway_write(spillway_t* db, unsigned flags, const char* batch, size_t batchlen, char** errptr) {
  constexpr std::size_t kHeaderBytes = 12;  // RocksDB takes a shorter one for a defect of its own
  if (batchlen < kHeaderBytes) {
    check(rocksdb::Status::InvalidArgument("not a batch: it is shorter than the header of one"), errptr);
    return;
  }
  rocksdb::WriteBatch copy(std::string(batch, batchlen));
  check(db->db->Write(spillway::spill::write_options(flags), &copy), errptr);
}

char* spillway_get(spillway_t* db, const char* key, size_t keylen, size_t* vallen, char** errptr) {
  std::string value;
  const rocksdb::Status status = db->db->Get(rocksdb::ReadOptions(), rocksdb::Slice(key, keylen), &value);
  *vallen = 0;
  if (status.IsNotFound() || !check(status, errptr)) return nullptr;
  *vallen = value.size();
  return spillway::spill::copy_of(value);
}

void spillway_rollback(spillway_t* db, char** errptr) { check(db->db->Rollback(), errptr); }

void spillway_set_diversion(spillway_t* db, int diversion, char** errptr) {
  switch (diversion) {
    case SPILLWAY_DIVERSION_AUTOMATIC:
      return db->db->SetDiversion(spillway::Diversion::automatic);
    case SPILLWAY_DIVERSION_ALWAYS:
      return db->db->SetDiversion(spillway::Diversion::always);
    case SPILLWAY_DIVERSION_NEVER:
      return db->db->SetDiversion(spillway::Diversion::never);
    default:
      check(rocksdb::Status::InvalidArgument("no diversion has the number " + std::to_string(diversion)), errptr);
  }
}

int spillway_wait(spillway_t* db, uint64_t timeout_ms) {
  constexpr std::chrono::milliseconds kBetween{5};
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const spillway::SpillStatistics now = db->db->GetSpillStatistics();
    if (!now.diverting && now.live_entries == 0) return 1;
    const std::chrono::duration<double, std::milli> waited = std::chrono::steady_clock::now() - begin;
    if (waited.count() >= static_cast<double>(timeout_ms)) return 0;
    std::this_thread::sleep_for(kBetween);
  }
}

char* spillway_property_value(spillway_t* db, const char* propname) {
  std::string value;
  return db->db->GetProperty(propname, &value) ? spillway::spill::copy_of(value) : nullptr;
}

int spillway_property_int(spillway_t* db, const char* propname, uint64_t* out_val) {
  return db->db->GetIntProperty(propname, out_val) ? 0 : -1;
}

void spillway_free(void* ptr) { std::free(ptr); }
