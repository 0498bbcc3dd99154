#pragma once

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

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
