#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <opentelemetry/exporters/memory/in_memory_span_data.h>
#include <opentelemetry/nostd/shared_ptr.h>
#include <opentelemetry/sdk/trace/sampler.h>
#include <opentelemetry/trace/tracer.h>

namespace txinbox::test {

/// A span that has ended. Ids are in hexadecimal digits.
struct FinishedSpan {
  std::string name;
  std::string trace;
  std::string id;
  std::string parent;  ///< Empty for the first span of a trace.
  std::string kind;
  std::map<std::string, std::string> attributes;
  std::vector<std::string> links;   ///< "trace-span"
  std::vector<std::string> events;  ///< The names, each with " ID" of its message and " CLASS" of its error.
  bool is_error = false;
  std::string description;

  std::string link_to() const { return trace + "-" + id; }
};

/// A real SDK, whose spans go to memory. While it exists, it is the provider of this process.
class Traces {
 public:
  /// Without a sampler, all spans are sampled.
  explicit Traces(std::unique_ptr<opentelemetry::sdk::trace::Sampler> sampler = {});
  ~Traces();
  Traces(const Traces&) = delete;
  Traces& operator=(const Traces&) = delete;

  /// The tracer of the service.
  opentelemetry::nostd::shared_ptr<opentelemetry::trace::Tracer> tracer() const;

  /// The spans that have ended since the last call, in the order in which they ended.
  std::vector<FinishedSpan> take() const;

 private:
  std::shared_ptr<opentelemetry::exporter::memory::InMemorySpanData> data_;
};

/// The only span of this name. A test fails if there is another number.
const FinishedSpan& only(const std::vector<FinishedSpan>&, const std::string& name);

/// The context of a producer, and its parts.
inline const std::string sent_trace = "0af7651916cd43dd8448eb211c80319c";
inline const std::string sent_span = "b7ad6b7169203331";
inline const std::string sent_context = "00-" + sent_trace + "-" + sent_span + "-01";

}  // namespace txinbox::test
