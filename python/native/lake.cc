#include "native/bindings.h"

#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lake/run.h"
#include "native/arrow_capsule.h"
#include "native/raise.h"
#include "page/index_file.h"
#include "report/describe/facts.h"
#include "report/words.h"
#include "trace/anonymizer.h"

namespace nb = nanobind;

namespace gpumemprof::python {
namespace {

struct RunForPython {
  std::shared_ptr<LakeRun> run;
};

std::string path_of(nb::handle name) {  // a file's name need not be text
  const auto bytes = nb::cast<nb::bytes>(name);
  return {bytes.c_str(), bytes.size()};
}

RunForPython read_run(nb::list names, bool seal, bool anonymize) {
  std::vector<std::string> paths;
  for (nb::handle name : names) paths.push_back(path_of(name));
  PageReading reading{.seal = seal};
  if (anonymize) reading.names = std::make_shared<Anonymizer>();
  return {without_gil(paths.size() == 1 ? paths[0] : "",
                      [&] { return LakeRun::read(paths, reading, {}); })};
}

std::unique_ptr<LakeRows> rows_or_raise(const RunForPython& self, const std::string& table,
                                        size_t memory) {
  auto rows = self.run->rows(table, memory);
  if (!rows) throw nb::key_error(table.c_str());
  return rows;
}

std::vector<ArrowColumn> arrow_columns(const LakeBatch& batch) {
  std::vector<ArrowColumn> columns;
  for (const LakeColumn& column : batch) {
    columns.push_back({.name = column.name,
                       .format = column.is_text ? "u" : "l",
                       .length = column.rows,
                       .nulls = column.unknown,
                       .known = column.known.data(),
                       .values = column.is_text ? static_cast<const void*>(column.offsets.data())
                                                : column.numbers.data(),
                       .texts = column.is_text ? column.texts.data() : nullptr});
  }
  return columns;
}

class LakeTable final : public ArrowTable {
 public:
  LakeTable(std::shared_ptr<LakeRun> run, std::unique_ptr<LakeRows> rows)
      : run_(std::move(run)), rows_(std::move(rows)) {}
  std::vector<ArrowColumn> columns() const override { return arrow_columns(rows_->columns()); }
  ArrowBatch next() override {
    auto batch = std::make_shared<LakeBatch>(rows_->columns());
    rows_->fill(batch.get());
    return {arrow_columns(*batch), batch, static_cast<int64_t>(rows_of(*batch))};
  }

 private:
  std::shared_ptr<LakeRun> run_;  // outlives the rows
  std::unique_ptr<LakeRows> rows_;
};

nb::capsule table_stream(const RunForPython& self, const std::string& table, size_t memory) {
  return arrow_capsule(
      std::make_unique<LakeTable>(self.run, rows_or_raise(self, table, memory)));
}

/// The rows of a table as lists, a batch at a time.
class BatchesForPython {
 public:
  BatchesForPython(std::shared_ptr<LakeRun> run, std::unique_ptr<LakeRows> rows)
      : run_(std::move(run)), rows_(std::move(rows)) {}

  /// A list for each column; an empty list at the end.
  nb::list next() {
    LakeBatch batch = rows_->columns();
    {
      nb::gil_scoped_release release;
      rows_->fill(&batch);
    }
    nb::list columns;
    if (rows_of(batch) == 0) return columns;
    for (const LakeColumn& column : batch) {
      nb::list values;
      for (size_t row = 0; row < static_cast<size_t>(column.rows); ++row) {
        if (!column.is_known(row)) {
          values.append(nb::none());
        } else if (column.is_text) {
          const std::string_view text = column.text(row);
          values.append(nb::str(text.data(), text.size()));
        } else {
          values.append(nb::int_(column.numbers[row]));
        }
      }
      columns.append(values);
    }
    return columns;
  }

 private:
  std::shared_ptr<LakeRun> run_;  // outlives the rows
  std::unique_ptr<LakeRows> rows_;
};

std::string report_of(const RunForPython& self) {
  return without_gil("", [&] { return self.run->report(); });
}

/// (host, PID, start in ticks): together they name a process for good. None of a snapshot.
nb::list processes_of(const RunForPython& self) {
  nb::list out;
  if (self.run->whole().is_snapshot()) return out;
  for (const Process& process : self.run->whole().tables().processes)
    out.append(nb::make_tuple(printable(process.host), process.pid, process.start_ticks));
  return out;
}

/// Where what was made of these files may be kept, and what it depends on: (folder, key), both empty
/// where there is no such place, or the files still grow. `reader` is the file of this code.
nb::tuple cache_place(nb::list names, const std::string& kind, const std::string& reader) {
  std::vector<std::string> paths;
  for (nb::handle name : names) paths.push_back(path_of(name));
  const std::string key = index_key(paths, {}, reader);
  const std::string place = key.empty() ? "" : in_cache(paths, kind);
  return nb::make_tuple(nb::bytes(place.data(), place.size()),
                        nb::bytes(place.empty() ? "" : key.data(), place.empty() ? 0 : key.size()));
}

/// A sentence on what is missing, empty where nothing is, and whether every event is there.
nb::tuple lost_by(const RunForPython& self) {
  const Loss& loss = self.run->whole().analysis().loss;
  return nb::make_tuple(is_complete(loss) ? "" : loss_sentence(loss), loss.has_every_event());
}

}  // namespace

void bind_lake(nb::module_& module) {
  nb::class_<BatchesForPython>(module, "LakeBatches").def("next", &BatchesForPython::next);
  nb::class_<RunForPython>(module, "LakeRun")
      .def("processes", &processes_of)
      .def("lost", &lost_by)
      .def_prop_ro("memories",
                   [](const RunForPython& self) { return self.run->memories().size(); })
      .def("report", &report_of)
      .def("stream", &table_stream, nb::arg("table"), nb::arg("memory") = 0)
      .def(
          "batches",
          [](const RunForPython& self, const std::string& table, size_t memory) {
            return BatchesForPython(self.run, rows_or_raise(self, table, memory));
          },
          nb::arg("table"), nb::arg("memory") = 0);
  module.def("read_run", &read_run, nb::arg("paths"), nb::arg("seal") = true,
             nb::arg("anonymize") = false);
  module.def("cache_place", &cache_place, nb::arg("paths"), nb::arg("kind"), nb::arg("reader"));
}

}  // namespace gpumemprof::python
