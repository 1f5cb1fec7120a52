#include "serve/otlp_message.h"

#include <algorithm>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "report/words.h"
#include "serve/metric_families.h"

namespace gpumemprof {
namespace {

using protozero::pbf_tag_type;
using protozero::pbf_writer;

// opentelemetry/proto/metrics/v1/metrics.proto and its neighbours, as of 1.3.
namespace request {
constexpr pbf_tag_type kResourceMetrics = 1;
}
namespace resource_metrics {
constexpr pbf_tag_type kResource = 1, kScopeMetrics = 2, kSchemaUrl = 3;
}
namespace resource {
constexpr pbf_tag_type kAttributes = 1;
}
namespace scope_metrics {
constexpr pbf_tag_type kScope = 1, kMetrics = 2;
}
namespace scope {
constexpr pbf_tag_type kName = 1, kVersion = 2;
}
namespace metric {
constexpr pbf_tag_type kName = 1, kDescription = 2, kUnit = 3, kGauge = 5, kSum = 7;
}
namespace points {
constexpr pbf_tag_type kDataPoints = 1, kTemporality = 2, kIsMonotonic = 3;
}
namespace point {
constexpr pbf_tag_type kTime = 3, kAsDouble = 4, kAsInt = 6, kAttributes = 7;
}
namespace key_value {
constexpr pbf_tag_type kKey = 1, kValue = 2;
}
namespace any_value {
constexpr pbf_tag_type kString = 1, kInt = 3;
}
constexpr int32_t kCumulative = 2;
constexpr const char* kSchemaUrl = "https://opentelemetry.io/schemas/1.38.0";

enum class Shape { kGauge, kUpDownCounter, kCounter };

class OtlpWriter {
 public:
  OtlpWriter(uint64_t time_ns, std::string* out) : time_ns_(time_ns), scope_(*out) {}

  static void attribute(pbf_writer* of, pbf_tag_type tag, std::string_view key,
                        std::string_view text) {
    if (text.empty()) return;
    pbf_writer pair(*of, tag);
    pair.add_string(key_value::kKey, std::string(key));
    pbf_writer value(pair, key_value::kValue);
    value.add_string(any_value::kString, printable(text));  // strings of protobuf are UTF-8
  }
  static void attribute(pbf_writer* of, pbf_tag_type tag, std::string_view key, int64_t number) {
    pbf_writer pair(*of, tag);
    pair.add_string(key_value::kKey, std::string(key));
    pbf_writer value(pair, key_value::kValue);
    value.add_int64(any_value::kInt, number);
  }

  /// `put_points` is called with what takes one point after the other.
  template <class PutPoints>
  void metric_of(const std::string& name, std::string_view help, const std::string& unit,
                 Shape shape, PutPoints put_points) {
    std::string data;
    {
      pbf_writer points(data);
      put_points(&points);
      if (data.empty()) return;
      if (shape != Shape::kGauge) points.add_enum(points::kTemporality, kCumulative);
      if (shape == Shape::kCounter) points.add_bool(points::kIsMonotonic, true);
    }
    pbf_writer out(scope_, scope_metrics::kMetrics);
    out.add_string(metric::kName, name);
    out.add_string(metric::kDescription, std::string(help));
    out.add_string(metric::kUnit, unit);
    out.add_message(shape == Shape::kGauge ? metric::kGauge : metric::kSum, data);
  }

  /// `put_attributes` is called with the point.
  template <class Number, class PutAttributes>
  void point_of(pbf_writer* points, Number value, PutAttributes put_attributes) {
    pbf_writer out(*points, points::kDataPoints);
    put_attributes(&out);
    out.add_fixed64(point::kTime, time_ns_);
    if constexpr (std::is_floating_point_v<Number>)
      out.add_double(point::kAsDouble, value);
    else
      out.add_sfixed64(point::kAsInt, static_cast<int64_t>(value));
    ++points_;
  }
  uint64_t point_count() const { return points_; }

