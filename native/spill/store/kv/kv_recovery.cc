#include "spill/store/kv/kv_recovery.h"

#include <algorithm>
#include <utility>

#include "base/steps.h"

namespace spillway::spill {

using rocksdb::Status;

namespace {

class Recovery {
 public:
  Recovery(const KvCommands& commands, KvStaging& staging, KvGenerations& generations, KvEnds& ends,
           Assembler& assembler)
      : commands_(commands), staging_(staging), generations_(generations), ends_(ends), assembler_(assembler) {}

  Status run() {
    Status status = read_pairs();
    if (status.ok()) status = check_durable(/*with_staged=*/true);  // before anything is changed
    if (status.ok()) status = take_staged();
    if (status.ok()) status = check_durable(/*with_staged=*/false);
    if (status.ok()) status = staging_.clear();
    if (status.ok()) staging_.durable().replace(ends_.last_records());
    return status;
  }

 private:
  Status read_pairs() {
    Status taken;
    const Status read =
        commands_.scan({{generations_.dropped() + 1, 0}, {}}, [&](Position position, std::string_view bytes) {
          add_pair(position);
          const bool continues = assembler_.take(position, bytes, &taken);
          is_gap_ = is_gap_ || !continues;
          return continues;
        });
    return read.ok() ? taken : read;
  }

  // What the drive had answered for is there, whatever has ended the process.
  // `with_staged`: what is whole in staging is taken for found.
  Status check_durable(bool with_staged) const {
    KvDurable::Last staged;
    if (with_staged) {
      for (const KvStaging::Left& one : staging_.left()) {
        std::uint64_t& end = staged[one.position.generation];
        end = std::max(end, one.position.offset + one.bytes.size());
      }
    }
    const KvDurable::Last last = ends_.last_records();
    for (const auto& [generation, offset] : staging_.durable().read()) {
      if (const auto found = staged.find(generation); found != staged.end() && found->second > offset) continue;
      if (generation <= generations_.dropped()) continue;
      const auto found = last.find(generation);
      if (found != last.end() && found->second >= offset) continue;
      const Position end = assembler_.end();
      return damaged_at({generation, end.generation == generation ? end.offset : 0});
    }
    return {};
  }

  // What a killed process had in memory and the drive does not have: it follows what the drive has.
  Status take_staged() {
    const GenerationId dropped = generations_.dropped();
    for (const KvStaging::Left& one : staging_.left()) {
      if (one.position.generation <= dropped || !assembler_.wants(one.position)) continue;
      const bool follows = one.follows.generation <= dropped || one.follows == assembler_.end();
      if (!assembler_.is_inside() && !follows) break;  // some before it are lost
      if (std::exchange(is_gap_, false)) {             // what lies behind it may have been cut into pairs otherwise
        if (Status status = commands_.reset({one.position, {}}); !status.ok()) return status;
      }
      if (Status status = commands_.store(one.position, one.bytes); !status.ok()) return status;
      steps::reached("spill.kv.recover.stored");
      add_pair(one.position);
      Status status;
      if (!assembler_.take(one.position, one.bytes, &status)) return status;
    }
    return {};
  }

  void add_pair(Position position) {
    generations_.add_found(position.generation);
    ends_.add_pair(position);
  }

  const KvCommands& commands_;
  KvStaging& staging_;
  KvGenerations& generations_;
  KvEnds& ends_;
  Assembler& assembler_;
  bool is_gap_ = false;  // pairs lie behind the last that follows the one before it
};

}  // namespace

Status recover_pairs(const KvCommands& commands, std::uint32_t pair_bytes, KvStaging& staging,
                     KvGenerations& generations, KvEnds& ends, const Store::Each& each, Position* end) {
  if (Status status = generations.recover(); !status.ok()) return status;
  const Store::Each keep_and_hand_over = [&](const StoredRecord& record) {
    ends.add_record({record.generation, record.offset});
    return each(record);
  };
  Assembler assembler(keep_and_hand_over, pair_bytes);
  const Status status = Recovery(commands, staging, generations, ends, assembler).run();
  *end = assembler.end();
  return status;
}

}  // namespace spillway::spill
