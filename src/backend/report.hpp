#pragma once

#include <string>
#include <utility>
#include <vector>

#include <txinbox/error.hpp>
#include <txinbox/finding.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Something that makes `verify` fail, or that `doctor` reports.
struct Problem {
  ErrorCode code;  ///< The code that `verify` throws. It is not used if the severity is below error.
  Finding finding;
};

/// Collects what `doctor` prints.
class Report {
 public:
  void note(std::string subject, std::string found, std::string remedy) {
    add(Severity::note, std::move(subject), std::move(found), std::move(remedy));
  }
  void warn(std::string subject, std::string found, std::string remedy) {
    add(Severity::warning, std::move(subject), std::move(found), std::move(remedy));
  }
  void fail(std::string subject, std::string found, std::string remedy) {
    add(Severity::error, std::move(subject), std::move(found), std::move(remedy));
  }
  std::vector<Finding> take() { return std::move(findings_); }

 private:
  void add(Severity severity, std::string subject, std::string found, std::string remedy) {
    findings_.push_back({severity, std::move(subject), std::move(found), std::move(remedy)});
  }

  std::vector<Finding> findings_;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
