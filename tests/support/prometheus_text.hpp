#pragma once

// A reader of Prometheus' text exposition format 0.0.4. It refuses everything that the format, or Prometheus'
// conventions for counters and histograms, do not allow.

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace txinbox::test {

class PrometheusText {
 public:
  using Labels = std::map<std::string, std::string>;

  explicit PrometheusText(const std::string& text) {
    require(detail::find_invalid_utf8(text) == std::string_view::npos, "not UTF-8");
    require(!text.empty() && text.back() == '\n', "the last line does not end");
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      line_ = text.substr(at, end - at);
      rest_ = line_;
      read_line();
      at = end + 1;
    }
    end_metric();
  }

  /// The value of a sample. Throws if there is no such sample.
  double value(const std::string& name, const Labels& labels) const {
    const auto found = samples_.find({name, labels});
    if (found == samples_.end()) throw std::runtime_error("no sample of " + name);
    return found->second;
  }

  bool has(const std::string& name, const Labels& labels) const { return samples_.contains({name, labels}); }

  /// How many samples have this name.
  std::size_t count(const std::string& name) const {
    std::size_t count = 0;
    for (const auto& [sample, value] : samples_) count += sample.first == name ? 1U : 0U;
    return count;
  }

 private:
  /// The buckets of a histogram with the same labels, in the order of the text.
  struct Buckets {
    double bound = -std::numeric_limits<double>::infinity();
    double count = 0;
    bool complete = false;
  };

  void require(bool holds, const std::string& what) const {
    if (!holds) throw std::runtime_error(what + ": " + line_);
  }

  void read_line() {
    if (take("# HELP ")) {
      end_metric();
      metric_ = name(true);
      require(take(" ") && !rest_.empty(), "no help");
      require(seen_.insert(metric_).second, "a metric comes twice");
    } else if (take("# TYPE ")) {
      require(name(true) == metric_ && type_.empty() && take(" "), "a type of another metric");
      type_ = rest_;
      require(type_ == "counter" || type_ == "histogram" || type_ == "gauge", "a type that is not known");
      require((type_ == "counter") == metric_.ends_with("_total"), "only a counter's name ends in _total");
    } else {
      read_sample();
    }
  }

  void read_sample() {
    const std::string sample = name(true);
    Labels labels = read_labels();
    require(take(" "), "no value");
    const double number = read_number(rest_);
    require(number >= 0 && (sample.ends_with("_sum") || type_ == "gauge" || number == std::floor(number)),
            "not a count");
    require(!type_.empty(), "a sample without a type");
    require(samples_.emplace(std::pair(sample, labels), number).second, "a sample comes twice");
    if (type_ != "histogram") {
      require(sample == metric_, "a sample of another metric");
    } else if (sample == metric_ + "_bucket") {
      const auto bound = labels.extract("le");
      require(!bound.empty(), "a bucket without a bound");
      read_bucket(buckets_[labels], read_number(bound.mapped()), number);
    } else if (sample == metric_ + "_count") {
      require(buckets_[labels].complete && buckets_[labels].count == number, "the count is not that of +Inf");
    } else {
      require(sample == metric_ + "_sum" && !labels.contains("le"), "not a part of a histogram");
    }
  }

  void read_bucket(Buckets& buckets, double bound, double count) const {
    require(bound > buckets.bound, "bounds that do not ascend");
    require(count >= buckets.count, "buckets that are not cumulative");
    buckets = {bound, count, std::isinf(bound)};
  }

  void end_metric() {
    require(metric_.empty() || !type_.empty(), "a metric without a type");
    for (const auto& [labels, buckets] : buckets_) {
      require(buckets.complete, "no bucket +Inf");
      require(samples_.contains({metric_ + "_sum", labels}), "no sum");
      require(samples_.contains({metric_ + "_count", labels}), "no count");
    }
    buckets_.clear();
    type_.clear();
  }

  Labels read_labels() {
    Labels labels;
    if (!take("{")) return labels;
    do {
      const std::string label = name(false);
      require(take("=\""), "no label value");
      require(labels.emplace(label, read_quoted()).second, "a label comes twice");
    } while (take(","));
    require(take("}"), "labels that do not end");
    return labels;
  }

  std::string read_quoted() {
    std::string value;
    for (; !rest_.empty() && rest_.front() != '"'; rest_.remove_prefix(1)) {
      if (rest_.front() != '\\') {
        value += rest_.front();
        continue;
      }
      rest_.remove_prefix(1);
      require(!rest_.empty() && std::string_view("\\\"n").find(rest_.front()) != std::string_view::npos, "bad escape");
      value += rest_.front() == 'n' ? '\n' : rest_.front();
    }
    require(take("\""), "a label value that does not end");
    return value;
  }

  double read_number(std::string_view text) const {
    const std::string copy(text);
    char* end = nullptr;
    const double number = std::strtod(copy.c_str(), &end);
    require(!copy.empty() && *end == '\0' && copy.find_first_of(" xX") == std::string::npos, "not a number");
    require(!std::isinf(number) || copy == "+Inf", "not a number");
    return number;
  }

  std::string name(bool metric) {
    std::size_t length = 0;
    for (const char c : rest_) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (metric && c == ':');
      if (!letter && (length == 0 || c < '0' || c > '9')) break;
      ++length;
    }
    require(length > 0, "no name");
    std::string found(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return found;
  }

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::map<std::pair<std::string, Labels>, double> samples_;
  std::set<std::string> seen_;
  std::map<Labels, Buckets> buckets_;
  std::string metric_, type_, line_;
  std::string_view rest_;
};

}  // namespace txinbox::test
