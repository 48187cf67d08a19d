// The properties of a YCSB workload, with the names and defaults of YCSB's CoreWorkload.
//
// Source: YCSB's core properties (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010, and
// CoreWorkload in brianfrankcooper/YCSB). `zipfian_const` is YCSB-cpp's, `keyprefix` go-ycsb's. The two properties
// under `spillway.` are defined here, for choices that differ between YCSB's bindings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::load::ycsb {

enum class Request : std::uint8_t { uniform, zipfian, latest, hotspot, exponential, sequential };
enum class Length : std::uint8_t { constant, uniform, zipfian };
enum class InsertOrder : std::uint8_t { hashed, ordered };
// How an update changes part of a record. `merge`: get it, replace the fields, put it back, as the bindings of RocksDB
// and LevelDB do, also if all fields are written; an absent record stays absent. `overwrite`: put a new record without
// reading the old one.
enum class Update : std::uint8_t { merge, overwrite };
// How fields make a value. `values`: one after another, fieldcount x fieldlength bytes. `named`: each field follows its
// length and its name ("field0"), with lengths of four bytes, as the bindings of RocksDB and LevelDB do.
enum class Layout : std::uint8_t { values, named };

inline constexpr double kZipfianConstant = 0.99;  // YCSB's value for every distribution called zipfian or latest

struct Properties {
  // --- The records. All phases of a run agree on these.
  std::uint64_t recordcount = 0;
  std::uint32_t fieldcount = 10;
  std::uint32_t fieldlength = 100;
  std::uint32_t minfieldlength = 1;
  Length fieldlengthdistribution = Length::constant;
  InsertOrder insertorder = InsertOrder::hashed;
  std::uint32_t zeropadding = 1;
  std::string keyprefix = "user";
  std::string fieldnameprefix = "field";
  Layout layout = Layout::values;

  // --- The operations.
  std::uint64_t operationcount = 0;  // over all threads
  double maxexecutiontime = 0;       // seconds after which a run ends; 0: no limit
  std::uint64_t insertstart = 0;
  std::optional<std::uint64_t> insertcount;  // none: the rest of recordcount
  double readproportion = 0.95;
  double updateproportion = 0.05;
  double insertproportion = 0;
  double scanproportion = 0;
  double readmodifywriteproportion = 0;
  Request requestdistribution = Request::uniform;
  double zipfian_const = kZipfianConstant;
  double hotspotdatafraction = 0.2;
  double hotspotopnfraction = 0.8;
  double exponential_percentile = 95;
  double exponential_frac = 0.8571428571;
  std::uint64_t minscanlength = 1;
  std::uint64_t maxscanlength = 1000;
  Length scanlengthdistribution = Length::uniform;
  bool writeallfields = false;
  Update update = Update::merge;

  std::uint64_t inserts_of_load() const { return insertcount.value_or(recordcount - insertstart); }
};

// The first violated relation, as a sentence that begins with `where` and the property and says how to fix it; "" if
// all hold. `loads`: the phase only inserts.
std::string find_problem(const Properties& properties, const std::string& where, bool loads);

// The first property of the records in which two phases differ; "" if there is none.
std::string first_difference_of_records(const Properties& one, const Properties& other);

}  // namespace spillway::load::ycsb
