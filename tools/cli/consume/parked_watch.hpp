#pragma once

#include <exception>
#include <string>
#include <vector>

#include <txinbox/event.hpp>

namespace txinbox::cli {

/// Notes, as a consumer's observer, which failures have parked their message.
class ParkedWatch {
 public:
  void operator()(const Event& event);

  /// Whether the failure with this error has parked its message.
  bool parked_by(const std::exception_ptr& error) const;

  /// Forgets what was noted.
  void clear() { parked_by_.clear(); }

 private:
  std::string failed_key_;  // of the last event, if a message failed
  std::exception_ptr failed_with_;
  std::vector<std::exception_ptr> parked_by_;
};

}  // namespace txinbox::cli
