#include "cli/consume/parked_watch.hpp"

#include <algorithm>

namespace txinbox::cli {

/// A message that its failure parks is told as failed, and then as parked.
void ParkedWatch::operator()(const Event& event) {
  if (event.type == EventType::parked && failed_with_ && failed_key_ == event.business_key) {
    parked_by_.push_back(failed_with_);
  }
  failed_with_ = event.type == EventType::failed ? event.error : nullptr;
  failed_key_ = event.type == EventType::failed ? event.business_key : std::string_view();
}

bool ParkedWatch::parked_by(const std::exception_ptr& error) const {
  return error && std::ranges::find(parked_by_, error) != parked_by_.end();
}

}  // namespace txinbox::cli