 private:
  uint64_t time_ns_, points_ = 0;
  pbf_writer scope_;
};

void put_hardware(const PictureAccelerator& device, pbf_writer* point) {
  const auto put = [&](std::string_view key, std::string_view text) {
    OtlpWriter::attribute(point, point::kAttributes, key, text);
  };
  put("hw.id", device.uuid.empty() ? device.name : device.uuid);
  put("hw.type", "gpu");
  put("hw.name", device.name), put("hw.model", device.model), put("hw.vendor", device.vendor);
  put("hw.driver_version", device.driver_version);
}

void put_accelerators(const PictureAccelerators& accelerators, OtlpWriter* out) {
  const auto each = [&](const char* name, const char* help, const char* unit, Shape shape,
                        auto value) {
    out->metric_of(name, help, unit, shape, [&](pbf_writer* points) {
      for (const PictureAccelerator& device : accelerators.devices) {
        if (const auto known = value(device))
          out->point_of(points, *known, [&](pbf_writer* point) { put_hardware(device, point); });
      }
    });
  };
  using Device = PictureAccelerator;
  each("hw.gpu.memory.limit", "Size of the GPU memory.", "By", Shape::kUpDownCounter,
       [](const Device& d) { return d.total.bytes; });
  each("hw.gpu.memory.usage", "GPU memory used.", "By", Shape::kUpDownCounter,
       [](const Device& d) { return d.used.bytes; });
  each("hw.gpu.memory.utilization", "Fraction of GPU memory used.", "1", Shape::kGauge,
       [](const Device& d) -> std::optional<double> {
         if (!d.used || !d.total || *d.total.bytes == 0) return std::nullopt;
         return static_cast<double>(*d.used.bytes) / static_cast<double>(*d.total.bytes);
       });
  each("hw.gpu.utilization", "Fraction of time that the GPU was busy, as its driver says.", "1",
       Shape::kGauge, [](const Device& d) -> std::optional<double> {
         if (!d.utilization_percent) return std::nullopt;
         return static_cast<double>(*d.utilization_percent.value) / 100;
       });
}

void put_labels(const MetricLabels& labels, pbf_writer* point) {
  for (const auto& [label, text] : labels) {
    if (label == "pid")
      OtlpWriter::attribute(point, point::kAttributes, "process.pid", std::stoll(text));
    else
      OtlpWriter::attribute(point, point::kAttributes, label, text);
  }
}

void put_family(const MetricFamily& family, OtlpWriter* out) {
  const OtlpName name = otlp_name(family.name);
  const Shape shape = family.kind == MetricKind::kCounter ? Shape::kCounter : Shape::kGauge;
  out->metric_of(name.name, family.help, name.unit, shape, [&](pbf_writer* points) {
    for (const MetricSample& sample : family.samples) {
      std::visit(
          [&](auto value) {
            out->point_of(points, value,
                          [&](pbf_writer* point) { put_labels(sample.labels, point); });
          },
          sample.value);
    }
  });
}

}  // namespace

OtlpName otlp_name(std::string_view family) {
  constexpr std::string_view kOurs = "gpumemprof_";
  constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
      {"_bytes_per_second", "By/s"}, {"_bytes", "By"}, {"_ratio", "1"}};
  constexpr std::string_view kSpaces[] = {"host_memory_", "recording_",     "process_",
                                          "kernel_",      "device_memory_", "otlp_"};
  if (family.starts_with(kOurs)) family.remove_prefix(kOurs.size());
  OtlpName out{"gpumemprof.", "1"};
  for (const auto& [suffix, unit] : kUnits) {
    if (!family.ends_with(suffix)) continue;
    family.remove_suffix(suffix.size());
    out.unit = unit;
    break;
  }
  for (const std::string_view space : kSpaces) {
    if (!family.starts_with(space)) continue;
    for (const char c : space) out.name += c == '_' ? '.' : c;
    family.remove_prefix(space.size());
    break;
  }
  out.name += family;
  return out;
}

std::string otlp_metrics(const Picture& picture, std::string_view version, uint64_t* points) {
  std::string metrics;
  OtlpWriter writer(static_cast<uint64_t>(picture.time_ns), &metrics);
  put_accelerators(picture.accelerators, &writer);
  for (const MetricFamily& family : metric_families(picture, version)) {
    // The conventions have these under names of their own, and the resource has the version.
    const bool is_told =
        family.name.starts_with("gpumemprof_device_") || family.name == "gpumemprof_build_info";
    if (!is_told) put_family(family, &writer);
  }
  *points = writer.point_count();
  std::string out;
  {
    pbf_writer request(out);
    pbf_writer of_resource(request, request::kResourceMetrics);
    {
      pbf_writer resource(of_resource, resource_metrics::kResource);
      const auto put = [&](std::string_view key, std::string_view text) {
        OtlpWriter::attribute(&resource, resource::kAttributes, key, text);
      };
      put("service.name", "gpumemprof"), put("service.version", version);
      put("host.name", picture.host);
    }
    {
      std::string scope;
      pbf_writer of_scope(scope);
      of_scope.add_string(scope::kName, "gpumemprof");
      of_scope.add_string(scope::kVersion, std::string(version));
      std::string in_scope;
      pbf_writer(in_scope).add_message(scope_metrics::kScope, scope);
      of_resource.add_message(resource_metrics::kScopeMetrics, in_scope + metrics);
    }
    of_resource.add_string(resource_metrics::kSchemaUrl, kSchemaUrl);
  }
  return out;
}

uint64_t rejected_points(std::string_view response, uint64_t sent) {
  using protozero::pbf_wire_type;
  try {
    protozero::pbf_reader reader(response.data(), response.size());
    while (reader.next(1, pbf_wire_type::length_delimited)) {
      protozero::pbf_reader partial = reader.get_message();
      while (partial.next(1, pbf_wire_type::varint)) {
        const int64_t rejected = partial.get_int64();
        return rejected > 0 ? std::min(static_cast<uint64_t>(rejected), sent) : 0;
      }
    }
  } catch (const protozero::exception&) {  // not what the specification wants; nothing is concluded
  }
  return 0;
}

}  // namespace gpumemprof
