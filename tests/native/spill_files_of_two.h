// Files that enter both databases as a whole: ingested ones, and imported column families.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/metadata.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/utilities/checkpoint.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "spill/compat/db_out.h"
#include "spill_two_databases.h"

namespace spillway::clients {

// A table with these values; no value is a deletion.
struct TableContents {
  struct Order {
    const rocksdb::Comparator* comparator;
    bool operator()(const std::string& a, const std::string& b) const { return comparator->Compare(a, b) < 0; }
  };
  using Rows = std::map<std::string, std::optional<std::string>, Order>;

  static std::string write(const rocksdb::Options& options, const Rows& rows, const std::string& path) {
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
    EXPECT_TRUE(writer.Open(path).ok());
    for (const auto& [key, value] : rows) {
      const rocksdb::Status status = value ? writer.Put(key, *value) : writer.Delete(key);
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    const rocksdb::Status status = writer.Finish();
    EXPECT_TRUE(status.ok()) << status.ToString();
    return path;
  }
};

// Exports one database's family, as files that the other can import.
inline std::unique_ptr<rocksdb::ExportImportFilesMetaData> export_family(rocksdb::DB& db,
                                                                         rocksdb::ColumnFamilyHandle* family,
                                                                         const std::string& directory) {
  rocksdb::Checkpoint* made = nullptr;
  EXPECT_TRUE(rocksdb::Checkpoint::Create(&db, &made).ok());
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  rocksdb::ExportImportFilesMetaData* exported = nullptr;
  const rocksdb::Status status = checkpoint->ExportColumnFamily(family, directory, &exported);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return std::unique_ptr<rocksdb::ExportImportFilesMetaData>(exported);
}

// Exports from a new database, in which a key was overwritten that often before. Two tables of L0, which are soon
// compacted after the import.
inline std::unique_ptr<rocksdb::ExportImportFilesMetaData> export_new(rocksdb::Options options,
                                                                      const TableContents::Rows& rows,
                                                                      std::uint64_t writes_before,
                                                                      const std::string& source,
                                                                      const std::string& directory) {
  options.create_if_missing = true;
  options.disable_auto_compactions = true;
  rocksdb::DB* made = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, source, spill::DbOut(&made));
  EXPECT_TRUE(status.ok()) << status.ToString();
  const std::unique_ptr<rocksdb::DB> db(made);
  rocksdb::WriteBatch batch;
  for (std::uint64_t i = 0; i <= writes_before; ++i) batch.Put(rows.begin()->first, "before");
  EXPECT_TRUE(db->Write({}, &batch).ok());
  EXPECT_TRUE(db->Flush({}).ok());
  batch.Clear();
  for (const auto& [key, value] : rows) value ? batch.Put(key, *value) : batch.Delete(key);
  EXPECT_TRUE(db->Write({}, &batch).ok());
  return export_family(*db, db->DefaultColumnFamily(), directory);
}

inline void expect_same_contents(rocksdb::DB& plain, rocksdb::ColumnFamilyHandle* plain_family, rocksdb::DB& spill,
                                 rocksdb::ColumnFamilyHandle* spill_family) {
  rocksdb::ReadOptions all;
  all.total_order_seek = true;  // in prefix mode RocksDB does not define which key is first
  const std::unique_ptr<rocksdb::Iterator> expected(plain.NewIterator(all, plain_family));
  const std::unique_ptr<rocksdb::Iterator> found(spill.NewIterator(all, spill_family));
  found->SeekToFirst();
  for (expected->SeekToFirst(); expected->Valid(); expected->Next(), found->Next()) {
    ASSERT_TRUE(found->Valid()) << "without " << expected->key().ToString(true);
    ASSERT_EQ(expected->key().ToString(true), found->key().ToString(true));
    ASSERT_EQ(expected->value(), found->value()) << "of " << expected->key().ToString(true);
  }
  EXPECT_FALSE(found->Valid());
  EXPECT_TRUE(found->status().ok()) << found->status().ToString();
}

// Exports a family of both databases and imports both exports into one new database.
inline void expect_same_exports(const rocksdb::ColumnFamilyOptions& options, const Both<rocksdb::DB*>& databases,
                                const Both<rocksdb::ColumnFamilyHandle*>& families, const Both<std::string>& to,
                                const std::string& made) {
  rocksdb::Options fresh({}, options);
  fresh.create_if_missing = true;
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(fresh, made, spill::DbOut(&opened)).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  Both<rocksdb::ColumnFamilyHandle*> taken{};
  for (const std::size_t side : {0U, 1U}) {
    const auto files = export_family(*databases[side], families[side], to[side]);
    ASSERT_NE(files, nullptr);
    const std::string name = "of " + std::to_string(side);
    const rocksdb::Status status =
        files->files.empty() ? db->CreateColumnFamily(options, name, &taken[side])  // RocksDB imports no empty family
                             : db->CreateColumnFamilyWithImport(options, name, {}, *files, &taken[side]);
    ASSERT_TRUE(status.ok()) << (side == 0 ? "plain: " : "ours: ") << status.ToString();
  }
  expect_same_contents(*db, taken[0], *db, taken[1]);
  for (rocksdb::ColumnFamilyHandle* handle : taken) EXPECT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
}

}  // namespace spillway::clients
