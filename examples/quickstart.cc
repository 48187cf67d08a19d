// A RocksDB that does not stall, on any drive: quickstart DIRECTORY
#include <spillway/db.h>

#include <cstdio>
#include <memory>
#include <string>

struct Watcher : spillway::SpillListener {
  void on_spill_event(const spillway::SpillEvent& event) override { std::puts(spillway::name_of(event.kind)); }
};

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: quickstart DIRECTORY\n", stderr), 2;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 10;  // so small that it stalls at once
  spillway::SpillOptions spill;
  spill.listeners.push_back(std::make_shared<Watcher>());

  spillway::DB* opened = nullptr;
  rocksdb::Status status = spillway::DB::Open(options, spill, argv[1], &opened);
  const std::unique_ptr<spillway::DB> db(opened);
  for (int i = 0; i < 20000 && status.ok(); ++i) {
    status = db->Put(rocksdb::WriteOptions(), "key" + std::to_string(i % 5000), std::string(1000, 'a' + i % 26));
  }
  std::string value, diverted;
  if (status.ok()) status = db->Get(rocksdb::ReadOptions(), "key4999", &value);  // wherever it lies
  if (status.ok()) status = db->Rollback();                                      // all of it into RocksDB
  if (db && db->GetProperty("spillway.diverted-writes", &diverted)) std::printf("%s diverted\n", diverted.c_str());
  return status.ok() ? 0 : (std::fprintf(stderr, "%s\n", status.ToString().c_str()), 1);
}
