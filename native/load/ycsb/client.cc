#include "load/ycsb/client.h"

#include <algorithm>

namespace spillway::load::ycsb {
namespace {

// A seed for one of the choices that a thread draws.
std::uint64_t seed_of(std::uint64_t seed, std::uint64_t use) { return ssd::mix(seed ^ ssd::mix(use)); }

}  // namespace

Loader::Loader(engine::Engine& engine, const PhaseContext& context, const Requester& requester, std::uint64_t seed)
    : engine_(engine),
      names_(context.properties),
      values_(context.properties, context.values, seed_of(seed, 0)),
      next_record_(context.properties.insertstart + requester.thread),
      stride_(requester.threads) {}

Result<Outcome> Loader::execute() {
  const std::string_view key = names_.key(next_record_);
  const std::string_view value = values_.whole();
  if (Status status = engine_.put(key, value); !status) return status;
  next_record_ += stride_;
  Outcome outcome;
  outcome.is_write = true;
  outcome.kind = static_cast<std::uint8_t>(Kind::insert);
  outcome.user_bytes_written = key.size() + value.size();
  return outcome;
}

Transactions::Transactions(engine::Engine& engine, const PhaseContext& context, const Requester& requester,
                           std::uint64_t seed)
    : engine_(engine),
      properties_(context.properties),
      inserted_(context.inserted),
      names_(context.properties),
      values_(context.properties, context.values, seed_of(seed, 0)),
      kinds_(context.properties),
      records_(context.properties, requester),
      scan_lengths_(properties_.scanlengthdistribution, properties_.minscanlength,
                    std::max(properties_.minscanlength, properties_.maxscanlength)),
      mean_value_bytes_(mean_value_bytes(properties_)),
      kind_random_(seed_of(seed, 1)),
      record_random_(seed_of(seed, 2)),
      field_random_(seed_of(seed, 3)),
      scan_random_(seed_of(seed, 4)) {}

Result<Outcome> Transactions::execute() {
  const Kind kind = kinds_.next(kind_random_);
  Result<Outcome> outcome = [&] {
    switch (kind) {
      case Kind::update:
        return update();
      case Kind::insert:
        return insert();
      case Kind::scan:
        return scan();
      case Kind::readmodifywrite:
        return readmodifywrite();
      case Kind::read:
        break;
    }
    return read();
  }();
  if (outcome) {
    outcome->kind = static_cast<std::uint8_t>(kind);
    outcome->is_write = kind != Kind::read && kind != Kind::scan;
  }
  return outcome;
}

Result<Outcome> Transactions::read() {
  Outcome outcome;
  const Result<bool> found = get(choose_key(), outcome);
  if (!found) return found.status();
  return outcome;
}

Result<Outcome> Transactions::update() {
  Outcome outcome;
  if (Status status = apply_update(choose_key(), outcome); !status) return status;
  return outcome;
}

Result<Outcome> Transactions::insert() {
  const std::uint64_t record = inserted_.take();
  Outcome outcome;
  if (Status status = write(names_.key(record), values_.whole(), outcome); !status) return status;
  inserted_.acknowledge(record);
  return outcome;
}

Result<Outcome> Transactions::scan() {
  const std::string_view key = choose_key();
  const Result<std::uint64_t> seen = engine_.scan(key, scan_lengths_.next(scan_random_) - 1);
  if (!seen) return seen.status();
  Outcome outcome;
  outcome.pairs_read = seen.value();
  outcome.not_found = outcome.pairs_read == 0;
  // The engine counts pairs, not their bytes. Each pair counts as the first key's size plus the mean value size.
  outcome.user_bytes_read = static_cast<std::uint64_t>(static_cast<double>(outcome.pairs_read) *
                                                       (static_cast<double>(key.size()) + mean_value_bytes_));
  return outcome;
}

Result<Outcome> Transactions::readmodifywrite() {
  Outcome outcome;
  const std::string_view key = choose_key();
  const Result<bool> found = get(key, outcome);
  if (!found) return found.status();
  if (Status status = apply_update(key, outcome); !status) return status;
  return outcome;
}

std::string_view Transactions::choose_key() { return names_.key(records_.next(record_random_, inserted_.last())); }

Result<bool> Transactions::get(std::string_view key, Outcome& outcome) {
  Result<bool> found = engine_.get(key, &record_);
  if (!found) return found;
  if (found.value()) {
    ++outcome.pairs_read;
    outcome.user_bytes_read += key.size() + record_.size();
  } else {
    outcome.not_found = true;
  }
  return found;
}

Status Transactions::write(std::string_view key, std::string_view value, Outcome& outcome) {
  outcome.user_bytes_written = key.size() + value.size();
  return engine_.put(key, value);
}

Status Transactions::apply_update(std::string_view key, Outcome& outcome) {
  if (properties_.update == Update::overwrite) return write(key, values_.whole(), outcome);
  // This read of the old record is part of the store's update, not a read of the user. Figures of reads do not include
  // it.
  const Result<bool> found = engine_.get(key, &record_);
  if (!found) return found.status();
  if (!found.value()) {
    outcome.not_found = true;
    return Status::ok();
  }
  if (properties_.writeallfields) return write(key, values_.whole(), outcome);
  values_.replace_field(record_, static_cast<std::uint32_t>(field_random_.below(properties_.fieldcount)));
  return write(key, record_, outcome);
}

}  // namespace spillway::load::ycsb
