#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include "spill/main_db/binding.h"
#include "spill/store/region/region_view.h"
#include "tool/spill/commands.h"
#include "tool/spill/place.h"

namespace spillway::tool {
namespace {

using spill::BindingRecord;
using spill::RegionView;

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json shown(const std::optional<BindingRecord>& record) {
  if (!record) return nullptr;
  return {{"id", record->id},
          {"database", record->database},
          {"opening", record->confirmed.number},
          {"pending_opening", record->pending == record->confirmed ? Json(nullptr) : Json(record->pending.number)},
          {"released", record->is_released}};
}

Json shown(const std::optional<spill::Guard>& guard) {
  if (!guard) return nullptr;
  return {{"id", guard->id}, {"opening", guard->opening.number}, {"location", guard->location}};
}

Json shown(const spill::BrokenAt& at) { return {{"file", at.path}, {"offset", at.offset}}; }

struct Sums {
  std::uint64_t records = 0;
  std::map<std::uint32_t, spill::FamilyView> families;

  void add(const spill::LogView& log) {
    records += log.records;
    for (const auto& [id, family] : log.families) {
      families[id].operations += family.operations;
      families[id].bytes += family.bytes;
    }
  }
  spill::FamilyView all() const {
    spill::FamilyView all;
    for (const auto& [id, family] : families) {
      all.operations += family.operations;
      all.bytes += family.bytes;
    }
    return all;
  }
};

Json shown(const RegionView& view) {
  Sums sums;
  Json generations = Json::array();
  for (const spill::LogView& log : view.logs) {
    Sums of_one;
    of_one.add(log);
    sums.add(log);
    const auto [operations, bytes] = of_one.all();
    generations.push_back({{"generation", log.generation},
                           {"file", log.path},
                           {"file_bytes", log.file_bytes},
                           {"records", log.records},
                           {"operations", operations},
                           {"bytes", bytes}});
  }
  Json families = Json::array();
  for (const auto& [id, family] : sums.families) {
    families.push_back({{"id", id}, {"operations", family.operations}, {"bytes", family.bytes}});
  }
  Json damage = Json::array();
  for (const spill::BrokenAt& at : view.damage) damage.push_back(shown(at));
  const auto [operations, bytes] = sums.all();
  return {{"records", sums.records},
          {"operations", operations},
          {"bytes", bytes},
          {"generations", generations},
          {"families", families},
          {"damage", damage},
          {"ends_at", view.ends_at ? shown(*view.ends_at) : Json(nullptr)}};
}

// Why the database cannot be opened with the spill store; empty if it can. None if the database is unknown.
std::optional<std::string> why_not(const SpillPlace& place, const RegionView& view, std::uint64_t operations) {
  if (place.database.empty()) return std::nullopt;
  spill::Pairing pairing;
  pairing.database = place.database;
  pairing.identity = spill::identity_of(*rocksdb::Env::Default(), place.database);
  pairing.location = place.directory;
  pairing.guard = place.guard;
  pairing.record = view.binding;
  pairing.has_writes = operations > 0;
  return status_of(check_pairing(pairing)).message();
}

}  // namespace

Status spill_show(const Json& request, Events& events, const std::atomic<bool>& /*stop*/) {
  Fields fields(request, "");
  const auto place = read_spill_place(fields);
  if (!place) return place.status();
  if (Status status = check_is_of_files(place.value()); !status) return status;
  events.started("spill-show", nullptr);
  RegionView view;
  if (place.value().has_directory) {
    const auto files = rocksdb::FileSystem::Default();
    if (const auto status = view_region(*files, place.value().directory, &view); !status.ok()) return status_of(status);
  }
  const bool in_use = is_locked(place.value().directory + "/LOCK");
  Json result = {{"database", or_null(place.value().database)},
                 {"spill", place.value().directory},
                 {"exists", place.value().has_directory},
                 {"in_use", in_use},
                 {"binding", shown(view.binding)},
                 {"guard", shown(place.value().guard)}};
  const Json contents = shown(view);
  const auto why = in_use ? std::nullopt : why_not(place.value(), view, contents["operations"]);
  result["fits"] = why ? Json(why->empty()) : Json(nullptr);
  result["why_not"] = why ? or_null(*why) : Json(nullptr);
  result.update(contents);
  events.result(std::move(result), true);
  return {};
}

}  // namespace spillway::tool
