#include "report/json/document_json.h"

#include <nlohmann/json.hpp>

namespace gpumemprof {
namespace {

using DocumentJson = nlohmann::ordered_json;

/// In the order of Tone.
constexpr const char* kToneNames[] = {"plain", "headline", "strong", "bad", "warning", "note",
                                      "dim"};
const char* tone_name(Tone tone) { return kToneNames[static_cast<size_t>(tone)]; }

/// Into JSON, part by part.
class DocumentWriter {
 public:
  explicit DocumentWriter(const EvidenceJson& evidence_json) : evidence_json_(evidence_json) {}

  DocumentJson parts(const std::vector<Part>& parts) const {
    DocumentJson out = DocumentJson::array();
    for (const Part& part : parts)
      out.push_back(std::visit([this](const auto& is) { return json(is); }, part.is));
    return out;
  }
  void add_evidence(const std::optional<EvidencePlace>& evidence, DocumentJson* to) const {
    if (!evidence || !evidence_json_) return;
    DocumentJson told = evidence_json_(*evidence);
    if (!told.is_null()) (*to)["evidence"] = std::move(told);
  }

 private:
  DocumentJson json(const Sentence& sentence) const {
    return {{"kind", "sentence"},
            {"text", sentence.text},
            {"tone", tone_name(sentence.tone)},
            {"label", sentence.label}};
  }

  DocumentJson json(const List& list) const {
    DocumentJson items = DocumentJson::array();
    for (const Item& item : list.items) {
      DocumentJson details = DocumentJson::array();
      for (const Sentence& detail : item.details) details.push_back(json(detail));
      items.push_back({{"label", item.label},
                       {"text", item.text},
                       {"tone", tone_name(item.tone)},
                       {"details", std::move(details)}});
      add_evidence(item.evidence, &items.back());
    }
    return {{"kind", "list"}, {"items", std::move(items)}};
  }

  DocumentJson json(const Table& table) const {
    DocumentJson columns = DocumentJson::array(), rows = DocumentJson::array();
    for (const Column& column : table.columns)
      columns.push_back({{"title", column.title}, {"is_number", column.is_number}});
    for (const Row& row : table.rows) {
      DocumentJson cells = DocumentJson::array();
      for (const TableCell& cell : row.cells) {
        cells.push_back({{"text", cell.text},
                         {"note", cell.note},
                         {"is_code", cell.is_code},
                         {"is_strong", cell.is_strong},
                         {"depth", cell.depth}});
      }
      rows.push_back({{"cells", std::move(cells)},
                      {"details", parts(row.details)},
                      {"share", row.share < 0 ? DocumentJson() : DocumentJson(row.share)}});
      add_evidence(row.evidence, &rows.back());
    }
    return {{"kind", "table"},
            {"columns", std::move(columns)},
            {"rows", std::move(rows)},
            {"left_out_text", left_out_text(table)}};
  }

  DocumentJson json(const Stack& stack) const {
    DocumentJson frames = DocumentJson::array();
    for (const StackFrame& frame : stack.frames) {
      frames.push_back({{"text", frame.text},
                        {"short_text", frame.short_text},
                        {"is_user_code", frame.is_user_code},
                        {"is_kept", frame.is_kept}});
    }
    return {{"kind", "stack"}, {"frames", std::move(frames)}};
  }

  DocumentJson json(const Chart& chart) const {
    DocumentJson lines = DocumentJson::array();
    for (const ChartLine& line : chart.lines)
      lines.push_back({{"name", line.name}, {"times_s", line.times_s}, {"bytes", line.bytes}});
    return {{"kind", "chart"},
            {"title", chart.title},
            {"limit_bytes", chart.limit_bytes ? DocumentJson(*chart.limit_bytes) : DocumentJson()},
            {"lines", std::move(lines)}};
  }

  const EvidenceJson& evidence_json_;
};

}  // namespace

nlohmann::ordered_json document_json(const Document& document,
                                     const EvidenceJson& evidence_json) {
  const DocumentWriter writer(evidence_json);
  DocumentJson sections = DocumentJson::array();
  for (const Section& section : document.sections) {
    sections.push_back({{"title", section.title},
                        {"is_folded", section.is_folded},
                        {"parts", writer.parts(section.parts)}});
    writer.add_evidence(section.evidence, &sections.back());
  }
  return {{"title", document.title}, {"sections", std::move(sections)}};
}

}  // namespace gpumemprof
