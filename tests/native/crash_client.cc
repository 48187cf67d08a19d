#include "crash_client.h"

#include <rocksdb/metadata.h>
#include <rocksdb/utilities/checkpoint.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/steps.h"
#include "crash_spill.h"
#include "spill/compat/db_out.h"

namespace spillway::crash {

namespace {

using rocksdb::Status;

constexpr int kImportedKeys = 5;
// How far the other database's sequence number exceeds this one's.
constexpr std::uint64_t kAhead = 300;

std::string key_of_imported(int i) { return "key" + std::to_string(i); }

std::string failed(const char* what, const Status& status) { return std::string(what) + ": " + status.ToString(); }

void remove_directory(rocksdb::Env* env, const std::string& directory) {
  std::vector<std::string> names;
  if (!env->GetChildren(directory, &names).ok()) return;
  for (const std::string& name : names) env->DeleteFile(directory + "/" + name).PermitUncheckedError();
  env->DeleteDir(directory).PermitUncheckedError();
}

Status export_to(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family, const std::string& to,
                 std::unique_ptr<rocksdb::ExportImportFilesMetaData>* metadata) {
  rocksdb::Checkpoint* made = nullptr;
  Status status = rocksdb::Checkpoint::Create(&db, &made);
  if (!status.ok()) return status;
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  rocksdb::ExportImportFilesMetaData* found = nullptr;
  status = checkpoint->ExportColumnFamily(family, to, &found);
  metadata->reset(found);
  return status;
}

// A process that was killed during an import has left none.
int count_imported(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family) {
  int there = 0;
  for (int i = 0; i < kImportedKeys; ++i) {
    std::string value;
    there += db.Get({}, family, key_of_imported(i), &value).ok() ? 1 : 0;
  }
  return there;
}

// Writes until the sequence number exceeds `sequence`, and exports the family.
Status export_beyond(Scene& scene, std::uint64_t sequence, const std::string& to,
                     std::unique_ptr<rocksdb::ExportImportFilesMetaData>* metadata) {
  rocksdb::DB* opened = nullptr;
  Status status = rocksdb::DB::Open(small_options(scene.env), scene.root + "/source", spill::DbOut(&opened));
  if (!status.ok()) return status;
  const std::unique_ptr<rocksdb::DB> source(opened);
  rocksdb::WriteBatch batch;
  for (int i = 0; i < kImportedKeys && status.ok(); ++i) status = batch.Put(key_of_imported(i), "imported");
  for (std::uint64_t at = source->GetLatestSequenceNumber(); at < sequence && status.ok(); ++at) {
    status = batch.Put("filler", "");
  }
  if (status.ok()) status = source->Write({}, &batch);
  return status.ok() ? export_to(*source, source->DefaultColumnFamily(), to, metadata) : status;
}

// The files of an export, for a message: level, name, range and sequence numbers of each.
std::string in_words(const rocksdb::ExportImportFilesMetaData& metadata) {
  std::string words;
  for (const rocksdb::LiveFileMetaData& file : metadata.files) {
    words += " L" + std::to_string(file.level) + " " + file.name + " [" + file.smallestkey + " to " + file.largestkey +
             "] " + std::to_string(file.smallest_seqno) + " to " + std::to_string(file.largest_seqno) + ";";
  }
  return words;
}

// Exports that family and imports the export into another database, whose contents must include the newest write.
std::string export_own(Scene& scene, rocksdb::ColumnFamilyHandle* family) {
  const std::string directory = scene.root + "/exported-own";
  const std::string importer = scene.root + "/importer";
  remove_directory(scene.env, directory);
  remove_directory(scene.env, directory + ".tmp");  // left by an export during which the process was killed
  rocksdb::DestroyDB(importer, small_options(scene.env)).PermitUncheckedError();
  const std::string newest = std::to_string(scene.random());
  // Two keys: of tables with a single one RocksDB itself confuses the versions (docs/decisions/0014, 4).
  rocksdb::WriteBatch batch;
  Status status = batch.Put(family, "newest", newest);
  if (status.ok()) status = batch.Put(family, "newest too", newest);
  if (status.ok()) status = scene.store.db->Write({}, &batch);
  std::unique_ptr<rocksdb::ExportImportFilesMetaData> metadata;
  if (status.ok()) status = export_to(*scene.store.db, family, directory, &metadata);
  steps::reached("test.client.exported");
  rocksdb::DB* opened = nullptr;
  if (status.ok()) status = rocksdb::DB::Open(small_options(scene.env), importer, spill::DbOut(&opened));
  const std::unique_ptr<rocksdb::DB> imports(opened);
  rocksdb::ColumnFamilyHandle* taken = nullptr;
  if (status.ok()) {
    status = imports->CreateColumnFamilyWithImport(small_options(scene.env), "taken", {}, *metadata, &taken);
  }
  if (!status.ok()) {
    return failed("cannot export its own family", status) + (metadata ? "; files:" + in_words(*metadata) : "");
  }
  std::string found;
  status = imports->Get({}, taken, "newest", &found);
  const int there = count_imported(*imports, taken);
  const int in_it = count_imported(*scene.store.db, family);
  imports->DestroyColumnFamilyHandle(taken).PermitUncheckedError();
  if (!status.ok() || found != newest) {
    std::string here;
    const Status read = scene.store.db->Get({}, family, "newest", &here);
    return "an export has not the newest write but " + (status.ok() ? found : status.ToString()) +
           "; the database has " +
           (!read.ok()       ? read.ToString()
            : here == newest ? "it"
                             : here) +
           "; files:" + in_words(*metadata);
  }
  if (there != in_it) return "an export has " + std::to_string(there) + " keys of " + std::to_string(in_it);
  return {};
}

std::string drop(Scene& scene, std::size_t index) {
  rocksdb::ColumnFamilyHandle* const handle = scene.store.imported[index];
  scene.store.imported.erase(scene.store.imported.begin() + static_cast<std::ptrdiff_t>(index));
  Status status = scene.store.db->DropColumnFamily(handle);
  if (status.ok()) status = scene.store.db->DestroyColumnFamilyHandle(handle);
  steps::reached("test.client.dropped");
  return status.ok() ? "" : failed("cannot drop an imported family", status);
}

}  // namespace

std::string take_checkpoint(Scene& scene) {
  return scene.judge_copy(
      [](rocksdb::DB& db, const std::string& directory) { return dynamic_cast<DB&>(db).CreateCheckpoint(directory); });
}

std::string import_family(Scene& scene) {
  const std::string directory = scene.root + "/exported";
  remove_directory(scene.env, directory);
  remove_directory(scene.env, directory + ".tmp");  // left by an export during which the process was killed
  std::unique_ptr<rocksdb::ExportImportFilesMetaData> metadata;
  rocksdb::DB& db = *scene.store.db;
  Status status = export_beyond(scene, db.GetLatestSequenceNumber() + kAhead, directory, &metadata);
  if (!status.ok()) return failed("cannot export", status);
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  status = db.CreateColumnFamilyWithImport(small_options(scene.env), kImported + std::to_string(scene.random()), {},
                                           *metadata, &handle);
  if (!status.ok()) return failed("cannot import", status);
  scene.store.imported.push_back(handle);
  steps::reached("test.client.imported");
  if (scene.random() % 2 == 0) {
    status = db.CompactRange({}, handle, nullptr, nullptr);  // may remove the sequence numbers from its tables
    if (!status.ok()) return failed("cannot compact", status);
  }
  if (scene.random() % 2 == 0) {
    const std::string failure = export_own(scene, scene.store.imported[scene.random() % scene.store.imported.size()]);
    if (!failure.empty()) return failure;
  }
  if (scene.random() % 2 == 0) return drop(scene, scene.random() % scene.store.imported.size());
  return {};
}

// RocksDB creates the family before it takes the files in, so a process that is killed in between leaves it empty.
std::string check_imported(Opened& store) {
  for (rocksdb::ColumnFamilyHandle* handle : store.imported) {
    int there = 0;
    for (int i = 0; i < kImportedKeys; ++i) {
      std::string value;
      const Status status = store.db->Get({}, handle, key_of_imported(i), &value);
      if (status.ok() && value == "imported") {
        ++there;
      } else if (!status.IsNotFound()) {
        return handle->GetName() + " has " + (status.ok() ? value : status.ToString()) + " at " + key_of_imported(i);
      }
    }
    if (there != 0 && there != kImportedKeys) return handle->GetName() + " has " + std::to_string(there) + " keys";
  }
  return {};
}

namespace {

// The opening was refused, or the database that it opened is complete.
std::string judge_opening(const char* who, const Status& status, Opened& store, const Judge& judge) {
  if (!status.ok()) return {};
  const std::string failure = judge(store);
  close(store);
  return failure.empty() ? failure : std::string(who) + " opened it, and " + failure;
}

}  // namespace

std::string open_as_plain_rocksdb(const std::string& root, rocksdb::Env* env, const Judge& judge) {
  Opened store;
  const Status status = open_rocksdb(root, env, &store);
  return judge_opening("plain RocksDB", status, store, judge);
}

std::string open_with_another_path(const std::string& root, rocksdb::Env* env, const Judge& judge) {
  SpillOptions spill = small_spill();
  spill.path = root + "/elsewhere";
  Opened store;
  const Status status = open_spillway(spill)(root, env, &store);
  return judge_opening("spillway::DB with another path", status, store, judge);
}

std::string open_another_database_with_the_path(const std::string& root, rocksdb::Env* env, const Judge&) {
  SpillOptions spill = small_spill();
  spill.path = root + "/db/spill";
  if (!env->FileExists(spill.path).ok()) return {};  // the database does not exist yet
  env->CreateDirIfMissing(root + "/wrong").PermitUncheckedError();
  Opened store;
  if (!open_spillway(spill)(root + "/wrong", env, &store).ok()) return {};
  std::string found;
  for (rocksdb::ColumnFamilyHandle* handle : store.families) {
    const std::unique_ptr<rocksdb::Iterator> iterator(store.db->NewIterator({}, handle));
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) found = iterator->key().ToString();
  }
  close(store);
  return found.empty() ? found : "another database that was given the path has " + found;
}

}  // namespace spillway::crash
