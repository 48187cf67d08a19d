#include "tool/run/ycsb_request.h"

#include <limits>

#include "tool/protocol/fields.h"

namespace spillway::tool {
namespace {

using load::ycsb::Length;
using load::ycsb::Properties;

constexpr std::uint64_t kMostCount = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostSize = std::numeric_limits<std::uint32_t>::max();
constexpr double kMostTime = 365.0 * 86400;
constexpr double kMostFraction = 1e9;

Length read_length(Fields& fields, const std::string& path, const std::string& key, Length fallback, bool constant_too,
                   Status& problem) {
  std::vector<std::string> words = {"uniform", "zipfian"};
  if (constant_too) words.insert(words.begin(), "constant");
  const std::size_t first = constant_too ? 0 : 1;
  const auto at = choice(fields, path, key, words, static_cast<std::size_t>(fallback) - first, problem);
  return static_cast<Length>(at + first);
}

void read_records(Fields& fields, const std::string& path, Properties& p, Status& problem) {
  const auto size = [&](const char* key, std::uint32_t fallback) {
    return static_cast<std::uint32_t>(fields.whole(key, fallback, 0, kMostSize));
  };
  p.recordcount = fields.whole("recordcount", p.recordcount, 0, kMostCount);
  p.fieldcount = size("fieldcount", p.fieldcount);
  p.fieldlength = size("fieldlength", p.fieldlength);
  p.minfieldlength = size("minfieldlength", p.minfieldlength);
  p.fieldlengthdistribution =
      read_length(fields, path, "fieldlengthdistribution", p.fieldlengthdistribution, true, problem);
  p.insertorder =
      static_cast<load::ycsb::InsertOrder>(choice(fields, path, "insertorder", {"hashed", "ordered"}, 0, problem));
  p.zeropadding = size("zeropadding", p.zeropadding);
  p.keyprefix = fields.text("keyprefix", p.keyprefix);
  p.fieldnameprefix = fields.text("fieldnameprefix", p.fieldnameprefix);
  p.layout = static_cast<load::ycsb::Layout>(choice(fields, path, "spillway.layout", {"values", "named"}, 0, problem));
}

void read_operations(Fields& fields, const std::string& path, Properties& p, Status& problem) {
  p.operationcount = fields.whole("operationcount", p.operationcount, 0, kMostCount);
  p.maxexecutiontime = fields.number("maxexecutiontime", p.maxexecutiontime, 0, kMostTime);
  p.insertstart = fields.whole("insertstart", p.insertstart, 0, kMostCount);
  p.insertcount = fields.optional_whole("insertcount", 0, kMostCount);
  p.readproportion = fields.number("readproportion", p.readproportion, 0, 1);
  p.updateproportion = fields.number("updateproportion", p.updateproportion, 0, 1);
  p.insertproportion = fields.number("insertproportion", p.insertproportion, 0, 1);
  p.scanproportion = fields.number("scanproportion", p.scanproportion, 0, 1);
  p.readmodifywriteproportion = fields.number("readmodifywriteproportion", p.readmodifywriteproportion, 0, 1);
  p.requestdistribution = static_cast<load::ycsb::Request>(
      choice(fields, path, "requestdistribution",
             {"uniform", "zipfian", "latest", "hotspot", "exponential", "sequential"}, 0, problem));
  p.zipfian_const = fields.number("zipfian_const", p.zipfian_const, 0, 1);
  p.hotspotdatafraction = fields.number("hotspotdatafraction", p.hotspotdatafraction, 0, 1);
  p.hotspotopnfraction = fields.number("hotspotopnfraction", p.hotspotopnfraction, 0, 1);
  p.exponential_percentile = fields.number("exponential.percentile", p.exponential_percentile, 0, 100);
  p.exponential_frac = fields.number("exponential.frac", p.exponential_frac, 0, kMostFraction);
  p.minscanlength = fields.whole("minscanlength", p.minscanlength, 0, kMostCount);
  p.maxscanlength = fields.whole("maxscanlength", p.maxscanlength, 0, kMostCount);
  p.scanlengthdistribution =
      read_length(fields, path, "scanlengthdistribution", p.scanlengthdistribution, false, problem);
  p.writeallfields = fields.flag("writeallfields", p.writeallfields);
  p.update =
      static_cast<load::ycsb::Update>(choice(fields, path, "spillway.update", {"merge", "overwrite"}, 0, problem));
}

}  // namespace

Result<Properties> read_ycsb(const Json& json, const std::string& path) {
  Fields fields(json, path);
  Properties properties;
  Status problem;
  read_records(fields, path, properties, problem);
  read_operations(fields, path, properties, problem);
  if (Status status = fields.finish(); !status) return status;
  if (!problem) return problem;
  return properties;
}

}  // namespace spillway::tool
