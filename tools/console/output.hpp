#pragma once

#include <string>
#include <string_view>

namespace txinbox::cli {

/// Call first. Where a standard descriptor is closed, the next file or connection would take its number
/// and then be read or written as if it were it: occupies it with one that fails.
void occupy_standard_descriptors();

/// Standard output, unbuffered: what was written there is there when the process is killed.
class Output {
 public:
  /// Writes text and a line feed. False, now and from then on, when nobody reads any more or the
  /// disk is full; the reason goes to standard error once. SIGPIPE must be ignored.
  bool line(std::string_view text);

  /// The same for text that ends in a line feed already.
  bool lines(std::string_view text);

  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

/// One line on standard error; what has several becomes several.
void message(std::string_view text);

}  // namespace txinbox::cli
